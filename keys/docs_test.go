package keys

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// docBlock returns the only fenced block of that language in docs/keys.md.
func docBlock(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "keys.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "\n```"+language+"\n")
	block, after, closed := strings.Cut(rest, "\n```\n")
	if !ok || !closed || strings.Contains(after, "\n```"+language+"\n") {
		t.Fatalf("docs/keys.md has not exactly one block of %s", language)
	}
	return block + "\n"
}

// runSnippet runs a documented snippet with a driver behind it, and returns the lines it prints.
func runSnippet(t *testing.T, program, file, code string) []string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed", program)
	}
	name := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(name, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, name)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, stderr.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// expectSnippet wants: a key forwarded twice the same, nothing outside a question, and further keys; all distinct ones verified.
func expectSnippet(t *testing.T, lines []string, schemes ...string) {
	t.Helper()
	if len(lines) != 3+len(schemes) {
		t.Fatalf("printed %q", lines)
	}
	if lines[0] != lines[1] {
		t.Errorf("two tries of one question carry %q and %q", lines[0], lines[1])
	}
	if lines[2] != "none" {
		t.Errorf("outside a question %q is sent", lines[2])
	}
	ring := mustRing(t, fixedConfig())
	seen := map[string]bool{}
	for i, text := range append(lines[:1:1], lines[3:]...) {
		want := append([]string{"qk1"}, schemes...)[i]
		e := ring.Verify(text, time.Now())
		if e.Class != Verified || e.Scheme != want || e.Originator != "web" || e.Age > time.Minute || seen[text] {
			t.Errorf("%q is %v (%s), want a new %s key", text, e.Class, e.Detail, want)
		}
		seen[text] = true
	}
}

func TestPythonSnippet(t *testing.T) {
	lines := runSnippet(t, "python3", "snippet.py", docBlock(t, "python")+`
secret = b"`+secretA+`"
token = current.set(mint("web", "a", secret))
print(headers()["Question-Key"])
print(headers()["Question-Key"])
current.reset(token)
print(headers().get("Question-Key", "none"))
print(mint("web", "a", secret))
assert _base36(0) == "0" and _base36(1767225600123) == "mjuohs3f"
`)
	expectSnippet(t, lines, "qk1")
}

func TestJavaScriptSnippet(t *testing.T) {
	seed, _ := hex.DecodeString(seedHex)
	public, _ := hex.DecodeString(publicHex)
	lines := runSnippet(t, "node", "snippet.js", docBlock(t, "javascript")+`
const secret = "`+secretA+`";
current.run(mint("web", "a", secret), () => {
  console.log(headers()["Question-Key"]);
  console.log(headers()["Question-Key"]);
});
console.log(headers()["Question-Key"] ?? "none");
console.log(mint("web", "a", secret));
console.log(mintSigned("web", "e", "`+base64.RawURLEncoding.EncodeToString(seed)+`", "`+base64.RawURLEncoding.EncodeToString(public)+`"));
`)
	expectSnippet(t, lines, "qk1", "qk2")
}

func TestJavaSnippet(t *testing.T) {
	if testing.Short() {
		t.Skip("the Java compiler takes its time")
	}
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skip("no Java compiler is installed")
	}
	imports, class, _ := strings.Cut(docBlock(t, "java"), "\nfinal class ")
	lines := runSnippet(t, "java", "Main.java", imports+`
class Main {
    public static void main(String[] args) throws Exception {
        byte[] secret = "`+secretA+`".getBytes("US-ASCII");
        QuestionKey.CURRENT.set(QuestionKey.mint("web", "a", secret));
        System.out.println(QuestionKey.forward().get());
        System.out.println(QuestionKey.forward().get());
        QuestionKey.CURRENT.remove();
        System.out.println(QuestionKey.forward().orElse("none"));
        System.out.println(QuestionKey.mint("web", "a", secret));
    }
}

final class `+class)
	expectSnippet(t, lines, "qk1")
}

func TestNginxSnippet(t *testing.T) {
	path, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed")
	}
	dir, temp := t.TempDir(), ""
	for _, module := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += module + "_temp_path temp;\n"
	}
	conf := "pid nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\n" + temp + docBlock(t, "nginx") + "}\n"
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), path, "-t", "-p", dir, "-c", "nginx.conf").CombinedOutput(); err != nil {
		t.Errorf("nginx -t: %v\n%s", err, out)
	}
}

// The page shows the vector's key and public key, and names every scheme and reason.
func TestPageIsComplete(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "keys.md"))
	if err != nil {
		t.Fatal(err)
	}
	public, _ := hex.DecodeString(publicHex)
	want := []string{vectorWeb, base64.RawURLEncoding.EncodeToString(public), Header}
	for _, s := range Schemes() {
		want = append(want, "`"+s+"`")
	}
	for r := Absent; int(r) < NumReasons; r++ {
		want = append(want, "| `"+r.String()+"` |")
	}
	for _, w := range want {
		if !strings.Contains(string(page), w) {
			t.Errorf("docs/keys.md does not mention %s", w)
		}
	}
}
