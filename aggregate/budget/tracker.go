package budget

// Tracker slides a budget over the seconds of a log and keeps its peak.
type Tracker struct {
	model *Model
	from  int64 // the first tick: no window reaches before it
	ring  []Counts
	sum   Counts
	next  int64 // the second to be read next
	begun bool
	held  Bucket // at the end of the second before next

	Peak Peak // of all windows
	// ExhaustedAt is the end of the first second with consumed ≥ 1, if Exhausted.
	ExhaustedAt int64
	Exhausted   bool

	// Each, if set, is told every reading and the end of its window, and also of those
	// without one that are Untimed.
	Each func(end int64, r Reading)
}

// NewTracker returns a tracker of a log whose first tick is from.
func NewTracker(m *Model, from int64) *Tracker {
	return &Tracker{model: m, from: from, ring: make([]Counts, m.Window)}
}

// Feed counts what was written in one second. Seconds come in order; seconds
// between them were empty.
func (t *Tracker) Feed(second int64, c Counts) {
	t.Slide(second)
	t.begun = true
	t.slot(second).Add(c)
	t.sum.Add(c)
	t.held = t.model.Fill(t.held, c)
	t.read()
}

// Slide reads the empty seconds before second.
func (t *Tracker) Slide(second int64) {
	if !t.begun {
		t.next = second
		return
	}
	for t.next < second {
		if t.sum.Arrivals == 0 {
			t.next = second
			return
		}
		t.read()
	}
}

func (t *Tracker) slot(second int64) *Counts {
	w := int64(len(t.ring))
	return &t.ring[(second%w+w)%w]
}

// read takes the reading at the end of the second t.next, and lets the oldest
// second of the window go.
func (t *Tracker) read() {
	w := int64(len(t.ring))
	end, begin := t.next+1, t.next+1-w
	if begin >= t.from {
		if r, ok := t.model.Read(t.sum, t.held); ok || r.State == Untimed {
			t.keep(end, r)
		}
	}
	oldest := t.slot(begin)
	t.sum.sub(*oldest)
	*oldest = Counts{}
	t.next = end
}

func (t *Tracker) keep(end int64, r Reading) {
	if t.Each != nil {
		t.Each(end, r)
	}
	t.Peak.Add(r)
	if r.Consumed >= 1 && !t.Exhausted {
		t.ExhaustedAt, t.Exhausted = end, true
	}
}

// Peak finds the reading with the most consumed among those of several windows, the
// first of them.
type Peak struct {
	most          Reading
	some, untimed bool
}

// Add takes a reading, or what there is in place of one that is Untimed.
func (p *Peak) Add(r Reading) {
	if r.State == Untimed {
		p.untimed = true
		return
	}
	// A NaN is never larger: without an allowance there is no peak.
	if !p.some && r.Consumed >= 0 || r.Consumed > p.most.Consumed {
		p.most, p.some = r, true
	}
}

// Reading is the peak; ok is false without one. Where windows had no reading because of
// their times, more may have been spent in these: unless it is exhausted, it is Blind.
func (p *Peak) Reading() (r Reading, ok bool) {
	r = p.most
	if p.untimed && r.State != Exhausted {
		r.State = Blind
	}
	return r, p.some
}
