package api

import (
	"net/http"
	"time"

	"github.com/targetside/auditor/aggregate"
)

// sourcesAnswer is the states of the sources.
type sourcesAnswer struct {
	Meta
	Sources []sourceAnswer `json:"sources"`
	// Together is what cannot be told of one source; null if there is none of which it
	// cannot.
	Together *togetherAnswer `json:"together"`
}

type togetherAnswer struct {
	Sources     []string `json:"sources"`
	Duplicates  uint64   `json:"duplicates"`
	Undecidable uint64   `json:"duplicates_undecidable"`
	Late        uint64   `json:"late"`
}

type sourceAnswer struct {
	Name       string `json:"source"`
	Kind       string `json:"kind"`
	Dependency string `json:"dependency"`
	State      string `json:"state"`
	Error      string `json:"error"`
	// Lag and LagSeconds are the sum and the longest of the partitions' known
	// ones, Watermark the earliest; null if none is known.
	Lag         *int64            `json:"lag_records"`
	LagSeconds  aggregate.Figure  `json:"lag_seconds"`
	Watermark   instant           `json:"watermark"`
	Counted     uint64            `json:"counted"`
	Ignored     uint64            `json:"ignored"`
	Duplicates  *uint64           `json:"duplicates"` // null, as the two below: see Together
	Undecidable *uint64           `json:"duplicates_undecidable"`
	Quarantined map[string]uint64 `json:"quarantined"`
	Late        *uint64           `json:"late"`
	GapRecords  *uint64           `json:"gap_records"` // one of the two is null, by what the source's offsets are
	GapBytes    *uint64           `json:"gap_bytes"`
	Restarts    uint64            `json:"restarts"`
	Intake      *intakeAnswer     `json:"intake"`
	Partitions  []partitionAnswer `json:"partitions"`
}

type intakeAnswer struct {
	Kept        uint64 `json:"kept"`
	Refused     uint64 `json:"refused"`
	Dropped     uint64 `json:"dropped"`
	Truncated   uint64 `json:"truncated"`
	Waits       uint64 `json:"waits"`
	Connections int64  `json:"connections"`
}

type partitionAnswer struct {
	Name       string           `json:"partition"`
	State      string           `json:"state"`
	Next       int64            `json:"next_offset"`
	Committed  int64            `json:"committed_offset"`
	Lag        *int64           `json:"lag_records"`
	LagSeconds aggregate.Figure `json:"lag_seconds"`
	Watermark  instant          `json:"watermark"`
	Gaps       []gapAnswer      `json:"gaps"`
}

type gapAnswer struct {
	From int64 `json:"from"`
	To   int64 `json:"to"` // not included
}

// behind is the state of a source's partitions in one.
type behind struct {
	lag       *int64
	seconds   aggregate.Figure
	watermark time.Time
}

func (s *Source) behind() (b behind) {
	for _, p := range s.Partitions {
		if p.Lag >= 0 {
			if b.lag == nil {
				b.lag = new(int64)
			}
			*b.lag += p.Lag
		}
		if v, ok := p.LagSeconds.Value(); ok {
			if most, some := b.seconds.Value(); !some || v > most {
				b.seconds = p.LagSeconds
			}
		}
		if w := p.Watermark; !w.IsZero() && (b.watermark.IsZero() || w.Before(b.watermark)) {
			b.watermark = w
		}
	}
	return b
}

func (s *Server) sources(_ *http.Request, snap *Snapshot, p *params) (any, error) {
	var all []*Dependency
	for i := range snap.Dependencies {
		all = append(all, &snap.Dependencies[i])
	}
	a := sourcesAnswer{Meta: liveMeta(snap, all), Sources: []sourceAnswer{}}
	only := p.name("source")
	for i := range snap.Sources {
		if x := &snap.Sources[i]; only == "" || only == x.Name {
			a.Sources = append(a.Sources, newSource(x))
			if x.Together && a.Together == nil {
				t := &snap.Together
				a.Together = &togetherAnswer{Sources: snap.together(), Duplicates: t.Duplicates, Undecidable: t.Undecidable, Late: t.Late}
			}
		}
	}
	if only != "" && len(a.Sources) == 0 {
		p.fault("source", clip(only), "a source of this instance: see /api/v1/sources")
	}
	return a, p.err()
}

// together names the sources that are counted together.
func (s *Snapshot) together() (names []string) {
	for i := range s.Sources {
		if s.Sources[i].Together {
			names = append(names, s.Sources[i].Name)
		}
	}
	return names
}

func newSource(x *Source) sourceAnswer {
	b := x.behind()
	a := sourceAnswer{
		Name: x.Name, Kind: x.Kind, Dependency: x.Dependency, State: x.State, Error: x.Error,
		Lag: b.lag, LagSeconds: b.seconds, Watermark: instant(b.watermark),
		Counted: x.Counted, Ignored: x.Ignored,
		Quarantined: map[string]uint64{}, Restarts: x.Restarts, Partitions: []partitionAnswer{},
	}
	if !x.Together {
		a.Duplicates, a.Undecidable, a.Late = &x.Duplicates, &x.Undecidable, &x.Late
	}
	if x.GapInBytes {
		a.GapBytes = &x.GapRecords
	} else {
		a.GapRecords = &x.GapRecords
	}
	if x.Intake != nil {
		n := intakeAnswer(*x.Intake)
		a.Intake = &n
	}
	for reason, n := range x.Quarantined {
		a.Quarantined[reason] = n
	}
	for _, p := range x.Partitions {
		y := partitionAnswer{
			Name: p.Name, State: p.State, Next: p.Next, Committed: p.Committed,
			LagSeconds: p.LagSeconds, Watermark: instant(p.Watermark), Gaps: []gapAnswer{},
		}
		if p.Lag >= 0 {
			y.Lag = &p.Lag
		}
		for _, g := range p.Gaps {
			y.Gaps = append(y.Gaps, gapAnswer(g))
		}
		a.Partitions = append(a.Partitions, y)
	}
	return a
}
