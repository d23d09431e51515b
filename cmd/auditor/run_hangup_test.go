//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// output is what a process says, while it does.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) says(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.text.String(), text)
}

// The program reads its configuration anew on SIGHUP, keeps the one it has when that
// is wrong, and ends as ever.
func TestHangup(t *testing.T) {
	b := newBench(t)
	said := new(output)
	cmd := exec.Command(binary(t), "run", "--config", b.path("auditor.yaml"))
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	hangup := func(config, says string) {
		t.Helper()
		b.write("auditor.yaml", config)
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		until(t, "the log says "+says, func() bool { return said.says(says) })
	}
	until(t, "it runs", func() bool { return said.says("figures at") })
	hangup(strings.Replace(b.config, "3s", "3", 1), "keys.horizon: ")
	hangup(strings.Replace(b.config, "{id}", "{seat}", 1), "changed=[routes.templates] recounts=true")
	hangup(b.config+"budget: {ratio: 0.3}\n", `changed="[budget.ratio routes.templates]"`)
	cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, said.text.String())
	}
}
