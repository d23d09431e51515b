package accesslog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A case file holds lines that broke somebody's reader, or that a server with a
// known client wrote, and what is right to read from them:
//
//	format NAME      of all lines
//	pattern TEXT     of formats that have one
//	field NAME=LOG   the log's field of a canonical one; any number
//	about TEXT       for people
//	in LINE          one line of the log, from the first byte after the blank
//	want JSON        one record, in order; null is "the record does not say"
//	group JSON       what holds for all records together
//
// Every member of want and group is compared; one that the runner does not know
// fails the case. That holds for notes too: all that are listed must be there.
type caseFile struct {
	config Config
	in     [][]byte
	want   []map[string]any
	group  map[string]any
}

func readCase(t *testing.T, name string) caseFile {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var c caseFile
	for i, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		word, rest, _ := bytes.Cut(line, []byte(" "))
		var object map[string]any
		if word := string(word); word == "want" || word == "group" {
			if err := json.Unmarshal(rest, &object); err != nil {
				t.Fatalf("%s:%d: %v", name, i+1, err)
			}
		}
		switch string(word) {
		case "format":
			c.config.Format = string(rest)
		case "pattern":
			c.config.Pattern = string(rest)
		case "field":
			name, log, _ := strings.Cut(string(rest), "=")
			if c.config.Fields == nil {
				c.config.Fields = map[string]string{}
			}
			c.config.Fields[name] = log
		case "about":
		case "in":
			c.in = append(c.in, rest)
		case "want":
			c.want = append(c.want, object)
		case "group":
			c.group = object
		default:
			t.Fatalf("%s:%d: unknown word %q", name, i+1, word)
		}
	}
	return c
}

// caseKeys are the fields in which an originator's key can stand.
var caseKeys = []string{"question_key", "idempotency_key", "traceparent", "amz_sdk_invocation_id",
	"gccl_invocation_id", "x_ms_client_request_id"}

// caseRecord is an Entry that outlives its line, as want writes it.
type caseRecord struct {
	fields map[string]any
	text   string
	gone   Gone
	status int
}

func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			c := readCase(t, name)
			records, other, damaged := runCase(t, c)
			if c.want != nil {
				if len(records) != len(c.want) {
					t.Fatalf("read %d records, want %d", len(records), len(c.want))
				}
				for i, want := range c.want {
					for _, field := range slices.Sorted(maps.Keys(want)) {
						compareField(t, fmt.Sprintf("record %d, %s", i+1, field), field, records[i].fields, want[field])
					}
				}
			}
			if c.group != nil {
				compareGroup(t, c.group, records, other, damaged)
			}
		})
	}
}

// runCase reads the lines as a source's reader does: through a Joiner, and every
// record of a line.
func runCase(t *testing.T, c caseFile) (records []caseRecord, other []string, damaged int) {
	t.Helper()
	c.config.Keys = caseKeys
	p, err := New(c.config)
	if err != nil {
		t.Fatal(err)
	}
	var j Joiner
	var e Entry
	waiting := 0
	for _, in := range c.in {
		line, complete := j.Line(in)
		parts := 1
		switch {
		case !complete:
			waiting++
		case len(line) > len(in):
			parts, waiting = waiting+1, 0
		}
		envelope := caseEnvelope(line)
		for complete && len(line) > 0 {
			rest, err := p.Parse(line, &e)
			damaged += e.Damaged
			switch err {
			case nil:
				r := caseRecordOf(&e)
				r.fields["parts"] = parts
				if e.Notes&NoteUnwrapped != 0 {
					r.fields["envelope"] = envelope
				}
				records = append(records, r)
			case RejectOther:
				if cri, ok := cutCRI(line); ok {
					line = cri.content
				}
				other = append(other, string(line))
			default:
				t.Errorf("refused a line: %v", err)
			}
			line = rest
		}
	}
	if len(j.Pending()) != 0 {
		t.Errorf("%d lines are still waiting for their last part", len(j.Pending()))
	}
	return records, other, damaged
}

// caseEnvelope names what a record lies in, if it lies in anything.
func caseEnvelope(line []byte) string {
	if _, ok := cutCRI(line); ok {
		return "cri"
	}
	if bytes.HasPrefix(line, []byte(dockerHead)) {
		return "docker"
	}
	return "msg"
}

// caseRecordOf writes e in the words of a want line.
func caseRecordOf(e *Entry) caseRecord {
	text := func(b []byte) any {
		if len(b) == 0 {
			return nil
		}
		return string(b)
	}
	number := func(n int64, absent int64) any {
		if n == absent {
			return nil
		}
		return float64(n)
	}
	millis := func(ns int64) any {
		if ns == Unknown {
			return nil
		}
		return float64(ns) / 1e6
	}
	stamp := func(ns int64) any {
		if !e.HasTime {
			return nil
		}
		return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	f := map[string]any{
		"ts_start": stamp(e.Start), "ts_end": stamp(e.End), "ts_uncertainty_ms": millis(e.Uncertainty),
		"duration_ms": millis(e.Duration), "method": text(e.Method), "path": text(e.Path),
		"authority": text(e.Authority), "status": number(int64(e.Status), 0), "status_raw": text(e.StatusRaw),
		"bytes_sent": number(e.BytesSent, Unknown), "attempt": number(int64(e.Attempt), 0),
		"request_id": text(e.RequestID), "peer": text(e.Peer), "grpc_code": number(int64(e.GRPCStatus), Unknown),
		"gone": e.Gone.String(), "delivered": e.Delivered.String(), "work": e.Work.String(),
		"class": e.Departure.String(), "deadline": nil, "past_deadline": nil, "past_deadline_by_ms": nil,
	}
	if e.Deadline != 0 {
		late := e.End - e.Deadline
		f["deadline"] = time.Unix(0, e.Deadline).UTC().Format("2006-01-02T15:04:05.000Z")
		switch {
		case late <= 0:
			f["past_deadline"] = "no"
		case late <= e.Uncertainty:
			f["past_deadline"] = "likely"
		default:
			f["past_deadline"] = "yes"
		}
		f["past_deadline_by_ms"] = float64(late) / 1e6
	}
	tries := []any{}
	for _, t := range e.Tries {
		tries = append(tries, map[string]any{"addr": text(t.Addr), "status": number(int64(t.Status), 0),
			"time_ms": millis(t.Time), "group": float64(t.Group)})
	}
	f["tries"] = tries
	notes := []any{}
	for _, n := range e.Notes.Strings() {
		notes = append(notes, n)
	}
	f["notes"] = notes
	f["key"] = caseKeyOf(e)
	return caseRecord{fields: f, text: string(e.Text), gone: e.Gone, status: e.Status}
}

// caseKeyOf is the first key with the quotes of a structured field taken off, or
// nil where no key may be taken.
func caseKeyOf(e *Entry) any {
	if e.KeySuspect {
		return nil
	}
	for i, k := range e.Keys {
		if len(k) == 0 || caseKeys[i] == "x_ms_client_request_id" && bytes.IndexByte(k, ':') >= 0 {
			continue // absent, or an id composed anew for every attempt
		}
		value := k
		if n := len(k); n > 1 && k[0] == '"' && k[n-1] == '"' {
			value = k[1 : n-1]
		}
		return map[string]any{"value": string(value), "as_logged": string(k)}
	}
	return nil
}

func compareField(t *testing.T, where, field string, got map[string]any, want any) {
	t.Helper()
	switch field {
	case "notes":
		for _, n := range want.([]any) {
			if !slices.Contains(got["notes"].([]any), n) {
				t.Errorf("%s: got %v, want among them %v", where, got["notes"], n)
			}
		}
		return
	case "key":
		if want, ok := want.(map[string]any); ok {
			have, _ := got["key"].(map[string]any)
			for _, part := range []string{"value", "as_logged"} {
				if w, ok := want[part]; ok && have[part] != w {
					t.Errorf("%s %s: got %v, want %v", where, part, have[part], w)
				}
			}
			return
		}
	case "duration_ms", "past_deadline_by_ms":
		have, _ := got[field].(float64)
		if w, ok := want.(float64); ok && math.Abs(have-w) < 0.005 { // hundredths are all that is written down
			return
		}
	}
	have, known := got[field]
	if !known {
		t.Errorf("%s: the runner does not know this field", where)
		return
	}
	h, _ := json.Marshal(have)
	w, _ := json.Marshal(want)
	if !bytes.Equal(h, w) {
		t.Errorf("%s: got %s, want %s", where, h, w)
	}
}

func compareGroup(t *testing.T, want map[string]any, records []caseRecord, other []string, damaged int) {
	t.Helper()
	var id, top any
	labels, texts := []any{}, map[string]int{}
	duplicates, departed := 0, 0
	classes := map[int]int{}
	for _, r := range records {
		id = r.fields["request_id"]
		label := r.fields["attempt"]
		labels = append(labels, label)
		if l, ok := label.(float64); ok {
			if m, _ := top.(float64); l > m {
				top = l
			}
		}
		if texts[r.text]++; texts[r.text] > 1 {
			duplicates++
		}
		if r.gone >= GoneLikely {
			departed++
		} else {
			classes[r.status/100]++
		}
	}
	got := map[string]any{
		"group": id, "arrivals": len(records), "requests": len(records), "labels": labels, "max_label": top,
		"shipper_duplicates": duplicates, "damaged": damaged, "other_lines": other, "departed": departed,
		"class_4xx": classes[4], "class_5xx": classes[5],
		"ratio_reported": nil, // not of a record: a ratio needs a minimum of them
	}
	for _, field := range slices.Sorted(maps.Keys(want)) {
		compareField(t, "group, "+field, field, got, want[field])
	}
}
