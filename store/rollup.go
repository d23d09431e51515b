package store

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
			if p.s.made == never || k.at < p.s.made {
				p.s.made = k.at
			}
		}
		return nil
	}
	for level := 1; level < levels; level++ {
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
	return nil
}

// sweep makes all roll-ups of a stretch of time.
func (p *writing) sweep(level int, from, to int64) error {
	if err := p.t.clear(level, p.w.Scope, from, to); err != nil {
		return err
	}
	var at key
	var s sum
	flush := func() error {
		if s.counts == nil {
			return nil
		}
		defer func() { s = sum{} }()
		return p.putSum(level, at, &s)
	}
	err := p.t.rows(level-1, p.w.Scope, from, to, func(k key, v *value) error {
		if in := (key{floor(k.at, resolutions[level]), k.series, k.part()}); in != at {
			if err := flush(); err != nil {
				return err
			}
			at = in
		}
		return s.add(level-1, k.at, v)
	})
	if err != nil {
		return err
	}
	return flush()
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
