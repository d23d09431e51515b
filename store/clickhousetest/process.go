package clickhousetest

import (
	"errors"
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
	cmd    *exec.Cmd
	output string // the file of what it says
	ended  chan struct{}
	killed bool
}

// processStart bounds how long a server takes to listen.
const processStart = time.Minute

// start runs a server in a folder, and returns when it takes connections at all of its
// addresses. What it says goes to the file output there; an error repeats that.
func start(what string, cmd *exec.Cmd, dir string, addrs ...string) (*Process, error) {
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, err
	}
	defer output.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, output, output
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, output: output.Name(), ended: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(p.ended) }()
	if err := p.await(addrs); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%s does not start: %w\n%s", what, err, p.said())
	}
	return p, nil
}

// await returns when the server takes connections at its addresses.
func (p *Process) await(addrs []string) error {
	end := time.Now().Add(processStart)
	for _, addr := range addrs {
		for {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				_ = conn.Close()
				break
			}
			if time.Now().After(end) {
				return err
			}
			select {
			case <-p.ended:
				return errors.New("it has ended")
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
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
			t.Errorf("a server has ended by itself: %s\n%s", p.cmd.ProcessState, p.said())
		}
	default:
		p.Kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(p.cmd.Path), p.said())
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
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
