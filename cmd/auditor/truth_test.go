package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestTruth compares every figure of reports over random logs with a naive model
// of their definitions. TRUTH_SEED=n runs one seed alone and says where its files
// are; with TRUTH_FIELD=path, such as total.repeats, it first drops all lines that
// the difference does not need. TRUTH_SEEDS=n runs the first n.
func TestTruth(t *testing.T) {
	first, n := uint64(0), uint64(48)
	if testing.Short() {
		n = 12
	}
	one := os.Getenv("TRUTH_SEED")
	for name, v := range map[string]*uint64{"TRUTH_SEED": &first, "TRUTH_SEEDS": &n} {
		if text := os.Getenv(name); text != "" {
			x, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("read %s: %v", name, err)
			}
			*v = x
		}
	}
	if one != "" {
		n = 1
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			truthOf(t, seed, one != "")
		})
	}
}

// truthOf compares one seed.
func truthOf(t *testing.T, seed uint64, alone bool) {
	s, r := newScenario(seed)
	lines := s.lines(r, s.traffic(r))
	dir := t.TempDir()
	if alone {
		var err error
		if dir, err = os.MkdirTemp("", "truth"); err != nil {
			t.Fatal(err)
		}
		t.Logf("files in %s", dir)
	}
	if field := os.Getenv("TRUTH_FIELD"); alone && field != "" {
		lines = shrink(lines, func(l []seen) bool {
			got, size := s.replayed(t, dir, l, s.order)
			return slices.ContainsFunc(differences(s, l, size, got), func(d difference) bool { return strings.HasPrefix(d.path, field) })
		})
		for _, l := range lines {
			t.Logf("file %d: %s", l.file, l.line)
		}
	}
	got, size := s.replayed(t, dir, lines, s.order)
	if s.files > 1 {
		order := slices.Clone(s.order)
		slices.Reverse(order)
		if again, _ := s.replayed(t, dir, lines, order); !reflect.DeepEqual(again, got) {
			t.Errorf("seed %d: the order of files changes the report", seed)
		}
	}
	const most = 40 // printed
	wrong := differences(s, lines, size, got)
	for i, d := range wrong {
		if i == most {
			t.Errorf("seed %d: %d more", seed, len(wrong)-most)
			break
		}
		t.Errorf("seed %d (%s), %s: %s", seed, s.format, d.path, d.text)
	}
}

// differences compares a report with the model's.
func differences(s *scenario, lines []seen, size int, got map[string]any) []difference {
	c := &comparison{}
	c.report(understand(s, lines), got, len(lines), size)
	return c.wrong
}

// TestTruthOfEquals: equal starts with equal ends. They are ordered by what of them
// can be counted, so neither the order of lines nor the run may change a figure.
func TestTruthOfEquals(t *testing.T) {
	s := &scenario{format: "json", horizon: 60_000, lateness: 60_000, lifetime: 3_600_000, skew: 5_000, claimField: "my_id", scope: "hop",
		files: 1, order: []int{0}, refused: []int{429, 503}, budget: budgetRules{ratio: .2, window: 10, low: .5, minArrivals: 20, clients: 1, coverageFloor: .85}}
	var lines []seen
	add := func(i int, at int64, status int, peer string) {
		w := wanted{start: at, dur: 100, dep: "inventory", method: "GET", path: "/list", route: "GET /list", peer: peer, status: status,
			grpc: -1, attempt: -1, left: -1, timeout: -1, retryAfter: -1, claim: "k" + strconv.Itoa(i)}
		lines = append(lines, seen{wanted: w, line: jsonLine(map[string]any{"time": at, "time_is": "start", "duration_ms": 100, "service": "inventory",
			"method": "GET", "path": "/list", "status": status, "peer": peer, "client_gone": false, "my_id": w.claim})})
	}
	for i := range 30 {
		at := int64(1_772_361_000_000 + i*1000)
		add(i, at, 500, "bff")
		add(i, at, 503, "mesh")
		add(i, at+500, 200, "bff")
	}
	dir := t.TempDir()
	got, _ := s.replayed(t, dir, lines, s.order)
	turned := slices.Clone(lines)
	slices.Reverse(turned)
	if again, _ := s.replayed(t, dir, turned, s.order); !reflect.DeepEqual(again, got) {
		t.Error("the order of lines changes the report")
	}
}

// TestTruthSeesEverything: a comparison over logs in which something never happens
// proves nothing about it.
func TestTruthSeesEverything(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(48) {
		s, r := newScenario(seed)
		tr := understand(s, s.lines(r, s.traffic(r)))
		for _, f := range tr.all {
			seen[f.class]++
			if f.gone != "" {
				seen[s.format+" "+f.gone]++
			}
			for name, yes := range map[string]bool{"repeat": f.repeat, "reopened": f.reopened, "expired answer": f.expired, "stale": f.stale,
				"overspent": f.overspent, "not decremented": f.kept, "increased": f.rose, "double success": f.again && !idempotent(f.method),
				"ordinal above 64": f.k > 64, "look-back cut": f.repeat && f.epFirst < f.from-s.horizon, "orphan": f.question != "" && !f.repeat && f.attempt > 1,
				"gap of a horizon": f.repeat && f.gap == s.horizon, "return": len(f.asker) > 0, "invisible": f.mute, "untimed": f.untimed,
				"proxy's own": f.local, "item": f.item != ""} {
				if yes {
					seen[name]++
				}
			}
		}
		whole := tr.measure(extent{in: func(*fate) bool { return true }, from: tr.from, to: tr.to})
		seen[fmt.Sprint("budget ", whole["budget"].(map[string]any)["state"])]++
		seen[fmt.Sprint("hops ", whole["hops"].(map[string]any)["reason"])]++
		seen["duplicates"] += tr.duplicates
		seen["ignored"] += tr.ignored
		seen["quarantined"] += tr.garbage
		seen["clamped"] += tr.clamped
		seen[fmt.Sprint("long ", tr.to-tr.from >= 600)]++
		seen[fmt.Sprint("files ", s.files > 1)]++
	}
	want := []string{"verified", "claimed", "absent", "malformed", "unknown_originator", "forged", "expired", "not_yet_valid", "unsigned", "late",
		"json " + goneUndelivered, "json " + goneDuring, "json " + goneBefore, "json " + goneUnknown,
		"envoy-json " + goneUndelivered, "envoy-json " + goneDuring, "envoy-json " + goneBefore,
		"nginx-json " + goneUndelivered, "nginx-json " + goneDuring, "nginx-json " + goneBefore,
		"repeat", "reopened", "expired answer", "stale", "overspent", "not decremented", "increased", "double success", "ordinal above 64", "look-back cut",
		"orphan", "gap of a horizon", "return", "invisible", "untimed", "proxy's own", "item",
		"budget blind", "budget exhausted", "budget low", "budget ok", "hops <nil>", "hops no_attempt_numbers",
		"duplicates", "ignored", "quarantined", "clamped", "long true", "long false", "files true", "files false"}
	for _, w := range want {
		if seen[w] == 0 {
			t.Errorf("no %s in any log", w)
		}
	}
	t.Log(seen)
}

// shrink drops lines as long as the rest still shows the difference.
func shrink(l []seen, shows func([]seen) bool) []seen {
	for size := len(l) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(l); {
			if rest := slices.Concat(l[:i], l[i+size:]); len(rest) > 0 && shows(rest) {
				l = rest
			} else {
				i += size
			}
		}
	}
	return l
}

// replayed writes the lines into files, runs the real subcommand over them, named
// in the order given, and returns its report and the size of the files.
func (s *scenario) replayed(t *testing.T, dir string, lines []seen, order []int) (map[string]any, int) {
	t.Helper()
	text := make([]strings.Builder, s.files)
	size := 0
	for _, l := range lines {
		text[l.file].WriteString(l.line)
		text[l.file].WriteByte('\n')
		size += len(l.line) + 1
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("auditor.yaml", s.config())
	write("originators.yaml", s.originators())
	args := []string{"--config", filepath.Join(dir, "auditor.yaml"), "--output", "json", "--max-quarantined", "1"}
	for _, i := range order {
		name, content := fmt.Sprintf("access.%d.log", i), text[i].String()
		if s.zipped && i == 0 {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write([]byte(content))
			z.Close()
			name, content = name+".gz", b.String()
		}
		write(name, content)
		args = append(args, filepath.Join(dir, name))
	}
	var out, errs bytes.Buffer
	p := &program{stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
		getenv: func(string) (string, bool) { return "", false },
		now:    func() time.Time { return time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC) }}
	if code, err := replay(context.Background(), p, args); err != nil || code != exitOK {
		t.Fatalf("replay: exit status %d, %v\n%s", code, err, errs.String())
	}
	var m map[string]any
	d := json.NewDecoder(&out)
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatalf("decode report: %v", err)
	}
	return m, size
}

// comparison collects the fields that differ.
type comparison struct{ wrong []difference }

// difference is a field that is not what the model says.
type difference struct{ path, text string }

func (c *comparison) errorf(path, format string, a ...any) {
	c.wrong = append(c.wrong, difference{path, fmt.Sprintf(format, a...)})
}

func (c *comparison) report(t *truth, got map[string]any, lines, size int) {
	stamp := func(tick int64) string { return time.Unix(tick, 0).UTC().Format(time.RFC3339) }
	c.value("from", stamp(t.from), got["from"])
	c.value("to", stamp(t.to), got["to"])
	in, _ := got["input"].(map[string]any)
	for k, want := range map[string]int{"lines": lines, "bytes": size, "arrivals": len(t.all), "duplicates": t.duplicates,
		"duplicates_undecidable": 0, "late": t.late, "clamped": t.clamped} {
		c.value("input."+k, want, in[k])
	}
	quarantined := 0
	if m, ok := in["quarantined"].(map[string]any); ok {
		for _, v := range m {
			n, _ := strconv.Atoi(fmt.Sprint(v))
			quarantined += n
		}
	}
	c.value("input.quarantined", t.garbage, json.Number(strconv.Itoa(quarantined)))
	ignored := 0
	if m, ok := in["ignored"].(map[string]any); ok {
		for _, v := range m {
			n, _ := strconv.Atoi(fmt.Sprint(v))
			ignored += n
		}
	}
	c.value("input.ignored", t.ignored, json.Number(strconv.Itoa(ignored)))

	whole := extent{in: func(*fate) bool { return true }, from: t.from, to: t.to}
	c.measure("total", t.measure(whole), got["total"])
	c.list("dependencies", got["dependencies"], "dependency", t, whole, func(f *fate) string { return f.dep },
		func(path, dep string, sc extent, m map[string]any) {
			c.list(path+".routes", m["routes"], "route", t, sc, func(f *fate) string { return f.route }, nil)
			c.list(path+".originators", m["originators"], "originator", t, sc, func(f *fate) string { return f.originator }, nil)
			c.list(path+".peers", m["peers"], "peer", t, sc, func(f *fate) string { return f.peer }, nil)
		})

	c.worst(t, got["worst_questions"])

	step := int64(60)
	if t.to-t.from < 600 {
		step = 10
	}
	windows, _ := got["windows"].([]any)
	i := 0
	for a := t.from - t.from%step; a < t.to; a += step {
		sc := whole
		sc.from, sc.to, sc.step, sc.windowed = max(a, t.from), min(a+step, t.to), step, true
		want := t.measure(sc)
		if want["arrivals"] == 0 {
			continue
		}
		path := "windows[" + stamp(sc.from) + "]"
		if i >= len(windows) {
			c.errorf(path, "missing")
			break
		}
		w, _ := windows[i].(map[string]any)
		i++
		c.value(path+".from", stamp(sc.from), w["from"])
		c.value(path+".to", stamp(sc.to), w["to"])
		c.measure(path, want, w)
	}
	if i != len(windows) {
		c.errorf("windows", "%d, want %d", len(windows), i)
	}
}

// worst compares the list, most arrivals first. Which of equals are named the
// definitions leave open.
func (c *comparison) worst(t *truth, got any) {
	rows, longest := t.worst()
	want := slices.Collect(maps.Values(longest))
	slices.Sort(want)
	slices.Reverse(want)
	l, _ := got.([]any)
	if len(l) != min(len(want), worstQuestions) {
		c.errorf("worst_questions", "got %d, want %d", len(l), min(len(want), worstQuestions))
		return
	}
	for i, x := range l {
		m, _ := x.(map[string]any)
		var peers []string
		p, _ := m["peers"].([]any)
		for _, x := range p {
			peers = append(peers, fmt.Sprint(x))
		}
		slices.Sort(peers)
		n, _ := strconv.Atoi(fmt.Sprint(m["arrivals"]))
		row := worstRow(m["dependency"], m["route"], m["originator"], m["first"], m["last"], peers, n)
		if _, ok := rows[row]; !ok {
			c.errorf(fmt.Sprintf("worst_questions[%d]", i), "no such episode: %s", row)
		}
		c.value(fmt.Sprintf("worst_questions[%d].arrivals", i), want[i], m["arrivals"])
	}
}

func (c *comparison) list(path string, got any, field string, t *truth, outer extent, of func(*fate) string, inner func(path, name string, sc extent, m map[string]any)) {
	names := map[string]bool{}
	for _, f := range t.all {
		if outer.in(f) {
			names[of(f)] = true
		}
	}
	l, _ := got.([]any)
	rows := map[string]map[string]any{}
	for _, x := range l {
		m, _ := x.(map[string]any)
		name, _ := m[field].(string)
		if rows[name] != nil {
			c.errorf(path, "%q twice", name)
		}
		if rows[name] = m; !names[name] {
			c.errorf(path, "%q is not in the log", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		p := fmt.Sprintf("%s[%q]", path, name)
		m := rows[name]
		if m == nil {
			c.errorf(p, "missing")
			continue
		}
		sc := outer
		sc.in = func(f *fate) bool { return outer.in(f) && of(f) == name }
		sc.peer = field == "peer"
		if field == "route" {
			sc.route = name
		}
		want := t.measure(sc)
		if t.undiscriminated(sc) {
			want["undiscriminated"] = true
		}
		c.measure(p, want, m)
		if inner != nil {
			inner(p, name, sc, m)
		}
	}
}

// measure compares one measure; a field of the report that the model does not know
// is wrong too.
func (c *comparison) measure(path string, want map[string]any, got any) {
	m, ok := got.(map[string]any)
	if !ok {
		c.errorf(path, "missing")
		return
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if _, known := want[k]; !known && !slices.Contains([]string{"dependency", "route", "originator", "peer", "routes", "originators", "peers", "from", "to"}, k) {
			c.errorf(path+"."+k, "unknown field")
		}
	}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		c.value(path+"."+k, want[k], m[k])
	}
}

func (c *comparison) value(path string, want, got any) {
	wrong := func() { c.errorf(path, "got %v, want %v", got, want) }
	number := func() (float64, bool) {
		n, ok := got.(json.Number)
		if !ok {
			return 0, false
		}
		f, err := n.Float64()
		return f, err == nil
	}
	switch w := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok {
			wrong()
			return
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			c.value(path+"."+k, w[k], m[k])
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if n, zero := m[k].(json.Number); zero && n == "0" {
				continue // a reason at 0 may be there or not
			}
			if _, ok := w[k]; !ok {
				c.errorf(path+"."+k, "got %v, want nothing", m[k])
			}
		}
	case int:
		if n, ok := got.(json.Number); !ok || string(n) != strconv.Itoa(w) {
			wrong()
		}
	case float64:
		if f, ok := number(); !ok || math.Abs(f-w) > 1e-9*max(1, math.Abs(w)) {
			wrong()
		}
	case about:
		if f, ok := number(); !ok || math.Abs(f-float64(w)) > .005*float64(w)+.001+1e-9 {
			wrong()
		}
	default:
		if got != want {
			wrong()
		}
	}
}
