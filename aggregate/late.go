package aggregate

// An arrival is late when its partition had, before it, a record written a whole
// lateness after its tick. Its tick may be closed by then; what is counted of it
// goes into rows of that tick all the same.

// countLate counts an arrival of a closed tick.
func (l *Ledger) countLate(f *filed, at, log int64) {
	if f.long(l) && f.flags&Decidable != 0 {
		if _, copied := l.long[f.copyKey(l, at)]; copied {
			if f.flags&Head != 0 {
				l.stats.Duplicates++
			}
			return
		}
		l.keepLong(f, at, log)
	}
	if f.flags&clamped != 0 {
		l.stats.Clamped++
	}
	l.seen(at, log)
	l.countUnattributable(f, at, log)
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
