package api

import (
	"cmp"
	"context"
	"encoding/hex"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

// topAnswer is the parts that cost the most.
type topAnswer struct {
	Meta
	By        string           `json:"by"`
	Sort      string           `json:"sort"`
	Window    *string          `json:"window"` // null of a stored range
	From      instant          `json:"from"`
	To        instant          `json:"to"`
	Parts     []topPart        `json:"parts"`
	Questions []questionAnswer `json:"questions"` // by question only
	LeftOut   int              `json:"left_out"`  // beyond the limit
}

// topPart is one route, originator or peer.
type topPart struct {
	Dependency    string           `json:"dependency"`
	Name          string           `json:"name"`
	Arrivals      uint64           `json:"arrivals"`
	Coverage      aggregate.Figure `json:"coverage"`
	Originals     uint64           `json:"originals"`
	Repeats       uint64           `json:"repeats"`
	LoadFactor    aggregate.Figure `json:"load_factor"`
	Allowance     aggregate.Figure `json:"allowance"`
	Excess        aggregate.Figure `json:"excess"` // repeats − allowance
	RepeatSeconds aggregate.Figure `json:"repeat_seconds"`
	DeadSeconds   aggregate.Figure `json:"dead_seconds"`
	BusySeconds   aggregate.Figure `json:"busy_seconds"`
	Untimed       uint64           `json:"untimed"`
	Unjudged      uint64           `json:"unjudged"`
}

type questionAnswer struct {
	KeyHash    string           `json:"key_hash"`
	Dependency string           `json:"dependency"`
	Route      string           `json:"route"`
	Originator string           `json:"originator"`
	Peers      []string         `json:"peers"`
	First      instant          `json:"first"`
	Last       instant          `json:"last"`
	Arrivals   uint32           `json:"arrivals"`
	Excess     aggregate.Figure `json:"excess"`
	Live       bool             `json:"live"`
}

const (
	sortExcess  = "excess"
	sortSeconds = "seconds"
	byQuestion  = "question"
)

// grant is the budget of a route, or else that of the dependency, and what it allows;
// nil for none, or for a model that allows no number of repeats per original.
func (s *Snapshot) grant(route string) (*Grant, budget.Ratio) {
	var own *Grant
	for i := range s.Granted {
		switch g := &s.Granted[i]; g.Route {
		case "":
			if own == nil {
				own = g
			}
		case route:
			own = g
		}
	}
	if own == nil {
		return nil, budget.Ratio{}
	}
	ratio, ok := own.Grant.(budget.Ratio)
	if !ok {
		return nil, budget.Ratio{}
	}
	return own, ratio
}

// excess is repeats beyond the allowance of a part, and that allowance: the
// granted ratio of its own originals. The floor is granted to a dependency or a
// route as a whole: it counts for a route that has a budget of its own, and is
// not dealt out among parts.
func (s *Snapshot) excess(by By, name string, originals, repeats uint64, seconds float64) (allowance, excess aggregate.Figure) {
	route := ""
	if by == ByRoute {
		route = name
	}
	g, ratio := s.grant(route)
	if g == nil {
		return allowance, excess
	}
	a := ratio.Ratio * float64(originals)
	if g.Route != "" {
		a += ratio.FloorPerSecond * float64(ratio.Clients) * seconds
	}
	return aggregate.Number(a), aggregate.Number(float64(repeats) - a)
}

func (s *Server) top(r *http.Request, snap *Snapshot, p *params) (any, error) {
	sort := p.oneOf("sort", sortExcess, sortExcess, sortSeconds)
	limit := p.count("limit", 10, 100)
	window, live := p.text("window")
	_, from := p.values["from"]
	_, to := p.values["to"]
	if from || to {
		if live {
			p.fault("window", "it beside from or to", "a live window, or a stored range")
		}
		return s.topStored(r, snap, p, sort, limit)
	}
	p.known = append(p.known, "from", "to")
	if !live {
		window = "5m"
	}
	return s.topLive(snap, p, sort, limit, window)
}

func (s *Server) topLive(snap *Snapshot, p *params, sort string, limit int, window string) (any, error) {
	by := p.oneOf("by", "", string(ByPeer), string(ByOriginator), string(ByRoute), byQuestion)
	deps := pick(snap, p)
	for _, name := range []string{"step", "route", "originator", "peer"} {
		if v, has := p.text(name); has {
			p.fault(name, clip(v)+" of a live window", "it with from or to: live parts are not split further")
		}
	}
	if by == byQuestion {
		p.noSeconds(sort)
	}
	a := topAnswer{Meta: liveMeta(snap, deps), By: by, Sort: sort, Window: &window, Parts: []topPart{}, Questions: []questionAnswer{}}
	var lengths []string
	found := false
	for _, d := range deps {
		for i := range d.Windows {
			w := &d.Windows[i]
			name := shortDuration(w.Length)
			if !slices.Contains(lengths, name) {
				lengths = append(lengths, name)
			}
			if name != window {
				continue
			}
			found = true
			a.cover(w)
			parts := w.Routes
			switch By(by) {
			case ByOriginator:
				parts = w.Originators
			case ByPeer:
				parts = w.Peers
			}
			for j := range parts {
				if x := &parts[j]; by != byQuestion {
					a.Parts = append(a.Parts, snap.livePart(By(by), d.Name, x, w))
				}
			}
			if by == byQuestion {
				for j := range d.Worst {
					if q := &d.Worst[j]; !q.Last.Before(w.From) {
						a.Questions = append(a.Questions, snap.question(q))
					}
				}
			}
		}
	}
	if !found && !slices.Contains([]string{"10s", "1m", "5m"}, window) {
		p.fault("window", clip(window), "one of 10s, 1m, 5m")
	}
	a.order(sort, limit)
	return a, p.err()
}

// cover widens the answer's range to that of a window.
func (a *topAnswer) cover(w *Window) {
	if from := time.Time(a.From); from.IsZero() || w.From.Before(from) {
		a.From = instant(w.From)
	}
	a.To = instant(later(time.Time(a.To), w.To))
}

func (s *Snapshot) livePart(by By, dependency string, x *Part, w *Window) topPart {
	t := topPart{
		Dependency: dependency, Name: x.Name, Arrivals: x.Arrivals, Coverage: aggregate.Share(x.attributable(), x.Arrivals),
		Originals: x.Originals, Repeats: x.Repeats, LoadFactor: x.loadFactor(),
		RepeatSeconds: x.RepeatTime(), DeadSeconds: x.DeadTime(), BusySeconds: x.BusyTime(), Untimed: x.Untimed, Unjudged: x.Unjudged,
	}
	t.Allowance, t.Excess = s.excess(by, x.Name, x.Originals, x.Repeats, w.span().Seconds())
	return t
}

// topParts bounds what is read of a range to be sorted: as many parts as names
// are told apart, several times over.
const topParts = 2000

func (s *Server) topStored(r *http.Request, snap *Snapshot, p *params, sort string, limit int) (any, error) {
	q := p.split("", string(ByPeer), string(ByOriginator), string(ByRoute), byQuestion)
	x := p.span(snap.At, s.access.Load().retention)
	single := q.By == byQuestion
	if single {
		p.noSeconds(sort)
		if q.Peer != "" {
			p.fault("peer", "it beside by=question", "dependency, route or originator: a question comes by several peers")
		}
		q.By = ByDependency
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	q.From, q.To = align(x.from, x.to, x.resolution)
	q.Resolution, q.MaxSeries = x.resolution, topParts
	found, err := s.read(r.Context(), q)
	if err == nil && single {
		return s.worstStored(r.Context(), snap, found, q, limit)
	}
	if err != nil {
		return nil, err
	}
	a := topAnswer{
		Meta: rangeMeta(snap, found, q.To), By: string(q.By), Sort: sort, From: instant(q.From), To: instant(q.To),
		Parts: []topPart{}, Questions: []questionAnswer{},
	}
	for _, y := range found.Series {
		for i := range y.Points {
			m := &y.Points[i].Measure
			t := topPart{
				Dependency: y.Dependency, Name: y.Name, Arrivals: m.Arrivals, Coverage: m.Coverage,
				Originals: m.Originals, Repeats: m.Repeats, LoadFactor: m.LoadFactor, RepeatSeconds: m.Responses.RepeatSeconds,
				DeadSeconds: m.Responses.DeadSeconds, BusySeconds: m.Responses.BusySeconds,
				Untimed: m.Responses.Untimed, Unjudged: m.Responses.Unjudged,
			}
			t.Allowance, t.Excess = snap.excess(q.By, y.Name, m.Originals, m.Repeats, q.To.Sub(q.From).Seconds())
			a.Parts = append(a.Parts, t)
		}
	}
	a.order(sort, limit)
	a.LeftOut += found.LeftOut
	return a, nil
}

// noSeconds refuses to sort questions by what is not known of them.
func (p *params) noSeconds(sort string) {
	if sort == sortSeconds {
		p.fault("sort", `"seconds" beside by=question`, "excess: the time of single questions is not kept")
	}
}

// topQuestions bounds the stored questions among which left_out counts.
const topQuestions = 1000

// worstStored lists the stored questions that came last in a range. What is said of
// the range as a whole is of all its arrivals.
func (s *Server) worstStored(ctx context.Context, snap *Snapshot, whole *Range, q RangeQuery, limit int) (any, error) {
	found, err := s.reader.WorstQuestions(ctx, WorstQuery{
		From: q.From, To: q.To, Dependency: q.Dependency, Route: q.Route, Originator: q.Originator, Limit: topQuestions,
	})
	if err != nil {
		return nil, err
	}
	a := topAnswer{
		Meta: rangeMeta(snap, whole, q.To), By: byQuestion, Sort: sortExcess, From: instant(q.From), To: instant(q.To),
		Parts: []topPart{}, Questions: []questionAnswer{},
	}
	for i := range found {
		a.Questions = append(a.Questions, snap.question(&found[i]))
	}
	a.order(sortExcess, limit)
	return a, nil
}

// secondsOf sorts times, those that are not known after all others.
func secondsOf(f aggregate.Figure) float64 {
	if v, ok := f.Value(); ok {
		return v
	}
	return -1
}

// order sorts, the most first, and cuts to limit. Equal ones stand by name, so
// that a page that is drawn anew does not jump.
func (a *topAnswer) order(sort string, limit int) {
	slices.SortFunc(a.Parts, func(x, y topPart) int {
		first := cmp.Compare(secondsOf(y.RepeatSeconds), secondsOf(x.RepeatSeconds))
		if sort == sortExcess {
			first = cmp.Compare(known(y.Excess, y.Repeats), known(x.Excess, x.Repeats))
		}
		return cmp.Or(first, cmp.Compare(y.Repeats, x.Repeats), cmp.Compare(y.Arrivals, x.Arrivals),
			cmp.Compare(x.Dependency, y.Dependency), cmp.Compare(x.Name, y.Name))
	})
	slices.SortFunc(a.Questions, func(x, y questionAnswer) int {
		return cmp.Or(cmp.Compare(known(y.Excess, uint64(y.Arrivals)), known(x.Excess, uint64(x.Arrivals))),
			cmp.Compare(y.Arrivals, x.Arrivals), cmp.Compare(x.KeyHash, y.KeyHash), cmp.Compare(x.Route, y.Route))
	})
	if n := len(a.Parts) - limit; n > 0 {
		a.Parts, a.LeftOut = a.Parts[:limit], n
	}
	if n := len(a.Questions) - limit; n > 0 {
		a.Questions, a.LeftOut = a.Questions[:limit], n
	}
}

// known is the excess, or what stands in its place where no ratio is granted.
func known(excess aggregate.Figure, instead uint64) float64 {
	if v, ok := excess.Value(); ok {
		return v
	}
	return math.Min(float64(instead), math.MaxFloat64)
}

// question describes one question; what it has beyond its allowance counts as one
// original.
func (s *Snapshot) question(q *Question) questionAnswer {
	a := questionAnswer{
		KeyHash: hex.EncodeToString(q.KeyHash[:]), Dependency: q.Dependency, Route: q.Route, Originator: q.Originator,
		Peers: append([]string{}, q.Peers...), First: instant(q.First), Last: instant(q.Last), Arrivals: q.Arrivals, Live: q.Live,
	}
	if g, ratio := s.grant(q.Route); g != nil && q.Arrivals > 0 {
		a.Excess = aggregate.Number(float64(q.Arrivals-1) - ratio.Ratio)
	}
	return a
}
