//go:build unix

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"text/template"
	"time"
)

//go:embed pom.xml
var pom []byte

//go:embed server.properties.tmpl
var properties string

// fetch returns the folder that holds the broker and all that it needs, which
// Maven fills the first time.
func fetch(ctx context.Context, cache string) (string, error) {
	jars, err := filepath.Abs(filepath.Join(cache, "lib"))
	if err != nil {
		return "", err
	}
	mark := filepath.Join(jars, "pom.xml") // what it was filled by
	if had, err := os.ReadFile(mark); err == nil && bytes.Equal(had, pom) {
		return jars, nil
	}
	if err := os.RemoveAll(jars); err != nil {
		return "", err
	}
	if err := os.MkdirAll(jars, 0o755); err != nil {
		return "", err
	}
	wanted := filepath.Join(filepath.Dir(jars), "pom.xml")
	if err := os.WriteFile(wanted, pom, 0o644); err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "kafkatest: fetching Apache Kafka with mvn into", jars)
	mvn := exec.CommandContext(ctx, "mvn", "-B", "-q", "-f", wanted, "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+jars)
	mvn.Stdout, mvn.Stderr = os.Stderr, os.Stderr
	if err := mvn.Run(); err != nil {
		return "", fmt.Errorf("fetch Apache Kafka (Debian: apt-get install maven default-jre-headless): %w", err)
	}
	return jars, os.WriteFile(mark, pom, 0o644)
}

// broker is a Kafka that runs.
type broker struct {
	address string
	dir     string
	java    *exec.Cmd
	output  *os.File
	ended   chan struct{}
	err     error // how it ended
}

// startTime bounds how long a broker takes to answer.
const startTime = 2 * time.Minute

// start runs a broker without topics, and returns when it answers.
func start(ctx context.Context, jars, cache string) (_ *broker, err error) {
	dir, err := os.MkdirTemp(cache, "broker-")
	if err != nil {
		return nil, err
	}
	b := &broker{ended: make(chan struct{})}
	defer func() {
		if err != nil {
			b.stop()
		}
	}()
	if b.dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	b.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	config := filepath.Join(b.dir, "server.properties")
	var text bytes.Buffer
	if err := template.Must(template.New("").Parse(properties)).Execute(&text, map[string]any{
		"Broker": ports[0], "Controller": ports[1], "Data": filepath.Join(b.dir, "data"),
	}); err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, text.Bytes(), 0o600); err != nil {
		return nil, err
	}
	if b.output, err = os.Create(filepath.Join(b.dir, "output")); err != nil {
		return nil, err
	}
	class := filepath.Join(jars, "*")
	format := exec.CommandContext(ctx, "java", "-cp", class, "kafka.tools.StorageTool", "format", "-t", "a3Vmb3J0ZXN0c29mYXVkaQ", "-c", config)
	if out, err := format.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("format storage: %w\n%s", err, out)
	}
	b.java = exec.Command("java", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", class, "kafka.Kafka", config)
	b.java.Stdout, b.java.Stderr = b.output, b.output
	b.java.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for us to pass on
	if err := b.java.Start(); err != nil {
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	go func() { b.err = b.java.Wait(); close(b.ended) }()
	return b, b.await(ctx)
}

// await returns when the broker takes connections.
func (b *broker) await(ctx context.Context) error {
	for end := time.Now().Add(startTime); ; {
		conn, err := net.Dial("tcp", b.address)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(end) {
			return fmt.Errorf("the broker does not answer within %v: %w", startTime, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.ended:
			return b.died()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// died says how the broker ended by itself.
func (b *broker) died() error {
	said, _ := os.ReadFile(b.output.Name())
	return errors.Join(errors.New("the broker has ended"), b.err, errors.New(string(said)))
}

// stop ends the broker and deletes what it wrote.
func (b *broker) stop() {
	if b.java != nil && b.java.Process != nil {
		b.java.Process.Kill()
		<-b.ended
	}
	if b.output != nil {
		b.output.Close()
	}
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
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
