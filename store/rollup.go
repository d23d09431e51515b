package store

import (
	"cmp"
	"maps"
	"slices"
)

// A roll-up is made of the rows of the next finer level, what was on time and
// what was late apart. All of a bucket's are made when the bucket is closed; after
// that, single ones whose finer rows changed. A bucket of which finer rows have
// expired is never made again: rows that would ask for that are not accepted (see
// state.accepts), and those on time of it are final.

// rollUp makes what the write closed or changed, level by level: each is made of
// the one before.
func (p *writing) rollUp() error {
	closed := p.s.closed()
	if closed == never {
		// The first closing makes everything, from the oldest row on: late ones may
		// be older than all that its rules have on time.
		for k := range p.touched[1] {
			p.s.unmade(k.at)
		}
		return nil
	}
	for level := 1; level < hourLevel; level++ {
		length := resolutions[level]
		from, to := max(floor(p.s.made, length), p.s.gone[level-1]), floor(closed, length)
		if from < to {
			if err := p.sweep(level, from, to); err != nil {
				return err
			}
		}
		for k := range p.touched[level] {
			if k.at >= to || k.at >= from && from < to {
				continue // not closed yet, or just made
			}
			if err := p.remake(level, k); err != nil {
				return err
			}
			p.touchAbove(level, k)
		}
	}
	p.s.made = max(p.s.made, closed)
	return p.rollUpHours()
}

// An hour of many series is made of so many minutes that whoever wants to write
// would wait for it too long. So each write makes a part: of so many series at a
// time, until it has read so many minutes or twice its own rows. As no minute is
// without a tick, what is to be made never grows for long. Until an hour is made it
// is put together of its minutes for whoever reads it; see pendingHours.
var (
	partSeries  = 64
	partMinutes = 10_000
)

// seekMinutes is how many are read in the time that it takes to look for some.
const seekMinutes = 8

// rollUpHours makes a part of the hours that are closed.
func (p *writing) rollUpHours() error {
	s := p.s
	at, to := s.pendingHours()
	for k := range p.touched[hourLevel] {
		if k.at > at || k.at == at && k.series > s.hourSeries {
			continue // not made yet
		}
		if err := p.remake(hourLevel, k); err != nil {
			return err
		}
	}
	length := resolutions[hourLevel]
	for left := max(partMinutes, 2*len(p.w.Rows)); at < to && left > 0; {
		if s.hourSeries == 0 {
			begun, next, err := at, to, error(nil)
			if at, next, err = p.nextHour(at, to); err != nil {
				return err
			}
			if err := p.t.clear(hourLevel, p.w.Scope, begun, next); err != nil {
				return err
			}
			if s.hours = at; at == to {
				break
			}
		}
		each, flush := p.summing(hourLevel)
		last, err := p.t.someRows(hourLevel-1, p.w.Scope, at, at+length, s.hourSeries, partSeries, func(k key, v *value) error {
			left--
			return each(k, v)
		})
		if err == nil {
			err = flush()
		}
		if err != nil {
			return err
		}
		if left -= seekMinutes; last == 0 {
			at += length
			s.hours = at
		}
		s.hourSeries = last
	}
	return nil
}

// nextHour is the first hour with minutes from one time up to another, not
// included, and the end of it; to and to if there is none.
func (p *writing) nextHour(from, to int64) (at, end int64, err error) {
	at, err = p.t.first(hourLevel-1, p.w.Scope, from, to)
	if err != nil || at == to {
		return to, to, err
	}
	at = floor(at, resolutions[hourLevel])
	return at, at + resolutions[hourLevel], nil
}

// sweep makes all roll-ups of a stretch of time.
func (p *writing) sweep(level int, from, to int64) error {
	if err := p.t.clear(level, p.w.Scope, from, to); err != nil {
		return err
	}
	if level == 1 {
		// Of ticks that the scope had nothing of before, all rows are at hand.
		fresh := floor(max(p.top, from)+resolutions[level]-1, resolutions[level])
		if err := p.sumFresh(fresh, to); err != nil {
			return err
		}
		if to = min(to, fresh); from == to {
			return nil
		}
	}
	each, flush := p.summing(level)
	if err := p.t.rows(level-1, p.w.Scope, from, to, each); err != nil {
		return err
	}
	return flush()
}

// sumFresh makes the ten seconds of a stretch of time of the rows of the write.
func (p *writing) sumFresh(from, to int64) error {
	sums := map[key]*sum{}
	for k, r := range p.fresh {
		if k.at < from || k.at >= to {
			continue
		}
		in := key{floor(k.at, resolutions[1]), k.series, k.part()}
		s := sums[in]
		if s == nil {
			s = new(sum)
			sums[in] = s
		}
		s.merge(0, k.at, r.Rules, r.Version, r.Counts)
	}
	in := slices.SortedFunc(maps.Keys(sums), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.series, b.series), cmp.Compare(a.late, b.late))
	})
	for _, k := range in {
		if err := p.putSum(1, k, sums[k]); err != nil {
			return err
		}
	}
	return nil
}

// summing makes roll-ups of the finer rows that each is given, those of one
// together. flush makes the last one.
func (p *writing) summing(level int) (each func(key, *value) error, flush func() error) {
	var at key
	var s sum
	flush = func() error {
		if s.counts == nil {
			return nil
		}
		defer func() { s = sum{} }()
		return p.putSum(level, at, &s)
	}
	each = func(k key, v *value) error {
		if in := (key{floor(k.at, resolutions[level]), k.series, k.part()}); in != at {
			if err := flush(); err != nil {
				return err
			}
			at = in
		}
		return s.add(level-1, k.at, v)
	}
	return each, flush
}

// remake makes one roll-up anew, or deletes it if nothing is left of it.
func (p *writing) remake(level int, k key) error {
	var s sum
	err := p.t.rowsOf(level-1, k.series, k.late, k.at, k.at+resolutions[level], func(f key, v *value) error {
		return s.add(level-1, f.at, v)
	})
	if err != nil {
		return err
	}
	if s.counts == nil {
		return p.t.remove(level, k)
	}
	return p.putSum(level, k, &s)
}

func (p *writing) putSum(level int, k key, s *sum) error {
	p.buf = s.counts.Append(p.buf[:0])
	s.value.counts = p.buf
	s.plain = s.counts.Totals()
	_, err := p.t.put(level, k, &s.value, true)
	return err
}
