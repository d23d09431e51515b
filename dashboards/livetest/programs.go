// Package livetest runs what stands around a daemon, and daemons, for tests: traffic, a
// real Prometheus, a real Alertmanager, and somebody who is called.
//
// What it starts listens on a free port of the loopback and is stopped by the test. A
// program that is not installed skips the test with the name of its package, and fails
// it where CI is set.
package livetest

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Find is the path of a program by one of its names, which are in a package of Debian.
func Find(t testing.TB, debian string, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "%s is not installed: it is in Debian's package %s"
	if os.Getenv("CI") != "" {
		t.Fatalf(missing, names[0], debian)
	}
	t.Skipf(missing, names[0], debian)
	return ""
}

// Auditor builds the program anew.
func Auditor(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "auditor")
	build := exec.Command("go", "build", "-pgo=off", "-o", program, "github.com/targetside/auditor/cmd/auditor")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// Process is a program that runs.
type Process struct {
	// Said is what the line that it was waited for has in parentheses.
	Said string
	// Stop asks it to end, and Kill does not ask; both wait for that, and may be called
	// again.
	Stop, Kill func()
}

// mostTime is how long a program may take to begin or to end.
const mostTime = 30 * time.Second

// Start runs a program until the test ends, and waits for the first line of its output
// that fits an expression with one group.
func Start(t testing.TB, line string, cmd *exec.Cmd) *Process {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	found, ended := make(chan string, 1), make(chan struct{})
	go func() { // to the end, or the program would wait for a reader
		defer close(ended)
		defer r.Close()
		last, fits, fitted := []string{}, regexp.MustCompile(line), false
		for s := bufio.NewScanner(r); s.Scan(); {
			if m := fits.FindStringSubmatch(s.Text()); m != nil && !fitted {
				fitted = true
				found <- m[1]
			}
			last = append(last, s.Text())[max(0, len(last)-20):]
		}
		if !fitted || t.Failed() {
			t.Logf("%s said:\n%s", cmd.Path, strings.Join(last, "\n"))
		}
		if !fitted {
			found <- ""
		}
	}()
	over := sync.OnceFunc(func() { <-ended; cmd.Wait() })
	p := &Process{
		Stop: func() {
			cmd.Process.Signal(syscall.SIGINT)
			kill := time.AfterFunc(mostTime, func() {
				t.Errorf("%s did not stop", cmd.Path)
				cmd.Process.Kill()
			})
			defer kill.Stop()
			over()
		},
		Kill: func() { cmd.Process.Kill(); over() },
	}
	t.Cleanup(p.Stop)
	select {
	case p.Said = <-found:
		if p.Said == "" {
			t.Fatalf("%s has ended", cmd.Path)
		}
	case <-time.After(mostTime):
		t.Fatalf("%s does not say %s", cmd.Path, line)
	}
	return p
}

// Run starts a daemon on a configuration. Said is its address.
func Run(t testing.TB, auditor, config string) *Process {
	t.Helper()
	return Start(t, `figures at http://([0-9.:]+)/`, exec.Command(auditor, "run", "--config", config))
}

// Traffic makes a wave of it each tenth of a second until the test ends, or until there
// is an error, which fails the test.
func Traffic(t testing.TB, wave func(now time.Time) error) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case now := <-tick.C:
				if err := wave(now); err != nil {
					t.Errorf("traffic: %v", err)
					return
				}
			}
		}
	}()
}

// Free is an address of the loopback on which nobody listens.
func Free(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Until polls until f has nothing to say against it.
func Until(t testing.TB, most time.Duration, f func() string) {
	t.Helper()
	if lacks := poll(most, f, func(lacks string) bool { return lacks == "" }); lacks != "" {
		t.Fatalf("not within %v:\n%s", most, lacks)
	}
}

// While polls for so long, and fails the test when f has something to say against it.
func While(t testing.TB, long time.Duration, f func() string) {
	t.Helper()
	if fault := poll(long, f, func(fault string) bool { return fault != "" }); fault != "" {
		t.Fatal(fault)
	}
}

// poll asks until an answer is the last one or the time is over, and returns the last.
func poll(most time.Duration, f func() string, last func(string) bool) string {
	end := time.NewTimer(most)
	defer end.Stop()
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	for {
		answer := f()
		if last(answer) {
			return answer
		}
		select {
		case <-end.C:
			return answer
		case <-again.C:
		}
	}
}
