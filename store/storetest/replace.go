package storetest

import (
	"math/rand/v2"
	"slices"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/store"
)

func (s *suite) versions() {
	s.write(write(1, 0, row(base, "web", 1, 7, 3)))
	s.write(write(1, 0, row(base, "web", 1, 9, 5)))
	s.write(write(1, 0, row(base, "web", 1, 8, 4)))
	s.write(write(1, 0, row(base, "web", 1, 9, 5)))
	s.want(store.Tick, `0 "web" -1 r1 v9: 5`)
	s.write(write(2, 0, row(base, "web", 2, 1, 1)))
	s.want(store.Tick, `0 "web" -1 r2 v1: 1`)
	s.write(write(1, 0, row(base, "web", 1, 10, 6)))
	s.want(store.Tick, `0 "web" -1 r2 v1: 1`)
}

func (s *suite) equalVersion() {
	s.write(write(1, base+10, row(base, "web", 1, 7, 3)))
	s.write(write(1, base+10, row(base, "web", 1, 7, 4)))
	s.want(store.Tick, `0 "web" -1 r1 v7: 3`)
	s.want(store.TenSeconds, `0 "web" -1 r1 v7: 3`)
}

func (s *suite) names() {
	var rows []store.Row
	add := func(change func(*store.Row)) {
		r := row(base, "web", 1, 1, 1)
		change(&r)
		rows = append(rows, r)
	}
	add(func(*store.Row) {})
	add(func(r *store.Row) { r.At++ })
	add(func(r *store.Row) { r.Family = store.ByPeer })
	add(func(r *store.Row) { r.LateBlock = 0 })
	add(func(r *store.Row) { r.LateBlock = 1 << 50 })
	add(func(r *store.Row) { r.Dependency = "orders" })
	add(func(r *store.Row) { r.Route = "" })
	add(func(r *store.Row) { r.Route, r.Wide = "", true })
	add(func(r *store.Row) { r.Name = "Web" })
	s.write(write(1, 0, rows...))
	other := row(base, "web", 4, 1, 1)
	other.Scope = "other"
	s.write(&store.Write{Scope: "other", Rules: 4, Rows: []store.Row{other}})
	s.same("ticks", s.encoded(s.rows(store.Tick)), s.encoded(append(rows, other)))
}

func (s *suite) open() {
	r := row(base+1, "web", 1, 7, 3)
	r.Open = true
	s.write(write(1, base+1, r))
	s.want(store.Tick, `1 "web" -1 r1 v7: 3 open`)
	// The closed row depends on no more records than the open one did.
	r.Open = false
	s.write(write(1, base+2, r))
	s.want(store.Tick, `1 "web" -1 r1 v7: 3`)
}

func (s *suite) higherRules() {
	var old []store.Row
	for at := int64(base); at < base+30; at++ {
		old = append(old, row(at, "web", 1, 9, 1), row(at, "gone", 1, 9, 1))
	}
	s.write(write(1, base+30, append(old, lateRow(base+12, 3, 1, 1, 1), lateRow(base+2, 4, 1, 1, 1))...))
	s.want(store.TenSeconds, `0 "" -1 r1 v1: 1`, `0 "gone" -1 r1 v90: 10`, `0 "web" -1 r1 v90: 10`,
		`10 "" -1 r1 v1: 1`, `10 "gone" -1 r1 v90: 10`, `10 "web" -1 r1 v90: 10`, `20 "gone" -1 r1 v90: 10`, `20 "web" -1 r1 v90: 10`)

	// They start at 11: what lies before stays, and what comes after stays until
	// its first row or its closing.
	s.write(write(2, base+11))
	if got := len(s.rows(store.Tick)); got != 62 {
		s.Errorf("the start of new rules left %d rows of 62", got)
	}
	if closed, err := s.store.Closed(ctx); err != nil || closed["s"] != base+11 {
		s.Errorf("new rules are closed to %d, %v", closed["s"]-base, err)
	}
	s.write(write(2, base+11, row(base+13, "web", 2, 1, 7))) // 13 is rewritten, open
	s.write(write(2, base+13))                               // 11 and 12 are closed, empty
	s.write(write(1, base+30, old...))                       // the old owner comes again
	var want []string
	for _, r := range brief(old) {
		at := 0
		for _, c := range r {
			if c < '0' || c > '9' {
				break
			}
			at = at*10 + int(c-'0')
		}
		switch {
		case at == 11 || at == 12 || at == 13:
		default:
			want = append(want, r)
		}
	}
	want = append(want, `13 "web" -1 r2 v1: 7`, `2 "" 4 r1 v1: 1`)
	got := brief(s.rows(store.Tick))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("ticks are\n%q, want\n%q", got, want)
	}
	// Roll-ups stay as they were made until the new rules close their buckets.
	s.write(write(2, base+20))
	s.want(store.TenSeconds, `0 "" -1 r1 v1: 1`, `0 "gone" -1 r1 v90: 10`, `0 "web" -1 r1 v90: 10`,
		`10 "gone" -1 r1 v9: 1`, `10 "web" -1 r2 v10: 8`, `20 "gone" -1 r1 v90: 10`, `20 "web" -1 r1 v90: 10`)
	s.write(write(2, base+30))
	s.want(store.TenSeconds, `0 "" -1 r1 v1: 1`, `0 "gone" -1 r1 v90: 10`, `0 "web" -1 r1 v90: 10`,
		`10 "gone" -1 r1 v9: 1`, `10 "web" -1 r2 v10: 8`)
}

func (s *suite) lateBlocks() {
	s.write(write(1, base+20, row(base, "web", 1, 5, 2), row(base+10, "web", 1, 5, 2),
		lateRow(base, 1, 1, 3, 3), lateRow(base+1, 1, 1, 1, 1), lateRow(base+1, 2, 1, 1, 1)))
	// The new rules start at 20; of block 1 they find one record, in tick 5.
	s.write(write(2, base+20, lateRow(base+5, 1, 2, 1, 1)))
	s.write(write(1, base+20, lateRow(base, 1, 1, 4, 4)))
	s.want(store.Tick, `0 "web" -1 r1 v5: 2`, `1 "" 2 r1 v1: 1`, `5 "" 1 r2 v1: 1`, `10 "web" -1 r1 v5: 2`)
	s.want(store.TenSeconds, `0 "" -1 r2 v2: 2`, `0 "web" -1 r1 v5: 2`, `10 "web" -1 r1 v5: 2`)
}

func (s *suite) zombies() {
	s.write(write(2, base))
	s.write(write(2, base+10, row(base+3, "web", 2, 5, 2)))
	s.write(write(1, base+40, row(base+3, "web", 1, 50, 9), row(base+4, "gone", 1, 50, 9), lateRow(base+4, 1, 1, 2, 2)))
	s.want(store.Tick, `3 "web" -1 r2 v5: 2`)
	s.want(store.TenSeconds, `0 "web" -1 r2 v5: 2`)
	if closed, err := s.store.Closed(ctx); err != nil || closed["s"] != base+10 {
		s.Errorf("closed to %d, %v", closed["s"]-base, err)
	}
}

// anyOrder lets two owners write the same stretch, the second under higher rules
// from its middle on, each in its own order but with repeats, in every interleaving.
func (s *suite) anyOrder() {
	for seed := range uint64(4) {
		// A minute of every second, or hours of every other minute.
		step := []int64{1, 120}[seed/2]
		from, middle, to := int64(base), base+35*step, base+75*step
		r := rand.New(rand.NewPCG(seed, 31))
		var writes [2][]*store.Write
		want := map[name]string{}
		for i, start := range []int64{from, middle} {
			rules := uint32(i + 1)
			closed := start
			writes[i] = append(writes[i], write(rules, closed))
			for closed < to {
				w, early := write(rules, 0), write(rules, 0)
				next := min(closed+(1+r.Int64N(7))*step, to)
				for at := closed; at < next; at += step {
					for _, n := range []string{"a", "b", "c"} {
						if r.IntN(3) == 0 {
							continue
						}
						full := row(at, n, rules, 10, 1+r.IntN(4))
						part := row(at, n, rules, 5, 1)
						part.Open = true
						early.Rows = append(early.Rows, part)
						w.Rows = append(w.Rows, full)
						if i == 1 || at < middle {
							want[nameOf(&full)] = string(full.Counts.Append(nil))
						}
					}
				}
				closed = next
				w.Closed = closed
				writes[i] = append(writes[i], early, w)
			}
		}
		st := s.fresh(s.T)
		own := &suite{T: s.T, store: st, fresh: s.fresh}
		var done []*store.Write
		for len(writes[0])+len(writes[1]) > 0 {
			i := r.IntN(2)
			if len(writes[i]) == 0 {
				continue
			}
			own.write(writes[i][0])
			done, writes[i] = append(done, writes[i][0]), writes[i][1:]
			if r.IntN(4) == 0 {
				own.write(done[r.IntN(len(done))])
			}
		}
		got := own.rows(store.Tick)
		own.same("ticks", own.encoded(got), want)
		for _, length := range []int64{10, 60, 3600} {
			sums := map[name]*store.Row{}
			for _, x := range own.rows(store.Tick) {
				finer := x.Counts
				x.Counts = new(aggregate.Counts)
				x.Counts.MergeFiner(finer, x.At, length)
				if x.At = x.At / length * length; x.At+length <= to {
					merge(sums, x)
				}
			}
			own.same("roll-ups", own.encoded(own.rows(store.Resolution(length))), own.encoded(inOrder(sums)))
		}
		if err := st.Close(); err != nil {
			s.Error(err)
		}
	}
}
