package ingest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// memory keeps positions.
type memory struct {
	mu    sync.Mutex
	saved map[string][]byte
	saves int
	err   error
}

func newMemory() *memory { return &memory{saved: map[string][]byte{}} }

func (m *memory) Load(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.saved[name], m.err
}

func (m *memory) Save(_ context.Context, name string, state []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.saves++
		m.saved[name] = bytes.Clone(state)
	}
	return m.err
}

func (m *memory) copy() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memory{saved: maps.Clone(m.saved)}
}

// taken is a line that a recorder took.
type takenLine struct {
	at   Ref
	text string
}

// recorder is a handler that keeps what it is given, and holds batches and
// positions to what the seam promises.
type recorder struct {
	t       testing.TB
	mu      sync.Mutex
	lines   map[string][]takenLine
	next    map[string]int64
	gap     map[string]int64
	atEnd   map[string]int
	left    map[string][]Position // each that Assigned was told
	closed  map[string]int
	keep    int64                             // Released trails by so many bytes
	consume func(name string, b *Batch) error // fault injection
	assign  func(name string) error
}

func newRecorder(t testing.TB) *recorder {
	return &recorder{
		t: t, lines: map[string][]takenLine{}, next: map[string]int64{}, gap: map[string]int64{},
		atEnd: map[string]int{}, left: map[string][]Position{}, closed: map[string]int{},
	}
}

type recording struct {
	*recorder
	name string
	low  int64
	busy sync.Mutex
	kept Position
}

func (r *recorder) Assigned(_ context.Context, p Partition, left Position) (Session, Position, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left[p.Name] = append(r.left[p.Name], left)
	if r.assign != nil {
		if err := r.assign(p.Name); err != nil {
			return nil, Position{}, err
		}
	}
	r.next[p.Name] = left.Offset
	return &recording{recorder: r, name: p.Name, low: left.Offset}, left, nil
}

func (s *recording) Consume(_ context.Context, b *Batch) error {
	if !s.busy.TryLock() {
		s.t.Error("two calls of one session at a time")
	}
	defer s.busy.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.consume != nil {
		if err := s.consume(s.name, b); err != nil {
			return err
		}
	}
	n := 0
	for line := range bytes.Lines(b.Data) {
		if n >= len(b.Refs) {
			s.t.Errorf("%s: %d refs for more lines", s.name, len(b.Refs))
			break
		}
		ref := b.Refs[n]
		if ref.Line < 1 || ref.Offset < b.Offset || ref.Offset >= b.Next {
			s.t.Errorf("%s: ref %+v in a batch [%d, %d)", s.name, ref, b.Offset, b.Next)
		}
		s.lines[s.name] = append(s.lines[s.name], takenLine{ref, string(line)})
		n++
	}
	if n != len(b.Refs) {
		s.t.Errorf("%s: %d lines and %d refs", s.name, n, len(b.Refs))
	}
	if b.Next < b.Offset || b.Offset < s.low {
		s.t.Errorf("%s: batch [%d, %d) after %d", s.name, b.Offset, b.Next, s.low)
	}
	s.low = b.Next
	s.next[s.name] = b.Next
	s.gap[s.name] += b.Gap
	if b.AtEnd {
		s.atEnd[s.name]++
	}
	if b.Done != nil {
		for i := range b.Data {
			b.Data[i] = '#' // the memory is another's from now on
		}
		b.Done()
	}
	return nil
}

func (s *recording) Committed(at Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = at
}

func (s *recording) Released() Position {
	if !s.busy.TryLock() {
		s.t.Error("Released while Consume is under way")
	}
	defer s.busy.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := max(s.next[s.name]-s.keep, 0)
	return Position{Offset: at, Metadata: fmt.Sprint("m", at)}
}

func (s *recording) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed[s.name]++
	return nil
}

// text is all that a partition was given, in order.
func (r *recorder) text(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, l := range r.lines[name] {
		b.WriteString(l.text)
	}
	return b.String()
}

// ends is how often the end of a partition was said.
func (r *recorder) ends(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.atEnd[name]
}

// told is where Assigned was told that a partition was left, each time.
func (r *recorder) told(name string) []Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.left[name])
}

func (r *recorder) lost(name string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gap[name]
}

// waitFor polls until something has happened, in real time.
func waitFor(t testing.TB, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !happened(); {
		if time.Now().After(end) {
			t.Fatal("it did not happen within 30 s")
		}
		time.Sleep(time.Millisecond)
	}
}

// said is what a partition says is wrong with it.
func said(s PartitionState) string {
	if s.Err == nil {
		return ""
	}
	return s.Err.Error()
}
