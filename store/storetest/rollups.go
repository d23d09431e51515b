package storetest

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/store"
)

// fill writes traffic as daemons would: tick by tick in writes of different
// lengths, the open tick early and again, late blocks now and then, and everything
// closed at last. Late rows come after the write that closes their tick.
func (s *suite) fill(r *rand.Rand, t *traffic) {
	s.Helper()
	for _, scope := range []string{"a", "b"} {
		rows := rowsOf(t.onTime[scope], 1, scope, store.OnTime)
		var late []store.Row
		for b, in := range t.late {
			if b.scope == scope {
				late = append(late, rowsOf(in, 1, scope, b.of)...)
			}
		}
		r.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
		// Some come before anything is closed.
		n := min(len(late), r.IntN(5))
		s.write(&store.Write{Scope: scope, Rules: 1, Rows: late[:n]})
		late = late[n:]
		for len(rows) > 0 {
			at := rows[0].At + int64(r.IntN(100))
			n := 0
			for n < len(rows) && rows[n].At < at {
				n++
			}
			w := &store.Write{Scope: scope, Rules: 1, Rows: rows[:n], Closed: at}
			if n > 0 && r.IntN(3) == 0 { // what is to be replaced
				early := slices.Clone(rows[:1])
				early[0].Version, early[0].Open, early[0].Counts = 1, true, arrived(early[0].At, 3)
				s.write(&store.Write{Scope: scope, Rules: 1, Rows: early, Closed: early[0].At})
			}
			i := 0
			for i < len(late) && r.IntN(2) == 0 {
				i++
			}
			w.Rows = append(slices.Clone(w.Rows), late[:i]...)
			late = late[i:]
			s.write(w)
			if r.IntN(5) == 0 {
				s.write(w)
			}
			rows = rows[n:]
		}
		s.write(&store.Write{Scope: scope, Rules: 1, Rows: late, Closed: base + 24*3600})
	}
}

var all = []store.Resolution{store.Tick, store.TenSeconds, store.Minute, store.Hour}

func (s *suite) rollUps() {
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 41))
		t := random(r, 40, 600+r.Int64N(8000))
		own := &suite{T: s.T, store: s.fresh(s.T), fresh: s.fresh}
		own.fill(r, t)
		for _, length := range all {
			own.same("rows", own.encoded(own.rows(length)), own.encoded(t.rows(int64(length))))
		}
		if err := own.store.Close(); err != nil {
			s.Error(err)
		}
	}
}

func (s *suite) distinct() {
	r := rand.New(rand.NewPCG(1, 42))
	t := random(r, 50, 7300)
	s.fill(r, t)
	for _, length := range all {
		step := int64(length)
		for range 25 {
			from := base/step*step + r.Int64N(8000/step+1)*step
			to := from + (1+r.Int64N(4000/step+1))*step
			rows, err := s.store.Rows(ctx, store.Query{Resolution: length, From: from, To: to, Limit: everything})
			if err != nil {
				s.Fatal(err)
			}
			sum := new(aggregate.Counts)
			for _, x := range rows {
				if !x.Wide {
					x.Counts.Settle((x.At - from) / step)
					sum.Merge(x.Counts)
				}
			}
			if got, want := sum.Questions(), t.questions(from, to); got != want {
				s.Fatalf("rows of %d s from %d to %d: %d distinct questions, want %d", length, from-base, to-base, got, want)
			}
		}
	}
}

func (s *suite) openBuckets() {
	s.write(write(1, base+9, row(base+3, "web", 1, 1, 2), row(base+12, "web", 1, 1, 2)))
	s.want(store.TenSeconds)
	s.write(write(1, base+10))
	s.want(store.TenSeconds, `0 "web" -1 r1 v1: 2`)
	s.write(write(1, base+59))
	s.want(store.TenSeconds, `0 "web" -1 r1 v1: 2`, `10 "web" -1 r1 v1: 2`)
	s.want(store.Minute)
	s.write(write(1, base+60))
	s.want(store.Minute, `0 "web" -1 r1 v2: 4`)
	s.want(store.Hour)
	s.write(write(1, base+3600))
	s.want(store.Hour, `0 "web" -1 r1 v2: 4`)
}

func (s *suite) lateAfterClosing() {
	s.write(write(1, base+7200, row(base+3, "web", 1, 1, 2)))
	s.write(write(1, base+7200, lateRow(base+3, 7, 1, 1, 1), lateRow(base+3000, 8, 1, 1, 1)))
	s.write(write(1, base+7200, lateRow(base+3, 7, 1, 3, 3)))
	s.write(write(1, base+7200, lateRow(base+3, 7, 1, 2, 2)))
	s.want(store.Tick, `3 "" 7 r1 v3: 3`, `3 "web" -1 r1 v1: 2`, `3000 "" 8 r1 v1: 1`)
	s.want(store.TenSeconds, `0 "" -1 r1 v3: 3`, `0 "web" -1 r1 v1: 2`, `3000 "" -1 r1 v1: 1`)
	s.want(store.Hour, `0 "" -1 r1 v4: 4`, `0 "web" -1 r1 v1: 2`)
	// A rebuilt tick that was on time does the same, and so does one of a name
	// that late rows have too.
	s.write(write(1, base+7200, row(base+3, "web", 1, 5, 5), row(base+4, "", 1, 1, 1)))
	s.want(store.TenSeconds, `0 "" -1 r1 v4: 4`, `0 "web" -1 r1 v5: 5`, `3000 "" -1 r1 v1: 1`)
	s.want(store.Minute, `0 "" -1 r1 v4: 4`, `0 "web" -1 r1 v5: 5`, `3000 "" -1 r1 v1: 1`)
	s.want(store.Hour, `0 "" -1 r1 v5: 5`, `0 "web" -1 r1 v5: 5`)
}

// A partition may begin with records that are older than all that its scope has on
// time, before anything of the scope is closed or after. They are in roll-ups like
// any other.
func (s *suite) lateBeforeAll() {
	old, older := lateRow(base+3, 7, 1, 1, 1), lateRow(base-3600+5, 8, 1, 1, 2)
	first := row(base+4*3600+1, "web", 1, 1, 4)
	for name, writes := range map[string][]*store.Write{
		"before anything is closed": {write(1, 0, old, older), write(1, base+6*3600, first)},
		"one by one":                {write(1, 0, older), write(1, 0, old), write(1, base+4*3600+1), write(1, base+6*3600, first)},
		"with what is open":         {write(1, 0, old, first, older), write(1, base+6*3600)},
		"with the first closing":    {write(1, base+6*3600, old, first, older)},
		"after it":                  {write(1, base+6*3600, first), write(1, base+6*3600, old, older)},
		"under rules that close nothing": {
			write(1, 0, lateRow(base+3, 7, 1, 9, 9), lateRow(base-3600+5, 8, 1, 9, 9)),
			write(2, 0, ruled(2, old, older)...), write(2, base+6*3600, ruled(2, first)...),
		},
	} {
		own := &suite{T: s.T, store: s.fresh(s.T), fresh: s.fresh}
		for i, w := range writes {
			own.write(w)
			own.expire(base + 6*3600 + int64(i))
		}
		for _, length := range all[1:] {
			want := map[int64]uint64{-3600: 2, 0: 1, 4 * 3600: 4}
			got := map[int64]uint64{}
			for _, r := range own.rows(length) {
				got[r.At-base] += r.Counts.Totals().Arrivals
			}
			if !maps.Equal(got, want) {
				s.Errorf("%s: rows of %d s have arrivals %v, want %v", name, length, got, want)
			}
		}
		if err := own.store.Close(); err != nil {
			s.Error(err)
		}
	}
}

// ruled are rows under other rules.
func ruled(rules uint32, rows ...store.Row) []store.Row {
	for i := range rows {
		rows[i].Rules = rules
	}
	return rows
}
