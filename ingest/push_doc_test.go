package ingest

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pushPage is what is promised to shippers.
func pushPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/push.md")
	must(t, err)
	return string(page)
}

// The limits are those that are documented, to the byte.
func TestPushLimitsAreDocumented(t *testing.T) {
	page := pushPage(t)
	for _, row := range []string{
		"| body | 16 MiB as it is sent; 64 MiB when decompressed, and half of `spool_max` |",
		"| line | 1 MiB, with its newline |", "| all pushes under way | 256 MiB decompressed |", "window of at most 8 MiB",
	} {
		if !strings.Contains(page, row) {
			t.Errorf("docs/push.md lacks %q", row)
		}
	}
	if maxMemory != 256<<20 || maxWindow != 8<<20 {
		t.Error("all pushes, or a zstd window, may take another size")
	}
	open := func(max int64) *Push {
		p, err := NewPush(PushConfig{Listen: "127.0.0.1:0", Spool: SpoolConfig{Dir: t.TempDir(), Max: max}})
		must(t, err)
		t.Cleanup(func() { p.Close() })
		return p
	}
	p := open(1 << 30)
	line := func(n int) string { return strings.Repeat("x", n-1) + "\n" }
	lines := func(n int) []byte { return bytes.Repeat([]byte(line(1<<10)), n>>10) }
	for _, c := range []struct {
		name   string
		p      *Push
		body   []byte
		zipped bool
		status int
	}{
		{"16 MiB", p, lines(16 << 20), false, 200},
		{"16 MiB and more", p, append(lines(16<<20), '\n'), false, 413},
		{"64 MiB decompressed", p, lines(64 << 20), true, 200},
		{"64 MiB and more decompressed", p, append(lines(64<<20), '\n'), true, 413},
		{"a line of 1 MiB", p, []byte(line(1 << 20)), false, 200},
		{"a longer line", p, []byte(line(1<<20 + 1)), false, 413},
		{"half of the spool", open(1 << 20), lines(512 << 10), false, 200},
		{"more than half of the spool", open(1 << 20), append(lines(512<<10), '\n'), false, 413},
	} {
		body, fields := c.body, []string(nil)
		if c.zipped {
			body, fields = zstded(t, string(c.body)), []string{"Content-Encoding", "zstd"}
		}
		if w := send(c.p, "POST", "/ingest", bytes.NewReader(body), fields...); w.Code != c.status {
			t.Errorf("%s: %d %.200s", c.name, w.Code, w.Body)
		}
	}
}

// Every content type that is documented is taken, and every answer that there is is
// documented.
func TestPushAnswersAreDocumented(t *testing.T) {
	page := pushPage(t)
	row := regexp.MustCompile("(?m)^\\| `Content-Type` \\|.*$").FindString(page)
	row, _, _ = strings.Cut(row, "It does not change") // what follows is about JSON arrays
	types := regexp.MustCompile("`([a-z]+/[a-z*-]+)`").FindAllStringSubmatch(row, -1)
	if len(types) != 8 {
		t.Errorf("%d content types in %q", len(types), row)
	}
	p := newTestPush(t, PushConfig{}, realDisk())
	for _, m := range types {
		kind := strings.Replace(m[1], "*", "csv", 1)
		if w := send(p, "POST", "/ingest", strings.NewReader("a\n"), "Content-Type", kind); w.Code != 200 {
			t.Errorf("%s: %d", kind, w.Code)
		}
	}
	source := ""
	for _, name := range []string{"push.go", "push_body.go", "push_token.go"} {
		b, err := os.ReadFile(name)
		must(t, err)
		source += string(b)
	}
	numbers := map[string]string{
		"BadRequest": "400", "Unauthorized": "401", "NotFound": "404", "MethodNotAllowed": "405", "RequestEntityTooLarge": "413",
		"UnsupportedMediaType": "415", "TooManyRequests": "429", "ServiceUnavailable": "503", "InsufficientStorage": "507",
	}
	answers := []string{"200"}
	for _, m := range regexp.MustCompile(`http\.Status([A-Z][A-Za-z]+)`).FindAllStringSubmatch(source, -1) {
		if m[1] == "Text" {
			continue
		}
		if numbers[m[1]] == "" {
			t.Errorf("status %s is not known to this test", m[1])
		}
		answers = append(answers, numbers[m[1]])
	}
	slices.Sort(answers)
	var documented []string
	for _, m := range regexp.MustCompile(`(?m)^\| (\d{3}) \|`).FindAllStringSubmatch(page, -1) {
		documented = append(documented, m[1])
	}
	if answers = slices.Compact(answers); !slices.Equal(answers, documented) {
		t.Errorf("answers %v, documented %v", answers, documented)
	}
}

func TestPushTokens(t *testing.T) {
	var log bytes.Buffer
	p := newTestPush(t, PushConfig{
		Tokens: [][]byte{[]byte("first-token"), []byte("second token")},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, realDisk())
	kept := 0
	for _, c := range []struct {
		header string
		ok     bool
	}{
		{"Bearer first-token", true}, {"bearer first-token", true}, {"Bearer second token", true}, {"Bearer  first-token ", true},
		{"", false}, {"Bearer", false}, {"Bearer ", false}, {"Bearer first-toke", false}, {"Bearer first-token2", false},
		{"Basic first-token", false}, {"first-token", false}, {"Bearer first-token,second token", false},
	} {
		for _, path := range []string{"/ingest", "/elsewhere"} {
			w := send(p, "POST", path, strings.NewReader("a secret line\n"), "Authorization", c.header)
			if refused := w.Code == http.StatusUnauthorized; refused == c.ok {
				t.Errorf("%q at %s: %d", c.header, path, w.Code)
			}
			if !c.ok && (!strings.HasPrefix(w.Header().Get("Www-Authenticate"), "Bearer") || w.Header().Get("Content-Type") != "application/problem+json") {
				t.Errorf("%q: %v", c.header, w.Header())
			}
		}
		if c.ok {
			kept++
		}
	}
	if lines, _, _ := readSpool(t, p.spool, 0); len(lines) != kept {
		t.Errorf("%d lines are kept of %d", len(lines), kept)
	}
	if strings.Contains(log.String(), "token") || strings.Contains(log.String(), "secret") {
		t.Errorf("the log has %s", log.String())
	}
}

// With TLS a push comes by it or not at all.
func TestPushTLS(t *testing.T) {
	issuer := httptest.NewTLSServer(http.NotFoundHandler()) // has a certificate for 127.0.0.1, and a client that trusts it
	defer issuer.Close()
	client := issuer.Client()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p, err := NewPush(PushConfig{
		Listener: l, Spool: SpoolConfig{Dir: t.TempDir()}, Tokens: [][]byte{[]byte("token")},
		TLS: &tls.Config{Certificates: issuer.TLS.Certificates},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, nobody{}) }()
	push := func(scheme string) (int, error) {
		r, err := http.NewRequest("POST", scheme+"://"+l.Addr().String()+"/ingest", strings.NewReader("a\n"))
		must(t, err)
		r.Header.Set("Authorization", "Bearer token")
		w, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		w.Body.Close()
		return w.StatusCode, nil
	}
	if status, err := push("https"); err != nil || status != 200 {
		t.Errorf("with TLS: %d, %v", status, err)
	}
	if status, err := push("http"); err == nil && status == 200 {
		t.Error("a push without TLS is taken")
	}
	client.CloseIdleConnections()
	cancel()
	must(t, <-done)
	if lines, _, _ := readSpool(t, newSpool(t, SpoolConfig{Dir: p.spool.cfg.Dir}, realDisk()), 0); len(lines) != 1 {
		t.Errorf("%d lines are kept", len(lines))
	}
}
