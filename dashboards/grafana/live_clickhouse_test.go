package grafana_test

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/dashboards/livetest"
	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
)

// stored is a ClickHouse into which a daemon in a storm writes, and what the variables of
// the dashboards stand for.
type stored struct {
	t        *testing.T
	server   *clickhousetest.Server
	from, to func() int64
	values   map[string]string
}

// filled is a query as Grafana sends it.
func (s *stored) filled(sql, resolution string) string {
	s.t.Helper()
	in := []string{
		"${__from:date:seconds}", strconv.FormatInt(s.from(), 10), "${__to:date:seconds}", strconv.FormatInt(s.to(), 10),
		"${resolution}", resolution, "${route:sqlstring}", s.values["route"], "${dependency:sqlstring}", s.values["dependency"],
		"${key:sqlstring}", quoted(s.values["key"]), "${granted:sqlstring}", "'0.2'",
	}
	out := strings.NewReplacer(in...).Replace(sql)
	if i := strings.Index(out, "$"); i >= 0 {
		s.t.Fatalf("a variable that is not known: %s", out[i:])
	}
	return out
}

// offers waits until a variable of a dashboard offers some values, and takes all of them.
func (s *stored) offers(d dashboard, name string, least int) {
	s.t.Helper()
	for _, v := range d.Templating.List {
		if v.Name != name {
			continue
		}
		sql := v.Query.(map[string]any)["rawSql"].(string)
		livetest.Until(s.t, time.Minute, func() string {
			all := s.server.Query(s.t, s.filled(sql, "tick"))
			for i := range all {
				all[i] = quoted(all[i])
			}
			if len(all) < least {
				return fmt.Sprintf("the variable %s offers only %q", name, all)
			}
			s.values[name] = strings.Join(all, ",")
			return ""
		})
	}
}

// Every query of every panel has an answer in the ClickHouse into which a daemon in a storm
// writes: all of its columns have a value, and lines have a row for each step, at every
// resolution. And of an hour that is over the figures are those that were sent.
func TestNoPanelOnClickHouseIsEmpty(t *testing.T) {
	server := clickhousetest.Start(t)
	at := store.ClickHouse{Addr: []string{server.Addr}, Database: server.Database, User: clickhousetest.User, HTTP: true}
	if err := store.MigrateClickHouse(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	// A whole hour lies within so much past, and its rows are made once it is closed.
	const past = 130 * time.Minute
	began := time.Now().Add(-past)
	startStorm(t, fmt.Sprintf("{clickhouse: {addr: [%q], database: %s, protocol: http}}", server.Addr, server.Database), past)

	// From ten seconds before the first record to a while after now.
	whole := func() int64 { return began.Unix() - 10 }
	newest := func() int64 { return began.Add(past).Unix() - 300 }
	s := &stored{t: t, server: server, from: whole, to: func() int64 { return time.Now().Unix() + 5 }, values: map[string]string{}}
	all := dashboards(t)
	s.offers(all["clickhouse-overview.json"], "dependency", 2)
	both := s.values["dependency"]
	s.values["dependency"] = quoted("seats")
	s.offers(all["clickhouse-dependency.json"], "route", 2)
	s.offers(all["ledger.json"], "route", 2)
	s.from = newest
	livetest.Until(t, time.Minute, func() string {
		worst := server.Query(t, s.filled("SELECT key_hash"+single+" ORDER BY arrivals DESC LIMIT 1", "tick"))
		if len(worst) == 0 {
			return "no question is stored yet"
		}
		s.values["key"] = worst[0]
		return ""
	})

	asked := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !files[name].stored {
			continue
		}
		s.values["dependency"] = quoted("seats")
		if slices.Contains([]string{"clickhouse-overview.json", "clickhouse-pipeline.json"}, name) {
			s.values["dependency"] = both
		}
		for _, resolution := range []string{"tick", "ten_seconds", "minute", "hour"} {
			if s.from = whole; resolution == "tick" { // of which nobody looks at hours
				s.from = newest
			}
			for _, p := range all[name].Panels {
				for _, q := range p.Targets {
					asked++
					where := fmt.Sprintf("%s: %s, by %s", name, p.Title, resolution)
					livetest.Until(t, time.Minute, func() string {
						sql := s.filled(q.RawSQL, resolution)
						if lacks := s.lacks(sql, resolution, p.Type == "timeseries"); lacks != "" && p.Title != "Questions that were not seen whole" {
							return where + ": " + lacks + ": " + sql
						}
						return ""
					})
				}
			}
		}
	}
	if asked < 200 {
		t.Errorf("only %d queries", asked)
	}
	t.Logf("%d queries have answers after %v", asked, time.Since(began.Add(past)).Round(time.Second))

	hour := began.Truncate(time.Hour).Add(time.Hour).Unix()
	s.from, s.to = func() int64 { return hour }, func() int64 { return hour + 3600 }
	s.values["dependency"] = quoted("seats")
	for _, resolution := range []string{"tick", "ten_seconds", "minute", "hour"} {
		s.areTrue(all, resolution)
	}
}

// areTrue holds what panels show of an hour against what startStorm wrote into the log: six
// calls of storm.seats a minute.
func (s *stored) areTrue(all map[string]dashboard, resolution string) {
	s.t.Helper()
	const calls = 360
	const verified, claimed, unattributable, originals, dead, answers = 15 * calls, calls, 4 * calls, 8*calls + calls/10, 5 * calls, 14 * calls
	const attributable, arrivals = verified + claimed, verified + claimed + unattributable
	const repeats = attributable - originals
	measured, low, high := float64(attributable)/originals, float64(arrivals)/(originals+unattributable), float64(arrivals)/originals
	for _, panel := range []struct {
		file, title string
		want        map[string]float64 // by column
	}{
		{"clickhouse-overview.json", "Dependencies", map[string]float64{
			"arrivals": arrivals, "firsts": originals, "again": repeats, "load_factor": measured, "per_question": measured, "at_least": low, "at_most": high, "coverage": 0.8, "verified_share": 0.75,
			"of_granted": repeats / (0.2 * originals), "dead_share": float64(dead) / answers, "dead_most": 1, "visible_share": float64(6) / 20, "for_nobody": 0.93 * calls, "error": 0, "is_provisional": 0,
		}},
		{"clickhouse-dependency.json", "Amplification", map[string]float64{"measured": measured, "at_least": low, "at_most": high}},
		{"clickhouse-dependency.json", "Load factor", map[string]float64{"load_factor": measured}},
		{"clickhouse-dependency.json", "Coverage", map[string]float64{"share": 0.75, "state": 0.75}},
		{"clickhouse-dependency.json", "Of what is granted", map[string]float64{"of_granted": repeats / (0.2 * originals)}},
		{"clickhouse-dependency.json", "Dead share", map[string]float64{"at_least": float64(dead) / answers, "at_most": 1}},
		{"clickhouse-dependency.json", "For nobody", map[string]float64{"for_nobody": 0.93 * calls}},
		{"clickhouse-dependency.json", "Hops", map[string]float64{"adjacent": 3, "above": 2}},
		{"clickhouse-dependency.json", "Asked to wait", map[string]float64{"asked": 5 * calls, "came_back": 5 * calls}},
		{"clickhouse-pipeline.json", "Provisional", map[string]float64{"provisional_share": 0}},
		{"ledger.json", "Load factor", map[string]float64{"load_factor": measured}},
		{"ledger.json", "Repeats", map[string]float64{"repeats": repeats}},
	} {
		found := false
		for _, p := range all[panel.file].Panels {
			if p.Title != panel.title || found {
				continue
			}
			found = true
			rows, _ := s.rows(s.filled(p.Targets[0].RawSQL, resolution))
			if len(rows) != 1 {
				s.t.Errorf("%s, by %s: %s has %d rows", panel.file, resolution, panel.title, len(rows))
				continue
			}
			for column, want := range panel.want {
				if got, err := strconv.ParseFloat(rows[0][column], 64); err != nil || math.Abs(got-want) > 1e-9*want {
					s.t.Errorf("%s, by %s: %s of %s is %q, want %v", panel.file, resolution, column, panel.title, rows[0][column], want)
				}
			}
		}
		if !found {
			s.t.Errorf("%s has no panel %s", panel.file, panel.title)
		}
	}
	// Of lines, each step is a part of that.
	for title, want := range map[string]map[string]float64{
		"Arrivals without attribution, by reason": {"absent": calls, "malformed": calls, "forged": calls, "late": calls, "unsigned": 0},
		"Arrivals by outcome":                     {"answered": answers - dead, "dead": dead, "refused": 5 * calls, "abandoned": calls},
	} {
		length := map[string]float64{"tick": 1, "ten_seconds": 10, "minute": 60, "hour": 3600}[resolution]
		for _, p := range all["clickhouse-dependency.json"].Panels {
			if p.Title != title {
				continue
			}
			sums := map[string]float64{}
			rows, _ := s.rows(s.filled(p.Targets[0].RawSQL, resolution))
			for _, row := range rows {
				for column := range want {
					if v, err := strconv.ParseFloat(row[column], 64); err == nil {
						sums[column] += v * length
					}
				}
			}
			for column, n := range want {
				if math.Abs(sums[column]-n) > 1e-6 {
					s.t.Errorf("by %s: %s of %s adds up to %v, want %v", resolution, column, title, sums[column], n)
				}
			}
		}
	}
}

// What is drawn of work for nobody are bounds, of all that could be judged and of the rest:
// they are one where all could be, and none where none could.
func TestClickHouseBoundsOfDeadAnswers(t *testing.T) {
	server := clickhousetest.Start(t)
	for _, x := range []struct{ name, row, want string }{
		{"all judged", "10, 10, 8, 2, 0, 0, 5", "0.25 0.25 5 5"},
		{"none dead of all", "10, 10, 8, 0, 0, 0, 5", "0 0 5 5"},
		{"three deadlines not judged", "10, 10, 8, 2, 3, 4, 5", "0.25 0.625 5 2"},
		{"two that show no departure", "10, 8, 8, 2, 0, 0, 5", "0.25 0.5 5 3"},
		{"more in doubt than there are", "10, 3, 8, 2, 3, 4, 5", "0.25 1 5 0"},
		{"none dead of some", "10, 8, 8, 0, 1, 1, 5", "0 0.375 5 2"},
		{"none dead, and none visible", "10, 0, 8, 0, 0, 0, 5", `\N 1 5 0`},
		{"some dead, and none visible", "10, 0, 8, 4, 0, 0, 4", "0.5 1 4 0"},
		{"none dead, and no time for a deadline", "10, 10, 8, 0, 4, 10, 5", `\N 0.5 5 1`},
		{"no time, and no deadline", "10, 10, 8, 0, 0, 10, 5", "0 0 5 5"},
		{"no answer", "10, 10, 0, 0, 0, 0, 0", `\N \N 0 0`},
	} {
		got := server.Query(t, "SELECT "+strings.Join([]string{deadShare, deadMost, goodputMost, goodputLeast}, ", ")+
			" FROM values('a UInt64, vi UInt64, an UInt64, de UInt64, uj UInt64, ut UInt64, go UInt64', ("+x.row+"))")
		if len(got) != 1 || strings.ReplaceAll(got[0], "\t", " ") != x.want {
			t.Errorf("%s: %q, want %s", x.name, got, x.want)
		}
	}
}

// rows are the rows of an answer, by column, and its columns in their order.
func (s *stored) rows(sql string) (out []map[string]string, columns []string) {
	s.t.Helper()
	lines := s.server.Query(s.t, sql+" FORMAT TabSeparatedWithNames")
	columns = strings.Split(lines[0], "\t")
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, v := range strings.Split(line, "\t") {
			row[columns[i]] = v
		}
		out = append(out, row)
	}
	return out, columns
}

// lacks says what an answer lacks. What is provisional may be missing: a daemon stores
// seconds when they are closed, so that there is only such for moments.
func (s *stored) lacks(sql, resolution string, lines bool) string {
	s.t.Helper()
	rows, columns := s.rows(sql)
	if lines && columns[0] != "time" {
		return fmt.Sprintf("the first column is %s", columns[0])
	}
	some, times := map[string]bool{}, map[string][]time.Time{}
	var last time.Time
	for _, row := range rows {
		for name, v := range row {
			some[name] = some[name] || v != `\N` && v != ""
			if strings.Contains(v, "nan") || strings.Contains(v, "inf") {
				return fmt.Sprintf("%s is %s", name, v)
			}
		}
		if !lines {
			continue
		}
		at, err := time.Parse("2006-01-02 15:04:05", row["time"])
		if err != nil {
			return err.Error()
		}
		if at.Before(last) {
			return fmt.Sprintf("%v comes after %v", at, last) // Grafana wants them in order
		}
		last = at
		times[row["dependency"]] = append(times[row["dependency"]], at)
	}
	for _, name := range columns {
		if !some[name] && !strings.HasSuffix(name, "_provisional") {
			return "nothing in column " + name
		}
	}
	step := map[string]time.Duration{"tick": time.Second, "ten_seconds": 10 * time.Second, "minute": time.Minute, "hour": time.Hour}[resolution]
	for of, times := range times {
		if slices.Contains(columns, "dependency") && of == "" {
			return "a step of no dependency"
		}
		for i := range times {
			if i > 0 && times[i].Sub(times[i-1]) != step {
				return fmt.Sprintf("no row between %v and %v of %q", times[i-1], times[i], of)
			}
		}
	}
	return ""
}

// quoted is a text as ${name:sqlstring} of Grafana gives it.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// A dependency's name comes from logs. Whatever it holds, it stays a text in the query.
func TestClickHouseQuotesWhatIsChosen(t *testing.T) {
	for name, b := range files {
		if !b.stored {
			continue
		}
		for _, m := range regexp.MustCompile(`\$\{?(dependency|route|key|granted)[^_a-z][^}"]*`).FindAllString(text(t, name), -1) {
			if !strings.HasSuffix(m, ":sqlstring") && !strings.HasSuffix(m, ":queryparam") {
				t.Errorf("%s has %s, unquoted", name, m)
			}
		}
	}
}
