package clickhousetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Process is a server in a process of its own.
type Process struct {
	what   string
	cmd    *exec.Cmd
	output string // the file of what it says
	ended  chan struct{}
	killed bool
}

// processStart bounds how long a server takes to be of use.
const processStart = time.Minute

// start runs a server in a folder until the test ends, and returns when it takes
// connections at all of its addresses. What it says goes to the file output there.
func start(t testing.TB, what string, cmd *exec.Cmd, dir string, addrs ...string) *Process {
	t.Helper()
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, output, output
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s does not start: %v", what, err)
	}
	p := &Process{what: what, cmd: cmd, output: output.Name(), ended: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(p.ended) }()
	t.Cleanup(func() { p.stop(t) })
	for _, addr := range addrs {
		p.await(t, func() error {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				return err
			}
			return conn.Close()
		})
	}
	return p
}

// await returns when the server is of use: when that has no error.
func (p *Process) await(t testing.TB, use func() error) {
	t.Helper()
	for end := time.Now().Add(processStart); ; {
		err := use()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not start: %v", p.what, err)
		}
		select {
		case <-p.ended:
			t.Fatalf("%s does not start", p.what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// maxSaid is how much of what a server said last is repeated.
const maxSaid = 4000

func (p *Process) said() []byte {
	text, _ := os.ReadFile(p.output)
	return text[max(0, len(text)-maxSaid):]
}

// stop ends the server with the test, which fails if the server has ended by itself.
func (p *Process) stop(t testing.TB) {
	select {
	case <-p.ended:
		if !p.killed {
			t.Errorf("%s has ended by itself: %s\n%s", p.what, p.cmd.ProcessState, p.said())
		}
	default:
		p.Kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", p.what, p.said())
		}
	}
}

// Kill ends the server as a crash would.
func (p *Process) Kill() {
	p.killed = true
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Hang lets the server do nothing until it may go on.
func (p *Process) Hang() (goOn func(), err error) {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return func() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }, nil
}

// freePorts are ports of the loopback address that nobody listens at.
func freePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
