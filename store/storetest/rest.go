package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/store"
)

func (s *suite) closedTicks() {
	closed := func(want map[string]int64) {
		s.Helper()
		got, err := s.store.Closed(ctx)
		if err != nil || !reflect.DeepEqual(got, want) {
			s.Errorf("closed are %v, %v; want %v", got, err, want)
		}
	}
	closed(map[string]int64{})
	s.write(write(3, base+10))
	s.write(write(3, base+5))
	s.write(write(3, 0))
	closed(map[string]int64{"s": base + 10})
	s.write(&store.Write{Scope: "other", Rules: 1, Closed: base + 3})
	s.write(write(4, 0, row(base+7, "web", 4, 1, 1)))
	closed(map[string]int64{"s": base + 10, "other": base + 3})
	s.write(write(4, base+7))
	closed(map[string]int64{"s": base + 7, "other": base + 3})
	s.write(write(3, base+20))
	closed(map[string]int64{"s": base + 7, "other": base + 3})
}

func (s *suite) notes() {
	is := func(scope, want string) {
		s.Helper()
		if got, err := s.store.Note(ctx, scope); err != nil || string(got) != want {
			s.Errorf("the note of %s is %q, %v; want %q", scope, got, err, want)
		}
	}
	with := func(note string, w *store.Write) *store.Write {
		w.Note = []byte(note)
		return w
	}
	is("s", "")
	s.write(with("first\x00\xff", write(2, base+10)))
	s.write(with("another", &store.Write{Scope: "other", Rules: 1, Closed: base + 3}))
	is("s", "first\x00\xff")
	is("other", "another")
	s.write(write(2, base+11))
	is("s", "first\x00\xff")
	s.write(with("second", write(2, 0, row(base+12, "web", 2, 1, 1))))
	is("s", "second")
	s.write(with("of lower rules", write(1, base+30)))
	is("s", "second")
	refused := with("with a row that nobody keeps", write(2, base+40, row(base+35, "web", 1, 1, 1)))
	if err := s.store.Write(ctx, refused); err == nil {
		s.Error("a row of other rules than its write's is kept")
	}
	if err := s.store.Write(ctx, with("alone", write(2, 0))); err == nil {
		s.Error("a note is kept with nothing that it is about")
	}
	is("s", "second")
	s.write(with("of higher rules", write(3, base+5)))
	is("s", "of higher rules")
	is("other", "another")
}

func (s *suite) ranges() {
	counted := func(want ...[2]int64) {
		s.Helper()
		got, err := s.store.Counted(ctx, "p/0")
		if err != nil {
			s.Fatal(err)
		}
		var have [][2]int64
		for _, r := range got {
			if r.Partition != "p/0" {
				s.Errorf("a range of %q", r.Partition)
			}
			have = append(have, [2]int64{r.From, r.To})
		}
		if !slices.Equal(have, want) {
			s.Errorf("counted %v, want %v", have, want)
		}
	}
	add := func(ranges ...[2]int64) {
		w := write(1, 0)
		for _, r := range ranges {
			w.Counted = append(w.Counted, store.Range{Partition: "p/0", From: r[0], To: r[1]})
		}
		w.Counted = append(w.Counted, store.Range{Partition: "p/1", From: 0, To: 1000})
		s.write(w)
	}
	counted()
	add([2]int64{10, 20}, [2]int64{30, 40})
	counted([2]int64{10, 20}, [2]int64{30, 40})
	add([2]int64{12, 18}, [2]int64{50, 50}, [2]int64{60, 61})
	counted([2]int64{10, 20}, [2]int64{30, 40}, [2]int64{60, 61})
	add([2]int64{20, 25})
	counted([2]int64{10, 25}, [2]int64{30, 40}, [2]int64{60, 61})
	add([2]int64{24, 60}, [2]int64{0, 1})
	counted([2]int64{0, 1}, [2]int64{10, 61})

	// Against a bitmap.
	r := rand.New(rand.NewPCG(1, 61))
	var bits [300]bool
	for i := range bits {
		bits[i] = i < 1 || i >= 10 && i < 61
	}
	for range 40 {
		from := r.Int64N(290)
		to := from + r.Int64N(10)
		add([2]int64{from, to})
		for i := from; i < to; i++ {
			bits[i] = true
		}
	}
	var want [][2]int64
	for i := range bits {
		if bits[i] && (i == 0 || !bits[i-1]) {
			want = append(want, [2]int64{int64(i), 0})
		}
		if bits[i] && (i+1 == len(bits) || !bits[i+1]) {
			want[len(want)-1][1] = int64(i + 1)
		}
	}
	counted(want...)
}

func (s *suite) nextRules() {
	take := func(scope string, want uint32) {
		s.Helper()
		if got, err := s.store.NextRules(ctx, scope); err != nil || got != want {
			s.Errorf("rules taken are %d, %v; want %d", got, err, want)
		}
	}
	take("s", 1)
	take("s", 2)
	take("other", 1)
	s.write(write(7, base))
	take("s", 8)
	var wait sync.WaitGroup
	taken := make([]uint32, 20)
	for i := range taken {
		wait.Go(func() { taken[i], _ = s.store.NextRules(ctx, "many") })
	}
	wait.Wait()
	slices.Sort(taken)
	for i, r := range taken {
		if r != uint32(i+1) {
			s.Fatalf("taken are %v", taken)
		}
	}
}

func (s *suite) positions() {
	load := func(name string, want []byte) {
		s.Helper()
		if got, err := s.store.Load(ctx, name); err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			s.Errorf("%q is %q (nil: %v), %v; want %q", name, got, got == nil, err, want)
		}
	}
	load("a", nil)
	state := []byte{0, 255, 'x'}
	if err := s.store.Save(ctx, "a", state); err != nil {
		s.Fatal(err)
	}
	state[0] = 7
	load("a", []byte{0, 255, 'x'})
	for _, empty := range [][]byte{nil, {}} {
		if err := s.store.Save(ctx, "a", empty); err != nil {
			s.Fatal(err)
		}
		load("a", []byte{})
	}
	load("A", nil)
}

func (s *suite) limits() {
	s.write(write(1, base+20, row(base, "a", 1, 1, 1), row(base, "b", 1, 1, 1), lateRow(base, 1, 1, 1, 1), lateRow(base, 2, 1, 1, 1), row(base, "", 1, 1, 1)))
	for _, x := range []struct {
		r    store.Resolution
		rows int
	}{{store.Tick, 5}, {store.TenSeconds, 3}} {
		q := store.Query{Resolution: x.r, From: base, To: base + 10, Limit: x.rows}
		if got, err := s.store.Rows(ctx, q); err != nil || len(got) != x.rows {
			s.Errorf("%d rows of %d s, %v; want %d", len(got), x.r, err, x.rows)
		}
		q.Limit--
		if got, err := s.store.Rows(ctx, q); !errors.Is(err, store.ErrTooMany) || got != nil {
			s.Errorf("%d of %d rows, %v", len(got), x.rows, err)
		}
	}
}

func (s *suite) filters() {
	var rows []store.Row
	for _, dependency := range []string{"orders", "seats"} {
		for _, route := range []string{"GET /", "POST /"} {
			for _, name := range []string{"app", "web"} {
				for at := int64(base); at < base+3; at++ {
					r := row(at, name, 1, 1, 1)
					r.Dependency, r.Route = dependency, route
					rows = append(rows, r)
				}
			}
		}
	}
	// Many others, so that a store may choose to search rather than to read all.
	for i := range 300 {
		r := row(base, fmt.Sprint("other ", i), 1, 1, 1)
		r.Dependency, r.Route = "other", "other"
		rows = append(rows, r)
	}
	r := rand.New(rand.NewPCG(1, 71))
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	s.write(write(1, base+60, rows...))
	for _, q := range []struct {
		store.Query
		want int
	}{
		{store.Query{Resolution: store.Tick, From: base, To: base + 3, Dependency: "seats"}, 12},
		{store.Query{Resolution: store.Tick, From: base + 1, To: base + 2, Dependency: "seats"}, 4},
		{store.Query{Resolution: store.Tick, From: base, To: base + 3, Dependency: "seats", Route: "GET /", Name: "web"}, 3},
		{store.Query{Resolution: store.Tick, From: base, To: base + 3, Name: "web"}, 12},
		{store.Query{Resolution: store.Tick, From: base, To: base + 3, Route: "no such"}, 0},
		{store.Query{Resolution: store.Tick, From: base, To: base + 3, Family: store.ByPeer}, 0},
		{store.Query{Resolution: store.Tick, From: base + 3, To: base}, 0},
		{store.Query{Resolution: store.TenSeconds, From: base, To: base + 60, Dependency: "orders", Name: "app"}, 2},
		{store.Query{Resolution: store.Minute, From: base, To: base + 60, Route: "GET /"}, 4},
		{store.Query{Resolution: store.Tick, From: base, To: base + 3}, 324},
	} {
		q.Limit = everything
		got, err := s.store.Rows(ctx, q.Query)
		if err != nil || len(got) != q.want {
			s.Errorf("%+v gives %d rows, %v; want %d", q.Query, len(got), err, q.want)
		}
		for i := range got {
			if q.Dependency != "" && got[i].Dependency != q.Dependency || q.Route != "" && got[i].Route != q.Route || q.Name != "" && got[i].Name != q.Name {
				s.Errorf("%+v gives %+v", q.Query, got[i])
			}
			if i > 0 {
				a, b := got[i-1], got[i]
				if x, y := []string{fmt.Sprint(a.At), a.Dependency, a.Route, a.Name}, []string{fmt.Sprint(b.At), b.Dependency, b.Route, b.Name}; slices.Compare(x, y) >= 0 {
					s.Errorf("%q comes before %q", x, y)
				}
			}
		}
	}
	for _, q := range []store.Query{
		{Resolution: 7, From: base, To: base + 7},
		{Resolution: store.Minute, From: base + 1, To: base + 60},
		{Resolution: store.Minute, From: base, To: base + 61},
		{Resolution: store.Tick, From: base, To: base + 1, Family: 9},
	} {
		if _, err := s.store.Rows(ctx, q); err == nil {
			s.Errorf("%+v is answered", q)
		}
	}
}

func (s *suite) refused() {
	change := func(f func(*store.Row)) *store.Write {
		r := row(base, "web", 1, 1, 1)
		f(&r)
		return write(1, base, r)
	}
	for what, w := range map[string]*store.Write{
		"another scope":         change(func(r *store.Row) { r.Scope = "other" }),
		"other rules":           change(func(r *store.Row) { r.Rules = 2 }),
		"an unknown family":     change(func(r *store.Row) { r.Family = 2 }),
		"a route and all of it": change(func(r *store.Row) { r.Wide = true }),
		"no late block":         change(func(r *store.Row) { r.LateBlock = -2 }),
		"no time":               change(func(r *store.Row) { r.At = 1 << 60 }),
		"no version":            change(func(r *store.Row) { r.Version = 1 << 63 }),
		"no counts":             change(func(r *store.Row) { r.Counts = nil }),
		"a closing at no time":  write(1, 1<<60),
		"offsets backwards":     {Scope: "s", Counted: []store.Range{{Partition: "p", From: 5, To: 4}}},
		"negative offsets":      {Scope: "s", Counted: []store.Range{{Partition: "p", From: -5, To: 4}}},
		"a foreign question":    {Scope: "s", Questions: []store.Question{{Scope: "other", First: time.Unix(base, 0), Last: time.Unix(base, 0)}}},
		"a question at no time": {Scope: "s", Questions: []store.Question{{Scope: "s"}}},
	} {
		if err := s.store.Write(ctx, w); err == nil {
			s.Errorf("a write with %s is kept", what)
		}
	}
	s.want(store.Tick)
}

func (s *suite) atomic() {
	w := write(1, base+10, row(base, "web", 1, 1, 1), row(base+1, "web", 1, 1, 1))
	w.Counted = []store.Range{{Partition: "p", From: 0, To: 9}}
	w.Rows[1].Counts = nil
	if err := s.store.Write(ctx, w); err == nil {
		s.Fatal("a row without counts is kept")
	}
	s.want(store.Tick)
	counted, err := s.store.Counted(ctx, "p")
	closed, err2 := s.store.Closed(ctx)
	if len(counted) != 0 || len(closed) != 0 || err != nil || err2 != nil {
		s.Errorf("counted %v, closed %v, %v, %v", counted, closed, err, err2)
	}
}

func (s *suite) empty() {
	s.write(&store.Write{})
	s.write(&store.Write{Scope: "s", Rules: 1})
	s.want(store.Tick)
	if err := s.store.Check(ctx); err != nil {
		s.Error(err)
	}
	if err := s.store.Expire(ctx, time.Unix(base, 0), nil); err != nil {
		s.Error(err)
	}
	if closed, err := s.store.Closed(ctx); err != nil || len(closed) != 0 {
		s.Errorf("closed are %v, %v", closed, err)
	}
	c := row(base, "web", 1, 1, 0)
	c.Counts = new(aggregate.Counts)
	s.write(write(1, base+10, c))
	s.want(store.TenSeconds, `0 "web" -1 r1 v1: 0`)
}

func (s *suite) strangeNames() {
	var rows []store.Row
	for _, n := range []string{"", " ", "søk/検索/🔥", "a\u0301", "á", strings.Repeat("länge ", 20_000), "'; DROP TABLE ticks; --", "nul\x00nul", "nul\x00", "bad \xff utf-8", "%", "\n"} {
		r := row(base, n, 1, 1, 1)
		r.Scope, r.Dependency, r.Route = "scope "+n, "dependency "+n, "route "+n
		rows = append(rows, r)
		s.write(&store.Write{Scope: r.Scope, Rules: 1, Rows: []store.Row{r}, Closed: base + 10})
		got, err := s.store.Rows(ctx, store.Query{Resolution: store.TenSeconds, From: base, To: base + 10, Dependency: r.Dependency, Route: r.Route, Name: n, Limit: 1})
		if err != nil || len(got) != 1 || nameOf(&got[0]) != nameOf(&r) {
			s.Errorf("%.50q is found as %d rows, %v", n, len(got), err)
		}
		if err := s.store.Save(ctx, n, []byte("state "+n)); err != nil {
			s.Error(err)
		}
		if state, err := s.store.Load(ctx, n); err != nil || string(state) != "state "+n {
			s.Errorf("the state of %.50q is %.50q, %v", n, state, err)
		}
	}
	s.same("ticks", s.encoded(s.rows(store.Tick)), s.encoded(rows))
}

func (s *suite) cancelled() {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err1 := s.store.Rows(gone, store.Query{Resolution: store.Tick, From: 0, To: base, Limit: 1})
	_, err2 := s.store.Questions(gone, [16]byte{}, 1)
	_, err3 := s.store.Counted(gone, "p")
	_, err4 := s.store.Closed(gone)
	_, err5 := s.store.NextRules(gone, "s")
	_, err6 := s.store.Load(gone, "a")
	_, err7 := s.store.WorstQuestions(gone, store.QuestionQuery{})
	_, err8 := s.store.Splits(gone, 0, 1)
	for i, err := range []error{
		err1, err2, err3, err4, err5, err6, err7, err8, s.store.Save(gone, "a", nil), s.store.Check(gone),
		s.store.Expire(gone, time.Unix(base, 0), retention), s.store.Write(gone, write(1, base, row(base, "web", 1, 1, 1))),
	} {
		if !errors.Is(err, context.Canceled) {
			s.Errorf("call %d: %v", i, err)
		}
	}
	s.want(store.Tick)
	// Cancelled at any time, a write is there whole or not at all, and the next
	// one works.
	for i := range 20 {
		gone, cancel := context.WithCancel(ctx)
		var wait sync.WaitGroup
		wait.Go(cancel)
		var rows []store.Row
		for j := range 100 {
			rows = append(rows, row(base+int64(i), fmt.Sprint(j), 1, 1, 1))
		}
		err := s.store.Write(gone, write(1, 0, rows...))
		wait.Wait()
		got, err2 := s.store.Rows(ctx, store.Query{Resolution: store.Tick, From: base + int64(i), To: base + int64(i) + 1, Limit: everything})
		if err2 != nil || len(got) != 0 && len(got) != 100 || err == nil && len(got) == 0 {
			s.Fatalf("%d rows of 100 are there, %v, %v", len(got), err, err2)
		}
	}
	s.write(write(1, base+100, row(base+99, "web", 1, 1, 1)))
}

func (s *suite) concurrent() {
	const writers, ticks = 4, 40
	var wait sync.WaitGroup
	report := func(err error) {
		if err != nil {
			s.Error(err)
		}
	}
	for i := range writers {
		wait.Go(func() {
			scope := fmt.Sprint("scope ", i)
			for at := int64(base); at < base+ticks; at++ {
				a, b := row(at, "web", 1, 1, 1), row(at, "app", 1, 1, 1)
				a.Scope, b.Scope = scope, scope
				report(s.store.Write(ctx, &store.Write{
					Scope: scope, Rules: 1, Rows: []store.Row{a, b}, Closed: at + 1,
					Counted: []store.Range{{Partition: scope, From: at - base, To: at - base + 1}},
				}))
			}
		})
	}
	for range 2 {
		wait.Go(func() {
			for range 20 {
				rows, err := s.store.Rows(ctx, store.Query{Resolution: store.Tick, From: base, To: base + ticks, Limit: everything})
				report(err)
				if len(rows)%2 != 0 {
					s.Errorf("%d rows: half a write was seen", len(rows))
				}
				_, err = s.store.Closed(ctx)
				report(err)
				report(s.store.Save(ctx, "position", []byte("x")))
				report(s.store.Expire(ctx, time.Unix(base, 0), retention))
				report(s.store.Check(ctx))
			}
		})
	}
	wait.Wait()
	if n := len(s.rows(store.Tick)); n != writers*ticks*2 {
		s.Errorf("%d rows", n)
	}
	if n := len(s.rows(store.TenSeconds)); n != writers*ticks/10*2 {
		s.Errorf("%d roll-ups", n)
	}
	for i := range writers {
		if got, err := s.store.Counted(ctx, fmt.Sprint("scope ", i)); err != nil || len(got) != 1 || got[0].To != ticks {
			s.Errorf("counted %v, %v", got, err)
		}
	}
}

func (s *suite) closing() {
	for range 2 {
		if err := s.store.Close(); err != nil {
			s.Error(err)
		}
	}
	if err := s.store.Write(ctx, write(1, base)); err == nil {
		s.Error("a closed store is written to")
	}
	if _, err := s.store.Closed(ctx); err == nil {
		s.Error("a closed store is read")
	}
	if err := s.store.Check(ctx); err == nil {
		s.Error("a closed store is well")
	}
}
