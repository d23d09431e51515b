package main

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/store"
)

var updateReadme = flag.Bool("update-readme", false, "write what the README's session prints into it")

// TestReadmeSession runs the sessions of the README and holds what they print
// against what it says.
func TestReadmeSession(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	const fence = "```console\n"
	var out strings.Builder
	sessions := 0
	rest := string(text)
	for {
		before, after, ok := strings.Cut(rest, fence)
		out.WriteString(before)
		if !ok {
			break
		}
		session, tail, ok := strings.Cut(after, "```\n")
		if !ok {
			t.Fatal("a session has no end")
		}
		sessions++
		command, _, _ := strings.Cut(session, "\n")
		want := command + "\n" + runSession(t, strings.TrimPrefix(command, "$ auditor "))
		if session != want && !*updateReadme {
			t.Errorf("the README says\n%s\nand the program prints\n%s", session, want)
		}
		out.WriteString(fence + want + "```\n")
		rest = tail
	}
	if sessions == 0 {
		t.Error("the README has no session")
	}
	if *updateReadme {
		if err := os.WriteFile("README.md", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The configurations that the README shows are valid ones.
func TestReadmeConfigurations(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```yaml\n")
	for _, part := range parts[1:] {
		text, _, _ := strings.Cut(part, "```\n")
		c, err := config.Parse(filepath.Join(t.TempDir(), "README.md"), []byte(text), os.LookupEnv)
		if err != nil {
			t.Error(err)
			continue
		}
		for i := range c.Sources {
			if _, _, err := openSource(i, &c.Sources[i], store.NewMemory(), slog.New(slog.DiscardHandler)); err != nil {
				t.Error(err)
			}
		}
	}
	if len(parts) < 2 {
		t.Error("the README has no configuration")
	}
}

// The commands that the README names are there, with their flags.
func TestReadmeCommands(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^    (make|auditor|zcat .* \| auditor) ([a-z]+)`).FindAllStringSubmatch(string(text), -1) {
		known := m[1] == "make" && strings.Contains(string(makefile), "\n"+m[2]+": ")
		for _, c := range subcommands() {
			known = known || m[1] != "make" && c.name == m[2]
		}
		if !known {
			t.Errorf("the README names %q, which there is not", strings.TrimSpace(m[0]))
		}
	}
}

// runSession runs a command line and returns what it prints, or the first lines
// of it after "| head -n".
func runSession(t *testing.T, line string) string {
	line, head, cut := strings.Cut(line, " | head -n ")
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), &program{stdout: &stdout, stderr: &stderr, getenv: os.LookupEnv, now: time.Now}, strings.Fields(line))
	if code != exitOK {
		t.Fatalf("%s: exit status %d\n%s", line, code, &stderr)
	}
	if !cut {
		return stdout.String()
	}
	n, err := strconv.Atoi(head)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(stdout.String(), "\n")
	return strings.Join(lines[:min(n, len(lines))], "")
}
