package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/pipeline"
	"github.com/targetside/auditor/store"
)

// maxRows bounds the rows that one answer is made of: about as many as are read in
// a few seconds.
const maxRows = 500_000

// Range implements api.Reader: it reads rows and adds them up by series and point.
func (r *reader) Range(ctx context.Context, q api.RangeQuery) (*api.Range, error) {
	ask := store.Query{
		Resolution: store.Resolution(q.Resolution / time.Second), From: q.From.Unix(), To: q.To.Unix(),
		Dependency: q.Dependency, Route: q.Route, Name: q.Originator, Limit: maxRows,
	}
	nobody := q.Originator == "-"
	if nobody {
		ask.Name = ""
	}
	byPeer := q.By == api.ByPeer || q.Peer != ""
	if byPeer {
		ask.Family, ask.Name = store.ByPeer, q.Peer
	}
	// Before the rows: what is written meanwhile may be among them, and what is said
	// to be complete is.
	open := r.d.setup.Load().live.Open(ask.From, ask.To)
	closed, err := r.d.store.Closed(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	out := &api.Range{}
	for _, tick := range closed {
		if at := tickTime(tick); out.CompleteUntil.IsZero() || at.Before(out.CompleteUntil) {
			out.CompleteUntil = at
		}
	}
	rows, err := r.rowsOf(ctx, ask, rolledUp(out.CompleteUntil, open))
	if err != nil {
		return nil, unavailable(err)
	}
	rows = withOpen(rows, open, ask)
	if out.ScopeSplitIn, err = r.splitIn(ctx, &q); err != nil {
		return nil, unavailable(err)
	}
	snap := r.Snapshot()
	var share aggregate.Figure
	for i := range snap.Dependencies {
		d := &snap.Dependencies[i]
		share = d.ReadShare
		out.Warming = out.Warming || d.Warming
	}

	step := int64(q.Step / time.Second)
	if step == 0 {
		step = ask.To - ask.From
	}
	whole := &sums{byPeer: byPeer, narrow: q.Route != ""}
	series := map[[2]string]map[int64]*sums{}
	for i := range rows {
		row := &rows[i]
		if nobody && row.Name != "" {
			continue
		}
		if !row.Open {
			whole.add(&row.Row, (row.At-ask.From)/int64(row.resolution))
		}
		out.SampleBits = max(out.SampleBits, row.Counts.SampleBits())
		name := [2]string{row.Dependency}
		switch q.By {
		case api.ByRoute:
			name[1] = row.Route
		case api.ByOriginator, api.ByPeer:
			name[1] = row.Name
		}
		if q.By == api.ByRoute && row.Wide {
			continue
		}
		points := series[name]
		if points == nil {
			points = map[int64]*sums{}
			series[name] = points
		}
		at := (row.At - ask.From) / step
		if points[at] == nil {
			points[at] = &sums{byPeer: byPeer, narrow: q.By == api.ByRoute || q.Route != ""}
		}
		points[at].add(&row.Row, (row.At-ask.From-at*step)/int64(row.resolution))
		points[at].open = points[at].open || row.Open
	}
	out.Total = whole.measure(ask.To-ask.From, share)
	type ranked struct {
		api.Series
		arrivals uint64
	}
	var all []ranked
	for name, points := range series {
		x := ranked{Series: api.Series{Dependency: name[0], Name: name[1]}}
		at := make([]int64, 0, len(points))
		for p := range points {
			at = append(at, p)
		}
		slices.Sort(at)
		for _, p := range at {
			m := points[p].measure(step, share)
			x.arrivals += m.Arrivals
			x.Points = append(x.Points, api.Point{At: time.Unix(ask.From+p*step, 0).UTC(), Measure: m, Open: points[p].open})
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.arrivals, a.arrivals), cmp.Compare(a.Dependency, b.Dependency), cmp.Compare(a.Name, b.Name))
	})
	if q.MaxSeries > 0 && len(all) > q.MaxSeries {
		out.LeftOut = len(all) - q.MaxSeries
		all = all[:q.MaxSeries]
	}
	for _, x := range all {
		out.Series = append(out.Series, x.Series)
	}
	return out, nil
}

// sizedRow is a row and how long a time it is about.
type sizedRow struct {
	store.Row
	resolution store.Resolution
}

// rowsOf reads the rows of a range. The row of a minute is made when the minute is
// closed, so the newest part of the range is of finer rows.
func (r *reader) rowsOf(ctx context.Context, ask store.Query, closed time.Time) (out []sizedRow, err error) {
	from, to := ask.From, ask.To
	for _, resolution := range []store.Resolution{store.Hour, store.Minute, store.TenSeconds, store.Tick} {
		if resolution > ask.Resolution {
			continue
		}
		ask.Resolution, ask.From, ask.To = resolution, from, to
		if resolution > store.Tick {
			if closed.IsZero() {
				continue
			}
			made := closed.Unix() - closed.Unix()%int64(resolution)
			ask.To = min(to, max(from, made))
		}
		if ask.From == ask.To {
			continue
		}
		ask.Limit = maxRows - len(out)
		rows, err := r.d.store.Rows(ctx, ask)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			out = append(out, sizedRow{row, resolution})
		}
		from = ask.To
	}
	return out, nil
}

// rolledUp is the tick before which coarser rows than those of ticks are read: what is
// closed in every scope, and was at rest when the open rows were taken.
func rolledUp(complete time.Time, open []pipeline.OpenScope) time.Time {
	for i := range open {
		if from := tickTime(open[i].From); !from.IsZero() && from.Before(complete) {
			complete = from
		}
	}
	return complete
}

// withOpen adds the open rows that a query asks for. Rows of their ticks that came to
// rest meanwhile give way to them; late ones are in no open row.
func withOpen(rows []sizedRow, open []pipeline.OpenScope, ask store.Query) []sizedRow {
	from := map[string]int64{}
	for i := range open {
		from[open[i].Scope] = open[i].From
	}
	rows = slices.DeleteFunc(rows, func(r sizedRow) bool {
		at, ours := from[r.Scope]
		return ours && r.At >= at && r.LateBlock == store.OnTime
	})
	for i := range open {
		for j := range open[i].Rows {
			r := &open[i].Rows[j]
			if r.ByPeer != (ask.Family == store.ByPeer) || ask.Dependency != "" && r.Dependency != ask.Dependency ||
				ask.Route != "" && r.Route != ask.Route || ask.Name != "" && r.Name != ask.Name {
				continue
			}
			rows = append(rows, sizedRow{store.Row{
				Family: ask.Family, At: r.At, Scope: open[i].Scope, LateBlock: store.OnTime,
				Dependency: r.Dependency, Route: r.Route, Name: r.Name, Open: true, Counts: r.Counts,
			}, store.Tick})
		}
	}
	return rows
}

// sums are the rows of one point.
type sums struct {
	counts         aggregate.Counts
	wide           []*aggregate.Counts
	byPeer, narrow bool
	open           bool // some rows are of ticks that are not at rest
}

// add adds a row that lies back rows behind the beginning of the point.
func (s *sums) add(row *store.Row, back int64) {
	c := row.Counts.Clone()
	if row.Wide {
		s.wide = append(s.wide, c)
		return
	}
	c.Settle(back)
	s.counts.Merge(c)
}

func (s *sums) measure(seconds int64, share aggregate.Figure) aggregate.Measure {
	if !s.narrow {
		s.counts.FanOutOf(s.wide...)
	}
	return s.counts.Measure(seconds, share, s.byPeer)
}

// unavailable gives an error of the store the name that the API knows.
func unavailable(err error) error {
	switch {
	case errors.Is(err, store.ErrTooMany):
		return api.ErrTooMany
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return fmt.Errorf("%w: %v", api.ErrUnavailable, err)
}
