package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

func newTestPush(t testing.TB, cfg PushConfig, disk spoolDisk) *Push {
	t.Helper()
	if cfg.Spool.Dir == "" {
		cfg.Spool.Dir = t.TempDir()
	}
	spool, err := openSpool(cfg.Spool, disk)
	must(t, err)
	if cfg.MaxBody == 0 {
		cfg.MaxBody, cfg.MaxUnpacked, cfg.MaxLine = 1<<20, 4<<20, 1<<20
	}
	if cfg.Logger == nil {
		cfg.Logger = spool.cfg.Logger
	}
	if cfg.CloseTimeout == 0 {
		cfg.CloseTimeout = 10 * time.Second
	}
	if cfg.Name == "" {
		cfg.Name = "http test"
	}
	p := newPush(cfg, spool)
	t.Cleanup(func() { p.Close() })
	return p
}

func send(h http.Handler, method, path string, body io.Reader, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// zstdWindow is a zstd frame that asks for a window of 1 GiB and holds nothing.
var zstdWindow = []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 20 << 3, 0x01, 0x00, 0x00}

func TestPushAnswers(t *testing.T) {
	bomb := strings.Repeat("0123456\n", 1<<20) // 8 MiB of lines that compress well
	half := gzipped(t, "a\n", strings.Repeat("b\n", 1000))
	for _, c := range []struct {
		name, method, path string
		body               []byte
		fields             []string
		status             int
		says               string // in the detail, or the lines in the spool
	}{
		{"lines", "POST", "/ingest", []byte("a\nb\n"), nil, 200, "a\nb\n"},
		{"no newline at the end", "POST", "/ingest", []byte("a\nb"), []string{"Content-Type", "application/x-ndjson; charset=utf-8"}, 200, "a\nb\n"},
		{"nothing", "POST", "/ingest", nil, nil, 200, ""},
		{"identity", "POST", "/ingest", []byte("a\n"), []string{"Content-Encoding", "identity", "Content-Type", "text/plain"}, 200, "a\n"},
		{"gzip", "POST", "/ingest", gzipped(t, "a\nb", "c\n"), []string{"Content-Encoding", "GZIP"}, 200, "a\nbc\n"},
		{"zstd", "POST", "/ingest", zstded(t, "a\nb", "c\n"), []string{"Content-Encoding", "zstd"}, 200, "a\nbc\n"},
		{"GET", "GET", "/ingest", nil, nil, 405, "POST"},
		{"PUT", "PUT", "/ingest", []byte("a\n"), nil, 405, "POST"},
		{"elsewhere", "POST", "/", []byte("a\n"), nil, 404, "/ingest"},
		{"protobuf", "POST", "/ingest", []byte("a\n"), []string{"Content-Type", "application/x-protobuf"}, 415, "application/x-ndjson"},
		{"a type that is none", "POST", "/ingest", []byte("a\n"), []string{"Content-Type", "/;"}, 415, "application/x-ndjson"},
		{"brotli", "POST", "/ingest", []byte("a\n"), []string{"Content-Encoding", "br"}, 415, "gzip, zstd"},
		{"gzip in gzip", "POST", "/ingest", gzipped(t, "a\n"), []string{"Content-Encoding", "gzip, gzip"}, 415, "gzip, zstd"},
		{"not gzip", "POST", "/ingest", []byte("a\n"), []string{"Content-Encoding", "gzip"}, 400, "gzip"},
		{"half a gzip", "POST", "/ingest", half[:len(half)-9], []string{"Content-Encoding", "gzip"}, 400, "cut short"},
		{"not zstd", "POST", "/ingest", []byte("a\nbcdefgh\n"), []string{"Content-Encoding", "zstd"}, 400, "zstd"},
		{"a JSON array", "POST", "/ingest", []byte(" [{\"a\":1}]\n"), []string{"Content-Type", "application/json"}, 400, "json_lines"},
		{"too large", "POST", "/ingest", bytes.Repeat([]byte("a\n"), 600<<10), nil, 413, "1048576"},
		{"a gzip bomb", "POST", "/ingest", gzipped(t, bomb), []string{"Content-Encoding", "gzip"}, 413, "4194304"},
		{"a zstd bomb", "POST", "/ingest", zstded(t, bomb), []string{"Content-Encoding", "zstd"}, 413, "4194304"},
		{"a zstd window", "POST", "/ingest", zstdWindow, []string{"Content-Encoding", "zstd"}, 413, "window"},
		{"a line too long", "POST", "/ingest", gzipped(t, "a\n"+strings.Repeat("x", 1<<20)+"\n"), []string{"Content-Encoding", "gzip"}, 413, "line 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newTestPush(t, PushConfig{}, realDisk())
			w := send(p, c.method, c.path, bytes.NewReader(c.body), c.fields...)
			if w.Code != c.status {
				t.Fatalf("status %d, want %d: %s", w.Code, c.status, w.Body)
			}
			lines, _, _ := readSpool(t, p.spool, 0)
			if p.bodies.inUse.Load() != 0 {
				t.Errorf("%d bytes are still counted", p.bodies.inUse.Load())
			}
			if c.status == 200 {
				want := fmt.Sprintf(`{"lines":%d,"bytes":%d}`, strings.Count(c.says, "\n"), len(c.says))
				if textOf(lines) != c.says || strings.TrimSpace(w.Body.String()) != want {
					t.Errorf("kept %q and answered %s, want %q and %s", textOf(lines), w.Body, c.says, want)
				}
				return
			}
			var problem struct {
				Type, Title, Detail string
				Status              int
			}
			must(t, json.Unmarshal(w.Body.Bytes(), &problem))
			if w.Header().Get("Content-Type") != "application/problem+json" || problem.Status != c.status || problem.Title == "" || problem.Type == "" || !strings.Contains(problem.Detail, c.says) {
				t.Errorf("answered %v %s; want %q in it", w.Header(), w.Body, c.says)
			}
			if len(lines) != 0 {
				t.Errorf("refused, and kept %d lines", len(lines))
			}
			if c.status == 405 && w.Header().Get("Allow") != "POST" || strings.Contains(c.says, "gzip, zstd") && w.Header().Get("Accept-Encoding") == "" {
				t.Errorf("fields %v", w.Header())
			}
		})
	}
}

func TestPushSaysWhenThereIsNoRoom(t *testing.T) {
	d := &faultyDisk{}
	p := newTestPush(t, PushConfig{Spool: SpoolConfig{Max: 20 << 10}}, d.disk())
	body := strings.Repeat("0123456\n", 500)
	push := func() *httptest.ResponseRecorder { return send(p, "POST", "/ingest", strings.NewReader(body)) }
	n := 0
	w := push()
	for ; w.Code == 200; w = push() {
		n++
	}
	if w.Code != 429 || n < 3 {
		t.Fatalf("%d after %d pushes", w.Code, n)
	}
	if after, err := strconv.Atoi(w.Header().Get("Retry-After")); err != nil || after < 1 {
		t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
	}
	lines, next, _ := readSpool(t, p.spool, 0)
	if len(lines) != 500*n {
		t.Errorf("%d lines of %d", len(lines), 500*n)
	}
	p.spool.reader.release(Position{Offset: next})
	for fault, status := range map[error]int{syscall.ENOSPC: 507, syscall.EROFS: 503, syscall.EIO: 503} {
		d.set(func() { d.write = func([]byte) (int, error) { return 0, fault } })
		if w := push(); w.Code != status || w.Header().Get("Retry-After") == "" {
			t.Errorf("%v: %d %v %s", fault, w.Code, w.Header(), w.Body)
		}
		d.set(func() { d.write = nil })
		if w := push(); w.Code != 200 {
			t.Errorf("after %v: %d %s", fault, w.Code, w.Body)
		}
	}
	p.bodies.maxMemory = 100
	if w := push(); w.Code != 429 || w.Header().Get("Retry-After") == "" {
		t.Errorf("too many at a time: %d %s", w.Code, w.Body)
	}
	p.closing.Store(true)
	if w := push(); w.Code != 503 || w.Header().Get("Retry-After") == "" || w.Header().Get("Connection") != "close" {
		t.Errorf("while it closes: %d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestPushHandsOutWhatItAcknowledged(t *testing.T) {
	dir := t.TempDir()
	want := map[string]bool{}
	r := newRecorder(t)
	for round := range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		p, err := NewPush(PushConfig{Name: "http push", Listener: l, Spool: SpoolConfig{Dir: dir, SegmentSize: 1000}})
		must(t, err)
		fails := 2
		r.consume = func(_ string, b *Batch) error {
			if len(b.Data) > 0 && fails > 0 {
				fails--
				return errors.New("no")
			}
			return nil
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx, r) }()
		var senders sync.WaitGroup
		for i := range 10 {
			line := fmt.Sprintf("%d %d\n", round, i)
			want[line] = true
			senders.Go(func() {
				resp, err := http.Post("http://"+l.Addr().String()+"/ingest", "text/plain", strings.NewReader(line))
				if err != nil || resp.StatusCode != 200 {
					t.Errorf("%v %v", resp, err)
					return
				}
				resp.Body.Close()
			})
		}
		senders.Wait()
		waitFor(t, func() bool {
			s := p.Partitions()[0]
			return s.Records == 10 && s.Lag() == 0 && said(s) == "" && s.Restarts == 2
		})
		if s := p.Partitions()[0]; s.Partition.Name != "http push" || s.Gap != 0 {
			t.Errorf("state %+v", s)
		}
		cancel()
		must(t, <-done)
		http.DefaultClient.CloseIdleConnections()
		if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
			t.Error("it still listens")
		}
	}
	if r.closed["http push"] != 9 {
		t.Errorf("%d sessions closed, want 9", r.closed["http push"])
	}
	for _, l := range r.lines["http push"] {
		if !want[l.text] {
			t.Errorf("%q handed out twice, or never pushed", l.text)
		}
		delete(want, l.text)
	}
	if len(want) > 0 {
		t.Errorf("never handed out: %v", want)
	}
}

// TestPushChild is the child that TestPushSurvivesKill kills.
func TestPushChild(t *testing.T) {
	dir := os.Getenv("INGEST_TEST_PUSH")
	if dir == "" {
		t.Skip("run by TestPushSurvivesKill")
	}
	pushChild(dir)
}

func pushChild(dir string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	p, err := NewPush(PushConfig{Name: "http child", Listener: l, Spool: SpoolConfig{Dir: dir, SegmentSize: 64 << 10}})
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	panic(p.Run(context.Background(), nobody{}))
}

// nobody lets everything wait.
type nobody struct{}

func (nobody) Assigned(context.Context, Partition, Position) (Session, Position, error) {
	return nil, Position{}, errors.New("not now")
}

func TestPushSurvivesKill(t *testing.T) {
	dir := t.TempDir()
	acked := map[string]bool{}
	sent := 0
	for range 4 {
		child := exec.Command(os.Args[0], "-test.run=^TestPushChild$")
		child.Env = append(os.Environ(), "INGEST_TEST_PUSH="+dir)
		out, err := child.StdoutPipe()
		must(t, err)
		must(t, child.Start())
		kill := sync.OnceFunc(func() {
			child.Process.Kill()
			child.Wait()
		})
		defer kill()
		var address string
		if _, err := fmt.Fscanln(out, &address); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var senders sync.WaitGroup
		before := len(acked)
		client := &http.Client{Transport: &http.Transport{}}
		for range 4 {
			senders.Go(func() {
				for {
					mu.Lock()
					first := sent
					sent += 20
					mu.Unlock()
					var lines []string
					for i := range 20 {
						lines = append(lines, fmt.Sprintf("line %d %s\n", first+i, strings.Repeat("z", first%200)))
					}
					resp, err := client.Post("http://"+address+"/ingest", "text/plain", strings.NewReader(strings.Join(lines, "")))
					if err != nil {
						return // killed
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if resp.StatusCode == 200 {
						mu.Lock()
						for _, l := range lines {
							acked[l] = true
						}
						mu.Unlock()
					}
				}
			})
		}
		waitFor(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(acked) > before+500
		})
		kill()
		senders.Wait()
		client.CloseIdleConnections()
	}
	s := newSpool(t, SpoolConfig{Dir: dir}, realDisk())
	lines, _, gap := readSpool(t, s, 0)
	if gap != 0 {
		t.Errorf("gap %d", gap)
	}
	seen := map[string]bool{}
	for _, l := range lines {
		if seen[l.text] || !strings.HasPrefix(l.text, "line ") {
			t.Errorf("%.40q is there twice, or was never sent", l.text)
		}
		seen[l.text] = true
	}
	for l := range acked {
		if !seen[l] {
			t.Errorf("acknowledged and lost: %.40q", l)
		}
	}
	t.Logf("%d lines acknowledged, %d there", len(acked), len(lines))
}

func BenchmarkPush(b *testing.B) {
	for _, c := range []struct {
		name   string
		lines  int
		encode bool
	}{{"1 line", 1, false}, {"1000 lines", 1000, false}, {"1000 lines zstd", 1000, true}} {
		b.Run(c.name, func(b *testing.B) {
			line := `{"time":"2026-11-29T20:10:32Z","method":"GET","path":"/seats/1","status":200,"duration_ms":12}` + "\n"
			body := []byte(strings.Repeat(line, c.lines))
			p := newTestPush(b, PushConfig{Spool: SpoolConfig{Max: 1 << 40, SegmentSize: 64 << 20}}, realDisk())
			var fields []string
			if c.encode {
				w, _ := zstd.NewWriter(nil)
				body, fields = w.EncodeAll(body, nil), []string{"Content-Encoding", "zstd"}
			}
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if w := send(p, "POST", "/ingest", bytes.NewReader(body), fields...); w.Code != 200 {
						b.Errorf("%d %s", w.Code, w.Body)
						return
					}
					if p.spool.syncs.Load()%64 == 0 { // as if all were counted at once
						p.spool.mu.Lock()
						p.spool.kept.Offset = p.spool.end
						p.spool.drop()
						p.spool.mu.Unlock()
					}
				}
			})
			b.ReportMetric(float64(b.N*c.lines)/b.Elapsed().Seconds(), "lines/s")
			b.ReportMetric(float64(p.spool.syncs.Load())/float64(b.N), "syncs/op")
		})
	}
}
