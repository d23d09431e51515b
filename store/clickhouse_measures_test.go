package store_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/keys"
	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
)

// variedRows are seconds of arrivals of every kind that a row tells apart: questions that
// come again within the second and long after it, all reasons, all departures, numbers of
// attempts, Retry-After, and times that are not known: most of those of one originator, half
// of them with a deadline, and all of one whose callers stay. Of more than so many questions,
// if that is not 0, a part is followed.
func variedRows(scope string, seed uint64, seconds int64, maxLive int) []store.Row {
	const second = int64(1e9)
	r := rand.New(rand.NewPCG(seed, 7))
	l := aggregate.NewLedger(aggregate.Config{Horizon: 20 * second, Lateness: 60 * second, MaxLive: maxLive, Views: []aggregate.View{
		{Every: 1, ByRoute: true, ByOriginator: true}, {Every: 1, ByRoute: true, ByPeer: true},
	}})
	flags := []aggregate.Flags{0, aggregate.Visible, aggregate.Visible | aggregate.Refused, aggregate.Expired | aggregate.Stale, aggregate.Reopening | aggregate.RetryShown}
	for range 40 * seconds {
		key := uint64(r.IntN(1 << r.IntN(11))) // some often
		a := aggregate.Arrival{
			Start: benchBase*second + r.Int64N(seconds*second), Duration: r.Int64N(30 * second), RetryAfter: -1, Text: r.Uint64(),
			Route: uint16(key % 2), Originator: uint16(1 + key%3), Peer: uint8(r.IntN(3)), Question: aggregate.ID{Key: key, Rest: key},
			Class: keys.Class(1 + key%2), Kind: aggregate.KindEnd, Outcome: aggregate.Outcome(r.IntN(5)), Departure: aggregate.Departure(r.IntN(5)),
			Attempt: uint8(r.IntN(4)), AttemptsLeft: aggregate.NoBudget, Flags: flags[r.IntN(len(flags))] | aggregate.Head,
		}
		if r.IntN(4) == 0 {
			a.RetryAfter = 5 * second
		}
		if r.IntN(5) == 0 {
			a.AttemptsLeft = uint8(r.IntN(3))
		}
		if r.IntN(6) == 0 {
			a.Class, a.Reason, a.Originator, a.Question = keys.Unattributable, keys.Reason(1+r.IntN(keys.NumReasons-1)), 0, aggregate.ID{}
		}
		if r.IntN(4) < 1+2*int(a.Originator&1) {
			a.Duration = aggregate.Untimed(false, false, a.Text%2 == 0)
		}
		if a.Text%64 == 0 {
			a.Originator, a.Departure, a.Flags, a.Duration = 9, aggregate.StillThere, aggregate.Head, aggregate.Untimed(false, false, true)
		}
		a.Log = a.Start + max(a.Duration, 0)
		l.Add(&a, nil, 0)
	}
	out := new(aggregate.Output)
	l.Finish(out)
	var rows []store.Row
	for _, x := range out.Rows {
		rows = append(rows, store.Row{
			Family: store.Family(x.View), At: x.From, Scope: scope, LateBlock: store.OnTime, Dependency: fmt.Sprint("d", x.Dims.Route),
			Route: fmt.Sprint("GET /", x.Dims.Route), Name: fmt.Sprint(x.Dims.Originator, x.Dims.Peer), Rules: 1, Version: 1, Wide: x.Wide, Counts: x.Counts,
		})
	}
	return rows
}

// A sum is an expression of measures, and what the program says in its place.
type sum struct {
	expr string
	of   func(m *aggregate.Measure) float64
}

func figure(f aggregate.Figure) float64 {
	v, ok := f.Value()
	if !ok {
		return math.NaN()
	}
	return v
}

func whole(f func(m *aggregate.Measure) uint64) func(*aggregate.Measure) float64 {
	return func(m *aggregate.Measure) float64 { return float64(f(m)) }
}

// measureSums are all columns of measures.
func measureSums(seconds int64) []sum {
	type measure = aggregate.Measure
	out := []sum{
		{"sum(arrivals)", whole(func(m *measure) uint64 { return m.Arrivals })}, {"sum(verified)", whole(func(m *measure) uint64 { return m.Verified })},
		{"sum(claimed)", whole(func(m *measure) uint64 { return m.Claimed })}, {"sum(unattributable)", whole(func(m *measure) uint64 { return m.Unattributable.Total })},
		{"sum(originals)", whole(func(m *measure) uint64 { return m.Originals })}, {"sum(repeats)", whole(func(m *measure) uint64 { return m.Repeats })},
		{"sum(reopened)", whole(func(m *measure) uint64 { return m.Reopened })}, {"sum(questions)", whole(func(m *measure) uint64 { return m.Questions })},
		{"sum(variance)", whole(func(m *measure) uint64 { return m.Variance })},
		{"sum(answers)", whole(func(m *measure) uint64 { return m.Responses.Answers })}, {"sum(refused)", whole(func(m *measure) uint64 { return m.Responses.Refused })},
		{"sum(successes)", whole(func(m *measure) uint64 { return m.Responses.Success })}, {"sum(before_response)", whole(func(m *measure) uint64 { return m.Responses.BeforeResponse })},
		{"sum(disconnected)", whole(func(m *measure) uint64 { return m.Responses.Disconnected })}, {"sum(expired)", whole(func(m *measure) uint64 { return *m.Responses.Expired })},
		{"sum(dead_seconds)", func(m *measure) float64 { return figure(m.Responses.DeadSeconds) }}, {"sum(busy_seconds)", func(m *measure) float64 { return figure(m.Responses.BusySeconds) }},
		{"sum(repeat_seconds)", func(m *measure) float64 { return figure(m.Responses.RepeatSeconds) }}, {"sum(untimed)", whole(func(m *measure) uint64 { return m.Responses.Untimed })},
		{"sum(unjudged)", whole(func(m *measure) uint64 { return m.Responses.Unjudged })},
		{"sum(after_gone)", whole(func(m *measure) uint64 { return m.RepeatAfter.Gone })}, {"sum(after_5xx)", whole(func(m *measure) uint64 { return m.RepeatAfter.Error })},
		{"sum(after_429_503)", whole(func(m *measure) uint64 { return m.RepeatAfter.Overload })}, {"sum(after_success)", whole(func(m *measure) uint64 { return m.RepeatAfter.Success })},
		{"sum(after_in_flight)", whole(func(m *measure) uint64 { return m.RepeatAfter.InFlight })},
		{"sum(retry_asked)", whole(func(m *measure) uint64 { return m.RetryAfter.Asked })}, {"sum(retry_returned)", whole(func(m *measure) uint64 { return *m.RetryAfter.Returned })},
		{"sum(retry_early)", whole(func(m *measure) uint64 { return *m.RetryAfter.Early })},
		{"sum(stale)", whole(func(m *measure) uint64 { return m.StaleArrivals })}, {"sum(overspent)", whole(func(m *measure) uint64 { return m.AttemptBudget.Overspent })},
		{"sum(visible) / sum(arrivals)", func(m *measure) float64 { return figure(m.Responses.Visibility) }},
		{"sum(dead) / sum(answers)", func(m *measure) float64 { return figure(m.Responses.DeadShare) }},
		{fmt.Sprintf("sum(good) / %d", seconds), func(m *measure) float64 { return figure(m.Responses.Goodput) }},
		{"sum(hop_numbered) / sum(hop_ones)", func(m *measure) float64 { return figure(m.Hops.Adjacent) }},
		{"sum(hop_ones_known) / sum(hop_questions)", func(m *measure) float64 { return figure(m.Hops.Above) }},
		{"sum(same_peer) / sum(repeats)", func(m *measure) float64 { return figure(m.Hops.SamePeer) }},
		{"sum(arrivals) / (sum(questions) + sum(unattributable))", func(m *measure) float64 { return figure(m.AmplificationLow) }},
		{"sum(arrivals) / (sum(questions) - sum(reopened))", func(m *measure) float64 { return figure(m.AmplificationHigh) }},
		{"arraySum(mapValues(sumMap(ended)))", func(m *measure) float64 {
			n := uint64(0)
			for _, x := range m.PerQuestion.Histogram {
				n += x
			}
			return float64(n)
		}},
	}
	for r := keys.Absent; int(r) < keys.NumReasons; r++ {
		out = append(out, sum{fmt.Sprintf("sumMap(reasons)['%s']", r), func(m *measure) float64 { return float64(m.Unattributable.Reasons[r]) }})
	}
	for _, upper := range []int{1, 2, 3, 64, 128, 256} {
		out = append(out, sum{fmt.Sprintf("sumMap(ended)[%d]", upper), func(m *measure) float64 { return float64(m.PerQuestion.Histogram[fmt.Sprint(upper)]) }})
	}
	return out
}

// The view measures says of any range, from rows of any length, what the program makes of
// the same rows: it decodes what was counted as package aggregate does, and knows distinct
// questions across seconds and scopes. It says so of all dependencies, and where a part of
// the questions is followed.
func TestClickHouseMeasures(t *testing.T) {
	server := clickhousetest.Start(t)
	s := openClickHouse(t, server)
	const seconds = 150
	for i, scope := range []string{"a", "b"} {
		rows := variedRows(scope, uint64(i), seconds, 400*i)
		if err := s.Write(t.Context(), &store.Write{Scope: scope, Rules: 1, Rows: rows, Closed: benchBase + 3700}); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, of := range []struct {
		name           string
		length         store.Resolution
		asks, from, to int64 // what is asked is rounded up to a whole row
	}{{"tick", store.Tick, 0, 0, 180}, {"tick", store.Tick, 33, 33, 90}, {"ten_seconds", store.TenSeconds, 11, 20, 140}, {"minute", store.Minute, 1, 60, 180}, {"hour", store.Hour, 0, 0, 3600}} {
		for family, called := range []string{"originator", "peer"} {
			want := map[string]*aggregate.Counts{}
			rows, err := s.Rows(t.Context(), store.Query{Family: store.Family(family), Resolution: of.length, From: benchBase + of.from, To: benchBase + of.to, Limit: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				if row.Wide {
					continue
				}
				if want[row.Dependency] == nil {
					want[row.Dependency] = new(aggregate.Counts)
				}
				row.Counts.Settle((row.At - benchBase - of.from) / int64(of.length))
				want[row.Dependency].Merge(row.Counts)
			}
			sums := measureSums(of.to - of.from)
			q := "SELECT dependency"
			for _, x := range sums {
				q += ", " + x.expr
			}
			got := server.Query(t, fmt.Sprintf("%s FROM measures(resolution = '%s', from = %d, to = %d) WHERE family = '%s' GROUP BY dependency ORDER BY dependency",
				q, of.name, benchBase+of.asks, benchBase+of.to, called))
			if len(got) != len(want) || len(got) != 2 {
				t.Fatalf("%s by %s: there are %d dependencies, want %d", of.name, called, len(got), len(want))
			}
			for _, line := range got {
				values := strings.Split(line, "\t")
				m := want[values[0]].Measure(of.to-of.from, aggregate.Figure{}, called == "peer")
				for i, x := range sums {
					v, err := strconv.ParseFloat(values[1+i], 64)
					w := x.of(&m)
					if err != nil || math.Abs(v-w) > 1e-9*math.Abs(w) {
						t.Errorf("%s by %s from %d on: %s of %s is %s, want %v", of.name, called, of.asks, x.expr, values[0], values[1+i], w)
					}
					seen[x.expr] = seen[x.expr] || w != 0
				}
			}
		}
	}
	measuresRowByRow(t, server, s, seconds)
	// Who asks for arrivals alone pays for these alone: counts are not read but of scopes.
	reads := func(column string) int {
		plan := server.Query(t, fmt.Sprintf("EXPLAIN header = 1 SELECT sum(%s) FROM measures(resolution = 'tick', from = %d, to = %d)", column, benchBase, benchBase+9))
		return strings.Count(strings.Join(plan, "\n"), "counts String")
	}
	if arrivals, answers := reads("arrivals"), reads("answers"); arrivals == 0 || arrivals >= answers {
		t.Errorf("counts are in the plan of arrivals %d times, of answers %d", arrivals, answers)
	}
	for _, x := range measureSums(180) {
		if !seen[x.expr] {
			t.Errorf("%s was 0 wherever it was asked", x.expr)
		}
	}
}

// measuresRowByRow holds the seconds of each row to be NULL where the program has none. Of
// repeats the program goes by how many there are, which may be an estimate: sums of rows
// would lack what is NULL though some of it is known.
func measuresRowByRow(t *testing.T, server *clickhousetest.Server, s store.Store, seconds int64) {
	t.Helper()
	want := map[string]*aggregate.Counts{}
	for _, family := range []store.Family{store.ByOriginator, store.ByPeer} {
		rows, err := s.Rows(t.Context(), store.Query{Family: family, Resolution: store.Tick, From: benchBase, To: benchBase + seconds, Limit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if k := fmt.Sprintf("%d\t%s\t%s\t%d\t%s", row.At, row.Dependency, row.Route, family, row.Name); !row.Wide {
				if want[k] == nil {
					want[k] = new(aggregate.Counts)
				}
				want[k].Merge(row.Counts)
			}
		}
	}
	var null, known [3]bool
	dark := false // nobody is known to be dead, and all may have expired
	got := server.Query(t, fmt.Sprintf("SELECT toUnixTimestamp(time), dependency, route, if(family = 'peer', 1, 0), name, untimed, untimed_dead, untimed_repeats, unjudged, dead_seconds, busy_seconds, repeat_seconds "+
		"FROM measures(resolution = 'tick', from = %d, to = %d)", benchBase, benchBase+seconds))
	for _, line := range got {
		cells := strings.Split(line, "\t")
		c := want[strings.Join(cells[:5], "\t")]
		if c == nil {
			t.Fatalf("%q is of no row", line)
		}
		x := c.Totals()
		if untimed := fmt.Sprint(x.Untimed, x.UntimedDead, x.UntimedRepeats, x.Unjudged); untimed != strings.Join(cells[5:9], " ") {
			t.Errorf("%q: want %s without a time, the last of them with a deadline", line, untimed)
		}
		dark = dark || x.Unjudged > 0 && x.Untimed == x.Arrivals && x.UntimedDead == 0
		for i, f := range []aggregate.Figure{x.DeadTime(), x.BusyTime(), x.RepeatTime()} {
			v, err := strconv.ParseFloat(cells[9+i], 64)
			w, ok := f.Value()
			if i == 2 && x.RepeatSeconds > 0 {
				w, ok = x.RepeatSeconds, true
			}
			if ok != (cells[9+i] != `\N`) || ok && (err != nil || math.Abs(v-w) > 1e-9*w) {
				t.Errorf("%q: seconds[%d] want %v %v", line, i, w, ok)
			}
			null[i], known[i] = null[i] || !ok, known[i] || ok && w > 0
		}
	}
	if all := [3]bool{true, true, true}; len(got) != len(want) || null != all || known != all || !dark {
		t.Errorf("of %d rows %d are there; NULL were %v, known %v; one that nobody could judge: %v", len(want), len(got), null, known, dark)
	}
}

// Counts that a later program encodes in another way are no figures.
func TestClickHouseMeasuresOfAnotherVersion(t *testing.T) {
	server := clickhousetest.Start(t)
	s := openClickHouse(t, server)
	if err := s.Write(t.Context(), &store.Write{Scope: "s", Rules: 1, Rows: []store.Row{tick(benchBase, "web")}}); err != nil {
		t.Fatal(err)
	}
	query := fmt.Sprintf("SELECT sum(arrivals), sum(answers) FROM measures(resolution = 'tick', from = %d, to = %d)", benchBase, benchBase+9)
	if got := server.Query(t, query); len(got) != 1 {
		t.Fatal(got)
	}
	for _, head := range []string{"02", "01"} {
		server.Exec(t, fmt.Sprintf("INSERT INTO facts (kind, at, scope, dependency, route, name, late, rules, arrivals, counts, major, minor) "+
			"VALUES ('tick', %d, 's', 'seats', 'GET /', '%s', -1, 1, 99, unhex('%s3c060000000000000000'), 1, 2)", benchBase+1, head, head))
		conn, err := store.NewLink(clickhouseAt(server))
		if err != nil {
			t.Fatal(err)
		}
		var arrivals, answers uint64
		err = conn.One(t.Context(), query, &arrivals, &answers)
		if err == nil || !strings.Contains(err.Error(), "another version") {
			t.Errorf("with a head of %s there are %d arrivals and %d answers, %v", head, arrivals, answers, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Exec(t, "DELETE FROM facts WHERE arrivals = 99")
	}
}

// The view counted says what of a partition was never read: neither what lies before all
// that was, nor what two ranges share.
func TestClickHouseCounted(t *testing.T) {
	server := clickhousetest.Start(t)
	s := openClickHouse(t, server)
	for _, r := range []store.Range{{Partition: "p", From: 5000, To: 5100}, {Partition: "p", From: 5100, To: 5150}, {Partition: "p", From: 5170, To: 5200}, {Partition: "q", From: 7, To: 9}} {
		if err := s.Write(t.Context(), &store.Write{Scope: "s", Rules: 1, Counted: []store.Range{r}}); err != nil {
			t.Fatal(err)
		}
	}
	// Of two processes each may know a range that the other does not.
	server.Exec(t, "INSERT INTO facts (kind, name, last, first, minor) VALUES ('counted', 'p', 5020, 5160, 5160)")
	got := server.Query(t, "SELECT partition, max(next), sum(missing), max(next) - min(first) - sum(missing) FROM counted GROUP BY partition ORDER BY partition")
	if want := []string{"p\t5200\t10\t190", "q\t9\t0\t2"}; !slices.Equal(got, want) {
		t.Errorf("counted is %q, want %q", got, want)
	}
}
