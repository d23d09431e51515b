package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// record is a line read back by encoding/json, with none of the writer's types.
type record struct {
	Time       time.Time `json:"time"`
	TimeIs     string    `json:"time_is"`
	Dependency string    `json:"dependency"`
	Route      string    `json:"route"`
	Method     string    `json:"method"`
	Path       string    `json:"path"`
	Status     int       `json:"status"`
	Duration   int64     `json:"duration_ms"`
	Bytes      *int      `json:"bytes_sent"`
	Peer       string    `json:"peer"`
	Agent      string    `json:"user_agent"`
	Key        string    `json:"question_key"`
	Attempt    int       `json:"attempt"`
	Scope      string    `json:"attempt_scope"`
	Gone       *bool     `json:"client_gone"`
	ID         string    `json:"arrival_id"`
}

func (r record) start() time.Time { return r.Time.Add(-time.Duration(r.Duration) * time.Millisecond) }

func readLog(t *testing.T, dir string) ([]byte, []record) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "access.json.log"))
	if err != nil {
		t.Fatal(err)
	}
	var records []record
	for line := range bytes.Lines(text) {
		if n := len(line) - 1; n < 350 || n > 450 {
			t.Fatalf("line of %d bytes, want 350 to 450: %s", n, line)
		}
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		var r record
		if err := dec.Decode(&r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		records = append(records, r)
	}
	return text, records
}

// readSecrets reads originators.yaml with two patterns, the file being ours.
func readSecrets(t *testing.T, dir string) map[[2]string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "originators.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`^  - id: ([a-z0-9-]{1,32})$`)
	key := regexp.MustCompile(`^      - \{kid: ([a-z0-9]{1,8}), secret: "([0-9a-z]{32,})"\}$`)
	found := map[[2]string]string{}
	originator := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if m := id.FindStringSubmatch(line); m != nil {
			originator = m[1]
		} else if m := key.FindStringSubmatch(line); m != nil {
			found[[2]string{originator, m[1]}] = m[2]
		}
	}
	return found
}

// recount is the naive truth: maps over everything, and the keys verified. It
// follows the definitions, not the generator.
func recount(t *testing.T, dir string, size int, records []record) truth {
	t.Helper()
	secrets := readSecrets(t, dir)
	shape := regexp.MustCompile(`^qk1\.([a-z0-9-]{1,32})\.([a-z0-9]{1,8})\.([0-9a-z]+)\.[A-Za-z0-9_-]{16}\.([A-Za-z0-9_-]{22})$`)
	digits := regexp.MustCompile(`/[0-9]+(/|$)`)

	got := truth{Bytes: int64(size), Histogram: map[int]int{}, Dependencies: map[string]*dependency{}, Originators: map[string]*counts{}}
	byQuestion := map[[4]string]int{}
	perQuestion := map[[4]string][]record{}
	pathOf := map[string]string{}
	seenID := map[string]bool{}
	for _, r := range records {
		if seenID[r.ID] {
			t.Fatalf("arrival_id %s twice", r.ID)
		}
		seenID[r.ID] = true
		if r.TimeIs != "end" || r.Scope != "hop" || r.Gone == nil || r.Attempt < 1 || r.Attempt > 3 || r.Peer == "" || r.Agent == "" {
			t.Fatalf("incomplete record %+v", r)
		}
		from := r.start().Truncate(time.Second)
		if got.From.IsZero() || from.Before(got.From) {
			got.From = from
		}
		if to := from.Add(time.Second); to.After(got.To) {
			got.To = to
		}
		d := got.Dependencies[r.Dependency]
		if d == nil {
			d = &dependency{Routes: map[string]*counts{}}
			got.Dependencies[r.Dependency] = d
		}
		if d.Routes[r.Route] == nil {
			d.Routes[r.Route] = &counts{}
		}
		method, template, _ := strings.Cut(r.Route, " ")
		folded := digits.ReplaceAllString(r.Path, "/{id}$1")
		if method != r.Method || folded != template {
			t.Fatalf("%s %s is not of route %s", r.Method, r.Path, r.Route)
		}
		got.Lines++
		got.BusyMillis += r.Duration
		all := []*counts{&got.counts, &d.counts, d.Routes[r.Route]}

		gone := *r.Gone
		if r.Key == "" {
			for _, c := range all {
				c.Arrivals++
				c.Unattributable++
			}
		} else {
			m := shape.FindStringSubmatch(r.Key)
			if m == nil {
				t.Fatalf("malformed key %q", r.Key)
			}
			mac := hmac.New(sha256.New, []byte(secrets[[2]string{m[1], m[2]}]))
			mac.Write([]byte(r.Key[:strings.LastIndexByte(r.Key, '.')]))
			if base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16]) != m[4] {
				t.Fatalf("forged key %q", r.Key)
			}
			ms, err := strconv.ParseInt(m[3], 36, 64)
			if err != nil {
				t.Fatal(err)
			}
			minted := time.UnixMilli(ms)
			if r.start().Before(minted) {
				t.Fatalf("key %q minted after its arrival", r.Key)
			}
			if p, ok := pathOf[r.Key]; ok && p != r.Dependency+r.Route+r.Path {
				t.Fatalf("key %q has two paths", r.Key)
			}
			pathOf[r.Key] = r.Dependency + r.Route + r.Path
			if got.Originators[m[1]] == nil {
				got.Originators[m[1]] = &counts{}
			}
			q := [4]string{r.Dependency, r.Route, r.Key, r.Path}
			byQuestion[q]++
			perQuestion[q] = append(perQuestion[q], r)
			for _, c := range append(all, got.Originators[m[1]]) {
				c.Arrivals++
				c.Attributable++
				if byQuestion[q] == 1 {
					c.Questions++
				} else {
					c.Repeats++
				}
			}
			if r.Attempt == 1 {
				got.AttemptOne++
			}
			if r.start().After(minted.Add(20 * time.Second)) {
				got.Stale++
			}
			if r.Time.After(minted.Add(20*time.Second)) && !gone {
				got.Expired++
				if r.Status != 429 && r.Status != 503 {
					got.ExpiredAnswers++
				}
			}
		}

		if r.Status >= 200 && r.Status <= 399 {
			got.Success++
		}
		if r.Status == 429 || r.Status == 503 {
			got.Refused++
		}
		if r.Status == 503 {
			got.Status503++
		}
		if r.Status >= 500 {
			got.Failed++
		}
		refused := r.Status == 429 || r.Status == 503
		nothing := gone && r.Bytes != nil && *r.Bytes == 0 && (r.Status == 0 || r.Status == 499)
		if !refused && !nothing {
			got.Answers++
		}
		if !gone {
			if r.Bytes == nil || r.Status == 0 || r.Status == 499 {
				t.Fatalf("departure not flagged: %+v", r)
			}
			continue
		}
		got.Disconnected.Total++
		switch {
		case r.Bytes == nil:
			got.Disconnected.UnknownPoint++
		case *r.Bytes > 0:
			got.Disconnected.DuringResponse++
		case r.Status == 0 || r.Status == 499:
			got.Disconnected.BeforeResponse++
		default:
			got.Disconnected.UndeliveredAnswer++
		}
	}
	for q, n := range byQuestion {
		got.Histogram[n]++
		got.RepeatMillis += checkSpacing(t, q[2], perQuestion[q])
	}
	return got
}

// checkSpacing returns the milliseconds spent on repeats: on all but the
// earliest start.
func checkSpacing(t *testing.T, key string, rs []record) (ms int64) {
	t.Helper()
	first := rs[0]
	starts := map[int64]bool{}
	for _, r := range rs {
		ms += r.Duration
		starts[r.start().UnixMilli()] = true
		if r.start().Before(first.start()) {
			first = r
		}
		if r.Peer != first.Peer {
			t.Fatalf("key %q came by two peers", key)
		}
	}
	for at := range starts {
		if at == first.start().UnixMilli() {
			continue
		}
		nearest := int64(-1)
		for before := range starts {
			if before < at && before > nearest {
				nearest = before
			}
		}
		if gap := at - nearest; gap < 50 || gap > 30_000 {
			t.Fatalf("key %q: %d ms between arrivals, want 50 to 30000", key, gap)
		}
	}
	if len(starts) != len(rs) {
		t.Fatalf("key %q: two arrivals start together", key)
	}
	return ms - first.Duration
}

func TestTruth(t *testing.T) {
	for _, p := range []params{
		{lines: 6_000, span: time.Hour, seed: 1},
		{lines: 3_000, span: time.Minute, seed: 7},
		{lines: 1, span: time.Minute, seed: 3},
	} {
		dir := t.TempDir()
		want, err := generate(p, dir)
		if err != nil {
			t.Fatal(err)
		}
		text, records := readLog(t, dir)
		got := recount(t, dir, len(text), records)
		got.Seed = p.seed
		// Pairs and originators that nobody asked stand in the truth with zeros.
		for name, d := range want.Dependencies {
			if got.Dependencies[name] == nil {
				got.Dependencies[name] = &dependency{Routes: map[string]*counts{}}
			}
			for r := range d.Routes {
				if got.Dependencies[name].Routes[r] == nil {
					got.Dependencies[name].Routes[r] = &counts{}
				}
			}
		}
		for o := range want.Originators {
			if got.Originators[o] == nil {
				got.Originators[o] = &counts{}
			}
		}
		a, _ := json.MarshalIndent(got, "", " ")
		b, _ := json.MarshalIndent(want, "", " ")
		if !bytes.Equal(a, b) {
			t.Errorf("%+v: recounted\n%s\ntruth\n%s", p, a, b)
		}
		if got.Lines != p.lines || got.Unattributable != p.lines*8/100 {
			t.Errorf("%+v: %d lines, %d without a key", p, got.Lines, got.Unattributable)
		}
		if first := epoch; got.From.Before(first) || got.To.After(first.Add(p.span)) {
			t.Errorf("%+v: starts from %v to %v", p, got.From, got.To)
		}
		file, err := os.ReadFile(filepath.Join(dir, "truth.json"))
		if err != nil {
			t.Fatal(err)
		}
		var onDisk truth
		if err := json.Unmarshal(file, &onDisk); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&onDisk, want) {
			t.Errorf("%+v: truth.json differs from what was returned", p)
		}
	}
}

// The shape that the comparison is about: were it to change, so would every
// rate that was ever measured with it.
func TestShape(t *testing.T) {
	dir := t.TempDir()
	tr, err := generate(params{lines: 12_000, span: time.Hour, seed: 2}, dir)
	if err != nil {
		t.Fatal(err)
	}
	_, records := readLog(t, dir)
	outOfOrder, last := 0, time.Time{}
	for i, r := range records {
		if i > 0 && r.Time.Before(records[i-1].Time) {
			t.Fatalf("line %d ends before the one above it", i+1)
		}
		if r.start().Before(last) {
			outOfOrder++
		} else {
			last = r.start()
		}
	}
	if outOfOrder < len(records)/10 {
		t.Errorf("only %d of %d starts are out of order", outOfOrder, len(records))
	}
	longest := 0
	for n := range tr.Histogram {
		longest = max(longest, n)
	}
	share := func(n int) float64 { return float64(n) / float64(tr.Lines) }
	for _, c := range []struct {
		what          string
		got, low, top float64
	}{
		{"arrivals per question", float64(tr.Attributable) / float64(tr.Questions), 2.75, 3.05},
		{"most arrivals of a question", float64(longest), 18, 27},
		{"keys a line", share(tr.Questions), 0.29, 0.35},
		{"disconnected", share(tr.Disconnected.Total), 0.025, 0.035},
		{"503", share(tr.Status503), 0.1, 0.6},
		{"bytes a line", float64(tr.Bytes) / float64(tr.Lines), 350, 450},
		{"before_response", share(tr.Disconnected.BeforeResponse), 0.01, 0.02},
		{"during_response", share(tr.Disconnected.DuringResponse), 0.004, 0.008},
		{"undelivered_answer", share(tr.Disconnected.UndeliveredAnswer), 0.004, 0.008},
		{"unknown_point", share(tr.Disconnected.UnknownPoint), 0.001, 0.005},
	} {
		if c.got < c.low || c.got > c.top {
			t.Errorf("%s: %.3f, want %.3f to %.3f", c.what, c.got, c.low, c.top)
		}
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	write := func(seed uint64) (files [4]string) {
		dir := t.TempDir()
		if _, err := generate(params{lines: 500, span: time.Minute, seed: seed}, dir); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"access.json.log", "originators.yaml", "auditor.yaml", "truth.json"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			files[i] = string(text)
		}
		return files
	}
	one, again, other := write(1), write(1), write(2)
	if one != again {
		t.Error("the same seed wrote other bytes")
	}
	if one[0] == other[0] || one[1] == other[1] {
		t.Error("another seed wrote the same bytes")
	}
}

// A truth that shared code with the auditor would share its faults.
func TestSharesNothingWithTheAuditor(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if strings.Contains(i.Path.Value, ".") {
				t.Errorf("%s imports %s; only the standard library is allowed", file, i.Path.Value)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for _, p := range []params{{lines: 0, span: time.Hour}, {lines: 10, span: time.Second}} {
		if _, err := generate(p, t.TempDir()); err == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
}
