package ingest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/targetside/auditor/ingest/accesslog"
)

func runALS(t testing.TB, cfg ALSConfig, disk spoolDisk, h Handler) (a *ALS, stop func()) {
	t.Helper()
	cfg.Name, cfg.Logger = "als", slog.New(slog.DiscardHandler)
	if cfg.Spool.Dir == "" {
		cfg.Spool.Dir = t.TempDir()
	}
	var err error
	cfg.Listener, err = net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	cfg.Listen = cfg.Listener.Addr().String()
	spool, err := openSpool(cfg.Spool, disk)
	must(t, err)
	a = newALS(cfg, spool)
	return a, keepRunning(t, func(ctx context.Context) error { return a.Run(ctx, h) })
}

// A sentStream is a stream of the service, as Envoy opens one.
type sentStream struct {
	t    testing.TB
	pipe *io.PipeWriter
	done chan *http.Response
}

func openALS(t testing.TB, a *ALS, fields ...string) *sentStream {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return openALSBy(t, transport, "http://"+a.cfg.Listen+alsPath, fields...)
}

func openALSBy(t testing.TB, transport http.RoundTripper, url string, fields ...string) *sentStream {
	t.Helper()
	body, pipe := io.Pipe()
	r, err := http.NewRequest("POST", url, body)
	must(t, err)
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	s := &sentStream{t, pipe, make(chan *http.Response, 1)}
	go func() {
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Errorf("the stream: %v", err)
			close(s.done)
			return
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		s.done <- resp
	}()
	return s
}

// framed5 is a message as gRPC frames it.
func framed5(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

func (s *sentStream) send(message []byte) error {
	_, err := s.pipe.Write(framed5(message))
	return err
}

// status is how the stream was ended, when it was.
func (s *sentStream) status() string {
	s.t.Helper()
	resp := <-s.done
	if resp == nil {
		return "no answer"
	}
	if code := resp.Trailer.Get("Grpc-Status"); code != "" {
		return code
	}
	return resp.Header.Get("Grpc-Status")
}

// alsMessage is a message with an identifier, if there is a name, and entries that
// begin with a path.
func alsMessage(name string, entries ...string) (m []byte) {
	if name != "" {
		node := appendWire(appendWire(appendWire(nil, 1, []byte(name)), 2, []byte("edge")), 3, bytes.Repeat([]byte("x"), 5000))
		m = appendWire(m, 1, appendWire(appendWire(nil, 1, node), 2, []byte("log")))
	}
	var logs []byte
	for _, e := range entries {
		logs = appendWire(logs, 1, appendWire(nil, 3, appendWire(nil, 5, []byte(e))))
	}
	return appendWire(m, 2, logs)
}

// alsLine is what is kept of a message.
func alsLine(name string, entries ...string) string {
	var m []byte
	if name != "" {
		node := appendWire(appendWire(nil, 1, []byte(name)), 2, []byte("edge"))
		m = appendWire(m, 1, appendWire(appendWire(nil, 1, node), 2, []byte("log")))
	}
	return base64.StdEncoding.EncodeToString(append(m, alsMessage("", entries...)...)) + "\n"
}

// What a stream brings is handed out, a line each message, each with the identifier of
// its stream, and nothing else of what Envoy says of itself.
func TestALS(t *testing.T) {
	r := newRecorder(t)
	a, stop := runALS(t, ALSConfig{}, realDisk(), r)
	one, two := openALS(t, a), openALS(t, a)
	must(t, one.send(alsMessage("a", "/1", "/2")))
	must(t, two.send(alsMessage("b", "/3")))
	must(t, one.send(alsMessage("", "/4")))
	must(t, one.send(appendWire(nil, 3, appendWire(nil, 1, nil)))) // of TCP connections
	waitFor(t, func() bool { return a.Intake().Kept == 4 })
	want := []string{alsLine("a", "/1", "/2"), alsLine("b", "/3"), alsLine("a", "/4")}
	slices.Sort(want)
	waitFor(t, func() bool {
		got := slices.Sorted(strings.Lines(r.text("als")))
		return slices.Equal(got, want)
	})
	if got := a.Intake(); got != (Intake{Kept: 4, Connections: 2}) {
		t.Errorf("%+v", got)
	}
	one.pipe.Close()
	if got := one.status(); got != "0" {
		t.Errorf("a stream that Envoy ended: %s", got)
	}
	stop()
	if got := two.status(); got != "14" {
		t.Errorf("a stream when the daemon stops: %s", got)
	}
	if _, err := net.Dial("tcp", a.cfg.Listen); err == nil {
		t.Error("it still listens")
	}
}

// An entry that cannot be read is kept with those beside it, and is an entry to whoever
// counts: the format refuses it alone.
func TestALSKeepsBrokenEntries(t *testing.T) {
	var logs []byte
	for _, entry := range [][]byte{[]byte("\x0a\x7f"), appendWire(nil, 3, appendWire(nil, 5, []byte("/1"))), {0x0f}} {
		logs = appendWire(logs, 1, entry)
	}
	line, _, n, ok := appendALS(nil, appendWire(nil, 2, logs), nil, false)
	if !ok || n != 3 {
		t.Fatalf("%d entries, %v", n, ok)
	}
	p, err := accesslog.New(accesslog.Config{Format: "envoy-als"})
	must(t, err)
	records, refused := 0, 0
	for rest := bytes.TrimSpace(line); len(rest) > 0; {
		var e accesslog.Entry
		if rest, err = p.Parse(rest, &e); err != nil {
			refused++
		} else if records++; string(e.Path) != "/1" {
			t.Errorf("path %q", e.Path)
		}
	}
	if records != 1 || refused != 2 {
		t.Errorf("%d records and %d refused of 3", records, refused)
	}
}

// A message that is cut off anywhere ends the stream with INVALID_ARGUMENT, is counted as
// truncated, and its entries that came whole are kept, each once, with the identifier of
// their stream.
func TestALSCutMessage(t *testing.T) {
	r := newRecorder(t)
	a, _ := runALS(t, ALSConfig{}, fastDisk(), r)
	first := alsMessage("a", "/1")
	second := append(alsMessage("b", "/2", "/3"), alsMessage("", "/4")...)
	named := len(second) - len(alsMessage("", "/2", "/3")) - len(alsMessage("", "/4"))
	ends := map[string]int{"/2": named + len(alsMessage("", "/2")), "/3": named + len(alsMessage("", "/2", "/3")), "/4": len(second)}
	wantKept, wantLines := int64(0), []string{}
	cuts := 0
	for cut := range len(second) + 5 {
		if cut > 50 && cut < named { // in what Envoy says of itself
			continue
		}
		s := openALS(t, a)
		must(t, s.send(first))
		_, err := s.pipe.Write(framed5(second)[:cut])
		must(t, err)
		must(t, s.pipe.Close())
		wantKept++
		wantLines = append(wantLines, alsLine("a", "/1"))
		var whole []string
		for _, e := range []string{"/2", "/3", "/4"} {
			if cut-5 >= ends[e] {
				whole = append(whole, e)
			}
		}
		wantKept += int64(len(whole))
		if len(whole) > 0 {
			wantLines = append(wantLines, alsLine("b", whole...))
		}
		want := "3"
		if cut == 0 {
			want = "0"
		} else {
			cuts++
		}
		if got := s.status(); got != want {
			t.Fatalf("cut after %d bytes: status %s, want %s", cut, got, want)
		}
	}
	if got := a.Intake(); got.Truncated != int64(cuts) || got.Kept != wantKept || got.Dropped != 0 {
		t.Errorf("%+v, want %d truncated and %d kept", got, cuts, wantKept)
	}
	slices.Sort(wantLines)
	waitFor(t, func() bool { return slices.Equal(slices.Sorted(strings.Lines(r.text("als"))), wantLines) })
}

// Of what is no message of the service nothing is kept, however much of it came.
func TestALSCutOfAnother(t *testing.T) {
	good := alsMessage("", "/1", "/2")
	for name, message := range map[string][]byte{
		"a tag that is none":    append(bytes.Clone(good), 0x07, 0x01),
		"entries that are none": append(bytes.Clone(good), appendWire(nil, 2, []byte("\x0fhello"))...),
		"a bad identifier":      append(appendWire(nil, 1, []byte("hello")), good...),
		"too long a number":     append(bytes.Clone(good), bytes.Repeat([]byte{0xff}, 11)...),
	} {
		if line, _, n, ok := appendALS(nil, message, nil, true); ok || n != 0 || len(line) != 0 {
			t.Errorf("%s: %v, %d entries are kept in %q", name, ok, n, line)
		}
	}
	// Whatever is kept is what the whole message has, too.
	long := append(alsMessage("a", "/1", "/2", "/3"), appendWire(nil, 3, []byte("tcp"))...)
	for cut := range long {
		line, _, n, ok := appendALS(nil, long[:cut], nil, true)
		if !ok || n > 0 && string(line) != alsLine("a", []string{"/1", "/2", "/3"}[:n]...) {
			t.Errorf("cut after %d bytes: %q", cut, line)
		}
	}
}

func TestALSRefuses(t *testing.T) {
	a, _ := runALS(t, ALSConfig{Tokens: [][]byte{[]byte("secret")}, MaxStreams: 1, Spool: SpoolConfig{Max: 1 << 20}}, realDisk(), newRecorder(t))
	in := []string{"Authorization", "Bearer secret"}
	for _, c := range []struct {
		name, code string
		fields     []string
		raw        []byte
	}{
		{"no token", "16", nil, nil},
		{"another token", "16", []string{"Authorization", "Bearer other"}, nil},
		{"compressed", "12", append([]string{"Grpc-Encoding", "gzip"}, in...), nil},
		{"compressed, and nothing said", "8", in, append([]byte{1}, framed5(nil)[1:]...)},
		{"too large", "8", in, []byte{0, 0, 4, 0, 1}},
		{"no message", "3", in, framed5([]byte("hello"))},
		{"no entries", "3", in, framed5(appendWire(nil, 2, []byte("hello")))},
		{"no identifier", "3", in, framed5(appendWire(nil, 1, []byte("hello")))},
	} {
		s := openALS(t, a, c.fields...)
		go s.pipe.Write(c.raw)
		if got := s.status(); got != c.code {
			t.Errorf("%s: status %s, want %s", c.name, got, c.code)
		}
		s.pipe.Close()
	}
	if got := a.Intake(); got.Truncated != 5 || got.Kept != 0 {
		t.Errorf("%+v", got)
	}
	waitFor(t, func() bool { return a.Intake().Connections == 0 })

	first := openALS(t, a, in...)
	must(t, first.send(alsMessage("a", "/1")))
	waitFor(t, func() bool { return a.Intake().Connections == 1 })
	if got := openALS(t, a, in...).status(); got != "8" {
		t.Errorf("one stream too many: %s", got)
	}
	first.pipe.Close()

	elsewhere := &http.Transport{Protocols: new(http.Protocols)}
	elsewhere.Protocols.SetUnencryptedHTTP2(true)
	defer elsewhere.CloseIdleConnections()
	if got := openALSBy(t, elsewhere, "http://"+a.cfg.Listen+"/envoy.service.accesslog.v2.AccessLogService/StreamAccessLogs", in...).status(); got != "12" {
		t.Errorf("another service: %s", got)
	}
	r, err := http.NewRequest("GET", "http://"+a.cfg.Listen+"/", nil)
	must(t, err)
	resp, err := elsewhere.RoundTrip(r)
	must(t, err)
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 415 || !strings.Contains(string(text), "http_grpc") {
		t.Errorf("not gRPC: %d %s", resp.StatusCode, text)
	}
}

// While nothing can be kept Envoy is held back, and nothing of what it sent is lost.
func TestALSHoldsEnvoyBack(t *testing.T) {
	r := newRecorder(t)
	open := make(chan struct{})
	r.assign = func(string) error {
		select {
		case <-open:
			return nil
		default:
			return fmt.Errorf("not yet")
		}
	}
	a, _ := runALS(t, ALSConfig{Spool: SpoolConfig{Max: 1 << 20}}, fastDisk(), r)
	s := openALS(t, a)
	const messages = 500 // some 10 MB
	sent := make(chan error, 1)
	go func() {
		for i := range messages {
			if err := s.send(alsMessage("a", fmt.Sprintf("/%d", i), strings.Repeat("z", 20_000))); err != nil {
				sent <- err
				return
			}
		}
		sent <- s.pipe.Close()
	}()
	waitFor(t, func() bool { return a.Intake().Waits > 0 })
	select {
	case <-sent:
		t.Error("Envoy was not held back")
	default:
	}
	close(open)
	must(t, <-sent)
	if got := s.status(); got != "0" {
		t.Errorf("status %s", got)
	}
	waitFor(t, func() bool { return strings.Count(r.text("als"), "\n") == messages })
	if got := a.Intake(); got.Kept != 2*messages || got.Dropped != 0 || got.Truncated != 0 {
		t.Errorf("%+v", got)
	}
}

func TestALSTLS(t *testing.T) {
	issuer := httptest.NewTLSServer(http.NotFoundHandler())
	defer issuer.Close()
	r := newRecorder(t)
	a, _ := runALS(t, ALSConfig{TLS: &tls.Config{Certificates: issuer.TLS.Certificates}}, realDisk(), r)
	transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: issuer.Client().Transport.(*http.Transport).TLSClientConfig.Clone()}
	transport.TLSClientConfig.NextProtos = nil
	transport.Protocols.SetHTTP2(true)
	defer transport.CloseIdleConnections()
	s := openALSBy(t, transport, "https://"+a.cfg.Listen+alsPath)
	must(t, s.send(alsMessage("a", "/1")))
	s.pipe.Close()
	if got := s.status(); got != "0" {
		t.Errorf("status %s", got)
	}
	waitFor(t, func() bool { return r.text("als") == alsLine("a", "/1") })
}
