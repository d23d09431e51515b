package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/keys"
)

var updateReports = flag.Bool("update", false, "rewrite the golden files")

// testNames are the names of a report in a test; route 0 is of the first
// dependency.
type testNames struct {
	routes             [][2]string
	originators, peers []string
	undiscriminated    map[uint16]bool
}

func (n *testNames) Route(i uint16) (string, string)   { return n.routes[i][0], n.routes[i][1] }
func (n *testNames) Originator(i uint16) string        { return n.originators[i] }
func (n *testNames) Peer(i uint8) string               { return n.peers[i] }
func (n *testNames) Undiscriminated(route uint16) bool { return n.undiscriminated[route] }

// testLog collects arrivals and audits them.
type testLog struct {
	names    testNames
	input    aggregate.Input
	arrivals []aggregate.Arrival
}

const testStart = 1_767_268_800 // 2026-01-01T12:00:00Z

// at adds an arrival at a number of seconds from the start.
func (l *testLog) at(s float64, question uint64, change func(a *aggregate.Arrival)) {
	start := testStart*int64(1e9) + int64(s*1e3)*1e6
	a := aggregate.Arrival{
		Start: start, Duration: 40e6, RetryAfter: -1, Question: aggregate.ID{Key: question, Rest: question},
		Text: uint64(len(l.arrivals) + 1), Class: keys.Verified, Originator: 1, Outcome: aggregate.OutcomeSuccess, Kind: aggregate.KindEnd,
		AttemptsLeft: aggregate.NoBudget, Flags: aggregate.Head | aggregate.Decidable | aggregate.Visible,
	}
	if change != nil {
		change(&a)
	}
	a.Log = a.Start + max(a.Duration, 0)
	l.arrivals = append(l.arrivals, a)
}

func keyless(why keys.Reason) func(a *aggregate.Arrival) {
	return func(a *aggregate.Arrival) {
		a.Class, a.Reason, a.Originator, a.Question = keys.Unattributable, why, 0, aggregate.ID{}
	}
}

func (l *testLog) report() *aggregate.Report {
	ledger := aggregate.NewLedger(aggregate.Config{
		Horizon: 120e9, Lateness: 120e9, Views: aggregate.SummaryViews(), EndAtLast: true, Worst: 5,
		KeyHash: func(key []byte) (h [16]byte) { s := sha256.Sum256(key); copy(h[:], s[:]); return h },
	})
	for i := range l.arrivals {
		q := l.arrivals[i].Question.Key
		ledger.Add(&l.arrivals[i], []byte{byte(q), byte(q >> 8)}, math.MinInt64)
	}
	var out aggregate.Output
	ledger.Finish(&out)
	model := budget.DefaultModel(budget.DefaultRatio())
	s := aggregate.NewSummary(&l.names, &model, nil)
	for _, x := range out.Seconds {
		s.AddSecond(ledger.Stats().First, x)
	}
	s.AddRows(out.Rows)
	in := l.input
	if in.Ignored == nil {
		in.Ignored = map[string]uint64{}
	}
	if in.Quarantined == nil {
		in.Quarantined = map[string]uint64{}
	}
	return s.Report(in, ledger.Stats(), out.Worst, 5)
}

// storm is ten quiet minutes, then four in which every call is tried three times
// by the bff and three times by the gateway, then quiet.
func storm() *testLog {
	l := &testLog{
		names: testNames{
			routes:          [][2]string{{"inventory", "GET /seats/{id}"}, {"inventory", "POST /orders"}},
			originators:     []string{"", "web", "claimed:traceparent"},
			peers:           []string{"gateway", "batch"},
			undiscriminated: map[uint16]bool{1: true},
		},
		input: aggregate.Input{Lines: 12345, Bytes: 3 << 20, Ignored: map[string]uint64{"path": 240, "user_agent": 12}, Quarantined: map[string]uint64{"cut_short": 1, "syntax": 2}},
	}
	for s := range 20 * 60 {
		second, storming := float64(s), s >= 600 && s < 840
		for i := range 4 {
			q := uint64(s*10 + i + 1)
			where := func(a *aggregate.Arrival) {
				if i == 3 {
					a.Route, a.Flags = 1, a.Flags|aggregate.NonIdempotent
				}
				if i == 2 && s%2 == 0 {
					a.Class, a.Originator, a.Peer = keys.Claimed, 2, 1
				}
				a.Flags |= aggregate.RetryShown
				a.Attempt = 1
			}
			if !storming {
				l.at(second, q, where)
				continue
			}
			for try := range 9 {
				l.at(second+float64(try)*1.5+float64(i)/100, q, func(a *aggregate.Arrival) {
					where(a)
					a.Attempt, a.Duration = uint8(try%3+1), 900e6
					switch {
					case i == 3:
						a.Outcome, a.RetryAfter, a.Flags = aggregate.OutcomeOverload, 1e9, a.Flags|aggregate.Refused
					case try%3 == 2:
						a.Outcome = aggregate.OutcomeError
					default:
						a.Departure = aggregate.UndeliveredAnswer
					}
				})
			}
		}
		if s%5 == 0 {
			l.at(second+0.5, 0, keyless(keys.Absent))
		}
		if s%50 == 0 {
			l.at(second+0.7, 0, keyless(keys.Forged))
		}
	}
	return l
}

// dark is a log that cannot show anything: no keys, no departures.
func dark() *testLog {
	l := &testLog{names: testNames{routes: [][2]string{{"inventory", "GET /"}}, originators: []string{"", "web"}, peers: []string{""}}}
	l.input.Lines = 300
	for s := range 100 {
		for i := range 3 {
			l.at(float64(s)+float64(i)/10, 0, func(a *aggregate.Arrival) {
				keyless(keys.Absent)(a)
				a.Flags &^= aggregate.Visible
			})
		}
	}
	return l
}

// several is two dependencies, a gap, and many peers and counts.
func several() *testLog {
	l := &testLog{names: testNames{routes: [][2]string{{"inventory", "GET /seats/{id}"}, {"payments", "GET /seats/{id}"}}, originators: []string{"", "web"}}}
	for i := range 30 {
		l.names.peers = append(l.names.peers, "peer-"+string(rune('a'+i%26))+strings.Repeat("x", i/26))
	}
	for q := range 30 {
		for try := range q + 1 {
			l.at(float64(q*200)+float64(try)*2, uint64(q+1), func(a *aggregate.Arrival) {
				a.Route, a.Peer = uint16(q%2), uint8(q)
				if a.Outcome = aggregate.OutcomeError; try%2 == 0 {
					a.Departure = aggregate.DuringResponse
				}
				if q%3 == 0 {
					a.Flags &^= aggregate.Visible
				}
			})
		}
	}
	return l
}

const (
	rightToLeftOverride = "\u202e"
	hangulFiller        = "\u3164"
)

// evil are names that somebody who may write into a log would choose.
var evil = []string{
	"GET /\x1b[2J\x1b[31mred\x1b]8;;http://evil.example\x07click",
	"GET /a|b|c\n| forged | row |\r\n## Heading",
	"GET /`code`<img src=x onerror=alert(1)>&lt;b&gt;",
	"GET /[click](https://evil.example) ![x](http://evil.example/p.png) @team www.evil.example",
	"GET /" + rightToLeftOverride + "txt.exe" + hangulFiller + "\u0301\u05d0\u200b\x00\xff\\x41",
	"GET /" + strings.Repeat("long/", 2000) + "end",
	"  ",
	"``` **bold** _it_ ~~no~~ $x$",
}

func hostile() *testLog {
	l := &testLog{names: testNames{originators: []string{"", "web"}}}
	for i, e := range evil {
		l.names.routes = append(l.names.routes, [2]string{"dep" + e, e})
		l.names.peers = append(l.names.peers, e)
		for try := range i + 2 {
			l.at(float64(try), uint64(i+1), func(a *aggregate.Arrival) { a.Route, a.Peer = uint16(i), uint8(i) })
		}
	}
	l.input.Quarantined = map[string]uint64{"<b>|\x1b[0m": 1}
	return l
}

// granted are what the reports of these tests are held against.
func granted() renderOptions {
	return renderOptions{
		Files: []string{"access.log.1", "-"}, Horizon: 2 * time.Minute, Lateness: time.Minute,
		Rules:  budget.Rules{Chosen: 1.2, CoverageFloor: 0.85, VisibilityFloor: 0.5, MinArrivals: 20},
		Budget: budget.DefaultModel(budget.DefaultRatio()),
	}
}

func TestReports(t *testing.T) {
	for name, l := range map[string]*testLog{"storm": storm(), "dark": dark(), "several": several(), "hostile": hostile(), "empty": {}} {
		t.Run(name, func(t *testing.T) {
			r, o := l.report(), granted()
			for kind, write := range map[string]func(io.Writer, *aggregate.Report, renderOptions) error{"txt": writeText, "md": writeMarkdown, "html": writeHTML} {
				var out bytes.Buffer
				if err := write(&out, r, o); err != nil {
					t.Fatal(err)
				}
				if kind == "html" {
					head, body := cutStyle(t, out.String())
					golden(t, name+"."+kind, []byte(head+"<style>report/report.css</style>"+body))
				} else {
					golden(t, name+"."+kind, out.Bytes())
				}
				harmless(t, out.String())
				if s := out.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") || strings.Contains(s, "%!") {
					t.Errorf("%s: a number is no number", kind)
				}
				for i, line := range strings.Split(out.String(), "\n") {
					if kind == "txt" && columnsOf(line) > textWidth {
						t.Errorf("text line %d has %d columns", i+1, columnsOf(line))
					}
				}
			}
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "report", name)
	if *updateReports {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("%s, line %d:\n got %s\nwant %s", file, i+1, a[i], b[i])
			}
		}
		t.Fatalf("%s: %d lines, want %d", file, len(a), len(b))
	}
}

// harmless says that nothing in a text moves a cursor, hides, or turns around.
func harmless(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Error("the report is not UTF-8")
	}
	for _, r := range s {
		if r != '\n' && !unicode.IsPrint(r) || unicode.Is(unicode.M, r) || rightToLeft(r) || strings.ContainsRune(hangulFiller+rightToLeftOverride, r) {
			t.Errorf("the report contains %q", r)
		}
	}
}

// Every width is kept to.
func TestTextWidth(t *testing.T) {
	reports := []*aggregate.Report{storm().report(), several().report(), hostile().report()}
	for _, width := range []int{80, 93, 100, 120} {
		for _, r := range reports {
			for _, line := range strings.Split(string(textReport(r, granted(), width)), "\n") {
				if n := columnsOf(line); n > width {
					t.Fatalf("%d columns where there are %d: %s", n, width, line)
				}
			}
		}
	}
}

// evilFiles are options with names of files that somebody else chose.
func evilFiles() renderOptions {
	o := granted()
	o.Files = evil
	return o
}

// Outside of code spans a hostile name leaves no trace; inside them is nothing
// that ends one.
func TestMarkdownKeepsNamesInCode(t *testing.T) {
	var b bytes.Buffer
	if err := writeMarkdown(&b, hostile().report(), evilFiles()); err != nil {
		t.Fatal(err)
	}
	span := regexp.MustCompile("`[^`\n]*`")
	escaped := regexp.MustCompile(`\\[\\|<>\[\]*_#` + "`]")
	columns := 0
	for _, line := range strings.Split(b.String(), "\n") {
		for _, code := range span.FindAllString(escaped.ReplaceAllString(line, ""), -1) {
			if strings.ContainsAny(code, "|<>[]") {
				t.Errorf("in code: %s", code)
			}
		}
		rest := escaped.ReplaceAllString(span.ReplaceAllString(line, ""), "")
		if strings.Contains(rest, "evil") || strings.ContainsAny(rest, "<>[]`@") || strings.Contains(rest, "forged") {
			t.Errorf("outside of code: %s", rest)
		}
		n := strings.Count(rest, "|")
		if n > 0 && columns > 0 && n != columns {
			t.Errorf("%d cell edges where the table has %d: %s", n, columns, line)
		}
		columns = n
	}
}

func TestVisible(t *testing.T) {
	for _, x := range []struct {
		in, also string
		max      int
		want     string
	}{
		{"GET /seats/{id}", "", 40, "GET /seats/{id}"},
		{"", "", 40, ""},
		{"a\nb\x1b[0m\x7f", "", 40, `a\x0ab\x1b[0m\x7f`},
		{`a\x0a`, "", 40, `a\\x0a`},
		{"\u0085\u202e\u00a0", "", 40, `\u{85}\u{202e}\u{a0}`},
		{"\xff\xc3", "", 40, `\xff\xc3`},
		{"\ufffd", "", 40, `\u{fffd}`},
		{" a b ", "", 40, `\x20a b\x20`},
		{"a|b`", "|`", 40, `a\x7cb\x60`},
		{"müller Σ 日本", "", 40, "müller Σ 日本"},
		{"日本日本", "", 8, "日本日本"},
		{"日本日本", "", 7, "日…日本"},
		{"abcdefghij", "", 10, "abcdefghij"},
		{"abcdefghijk", "", 10, "abcde…hijk"},
		{"abcd\x00efghijk", "", 10, "abcd…ghijk"},
		{"\x00\x00\x00\x00", "", 10, `\x00…\x00`},
		{"😀", "", 40, `\u{1f600}`},
	} {
		got := visible(x.in, x.max, x.also)
		if got != x.want {
			t.Errorf("visible(%q, %d) = %s, want %s", x.in, x.max, got, x.want)
		}
		if columnsOf(got) > x.max {
			t.Errorf("visible(%q, %d) takes %d columns", x.in, x.max, columnsOf(got))
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, e := range evil {
		f.Add(e, 20)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = max(narrowest, most%200)
		got := visible(s, most, unsafeInMarkdown)
		if columnsOf(got) > most {
			t.Errorf("%q takes %d columns of %d", got, columnsOf(got), most)
		}
		if strings.ContainsAny(got, unsafeInMarkdown+"\n") || s != "" && got == "" || strings.Trim(got, " ") != got {
			t.Errorf("visible(%q) = %q", s, got)
		}
		harmless(t, got)
	})
}

// Numbers never read as 0, 1 or 100 % unless they are.
func TestNumbers(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{factor(1), "1.00×"}, {factor(1.0001), ">1.00×"}, {factor(0.999), "<1.00×"}, {factor(27), "27.0×"}, {factor(9.996), "10.0×"},
		{factor(1.0912), "1.09×"}, {factor(12345.6), "12,345.6×"},
		{percent(0), "0 %"}, {percent(0.00001), "<0.1 %"}, {percent(0.99999), ">99.9 %"}, {percent(1), "100 %"}, {percent(0.0141), "1.4 %"},
		{percent(6.4), "640 %"}, {percent(123.45), "12,345 %"},
		{number(0), "0"}, {number(0.001), "<0.01"}, {number(1.234), "1.23"}, {number(12.34), "12.3"}, {number(12345), "12,345"},
		{seconds(0), "0 s"}, {seconds(0.0001), "<1 ms"}, {seconds(0.04), "40 ms"}, {seconds(1.5), "1.50 s"}, {seconds(12345), "12,345 s"},
		{whole(0), "0"}, {whole(999), "999"}, {whole(1234567), "1,234,567"},
		{of(1, 0, factor), unknown}, {show(aggregate.Figure{}, percent), unknown},
		{length(0), "0 s"}, {length(59), "59 s"}, {length(120), "2 min"}, {length(125), "2 min 5 s"}, {length(3661), "1 h 1 min 1 s"}, {length(86400), "1 d"},
		{size(1), "1 B"}, {size(3 << 20), "3.00 MiB"},
	} {
		if x.got != x.want {
			t.Errorf("got %s, want %s", x.got, x.want)
		}
	}
}

// What a log cannot show is not 0: a log without keys has no count of questions
// or repeats, and one without departures no dead answers.
func TestUnknownIsNotZero(t *testing.T) {
	r := dark().report()
	rows := func(s section) map[string][]string {
		out := map[string][]string{}
		for _, row := range s.table.rows {
			out[row[0]] = row
		}
		return out
	}
	q := rows(questions(&r.Total))
	for _, f := range []string{"questions", "originals", "repeats", "load factor", "amplification", "answered", "reopened", "stale"} {
		if got := q[f][1]; got != unknown {
			t.Errorf("%s = %s without a key", f, got)
		}
	}
	a := rows(responses(&r.Total))
	for _, f := range []string{"gone before any response", "gone, answer undelivered", "dead answers", "dead time"} {
		if got := a[f]; got[1] != unknown || got[2] != unknown {
			t.Errorf("%s = %s, %s without visibility", f, got[1], got[2])
		}
	}
	if got := a["goodput"][1]; !strings.HasPrefix(got, "≤ ") {
		t.Errorf("goodput = %s without visibility", got)
	}
	for _, row := range timeline(r).table.rows {
		if row[3] != unknown || row[4] != unknown || row[5] != unknown {
			t.Errorf("timeline: %q", row)
		}
	}
	if s := strings.Join(summary(r), " "); !strings.Contains(s, "has no upper bound") || strings.Contains(s, " 1.00×:") {
		t.Errorf("summary: %s", s)
	}
}

// The timeline's rows are sums: together they have every arrival, and each has
// the load factor that follows from the windows in it.
func TestTimelineAddsUp(t *testing.T) {
	for name, l := range map[string]*testLog{"storm": storm(), "several": several()} {
		r := l.report()
		from, to, _ := rangeOf(r)
		step := stepFor(from, to, mostSlots)
		var all slot
		for i := range r.Windows {
			all.add(&r.Windows[i].Measure, 1)
		}
		if all.arrivals != r.Total.Arrivals || all.attributable != r.Total.Attributable || all.originals != r.Total.Originals || all.answers != r.Total.Responses.Answers {
			t.Errorf("%s: windows add up to %+v", name, all)
		}
		for _, w := range r.Windows {
			a, err := time.Parse(time.RFC3339, w.From)
			b, err2 := time.Parse(time.RFC3339, w.To)
			if err != nil || err2 != nil || a.Unix()/step != (b.Unix()-1)/step {
				t.Errorf("%s: window %s to %s is in two rows of %d s", name, w.From, w.To, step)
			}
		}
	}
	for _, span := range []int64{1, 10, 199, 200, 201, 599, 600, 601, 1200, 3600, 86400, 1e6, 1e8} {
		for _, from := range []int64{testStart, testStart + 7, testStart + 59} {
			step := stepFor(from, from+span, mostSlots)
			if n := (from+span-1)/step - from/step + 1; n > mostSlots || step%10 != 0 || span >= 600 && step%60 != 0 {
				t.Errorf("%d s from %d: %d rows of %d s", span, from, n, step)
			}
		}
	}
}

// Refused arrivals are no answers, so their callers' leaving makes none dead.
func TestDeadAnswers(t *testing.T) {
	l := &testLog{names: testNames{routes: [][2]string{{"inventory", "GET /"}}, originators: []string{"", "web"}, peers: []string{"bff"}}}
	for q := range uint64(9) {
		l.at(float64(q), q+1, func(a *aggregate.Arrival) {
			if a.Departure = aggregate.UndeliveredAnswer; q < 6 {
				a.Flags |= aggregate.Refused
			} else if q > 6 {
				a.Departure = aggregate.StillThere
			}
		})
	}
	r := l.report()
	if n := dead(&r.Total.Responses); n != 1 || r.Total.Responses.Answers != 3 {
		t.Errorf("%d of %d answers are dead, want 1 of 3", n, r.Total.Responses.Answers)
	}
	if row := timeline(r).table.rows[0]; row[5] != "33.3 %" {
		t.Errorf("timeline: %q", row)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrors(t *testing.T) {
	r := dark().report()
	if err := writeText(brokenWriter{}, r, renderOptions{}); err == nil {
		t.Error("text: no error")
	}
	if err := writeMarkdown(brokenWriter{}, r, renderOptions{}); err == nil {
		t.Error("markdown: no error")
	}
	if err := writeHTML(brokenWriter{}, r, renderOptions{}); err == nil {
		t.Error("html: no error")
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}
