package pipeline

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/ingest"
)

// spending is a record of the test below.
type spending struct {
	question  int
	end, took int // milliseconds
	repeat    bool
	status    int
}

// A log of thirty seconds whose requests take longer, fail more often and come back
// more often from second to second, for one route.
func spendings() (out []spending) {
	for q := range 600 {
		start, took := q*50, 20+q%7*q/4
		out = append(out, spending{question: q, end: start + took, took: took, status: 200})
		if q%5 < q/150 {
			out[len(out)-1].status = 503
			out = append(out, spending{question: q, end: start + took + 40, took: 30, repeat: true, status: 200})
		}
	}
	slices.SortStableFunc(out, func(a, b spending) int { return a.end - b.end })
	return out
}

// Every model reads live, and in a report, what is written in the log. Of times that are
// not written there none makes anything: a budget of them is not unspent.
func TestModelsReadTheLog(t *testing.T) {
	grants := map[string]budget.Grant{
		"GET /a": budget.Concurrency{Share: 0.05, Min: 0.1, Proxies: 1}, "GET /b": budget.Rate{PerMinute: 300, Processes: 2},
		"GET /c": budget.GRPCTokens().Sized(0, 0, 3), "GET /d": budget.AWSTokens(), "GET /e": budget.Concurrency{Share: 0.05, Min: 0.1, Proxies: 1},
	}
	const untimed = "GET /e"
	routes := []string{"GET /a", "GET /b", "GET /c", "GET /d", untimed}
	records := spendings()
	var lines []string
	for _, x := range records {
		for _, route := range routes {
			took := fmt.Sprint(x.took)
			if route == untimed {
				took = "null"
			}
			lines = append(lines, fmt.Sprintf(`{"time":%q,"time_is":"end","method":"GET","path":"/%s","status":%d,"duration_ms":%s,"bytes_sent":1,"my_id":"q%d","peer":"10.1.0.1:1"}`,
				noon.Add(time.Duration(x.end)*time.Millisecond).Format("2006-01-02T15:04:05.000Z"), route[5:], x.status, took, x.question))
		}
	}
	// want reads a budget for the window that ends before second to.
	want := func(g budget.Grant, window, to int) (spent, allowance float64) {
		left := 0.0
		if tokens, ok := g.(budget.Tokens); ok {
			left = tokens.Size * float64(tokens.Clients)
			for s := range to {
				for _, x := range records {
					if x.end/1000 != s {
						continue
					}
					if x.repeat {
						left -= tokens.PerRepeat
					}
					if x.status == 200 {
						left += tokens.PerSuccess
					} else {
						left -= tokens.PerFailure
					}
				}
				left = min(max(left, 0), tokens.Size*float64(tokens.Clients))
			}
			size := tokens.Size * float64(tokens.Clients)
			return size - left, size - tokens.Reserve*float64(tokens.Clients)
		}
		var repeats, busy, again float64
		for _, x := range records {
			if s := x.end / 1000; s < to-window || s >= to {
				continue
			}
			busy += float64(x.took) / 1000
			if x.repeat {
				repeats, again = repeats+1, again+float64(x.took)/1000
			}
		}
		if g, ok := g.(budget.Concurrency); ok {
			return again / float64(window), max(g.Share*busy/float64(window), g.Min)
		}
		return repeats, g.(budget.Rate).PerMinute / 60 * float64(window) * 2
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a)) }
	configured := func(c *Config) {
		c.RouteBudgets = map[string]*budget.Model{}
		for route, g := range grants {
			m := budget.DefaultModel(g)
			m.Window, m.CoverageFloor = c.Budget.Window, 0
			c.RouteBudgets[route] = &m
		}
	}

	synctest.Test(t, func(t *testing.T) {
		cfg := liveConfig(t, newRowStore())
		configured(&cfg.Config)
		begun := time.Now()
		cfg.Clock = func() time.Time { return noon.Add(26*time.Second + time.Since(begun)) }
		f := &fleet{t: t, cfg: cfg, committed: make([]ingest.Position, 1), store: cfg.Writer.(*rowStore), logs: []partLog{{lines}}}
		f.start()
		defer f.kill()
		f.feed(0, len(lines))
		time.Sleep(1100 * time.Millisecond)
		d := f.live.Picture().Dependencies[0]
		if len(d.Budgets) != 1+len(grants) {
			t.Fatalf("%+v", d.Budgets)
		}
		for _, b := range d.Budgets[1:] {
			if b.Route == untimed {
				if b.Some || b.State != budget.Untimed || b.Peak != 0 {
					t.Errorf("%s live, without times: %+v", b.Route, b)
				}
				continue
			}
			to := int(b.To - noon.Unix())
			spent, allowance := want(grants[b.Route], int(b.To-b.From), to)
			if b.Model != grants[b.Route].Name() || !b.Some || !near(b.Spent, spent) || !near(b.Allowance, allowance) || !near(b.Consumed, spent/allowance) {
				t.Errorf("%s live: %+v, want %v of %v", b.Route, b, spent, allowance)
			}
		}
	})

	c := testConfig(t)
	configured(&c)
	a := audit(t, c, strings.Join(lines, "\n")+"\n")
	for route, g := range grants {
		m := routeOf(t, a, "seats", route).Budget
		if route == untimed {
			if m.State != nil || m.Consumed != (aggregate.Figure{}) || m.PeakConsumed != (aggregate.Figure{}) || m.Spent != (aggregate.Figure{}) || m.ExhaustedAt != nil {
				t.Errorf("%s in a report, without times: %+v", route, m)
			}
			continue
		}
		peak, at := 0.0, 0
		for to := c.Budget.Window; to <= 33; to++ {
			if spent, allowance := want(g, c.Budget.Window, to); spent/allowance > peak {
				peak, at = spent/allowance, to
			}
		}
		spent, allowance := want(g, c.Budget.Window, at)
		got, _ := m.Consumed.Value()
		gotSpent, _ := m.Spent.Value()
		if m.Model != g.Name() || !near(got, peak) || !near(gotSpent, spent) || peak == 0 {
			t.Errorf("%s in a report: %+v, want %v of %v", route, m, spent, allowance)
		}
	}
}

// The verdict follows the log: calm, then each question comes back, then three times
// as many are asked; and it stays when budgets are changed. So does the peak of a budget
// that is not.
func TestTheVerdictFollowsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := liveConfig(t, newRowStore())
		cfg.Rules = budget.Rules{Chosen: 1.2, MinArrivals: 20}
		begun := time.Now()
		cfg.Clock = func() time.Time { return noon.Add(time.Since(begun)) }
		f := &fleet{t: t, cfg: cfg, committed: make([]ingest.Position, 1), store: cfg.Writer.(*rowStore), logs: make([]partLog, 1)}
		f.start()
		defer f.kill()
		n := 0
		second := func(questions, tries int) budget.Verdict {
			at := int(time.Since(begun) / time.Millisecond)
			for range questions {
				n++
				for try := range tries {
					f.logs[0].lines = append(f.logs[0].lines, strings.TrimSpace(rec(at, `,"my_id":"q%d","peer":"10.1.0.1:%d"`, n, try)))
				}
			}
			f.feed(0, questions*tries)
			time.Sleep(time.Second)
			return f.live.Picture().Dependencies[0].Verdict
		}
		if v := second(50, 1); v.Kind != "" || v.Blind {
			t.Errorf("before a full window: %+v", v)
		}
		var v budget.Verdict
		for range 80 {
			v = second(50, 1)
		}
		if v.Kind != budget.Quiet || v.Demand < 0.8 || v.Demand > 1.1 || v.LoadFactor != 1 {
			t.Errorf("calm: %+v", v)
		}
		for range 8 {
			v = second(50, 2)
		}
		if v.Kind != budget.Storm || v.Usual != 1.2 || v.LoadFactor < 1.5 {
			t.Errorf("storm: %+v", v)
		}
		f.live.SetBudgets(f.live.cfg.Budget, nil, f.live.cfg.Rules)
		for range 20 {
			v = second(150, 1)
		}
		if v.Kind != budget.Demand || v.Demand < 2.4 {
			t.Errorf("demand: %+v", v)
		}
		if b := f.live.Picture().Dependencies[0].Budgets[0]; !(b.Consumed < 1) || !(b.Peak >= 1) || b.Exhausted == 0 {
			t.Errorf("the same budget has another peak: %+v", b)
		}
		all := f.live.cfg.Budget
		all.Window = 5
		f.live.SetBudgets(all, nil, f.live.cfg.Rules)
		for range 10 {
			v = second(150, 1)
		}
		if v.Kind != budget.Quiet || !math.IsNaN(v.Demand) {
			t.Errorf("another window has no past yet: %+v", v)
		}
		if b := f.live.Picture().Dependencies[0].Budgets[0]; !b.Some || b.Peak >= 1 || b.Exhausted != 0 {
			t.Errorf("another budget has the peak of the one before: %+v", b)
		}
	})
}
