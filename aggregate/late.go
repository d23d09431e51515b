package aggregate

import "github.com/targetside/auditor/keys"

// An arrival is late when its partition had, before it, a record written a whole
// lateness after its tick. Its tick may be closed by then; what is counted of it
// goes into rows of that tick all the same.

// countLate counts an arrival of a closed tick.
func (l *Ledger) countLate(f *filed, at, log int64) {
	if l.lateCopy(f, at, log) {
		return
	}
	l.countUnattributable(f, at, log)
}

// lateCopy says that a late arrival copies the record of a long request, and takes
// note of one that does not.
func (l *Ledger) lateCopy(f *filed, at, log int64) bool {
	if f.long(l) && f.flags&Decidable != 0 {
		if _, copied := l.long[f.copyKey(l, at)]; copied {
			if f.flags&Head != 0 {
				l.stats.Duplicates++
			}
			return true
		}
		l.keepLong(f, at, log)
	}
	if f.flags&clamped != 0 {
		l.stats.Clamped++
	}
	l.seen(at, log)
	return false
}

// AddLate takes an arrival that is late, with Config.Live: instead of Add, which
// would file it in rows that a rebuilt ledger might fill otherwise. What it counts
// goes to out.Late, unless it copies the record of a long request.
func (l *Ledger) AddLate(a *Arrival, out *Output) {
	start, flags := l.cfg.counted(a)
	at := tickOf(start)
	f := filed{
		start: uint32(start - at*second), dur: packDuration(a.Duration), owner: uint32(a.Route)<<8 | uint32(keys.Late),
		text: uint32(a.Text), retry: PackRetry(a.RetryAfter), peer: a.Peer, num: a.Attempt,
	}
	if a.Class == keys.Unattributable {
		f.owner = uint32(a.Route)<<8 | uint32(a.Reason)
	}
	f.flags = packFlags(flags&^notFollowed|unattributable|late, a)
	log := at*second + int64(f.start) + f.length(l)
	if l.lateCopy(&f, at, log) {
		return
	}
	l.stats.Late++
	e := &l.e
	e.begin(Dims{Route: a.Route, Peer: a.Peer}, at, &f)
	e.unattributed(keys.Reason(f.owner))
	b := e.beat(&f, log)
	b.Late = true
	out.Beats = append(out.Beats, b)
	out.Late = append(out.Late, b)
}

// Tick is the tick that an arrival is counted in.
func (c *Config) Tick(a *Arrival) int64 {
	start, _ := c.counted(a)
	return tickOf(start)
}

// Late says that an arrival of a tick is late for a partition with that watermark.
func (c *Config) Late(tick, watermark int64) bool { return tick*second+c.Lateness <= watermark }

// counted is the time at which an arrival is counted, and its flags.
func (c *Config) counted(a *Arrival) (start int64, flags Flags) {
	start, flags = a.Start, a.Flags&^(clamped|unattributable|late)
	if floor := a.Log - (c.Lateness - c.margin()); start < floor {
		start, flags = floor, flags|clamped
	}
	return start, flags
}

// Book adds what a late arrival counts to a row.
func (c *Counts) Book(a *Beat) {
	c.raise(a.ones)
	c.Dead += a.Dead
	c.Busy += a.Busy
}

// long says that a request took so long that copies of its record may come,
// within the lateness of it, when its tick is already closed.
func (f *filed) long(l *Ledger) bool { return f.length(l) >= second }

// copyKey is equal for copies of one record.
func (f *filed) copyKey(l *Ledger, at int64) uint64 {
	return spread(uint64(at*second+int64(f.start))^uint64(f.text)<<32) + spread(uint64(f.length(l))<<8|uint64(f.peer))
}

// keepLong remembers the record of a long request of a closed tick until no copy
// of it can come within the lateness.
func (l *Ledger) keepLong(f *filed, at, log int64) {
	until := tickOf(log) + 1
	if until <= at || until < l.closed {
		return
	}
	k := f.copyKey(l, at)
	if _, ok := l.long[k]; !ok {
		l.long[k] = struct{}{}
		t := l.tick(until)
		t.long = append(t.long, k)
	}
}
