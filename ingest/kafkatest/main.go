//go:build unix

// Command kafkatest starts a real Kafka broker on a free port of this machine, runs
// a command with its address in AUDITOR_KAFKA, and stops both:
//
//	go run ./ingest/kafkatest go test ./cmd/auditor
//
// Without a command the broker runs until it is interrupted. It needs Java 17 or
// later, and Maven the first time. What it fetches lies in .cache/kafka; what the
// broker wrote is deleted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	cache := flag.String("cache", filepath.Join(".cache", "kafka"), "keep what is fetched in `DIR`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, *cache, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "kafkatest:", err)
		code = 1
	}
	os.Exit(code)
}

// run returns what the command exited with.
func run(ctx context.Context, cache string, command []string) (int, error) {
	jars, err := fetch(ctx, cache)
	if err != nil {
		return 0, err
	}
	b, err := start(ctx, jars, cache)
	if err != nil {
		return 0, err
	}
	defer b.stop()
	if len(command) == 0 {
		fmt.Println(b.address)
		select {
		case <-ctx.Done():
			return 0, nil
		case <-b.ended:
			return 0, b.died()
		}
	}
	c := exec.Command(command[0], command[1:]...)
	c.Env = append(os.Environ(), "AUDITOR_KAFKA="+b.address)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		return 0, err
	}
	// Whatever the command started and left behind ends with it.
	defer syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	select {
	case err = <-done:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-b.ended:
		return 0, b.died()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}
