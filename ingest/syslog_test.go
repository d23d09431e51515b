package ingest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// runSyslog runs a source whose partition is "syslog", and gives what stops it.
func runSyslog(t testing.TB, cfg SyslogConfig, disk spoolDisk, h Handler) (s *Syslog, stop func()) {
	t.Helper()
	cfg.Name, cfg.Logger = "syslog", slog.New(slog.DiscardHandler)
	if cfg.Spool.Dir == "" {
		cfg.Spool.Dir = t.TempDir()
	}
	var err error
	if cfg.Protocol == "udp" {
		cfg.Packets, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		must(t, err)
		cfg.Listen = cfg.Packets.LocalAddr().String()
	} else {
		cfg.Listener, err = net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		cfg.Listen = cfg.Listener.Addr().String()
	}
	spool, err := openSpool(cfg.Spool, disk)
	must(t, err)
	s = newSyslog(cfg, spool)
	return s, keepRunning(t, func(ctx context.Context) error { return s.Run(ctx, h) })
}

// keepRunning runs a source until the test ends, or what it gives is called.
func keepRunning(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		must(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

func dial(t testing.TB, network, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial(network, address)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Every message that was read is handed out once, whatever its framing, and what was
// sent over one connection in the order in which it was.
func TestSyslogTCP(t *testing.T) {
	r := newRecorder(t)
	s, stop := runSyslog(t, SyslogConfig{}, realDisk(), r)
	var senders sync.WaitGroup
	const each = 500
	for sender := range 4 {
		senders.Go(func() {
			conn := dial(t, "tcp", s.cfg.Listen)
			for i := range each {
				m := fmt.Sprintf("<190>Mar  3 10:15:42 host nginx: sender %d record %04d", sender, i)
				if sender%2 == 0 {
					fmt.Fprintf(conn, "%s\n", m)
				} else {
					fmt.Fprintf(conn, "%d %s", len(m), m)
				}
			}
			fmt.Fprint(conn, "<190>Mar  3 10:15:42 host nginx: cut")
			conn.Close()
		})
	}
	senders.Wait()
	waitFor(t, func() bool {
		return strings.Count(r.text("syslog"), "\n") == 4*each && s.Intake().Connections == 0
	})
	if got, want := s.Intake(), (Intake{Kept: 4 * each, Truncated: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	stop()
	for sender := range 4 {
		next := 0
		for line := range strings.Lines(r.text("syslog")) {
			if want := fmt.Sprintf("sender %d record %04d\n", sender, next); strings.HasPrefix(line, fmt.Sprintf("sender %d ", sender)) {
				if line != want {
					t.Fatalf("%q, want %q", line, want)
				}
				next++
			}
		}
		if next != each {
			t.Errorf("%d records of sender %d", next, sender)
		}
	}
	if _, err := net.Dial("tcp", s.cfg.Listen); err == nil {
		t.Error("it still listens")
	}
}

// While nothing can be kept a sender is held back, and nothing of what it sent is lost.
func TestSyslogHoldsSendersBack(t *testing.T) {
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
	s, _ := runSyslog(t, SyslogConfig{Spool: SpoolConfig{Max: 1 << 20}}, fastDisk(), r)
	conn := dial(t, "tcp", s.cfg.Listen)
	const records = 40_000 // some 8 MB, more than the spool and the kernel's buffers hold
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range records {
			fmt.Fprintf(conn, "<190>Mar  3 10:15:42 host nginx: %06d %s\n", i, strings.Repeat("z", 180))
		}
		conn.Close()
	}()
	waitFor(t, func() bool { return s.Intake().Waits > 0 })
	kept := s.Intake().Kept
	const line = 6 + 1 + 180 + 1 // what is kept of a record, at least
	if most := s.spool.cfg.Max; kept == 0 || kept*line > most {
		t.Errorf("%d records are kept in a spool of %d bytes", kept, most)
	}
	select {
	case <-sent:
		t.Error("the sender was not held back")
	default:
	}
	close(open)
	waitFor(t, func() bool { return s.Intake().Kept == records })
	waitFor(t, func() bool { return strings.Count(r.text("syslog"), "\n") == records })
	if got := s.Intake(); got.Dropped != 0 || got.Truncated != 0 {
		t.Errorf("%+v", got)
	}
	next := 0
	for line := range strings.Lines(r.text("syslog")) {
		if !strings.HasPrefix(line, fmt.Sprintf("%06d ", next)) {
			t.Fatalf("%.20q, want record %d", line, next)
		}
		next++
	}
}

// What was read when the daemon stops is kept, and what cannot be is counted.
func TestSyslogStops(t *testing.T) {
	dir := t.TempDir()
	s, stop := runSyslog(t, SyslogConfig{Spool: SpoolConfig{Dir: dir}}, realDisk(), nobody{})
	conn := dial(t, "tcp", s.cfg.Listen)
	fmt.Fprint(conn, "<13>Mar  3 10:15:42 op: one\n<13>Mar  3 10:15:42 op: tw")
	waitFor(t, func() bool { return s.Intake().Kept == 1 })
	stop()
	if got := s.Intake(); got.Kept != 1 || got.Truncated != 1 || got.Connections != 0 {
		t.Errorf("%+v", got)
	}
	again := newSpool(t, SpoolConfig{Dir: dir}, realDisk())
	if lines, _, _ := readSpool(t, again, 0); textOf(lines) != "one\n" {
		t.Errorf("kept %q", textOf(lines))
	}

	full, stop := runSyslog(t, SyslogConfig{Spool: SpoolConfig{Max: 1 << 20}}, fastDisk(), nobody{})
	conn = dial(t, "tcp", full.cfg.Listen)
	go func() {
		for {
			if _, err := fmt.Fprintf(conn, "<13>Mar  3 10:15:42 op: %s\n", strings.Repeat("z", 1000)); err != nil {
				return
			}
		}
	}()
	waitFor(t, func() bool { return full.Intake().Waits > 0 })
	stop()
	if got := full.Intake(); got.Dropped == 0 {
		t.Errorf("%+v: what was read and could not be kept is nowhere", got)
	}
}

func TestSyslogRefusesTooManyConnections(t *testing.T) {
	s, _ := runSyslog(t, SyslogConfig{MaxConnections: 1}, realDisk(), newRecorder(t))
	dial(t, "tcp", s.cfg.Listen)
	waitFor(t, func() bool { return s.Intake().Connections == 1 })
	conn := dial(t, "tcp", s.cfg.Listen)
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if n, err := conn.Read(make([]byte, 1)); err == nil || n != 0 {
		t.Error("a second connection was taken")
	}
}

func TestSyslogTLS(t *testing.T) {
	issuer := httptest.NewTLSServer(http.NotFoundHandler())
	defer issuer.Close()
	r := newRecorder(t)
	s, _ := runSyslog(t, SyslogConfig{TLS: &tls.Config{Certificates: issuer.TLS.Certificates}}, realDisk(), r)
	plain := dial(t, "tcp", s.cfg.Listen)
	fmt.Fprint(plain, "<13>Mar  3 10:15:42 op: in the clear\n")
	if _, err := io.Copy(io.Discard, plain); err != nil {
		t.Log(err) // closed or reset
	}
	conn, err := tls.Dial("tcp", s.cfg.Listen, issuer.Client().Transport.(*http.Transport).TLSClientConfig)
	must(t, err)
	fmt.Fprint(conn, "32 <13>Mar  3 10:15:42 op: secretly")
	must(t, conn.Close())
	waitFor(t, func() bool { return r.text("syslog") == "secretly\n" })
}

// Each datagram is one message; what finds no room is counted, and comes to nobody.
func TestSyslogUDP(t *testing.T) {
	r := newRecorder(t)
	s, stop := runSyslog(t, SyslogConfig{Protocol: "udp"}, realDisk(), r)
	conn := dial(t, "udp", s.cfg.Listen)
	for i := range 300 {
		fmt.Fprintf(conn, "<190>Mar  3 10:15:42 host nginx: %03d\n", i)
		if i%20 == 19 { // no faster than anybody could read
			waitFor(t, func() bool { got := s.Intake(); return got.Kept+got.Dropped == int64(i+1) })
		}
	}
	big := strings.Repeat("z", 60_000)
	fmt.Fprint(conn, "<190>Mar  3 10:15:42 host nginx: "+big)
	waitFor(t, func() bool { return strings.HasSuffix(r.text("syslog"), big+"\n") })
	waitFor(t, func() bool { got := s.Intake(); return got.Kept+got.Dropped == 301 }) // it is counted when it has been kept
	stop()
	if got := s.Intake(); got.Kept+got.Dropped != 301 || got.Truncated != 0 {
		t.Errorf("%+v", got)
	}
	if got, want := int64(strings.Count(r.text("syslog"), "\n")), s.Intake().Kept; got != want {
		t.Errorf("%d records, and %d are said to be kept", got, want)
	}
}

// With no room at all, every datagram that the socket took is kept or counted as dropped.
func TestSyslogUDPCountsWhatItDrops(t *testing.T) {
	r := newRecorder(t)
	r.assign = func(string) error { return fmt.Errorf("not now") }
	s, stop := runSyslog(t, SyslogConfig{Protocol: "udp", Spool: SpoolConfig{Max: 1 << 20}}, fastDisk(), r)
	conn := dial(t, "udp", s.cfg.Listen)
	sent := int64(0)
	record := "<190>Mar  3 10:15:42 host nginx: " + strings.Repeat("z", 50_000)
	for end := time.Now().Add(30 * time.Second); s.Intake().Dropped == 0; {
		if _, err := fmt.Fprint(conn, record); err != nil {
			t.Fatal(err)
		}
		if sent++; time.Now().After(end) {
			t.Fatal("nothing is dropped")
		}
		runtime.Gosched() // the kernel drops what nobody takes
	}
	stop()
	got := s.Intake()
	if got.Kept == 0 || got.Kept+got.Dropped > sent || got.Kept*50_000 > 1<<20 {
		t.Errorf("%+v of %d sent", got, sent)
	}
	if lines, _, _ := readSpool(t, newSpool(t, SpoolConfig{Dir: s.cfg.Spool.Dir, Max: 1 << 20}, realDisk()), 0); int64(len(lines)) != got.Kept {
		t.Errorf("%d records are there, and %d are said to be", len(lines), got.Kept)
	}
}

func TestSyslogNeedsToKnowHow(t *testing.T) {
	for name, cfg := range map[string]SyslogConfig{
		"unknown protocol": {Protocol: "sctp", Listen: "127.0.0.1:0"},
		"no address":       {},
		"TLS":              {Protocol: "udp", Listen: "127.0.0.1:0", TLS: &tls.Config{}},
	} {
		cfg.Spool.Dir = t.TempDir()
		if _, err := NewSyslog(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
