package ingest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// swallow is a handler that lets everything go at once.
type swallow struct {
	got  atomic.Int64 // bytes
	want int64
	done chan struct{}
}

func (s *swallow) Assigned(_ context.Context, _ Partition, left Position) (Session, Position, error) {
	return s, left, nil
}

func (s *swallow) Consume(_ context.Context, b *Batch) error {
	n := int64(len(b.Data))
	if b.Done != nil {
		b.Done()
	}
	if got := s.got.Add(n); n > 0 && got == s.want {
		close(s.done)
	}
	return nil
}

func (s *swallow) Released() Position          { return Position{Offset: s.got.Load()} }
func (s *swallow) Close(context.Context) error { return nil }
func (s *swallow) Committed(Position)          {}

func BenchmarkFollow(b *testing.B) {
	line := `{"time":"2026-11-29T20:10:32Z","method":"GET","path":"/seats/1","status":200,"duration_ms":12}` + "\n"
	text := strings.Repeat(line, 500_000)
	path := filepath.Join(b.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := NewFollow(FollowConfig{Paths: []string{path}, Positions: newMemory(), Poll: 1e6})
		if err != nil {
			b.Fatal(err)
		}
		h := &swallow{want: int64(len(text)), done: make(chan struct{})}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx, h) }()
		<-h.done
		cancel()
		<-ended
	}
	b.ReportMetric(500_000*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}
