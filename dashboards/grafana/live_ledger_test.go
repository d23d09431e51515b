package grafana_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/dashboards/livetest"
	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
)

// Every query of every panel of the ledger has an answer in the ClickHouse into which a
// daemon in a storm writes: all of its columns have a value, and lines have a row for
// each step, at every resolution.
func TestNoPanelOfTheLedgerIsEmpty(t *testing.T) {
	server := clickhousetest.Start(t)
	at := store.ClickHouse{Addr: []string{server.Addr}, Database: server.Database, User: clickhousetest.User, HTTP: true}
	if err := store.MigrateClickHouse(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	// A whole hour lies within so much past, and its rows are made once it is closed.
	const past = 130 * time.Minute
	began := time.Now().Add(-past)
	startStorm(t, fmt.Sprintf("{clickhouse: {addr: [%q], database: %s, protocol: http}}", server.Addr, server.Database), past)

	d := dashboards(t)["ledger.json"]
	var routes query
	for _, v := range d.Templating.List {
		if v.Name == "route" {
			routes.RawSQL = v.Query.(map[string]any)["rawSql"].(string)
		}
	}
	values := map[string]string{"dependency": "seats"}
	// filled is a query as Grafana sends it, of the time from ten seconds before the
	// first record to a while after now.
	filled := func(sql, resolution string) string {
		in := []string{
			"${__from:date:seconds}", strconv.FormatInt(began.Unix()-10, 10), "${__to:date:seconds}", strconv.FormatInt(time.Now().Unix()+5, 10),
			"${resolution}", resolution, "${route:sqlstring}", values["route"],
		}
		for _, name := range []string{"dependency", "key"} {
			in = append(in, "${"+name+":sqlstring}", quoted(values[name]))
		}
		out := strings.NewReplacer(in...).Replace(sql)
		if i := strings.Index(out, "$"); i >= 0 {
			t.Fatalf("a variable that is not known: %s", out[i:])
		}
		return out
	}
	livetest.Until(t, time.Minute, func() string {
		all := server.Query(t, filled(routes.RawSQL, "tick"))
		for i := range all {
			all[i] = quoted(all[i])
		}
		values["route"] = strings.Join(all, ",")
		if len(all) < 2 {
			return fmt.Sprintf("the variable route offers only %q", all)
		}
		return ""
	})
	livetest.Until(t, time.Minute, func() string {
		worst := server.Query(t, filled("SELECT key_hash"+single+" ORDER BY arrivals DESC LIMIT 1", "tick"))
		if len(worst) == 0 {
			return "no question is stored yet"
		}
		values["key"] = worst[0]
		return ""
	})

	asked := 0
	for _, resolution := range []string{"tick", "ten_seconds", "minute", "hour"} {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				asked++
				where := fmt.Sprintf("%s, by %s", p.Title, resolution)
				livetest.Until(t, time.Minute, func() string {
					sql := filled(q.RawSQL, resolution)
					if lacks := ofClickHouse(t, server, sql, resolution, p.Type == "timeseries"); lacks != "" {
						return where + ": " + lacks + ": " + sql
					}
					return ""
				})
			}
		}
	}
	if asked < 60 {
		t.Errorf("only %d queries", asked)
	}
	t.Logf("%d queries have answers after %v", asked, time.Since(began.Add(past)).Round(time.Second))
}

// ofClickHouse says what an answer lacks. What is provisional may be missing: a daemon
// stores seconds when they are closed, so that there is only such for moments.
func ofClickHouse(t *testing.T, server *clickhousetest.Server, sql, resolution string, lines bool) string {
	t.Helper()
	var columns []string
	for _, line := range server.Query(t, "DESCRIBE ("+sql+")") {
		name, _, _ := strings.Cut(line, "\t")
		columns = append(columns, name)
	}
	if lines && columns[0] != "time" {
		return fmt.Sprintf("the first column is %s", columns[0])
	}
	some := map[string]bool{}
	var times []time.Time
	for _, row := range server.Query(t, sql) {
		for i, v := range strings.Split(row, "\t") {
			name := columns[i]
			some[name] = some[name] || v != `\N` && v != ""
			if strings.Contains(v, "nan") || strings.Contains(v, "inf") {
				return fmt.Sprintf("%s is %s", name, v)
			}
			if lines && i == 0 {
				at, err := time.Parse("2006-01-02 15:04:05", v)
				if err != nil {
					return err.Error()
				}
				times = append(times, at)
			}
		}
	}
	for _, name := range columns {
		if !some[name] && !strings.HasSuffix(name, "_provisional") {
			return "nothing in column " + name
		}
	}
	step := map[string]time.Duration{"tick": time.Second, "ten_seconds": 10 * time.Second, "minute": time.Minute, "hour": time.Hour}[resolution]
	for i := range times {
		if i > 0 && times[i].Sub(times[i-1]) != step {
			return fmt.Sprintf("no row between %v and %v", times[i-1], times[i])
		}
	}
	return ""
}

// quoted is a text as ${name:sqlstring} of Grafana gives it.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// A dependency's name comes from logs. Whatever it holds, it stays a text in the query.
func TestLedgerQuotesWhatIsTyped(t *testing.T) {
	for name, b := range files {
		if !b.ledger {
			continue
		}
		for _, m := range regexp.MustCompile(`\$\{?(dependency|route|key)[^_a-z][^}"]*`).FindAllString(text(t, name), -1) {
			if !strings.HasSuffix(m, ":sqlstring") && !strings.HasSuffix(m, ":queryparam") {
				t.Errorf("%s has %s, unquoted", name, m)
			}
		}
	}
}
