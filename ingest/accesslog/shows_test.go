package accesslog

import (
	"strings"
	"testing"
)

// Every format says what it can show, and of what it can how.
func TestShows(t *testing.T) {
	for _, format := range Formats() {
		v, ok := Shows(format)
		if !ok {
			t.Errorf("nothing is said of %s", format)
			continue
		}
		for _, view := range []View{v.Key, v.Attempt, v.Departure, v.Deadline, v.Duration, v.Stamp} {
			if view.How == "" {
				t.Errorf("%s shows something %s, and does not say how", format, view.Sight)
			}
		}
	}
	if _, ok := Shows("auto"); ok {
		t.Error("auto is no format")
	}
}

// What is said to be never shown, or always, is so of an ordinary record that holds
// all that its format has by itself.
func TestShowsWhatIsShown(t *testing.T) {
	for format, line := range servedLines(t) {
		v, _ := Shows(format)
		p := mustNew(t, Config{Format: format, Keys: caseKeys})
		var e Entry
		if _, err := p.Parse([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		key := false
		for _, k := range e.Keys {
			key = key || len(k) != 0
		}
		for _, x := range []struct {
			what  string
			view  View
			shown bool
		}{{"key", v.Key, key}, {"attempt", v.Attempt, e.Attempt != 0}, {"deadline", v.Deadline, e.Deadline != 0},
			{"duration", v.Duration, e.Duration != Unknown}, {"stamp", v.Stamp, e.Uncertainty < 1e9}} {
			if x.view.Sight == SightNever && x.shown || x.view.Sight == SightAlways && !x.shown {
				t.Errorf("%s: the %s is said to show %s: %v", format, x.what, x.view.Sight, x.shown)
			}
		}
		if v.Departure.Sight == SightNever && e.Visible || v.Departure.Sight == SightAlways && !e.Visible {
			t.Errorf("%s: a departure is said to show %s: %v", format, v.Departure.Sight, e.Visible)
		}
	}
}

// What to write is in the words that the parser reads.
func TestShowsHow(t *testing.T) {
	for format, line := range map[string]string{
		"nginx-combined": `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" "a"` +
			nginxFilled(t, views["nginx-combined"].Key, views["nginx-combined"].Attempt, views["nginx-combined"].Departure, views["nginx-combined"].Deadline, views["nginx-combined"].Duration, views["nginx-combined"].Stamp),
		"nginx-json": `{"status":"200",` + strings.TrimPrefix(
			nginxFilled(t, views["nginx-json"].Key, views["nginx-json"].Attempt, views["nginx-json"].Departure, views["nginx-json"].Deadline, views["nginx-json"].Duration, views["nginx-json"].Stamp), ",") + `}`,
	} {
		var e Entry
		if _, err := mustNew(t, Config{Format: format, Keys: []string{"question_key"}}).Parse([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v: %s", format, err, line)
		}
		if string(e.Keys[0]) != "q-1" || e.Attempt != 2 || !e.Visible || e.Deadline != e.Start+2e9 || e.Duration != 100e6 || e.Uncertainty != 1e6 {
			t.Errorf("%s: key %q, attempt %d, visible %v, deadline in %d, %d ns, ±%d: %s", format, e.Keys[0], e.Attempt, e.Visible, e.Deadline-e.Start, e.Duration, e.Uncertainty, line)
		}
	}
}

// nginxFilled is what nginx makes of what the views say to log.
func nginxFilled(t *testing.T, views ...View) string {
	var line string
	seen := map[string]bool{}
	for _, v := range views {
		_, how, ok := strings.Cut(v.How, "log_format")
		if !ok {
			t.Fatalf("%q names no log_format", v.How)
		}
		_, how, _ = strings.Cut(how, ": ")
		how, _, _ = strings.Cut(how, "; ")
		sep := " "
		if how[0] == '"' {
			sep = ","
		}
		for part := range strings.SplitSeq(how, sep) {
			if !seen[part] {
				seen[part] = true
				line += sep + part
			}
		}
	}
	for variable, value := range map[string]string{"$http_question_key": "q-1", "$http_x_envoy_attempt_count": "2", "$request_time": "0.100",
		"$msec":               "1772532942.118",
		"$request_completion": "OK", "$bytes_sent": "57", "$upstream_status": "200", "$http_grpc_timeout": "2S"} {
		line = strings.ReplaceAll(line, variable, value)
	}
	if strings.Contains(line, "$") {
		t.Fatalf("not filled: %s", line)
	}
	return line
}
