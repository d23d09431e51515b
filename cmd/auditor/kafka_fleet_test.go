//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Real daemons and a real broker.

// kafkaBroker is the address of a broker, without which the test is skipped. The
// command that sets it starts one, or fails.
func kafkaBroker(t *testing.T) string {
	t.Helper()
	address := os.Getenv("AUDITOR_KAFKA")
	if address == "" {
		t.Skip("no broker: make test-kafka starts one")
	}
	return address
}

func kafkaClient(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(kafkaBroker(t)), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(5 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// kafkaTopic makes a topic; its name says what of.
func kafkaTopic(t *testing.T, cl *kgo.Client, what string, partitions int32) string {
	t.Helper()
	topic := fmt.Sprintf("%s-%d", what, time.Now().UnixNano())
	kafkaTopicNamed(t, cl, topic, partitions)
	return topic
}

func kafkaTopicNamed(t *testing.T, cl *kgo.Client, topic string, partitions int32) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 30_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, partitions, 1
	req.Topics = append(req.Topics, rt)
	res, err := req.RequestWith(t.Context(), cl)
	if err != nil {
		t.Fatal(err)
	}
	if code := res.Topics[0].ErrorCode; code != 0 {
		t.Fatalf("make topic %s: error code %d", topic, code)
	}
}

// exchangeOf is the topic through which a topic is shared out.
func exchangeOf(topic string) string { return topic + "-exchange" }

// binary builds the program.
func binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "auditor")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// process is a daemon in a process of its own, which may be killed.
type process struct {
	t       *testing.T
	name    string
	topic   string
	how     string
	dir     string
	bin     string
	log     *os.File
	cmd     *exec.Cmd
	address string
}

// ownStore is a store of each daemon's own, in the words of the configuration.
const ownStore = "{sqlite: rows.db}"

// newProcess prepares a daemon with a store of its own.
func newProcess(t *testing.T, bin, name, topic, how string) *process {
	t.Helper()
	return newProcessOn(t, bin, name, topic, how, ownStore)
}

func newProcessOn(t *testing.T, bin, name, topic, how, store string) *process {
	t.Helper()
	p := &process{t: t, name: name, topic: topic, how: how, dir: t.TempDir(), bin: bin}
	more := ""
	switch how {
	case keyed:
		more = ", keyed: true"
	case exchanged:
		more = fmt.Sprintf(", exchange: {topic: %s}", exchangeOf(topic))
	}
	config := fmt.Sprintf(`dependency: seats
sources: [{kafka: {brokers: [%q], topics: [%s], group: %s, session_timeout: 3s%s}, format: json}]
keys: {originators: originators.yaml, accept: [qk1, {field: my_id}], horizon: %v, salt_file: salt}
time: {lateness: %v, idle: 3s}
ignore: {paths: [/healthz]}
store: %s
api: {listen: "127.0.0.1:0"}
`, kafkaBroker(t), topic, topic, more, kafkaHorizon, kafkaLateness, store)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("auditor.yaml", config)
	write("salt", "the salt that all daemons of a test share")
	write("originators.yaml", fmt.Sprintf("originators:\n  - {id: web, keys: [{kid: a, secret: %q}]}\n", secretA))
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	p.log = log
	t.Cleanup(func() {
		p.kill()
		log.Close()
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			lines := slices.DeleteFunc(strings.Split(string(said), "\n"), func(l string) bool { return strings.Contains(l, "component=api") })
			t.Logf("%s said\n%s", name, strings.Join(lines[max(0, len(lines)-100):], "\n"))
		}
	})
	return p
}

func (p *process) database() string { return filepath.Join(p.dir, "rows.db") }

// start runs the daemon. It does not wait for it.
func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.bin, "run", "--config", filepath.Join(p.dir, "auditor.yaml"))
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	line := make([]byte, 200)
	n, _ := out.Read(line) // EOF if it ended at once
	_, rest, _ := strings.Cut(string(line[:n]), "http://")
	if p.address, _, _ = strings.Cut(rest, "/"); p.address == "" {
		said, _ := os.ReadFile(p.log.Name())
		p.t.Fatalf("%s did not start: %q\n%s", p.name, line[:n], said)
	}
}

// kill ends the daemon without a word.
func (p *process) kill() {
	if p.cmd != nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		p.cmd = nil
	}
}

// hang keeps the daemon from running for a while.
func (p *process) hang(length time.Duration) {
	p.signal(syscall.SIGSTOP)
	time.Sleep(length)
	p.signal(syscall.SIGCONT)
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// stop ends the daemon as a supervisor would.
func (p *process) stop() {
	p.t.Helper()
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Signal(os.Interrupt)
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("%s: %v", p.name, err)
	}
	p.cmd = nil
}

// shown is what /api/v1/sources says, of what these tests ask.
type shown struct {
	Name       string `json:"source"`
	State      string `json:"state"`
	Error      string `json:"error"`
	Counted    uint64 `json:"counted"`
	GapRecords uint64 `json:"gap_records"`
	Partitions []struct {
		Name      string    `json:"partition"`
		State     string    `json:"state"`
		Next      int64     `json:"next_offset"`
		Committed int64     `json:"committed_offset"`
		Lag       *int64    `json:"lag_records"`
		Watermark time.Time `json:"watermark"`
	} `json:"partitions"`
}

// source asks the daemon for the source that is the topic; ok is false if there is no
// answer.
func (p *process) source() (s shown, ok bool) { return p.named(p.topic) }

// counts asks for the source whose records are counted: that, or the exchange.
func (p *process) counts() (s shown, ok bool) {
	if p.how == exchanged {
		return p.named(exchangeOf(p.topic))
	}
	return p.source()
}

func (p *process) named(name string) (shown, bool) {
	for _, s := range p.sources() {
		if s.Name == name {
			return s, true
		}
	}
	return shown{}, false
}

// sources asks the daemon for its sources; there are none if it does not answer.
func (p *process) sources() []shown {
	var answer struct {
		Sources []shown `json:"sources"`
	}
	if p.ask("/api/v1/sources", 2*time.Second, &answer) != nil {
		return nil
	}
	return answer.Sources
}

// ask puts what the daemon answers into a variable.
func (p *process) ask(route string, within time.Duration, into any) error {
	if p.cmd == nil {
		return errors.New("it does not run")
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+p.address+route, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", route, res.Status, body)
	}
	return json.Unmarshal(body, into)
}
