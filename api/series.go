package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/targetside/auditor/aggregate"
)

// seriesAnswer is stored figures over time.
type seriesAnswer struct {
	Meta
	From        instant        `json:"from"` // aligned outward to the step
	To          instant        `json:"to"`
	StepSeconds float64        `json:"step_seconds"`
	Resolution  float64        `json:"resolution_seconds"` // of the rows that were read
	By          By             `json:"by"`
	Measures    []string       `json:"measures"`
	Total       map[string]any `json:"total"` // over the whole range and all that matches
	Series      []seriesPart   `json:"series"`
	LeftOut     int            `json:"left_out"` // series beyond the limit
}

type seriesPart struct {
	Dependency string        `json:"dependency"`
	Name       string        `json:"name"` // of the route, originator or peer
	Points     []pointAnswer `json:"points"`
}

type pointAnswer struct {
	At          instant          `json:"at"`
	Coverage    aggregate.Figure `json:"coverage"`
	Provisional bool             `json:"provisional"`
	Values      map[string]any   `json:"values"`
}

// split reads by and the names that select.
func (p *params) split(def string, of ...string) RangeQuery {
	q := RangeQuery{By: By(p.oneOf("by", def, of...))}
	q.Dependency, q.Route = p.name("dependency"), p.name("route")
	q.Originator, q.Peer = p.name("originator"), p.name("peer")
	const wanted = "originators or peers: rows are by route and one of the two"
	switch {
	case q.Originator != "" && q.Peer != "":
		p.fault("peer", "it beside originator", wanted)
	case q.Peer != "" && q.By == ByOriginator:
		p.fault("peer", "it beside by=originator", wanted)
	case q.Originator != "" && q.By == ByPeer:
		p.fault("originator", "it beside by=peer", wanted)
	}
	return q
}

func (s *Server) series(r *http.Request, snap *Snapshot, p *params) (any, error) {
	names := p.measures()
	q := p.split(string(ByDependency), string(ByDependency), string(ByRoute), string(ByOriginator), string(ByPeer))
	x := p.span(snap.At, s.access.Load().retention)
	q.From, q.To, q.Step, q.Resolution = x.from, x.to, x.step, x.resolution
	q.MaxSeries = p.count("limit", 20, 100)
	if n := x.points() * int64(q.MaxSeries) * int64(len(names)); n > maxValues && len(p.faults) == 0 {
		p.fault("limit", fmt.Sprintf("%d series of %d points and %d measures", q.MaxSeries, x.points(), len(names)),
			fmt.Sprintf("at most %d values: fewer series or measures, a longer step or a shorter range", maxValues))
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	found, err := s.read(r.Context(), q)
	if err != nil {
		return nil, err
	}
	a := seriesAnswer{
		Meta: rangeMeta(snap, found, x.to), From: instant(x.from), To: instant(x.to), StepSeconds: x.step.Seconds(),
		Resolution: x.resolution.Seconds(), By: q.By, Measures: names, Total: valuesOf(&found.Total, names, false), Series: []seriesPart{}, LeftOut: found.LeftOut,
	}
	for _, y := range found.Series {
		part := seriesPart{y.Dependency, y.Name, []pointAnswer{}}
		for i := range y.Points {
			z := &y.Points[i]
			part.Points = append(part.Points, pointAnswer{
				At: instant(z.At), Coverage: z.Measure.Coverage,
				Provisional: z.At.Add(x.step).After(found.CompleteUntil), Values: valuesOf(&z.Measure, names, z.Open),
			})
		}
		a.Series = append(a.Series, part)
	}
	return a, nil
}

// read asks the Reader for a range; a Reader that answers nothing is at fault.
func (s *Server) read(ctx context.Context, q RangeQuery) (*Range, error) {
	found, err := s.reader.Range(ctx, q)
	if err == nil && found == nil {
		err = errors.New("the reader returned no range")
	}
	return found, err
}
