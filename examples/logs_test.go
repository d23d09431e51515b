// Package examples holds sample logs, the configs that read them, and the truth
// that callers and application counted beside them. Its test compares logs and
// truth with a few lines of code that share nothing with the auditor's parsers.
package examples

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logsDir is where the logs are: AUDITOR_RECORDED names a fresh recording.
func logsDir() string {
	if dir := os.Getenv("AUDITOR_RECORDED"); dir != "" {
		return dir
	}
	return "logs"
}

type counts struct{ Arrivals, Questions int }

type keyTruth struct {
	KeySHA256  string `json:"key_sha256"`
	Class      string
	Originator string
	Path       string
	Arrivals   int
	Attempts   []string
}

type dependency struct {
	Arrivals, Verified, Questions, Repeats int
	HealthChecks                           int `json:"health_checks"`
	Tries                                  int
	Unforwarded                            counts
	SentToTarget                           struct{ Direct, Edge int } `json:"sent_to_target"`
	Unattributable                         map[string]int
	Histogram                              map[string]int `json:"arrivals_per_question"`
	AskedQuestions                         int            `json:"asked_questions"`
	Originators, Phases, Kinds             map[string]counts
	ByRequestID                            counts `json:"by_x_request_id"`
	Attempts                               map[string]int
	Peers, Statuses                        map[string]int
	OddAgents                              int `json:"odd_agent_arrivals"`
	Departures                             struct {
		BeforeResponse    int `json:"before_response"`
		UndeliveredAnswer int `json:"undelivered_answer"`
		DuringResponse    int `json:"during_response"`
	}
	RetryAfter struct{ Asked, Returned, Early int } `json:"retry_after"`
	InFront    counts                               `json:"in_front"`
	Edge       map[string]int
	Callers    map[string]map[string]int
	List       []keyTruth        `json:"question_list"`
	Others     []keyTruth        `json:"unattributable_list"`
	Cut        map[string]string `json:"cut_records"`
}

type truth struct {
	Logs         map[string]struct{ Dependency, Key string }
	Dependencies map[string]dependency
}

// record is the little that the comparison needs of a line.
type record struct {
	path, key, attempt, requestID, peer, agent string
	status                                     string
	departure                                  string // before_response, undelivered_answer, during_response
	tries                                      int
	recordID                                   string
}

func readTruth(t *testing.T) truth {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(logsDir(), "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tr truth
	if err := json.Unmarshal(text, &tr); err != nil {
		t.Fatal(err)
	}
	return tr
}

// readLog returns the records of a log without health checks, and how many of
// those it left out.
func readLog(t *testing.T, name string, parse func(*testing.T, string) record) (records []record, probes int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(logsDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		r := parse(t, strings.TrimSuffix(line, "\n"))
		if r.path, _, _ = strings.Cut(r.path, "?"); r.path == "/healthz" {
			probes++
			continue
		}
		records = append(records, r)
	}
	return records, probes
}

func decode(t *testing.T, line string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("not JSON: %v: %.80s", err, line)
	}
	return m
}

func str(v any) string { s, _ := v.(string); return s }

func nginxDeparture(status string, bytes int, completion, upstream string) string {
	switch {
	case completion == "OK":
		return ""
	case bytes > 0:
		return "during_response"
	case strings.HasSuffix(upstream, "200"):
		return "undelivered_answer"
	}
	return "before_response"
}

func envoyDeparture(flags string, bytes int) string {
	switch {
	case flags != "DC" && flags != "DR":
		return ""
	case bytes > 0:
		return "during_response"
	}
	return "before_response"
}

func nginxJSON(t *testing.T, line string) record {
	m := decode(t, line)
	status := strconv.Itoa(int(m["status"].(float64)))
	r := record{path: str(m["request_uri"]), key: str(m["http_question_key"]), attempt: str(m["http_x_envoy_attempt_count"]),
		requestID: str(m["http_x_request_id"]), peer: str(m["remote_addr"]), agent: str(m["http_user_agent"]), status: status, recordID: str(m["request_id"])}
	r.departure = nginxDeparture(status, int(m["bytes_sent"].(float64)), str(m["request_completion"]), str(m["upstream_status"]))
	if s := str(m["upstream_status"]); s != "" {
		r.tries = 1 + strings.Count(s, ", ")
	}
	return r
}

var combined = regexp.MustCompile(`^(\S+) - - \[[^]]+\] "\S+ (\S+) HTTP/1\.1" (\d{3}) \d+ "-" "([^"]*)" rt=[\d.]+ bytes_sent=(\d+) request_completion="(\w*)" upstream_status="([^"]*)" upstream_response_time="[^"]*" upstream_response_length="[^"]*" attempt="([^"]*)" retry_after="[^"]*" request_id="(\w{32})" key="([^"]*)"$`)

func nginxCombined(t *testing.T, line string) record {
	m := combined.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("not a combined line: %.120s", line)
	}
	for i := range m {
		if m[i] == "-" {
			m[i] = ""
		}
	}
	bytes, _ := strconv.Atoi(m[5])
	r := record{peer: m[1], path: m[2], status: m[3], agent: m[4], attempt: m[8], recordID: m[9], key: m[10]}
	r.departure = nginxDeparture(m[3], bytes, m[6], m[7])
	if !strings.Contains(line, `upstream_status="-" upstream_response_time="-"`) {
		r.tries = 1 + strings.Count(m[7], ", ")
	}
	return r
}

func envoyJSON(t *testing.T, line string) record {
	m := decode(t, line)
	r := record{path: str(m["path"]), key: str(m["question_key"]), attempt: str(m["attempt_count"]), requestID: str(m["request_id"]),
		peer: str(m["downstream_direct_remote_address"]), agent: str(m["user_agent"]), status: strconv.Itoa(int(m["response_code"].(float64))), tries: int(m["upstream_attempts"].(float64))}
	r.departure = envoyDeparture(str(m["response_flags"]), int(m["bytes_sent"].(float64)))
	return r
}

// The user agent is matched greedily: Envoy does not escape a quote in it.
var text = regexp.MustCompile(`^\[[^]]+\] "\S+ (\S+) HTTP/[\d.]+" (\d+) (\S+) \d+ (\d+) \d+ \S+ "-" "(.*)" "([0-9a-f-]{36})" "prices\.example" "127\.0\.0\.1:\d+"$`)

func envoyText(t *testing.T, line string) record {
	m := text.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("not a default text line: %.120s", line)
	}
	bytes, _ := strconv.Atoi(m[4])
	return record{path: m[1], status: m[2], agent: m[5], requestID: m[6], departure: envoyDeparture(m[3], bytes), tries: 1}
}

var logs = []struct {
	name  string
	parse func(*testing.T, string) record
}{
	{"nginx-json.log", nginxJSON}, {"nginx-combined.log", nginxCombined}, {"envoy-json.log", envoyJSON}, {"envoy-text.log", envoyText},
}

// What was sent, what arrived and what was logged are three counts by three
// parties, and they agree.
func TestLogsHoldWhatWasSent(t *testing.T) {
	tr := readTruth(t)
	for _, l := range logs {
		t.Run(l.name, func(t *testing.T) {
			d := tr.Dependencies[tr.Logs[l.name].Dependency]
			records, probes := readLog(t, l.name, l.parse)
			equal(t, "records", len(records), d.Arrivals)
			equal(t, "sent to the target", d.SentToTarget.Direct+d.SentToTarget.Edge, d.Arrivals)
			equal(t, "health checks", probes, d.HealthChecks)
			tries, departures, odd, statuses := 0, map[string]int{}, 0, map[string]int{}
			for _, r := range records {
				tries += r.tries
				departures[r.departure]++
				statuses[r.status]++
				if strings.Contains(r.agent, "quoted") {
					odd++
				}
			}
			equal(t, "tries", tries, d.Tries)
			equal(t, "tries at the application", d.InFront.Arrivals, d.Tries)
			equal(t, "odd agents", odd, d.OddAgents)
			equal(t, "before_response", departures["before_response"], d.Departures.BeforeResponse)
			equal(t, "undelivered_answer", departures["undelivered_answer"], d.Departures.UndeliveredAnswer)
			equal(t, "during_response", departures["during_response"], d.Departures.DuringResponse)
			equal(t, "refused", statuses["503"], d.Statuses["503"])
			// An undelivered answer was a 200 of the application.
			equal(t, "successes", statuses["200"]+departures["undelivered_answer"], d.Statuses["200"])
		})
	}
}

func TestLogsHoldTheQuestions(t *testing.T) {
	tr := readTruth(t)
	for _, l := range logs[:3] {
		t.Run(l.name, func(t *testing.T) {
			d := tr.Dependencies[tr.Logs[l.name].Dependency]
			records, _ := readLog(t, l.name, l.parse)
			type identity struct{ key, path string }
			found, absent := map[identity][]string{}, 0
			attempts, peers := map[string]int{}, map[string]int{}
			for _, r := range records {
				attempts[r.attempt]++
				peers[r.peer]++
				if r.key == "" {
					absent++
					continue
				}
				sum := sha256.Sum256([]byte(r.key))
				id := identity{hex.EncodeToString(sum[:8]), r.path}
				found[id] = append(found[id], r.attempt)
			}
			equal(t, "absent", absent, d.Unattributable["absent"])
			if !maps.Equal(attempts, d.Attempts) {
				t.Errorf("attempts: log %v, truth %v", attempts, d.Attempts)
			}
			if !maps.Equal(peers, d.Peers) {
				t.Errorf("peers: log %v, truth %v", peers, d.Peers)
			}
			for _, k := range slices.Concat(d.List, d.Others) {
				id := identity{k.KeySHA256, k.Path}
				equal(t, "arrivals of "+k.KeySHA256, len(found[id]), k.Arrivals)
				slices.Sort(found[id])
				if !slices.Equal(found[id], slices.Sorted(slices.Values(k.Attempts))) {
					t.Errorf("attempts of %s: log %v, truth %v", k.KeySHA256, found[id], k.Attempts)
				}
				delete(found, id)
			}
			equal(t, "questions that only the log has", len(found), 0)
		})
	}
}

// nginx's own request ids tie each departure to what the application saw.
func TestDeparturesRecordByRecord(t *testing.T) {
	d := readTruth(t).Dependencies["seats"]
	for _, l := range logs[:2] {
		records, _ := readLog(t, l.name, l.parse)
		unforwarded, seen := 0, map[string]bool{}
		for _, r := range records {
			if seen[r.recordID] {
				t.Errorf("%s: request id %s twice", l.name, r.recordID)
			}
			seen[r.recordID] = true
			cut := d.Cut[r.recordID]
			switch {
			case r.departure != "" && r.tries == 0:
				unforwarded++
			case (r.departure != "") != (cut != ""):
				t.Errorf("%s: record %s: log %q, application %q", l.name, r.recordID, r.departure, cut)
			case r.departure == "before_response" && cut != "before_headers":
				t.Errorf("%s: record %s: log %q, application %q", l.name, r.recordID, r.departure, cut)
			}
		}
		equal(t, l.name+": unforwarded", unforwarded, d.Unforwarded.Arrivals)
	}
}

func TestTextLogByRequestID(t *testing.T) {
	d := readTruth(t).Dependencies["prices"]
	records, _ := readLog(t, "envoy-text.log", envoyText)
	questions := map[string]bool{}
	for _, r := range records {
		questions[r.requestID+r.path] = true
	}
	equal(t, "arrivals", len(records), d.ByRequestID.Arrivals)
	equal(t, "questions", len(questions), d.ByRequestID.Questions)
}

// The truth adds up within itself.
func TestTruthAddsUp(t *testing.T) {
	for dep, d := range readTruth(t).Dependencies {
		t.Run(dep, func(t *testing.T) {
			unattributable := 0
			for _, n := range d.Unattributable {
				unattributable += n
			}
			equal(t, "classes", d.Verified+unattributable, d.Arrivals)
			equal(t, "repeats", d.Questions+d.Repeats, d.Verified)
			equal(t, "question list", len(d.List), d.Questions)
			var h counts
			for k, n := range d.Histogram {
				arrivals, err := strconv.Atoi(k)
				if err != nil {
					t.Fatal(err)
				}
				h.Arrivals += arrivals * n
				h.Questions += n
			}
			equal(t, "histogram", h, counts{d.Verified, d.Questions})
			equal(t, "originators", total(d.Originators), counts{d.Verified, d.Questions})
			equal(t, "phases", total(d.Phases), counts{d.Arrivals, d.AskedQuestions})
			equal(t, "kinds", total(d.Kinds), counts{d.Arrivals, d.AskedQuestions})
			for way, c := range d.Callers {
				equal(t, "attempts that went wrong, "+way, c["broken"], 0)
				equal(t, "callers, "+way, c["answered"]+c["left_before_response"]+c["left_during_response"], c["sent"])
			}
			// Each caller's attempt over the edge is one first try, and the rest
			// are the edge's retries.
			equal(t, "first tries", d.Attempts["1"], d.Callers["edge"]["sent"])
			equal(t, "edge retries", d.Attempts["2"]+d.Attempts["3"], d.Edge["upstream_rq_retry"])
			// Departures: callers who left, and tries that the edge gave up.
			left := d.Edge["upstream_rq_per_try_timeout"]
			for _, c := range d.Callers {
				left += c["left_before_response"] + c["left_during_response"]
			}
			equal(t, "departures", d.Departures.BeforeResponse+d.Departures.UndeliveredAnswer+d.Departures.DuringResponse, left)
		})
	}
}

// Keys called verified carry a true tag, forged ones do not.
func TestKeysAreWhatTheTruthSays(t *testing.T) {
	tr := readTruth(t)
	yaml, err := os.ReadFile("originators.yaml")
	if err != nil {
		t.Fatal(err)
	}
	secrets, originator := map[string]string{}, ""
	for _, m := range regexp.MustCompile(`- id: (\S+)|kid: (\w+), secret: "([^"]+)"`).FindAllStringSubmatch(string(yaml), -1) {
		if m[1] != "" {
			originator = m[1]
			continue
		}
		secrets[originator+"."+m[2]] = m[3]
	}
	for _, l := range logs[:3] {
		class := map[string]string{}
		d := tr.Dependencies[tr.Logs[l.name].Dependency]
		for _, k := range slices.Concat(d.List, d.Others) {
			class[k.KeySHA256] = k.Class
		}
		records, _ := readLog(t, l.name, l.parse)
		for _, r := range records {
			if r.key == "" {
				continue
			}
			sum := sha256.Sum256([]byte(r.key))
			parts := strings.Split(r.key, ".")
			if len(parts) != 6 {
				t.Fatalf("%s: key of %d parts", l.name, len(parts))
			}
			mac := hmac.New(sha256.New, []byte(secrets[parts[1]+"."+parts[2]]))
			mac.Write([]byte(r.key[:strings.LastIndexByte(r.key, '.')]))
			good := base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16]) == parts[5]
			switch c := class[hex.EncodeToString(sum[:8])]; c {
			case "verified", "expired", "not_yet_valid":
				if !good {
					t.Errorf("%s: a %s key has a false tag", l.name, c)
				}
			case "forged", "malformed", "unknown_originator":
				if good {
					t.Errorf("%s: a %s key has a true tag", l.name, c)
				}
			default:
				t.Errorf("%s: a key of class %q", l.name, c)
			}
		}
	}
}

// Every config names a log that is here, and the logs stay small.
func TestFilesAreThere(t *testing.T) {
	configs, err := filepath.Glob("*-*.yaml")
	if err != nil || len(configs) == 0 {
		t.Fatalf("configs: %v, %v", configs, err)
	}
	for _, c := range configs {
		text, err := os.ReadFile(c)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`paths: \["(logs/[^"]+)"\]`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s names no log", c)
		}
		if _, err := os.Stat(string(m[1])); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
	size := int64(0)
	for _, pattern := range []string{"logs/*", "record/*", "*.*"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			size += info.Size()
		}
	}
	if size > 3<<20 {
		t.Errorf("examples are %d bytes, more than 3 MiB", size)
	}
}

func total(m map[string]counts) (sum counts) {
	for _, c := range m {
		sum.Arrivals += c.Arrivals
		sum.Questions += c.Questions
	}
	return sum
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
