package storetest

import (
	"math/rand/v2"
	"time"

	"github.com/targetside/auditor/store"
)

var retention = map[store.Resolution]time.Duration{
	store.Tick: 2 * time.Hour, store.TenSeconds: 24 * time.Hour, store.Minute: 14 * 24 * time.Hour, store.Hour: 400 * 24 * time.Hour,
}

func (s *suite) expire(at int64) {
	s.Helper()
	if err := s.store.Expire(ctx, time.Unix(at, 0), retention); err != nil {
		s.Fatal(err)
	}
}

func (s *suite) retention() {
	r := rand.New(rand.NewPCG(1, 51))
	t := random(r, 50, 5000)
	late := t.late
	t.late = nil
	s.fill(r, t)
	end := int64(base + 3*3600) // ticks before base + 3600 have expired
	s.expire(end)
	want := s.encoded(t.rows(1))
	for n := range want {
		if n.at < base+3600 {
			delete(want, n)
		}
	}
	s.same("ticks", s.encoded(s.rows(store.Tick)), want)
	for _, length := range all[1:] {
		s.same("what does not expire yet", s.encoded(s.rows(length)), s.encoded(t.rows(int64(length))))
	}

	// Late rows of expired ticks come, again and again, and grow.
	for b, in := range late {
		first := rowsOf(in[:len(in)/2], 1, b.scope, b.of)
		s.write(&store.Write{Scope: b.scope, Rules: 1, Rows: first})
		s.expire(end)
		for range 2 {
			rows := rowsOf(in, 1, b.scope, b.of)
			for i := range rows {
				rows[i].Version += uint64(len(in))
			}
			s.write(&store.Write{Scope: b.scope, Rules: 1, Rows: rows})
			s.expire(end)
		}
	}
	t.late = late
	for _, length := range all[1:] {
		s.same("with late rows of expired ticks", s.encoded(s.rows(length)), s.encoded(t.rows(int64(length))))
	}
	for _, x := range s.rows(store.Tick) {
		if x.At < base+3600 {
			s.Errorf("a late row of expired tick %d is returned", x.At-base)
		}
	}

	// An expired tick that was on time is not made anew of what comes alone, and
	// nor is anything older than rows of ten seconds are.
	before := s.encoded(s.rows(store.Minute))
	x := row(base+5, "web", 1, 1<<40, 9)
	x.Scope = "a"
	s.write(&store.Write{Scope: "a", Rules: 1, Rows: []store.Row{x}})
	s.expire(base + 30*3600)
	y := lateRow(base+5, 9, 1, 1<<40, 9)
	y.Scope = "a"
	s.write(&store.Write{Scope: "a", Rules: 1, Rows: []store.Row{y}})
	s.same("minutes", s.encoded(s.rows(store.Minute)), before)
	if n := len(s.rows(store.Tick)) + len(s.rows(store.TenSeconds)); n != 0 {
		s.Errorf("%d rows have not expired", n)
	}
	// Minutes stay until their hours are made, for which a store may take some writes.
	left := -1
	for range 500 {
		s.expire(base + 15*24*3600)
		if left = len(s.rows(store.Minute)); left == 0 {
			break
		}
		for _, scope := range []string{"a", "b"} {
			s.write(&store.Write{Scope: scope, Rules: 1, Closed: base + 24*3600})
		}
	}
	if left != 0 {
		s.Errorf("%d minutes have not expired", left)
	}
	s.same("hours", s.encoded(s.rows(store.Hour)), s.encoded(t.rows(3600)))
	s.expire(base + 401*24*3600)
	if n := len(s.rows(store.Hour)); n != 0 {
		s.Errorf("%d hours have not expired", n)
	}
	if err := s.store.Expire(ctx, time.Unix(base, 0), map[store.Resolution]time.Duration{7: time.Hour}); err == nil {
		s.Error("rows of 7 s expire")
	}
	if err := s.store.Expire(ctx, time.Unix(base, 0), map[store.Resolution]time.Duration{store.Tick: -1}); err == nil {
		s.Error("a negative retention is one")
	}
}

// A reader that lags behind writes ticks that are older than any retention.
func (s *suite) lagging() {
	now := int64(base + 50*3600)
	for at := int64(base); at < base+7200; at += 40 {
		s.write(write(1, at, row(at, "web", 1, 1, 1)))
		if at%280 == 0 {
			s.expire(now)
		}
	}
	s.want(store.Hour, `0 "web" -1 r1 v90: 90`)
	s.write(write(1, base+7200))
	s.expire(now)
	s.want(store.Tick)
	s.want(store.TenSeconds)
	s.want(store.Hour, `0 "web" -1 r1 v90: 90`, `3600 "web" -1 r1 v90: 90`)
}

// What is not closed yet is kept, also beside late rows that are older than rows
// of hours are kept.
func (s *suite) lateAndOpen() {
	s.write(write(1, 0, row(base+3, "web", 1, 1, 2), lateRow(base-500*24*3600, 7, 1, 1, 1)))
	s.expire(base + 5*3600)
	s.want(store.Tick, `3 "web" -1 r1 v1: 2`)
	s.write(write(1, base+3600))
	s.want(store.Hour, `0 "web" -1 r1 v1: 2`)
}

func (s *suite) abandoned() {
	s.write(write(1, base+15, row(base+3, "web", 1, 1, 2), row(base+14, "web", 1, 1, 2)))
	s.write(&store.Write{Scope: "s", Rules: 2, Rows: []store.Row{row(base+20, "web", 2, 1, 2)}})
	s.expire(base + 300*24*3600)
	s.want(store.Tick, `14 "web" -1 r1 v1: 2`, `20 "web" -1 r2 v1: 2`)
	s.want(store.TenSeconds, `0 "web" -1 r1 v1: 2`)
	s.expire(base + 401*24*3600)
	s.want(store.Tick)
	s.want(store.TenSeconds)
}
