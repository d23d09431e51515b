package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// demoWatch asks the daemon over HTTP, as anybody would, and compares what it says
// with the truth. Each line is about the seconds that became final since the line
// before, so together they are about every second.
type demoWatch struct {
	out     io.Writer
	url     string // of the daemon
	traffic *demoTraffic
	client  http.Client
	until   int64 // what began before was compared
	lines   int
	whole   demoCounts // of the truth, that was compared
	differs int        // lines
}

func newDemoWatch(out io.Writer, url string, t *demoTraffic) *demoWatch {
	return &demoWatch{out: out, url: url, traffic: t, client: http.Client{Timeout: 5 * time.Second}, until: t.begun.Unix()}
}

// run prints a line every few seconds, until ctx ends.
func (w *demoWatch) run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := w.line(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("ask the daemon: %w", err)
			}
		}
	}
}

// demoKeeps is for how many seconds the truth is kept after it was compared.
const demoKeeps = 600

// demoSummary is what a line needs of /api/v1/summary.
type demoSummary struct {
	State         string
	CompleteUntil time.Time `json:"complete_until"`
	Dependencies  []struct {
		Dependency string
		Windows    []struct {
			Load any `json:"load_factor"`
		}
		Budgets []struct{ State *string }
	}
}

const demoHead = `The seats, by seconds that are final: auditor = callers                  auditor (callers)                now
final to  arrivals     originals  repeats      no proof   left early   load factor      prices's       live, budget, played
`

// line compares what has become final, and prints it.
func (w *demoWatch) line(ctx context.Context) error {
	var now demoSummary
	if err := w.get(ctx, "/api/v1/summary", &now); err != nil {
		return err
	}
	says, to, err := w.final(ctx, min(now.CompleteUntil.Unix(), w.traffic.truth.known()))
	if err != nil {
		return err
	}
	if to <= w.until {
		fmt.Fprintf(w.out, "          %s; nothing more is final yet\n", now.State)
		return nil
	}
	if w.lines%20 == 0 {
		fmt.Fprint(w.out, demoHead)
	}
	w.lines++
	same, loads, knows := true, map[string]string{}, map[string]demoCounts{}
	for _, dep := range demoDependencies {
		truth, said := w.traffic.truth.sum(dep, w.until, to), says[dep]
		loads[dep] = fmt.Sprintf("%s (%s)", times(said.Originals+said.Repeats, said.Originals), times(truth.Arrivals, truth.Questions))
		said.Questions = truth.Questions
		same = same && said == truth
		knows[dep] = truth
		w.whole.add(&truth)
	}
	a, b := says[demoSeats], knows[demoSeats]
	fmt.Fprintf(w.out, "%s  %-11s  %-9s  %-11s  %-9s  %-11s  %-15s  %-13s  %s, %s", time.Unix(to, 0).UTC().Format(time.TimeOnly),
		beside(a.Arrivals, b.Arrivals), beside(a.Originals, b.Originals), beside(a.Repeats, b.Repeats),
		beside(a.Forged+a.Absent, b.Forged+b.Absent), beside(a.left(), b.left()),
		loads[demoSeats], loads[demoPrices], now.seats(), w.traffic.arm.Load().Name)
	if !same {
		w.differs++
		fmt.Fprint(w.out, "  DIFFERS")
	}
	fmt.Fprintln(w.out)
	w.until = to
	w.traffic.truth.forget(to - demoKeeps)
	return nil
}

// final asks for the counts of each dependency from where the last line ended up to
// to, or up to what is stored of that.
func (w *demoWatch) final(ctx context.Context, to int64) (map[string]demoCounts, int64, error) {
	says := map[string]demoCounts{}
	for i := 0; i < len(demoDependencies) && to > w.until; i++ {
		name := demoDependencies[i]
		c, complete, err := w.says(ctx, name, w.until, to)
		if err != nil {
			return nil, 0, err
		}
		says[name] = c
		if stored := complete.Unix(); stored < to {
			to, i = stored, -1
		}
	}
	return says, to, nil
}

func beside(auditor, callers uint64) string {
	if auditor != callers {
		return fmt.Sprint(auditor, " ≠ ", callers)
	}
	return fmt.Sprint(auditor, " = ", callers)
}

func (c *demoCounts) left() uint64 { return c.Undelivered + c.During + c.Before }

// times is how many a are for each b.
func times(a, b uint64) string {
	if b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f×", float64(a)/float64(b))
}

// seats is how the dependency that storms stands at the moment.
func (s *demoSummary) seats() string {
	for _, d := range s.Dependencies {
		if d.Dependency != demoSeats || len(d.Windows) == 0 {
			continue
		}
		out := "–"
		if load, ok := d.Windows[0].Load.(float64); ok {
			out = fmt.Sprintf("%.2f×", load)
		}
		if len(d.Budgets) > 0 && d.Budgets[0].State != nil {
			out += " " + *d.Budgets[0].State
		}
		return out
	}
	return "–"
}

// says asks for the stored counts of seconds from up to to, and up to when these
// are final.
func (w *demoWatch) says(ctx context.Context, dependency string, from, to int64) (c demoCounts, complete time.Time, err error) {
	var a struct {
		CompleteUntil time.Time `json:"complete_until"`
		Total         map[string]*uint64
	}
	rfc := func(at int64) string { return time.Unix(at, 0).UTC().Format(time.RFC3339) }
	err = w.get(ctx, "/api/v1/series?"+url.Values{
		"dependency": {dependency}, "measure": {strings.Join(demoMeasures, ",")},
		"from": {rfc(from)}, "to": {rfc(to)}, "step": {"1s"},
	}.Encode(), &a)
	for i, name := range demoMeasures {
		if n := a.Total[name]; n != nil { // null is of a log without that field
			*c.all()[i+1] = *n
		}
	}
	return c, a.CompleteUntil, err
}

// get asks the API.
func (w *demoWatch) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path, nil)
	if err != nil {
		return err
	}
	res, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status + ": " + strings.TrimSpace(string(body)))
	}
	return json.Unmarshal(body, into)
}

// conclude says what came of it; it is an error if the two did not agree.
func (w *demoWatch) conclude() error {
	w.client.CloseIdleConnections()
	switch {
	case w.lines == 0:
		fmt.Fprintln(w.out, "\nNothing became final in this time.")
	case w.differs > 0:
		return fmt.Errorf("the auditor and the callers differ in %d of %d lines", w.differs, w.lines)
	default:
		fmt.Fprintf(w.out, "\nThe auditor and the callers agree, count for count, about %d arrivals of %d questions; the callers of %d had left.\n",
			w.whole.Arrivals, w.whole.Questions, w.whole.left())
	}
	return nil
}
