package grafana_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/dashboards/livetest"
	"github.com/targetside/auditor/keys"
)

// startStorm runs the real program on a followed file and on pushed lines, and writes
// both until the test ends. It keeps its rows in a store of the configuration; the file
// reaches some time back, with traffic each ten seconds, in the middle between round
// tens. It returns where it answers.
func startStorm(t *testing.T, store string, past time.Duration) string {
	t.Helper()
	dir := t.TempDir()
	auditor, push := livetest.Auditor(t), livetest.Free(t)
	secret := strings.Repeat("s", 32)
	s := &storm{
		t:   t,
		web: keys.Minter{Originator: "web", KID: "a", Secret: []byte(secret)}, forger: keys.Minter{Originator: "web", KID: "a", Secret: bytes.Repeat([]byte("f"), 32)},
	}
	history := ""
	now := time.Now()
	at := now.Add(-past)
	if past > 0 {
		at = at.Truncate(10 * time.Second).Add(5 * time.Second)
	}
	for ; at.Before(now.Add(-time.Second)); at = at.Add(10 * time.Second) {
		history += s.seats(at)
	}
	for name, text := range map[string]string{
		"access.log":       history,
		"originators.yaml": fmt.Sprintf("originators: [{id: web, deadline: 500ms, keys: [{kid: a, secret: %s}]}]\n", secret),
		"auditor.yaml": fmt.Sprintf(`dependency: {field: dependency}
sources:
  - {file: {paths: [access.log]}, format: json}
  - {http: {listen: %q, spool: spool}, format: json}
ignore: {paths: [/healthz]}
time: {lateness: 2s, idle: 2s}
keys: {accept: [qk1, {field: my_id}], originators: originators.yaml, horizon: 3s, salt_file: salt}
declared: {deadline: 500ms, layers: [{name: gateway, attempts: 3}, {name: peer, attempts: 3}]}
store: %s
api: {listen: "127.0.0.1:0"}
`, push, store),
		"salt": secret,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := livetest.Run(t, auditor, filepath.Join(dir, "auditor.yaml")).Said

	livetest.Traffic(t, func(now time.Time) error {
		return s.wave(now, filepath.Join(dir, "access.log"), "http://"+push, "http://"+address)
	})
	return address
}

// storm is callers who do everything that a panel shows.
type storm struct {
	t           *testing.T
	web, forger keys.Minter
	waves       int
}

// line is a record of an arrival that began so long ago, and took so long; no time if that
// is less than nothing.
func line(now time.Time, ago, took time.Duration, dependency, path, rest string) string {
	if took >= 0 {
		rest = fmt.Sprintf(`,"duration_ms":%d%s`, took.Milliseconds(), rest)
	}
	return fmt.Sprintf(`{"time":%q,"dependency":%q,"method":"GET","path":%q,"peer":"bff"%s}`+"\n", now.Add(-ago).UTC().Format("2006-01-02T15:04:05.000Z"), dependency, path, rest)
}

func (s *storm) key(m keys.Minter, at time.Time) string {
	k, err := m.Mint(at)
	if err != nil {
		s.t.Error(err)
	}
	return fmt.Sprintf(`,"question_key":%q`, k)
}

const ok = `,"status":200,"bytes_sent":500`

// seats are the records of a tenth of a second of traffic.
func (s *storm) seats(now time.Time) string {
	s.waves++
	const ms = time.Millisecond
	var seats strings.Builder
	add := func(ago, took time.Duration, path, rest string) {
		seats.WriteString(line(now, ago, took, "seats", path, rest))
	}
	// A question that comes back at once though it is asked to wait, and spends more
	// attempts than it carries: of two calls three tries each. How long the last takes nobody
	// knows, nor whether that is in time.
	web := s.key(s.web, now.Add(-90*ms))
	for i, left := range []int{2, 2, 3, 1, 0} {
		add(time.Duration(90-10*i)*ms, 2*ms, "/seats/1", web+fmt.Sprintf(`,"x_envoy_attempt_count":%d,"status":503,"bytes_sent":20,"retry_after":5,"attempts_left":%d`, 1+i%3, left))
	}
	add(20*ms, -1, "/seats/1", web+`,"x_envoy_attempt_count":3`+ok)
	// Callers who leave, at each point, and one who has given up without a sign.
	add(40*ms, 30*ms, "/holds/1", s.key(s.web, now.Add(-40*ms))+`,"status":200,"bytes_sent":500,"client_gone":true`)
	add(41*ms, 30*ms, "/holds/2", s.key(s.web, now.Add(-41*ms))+`,"status":200,"bytes_sent":0,"client_gone":true`)
	add(42*ms, 30*ms, "/holds/3", s.key(s.web, now.Add(-42*ms))+`,"status":499,"bytes_sent":0,"client_gone":true`)
	add(43*ms, 30*ms, "/holds/4", s.key(s.web, now.Add(-43*ms))+`,"status":200,"client_gone":true`)
	add(820*ms, 800*ms, "/holds/5", s.key(s.web, now.Add(-820*ms))+ok+`,"client_gone":false`)
	add(20*ms, 10*ms, "/seats/2", s.key(s.web, now.Add(-600*ms))+ok+`,"client_gone":false`) // stale
	// Keys that prove nothing, or nothing good.
	add(30*ms, 10*ms, "/seats/3", fmt.Sprintf(`,"my_id":"claim %d"`, s.waves)+ok)
	add(31*ms, 10*ms, "/seats/4", s.key(s.forger, now.Add(-31*ms))+ok)
	add(32*ms, 10*ms, "/seats/5", `,"question_key":"qk1.malformed"`+ok)
	absent := line(now, 33*ms, 10*ms, "seats", "/seats/6", ok)
	seats.WriteString(absent + absent) // the shipper sends it twice
	// What is no arrival, cannot be read, or is late.
	add(34*ms, ms, "/healthz", ok)
	seats.WriteString("this is no record\n")
	add(time.Minute, 10*ms, "/seats/7", s.key(s.web, now.Add(-time.Minute))+ok)
	if s.waves%10 == 1 { // the worst question
		worst := s.key(s.web, now.Add(-60*ms))
		for i := range 30 {
			add(time.Duration(60-i)*ms, ms, "/seats/8", worst+`,"status":500,"bytes_sent":30`)
		}
	}
	return seats.String()
}

// wave is a tenth of a second of traffic, to the file, to the push source and to the API.
func (s *storm) wave(now time.Time, file, push, api string) error {
	const ms = time.Millisecond
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(s.seats(now)); err != nil {
		return err
	}

	var prices strings.Builder
	for i := range 6 {
		prices.WriteString(line(now, 50*ms, 10*ms, "prices", fmt.Sprintf("/prices/%d", i), s.key(s.web, now.Add(-50*ms))+ok+`,"client_gone":false`))
	}
	again := s.key(s.web, now.Add(-50*ms))
	prices.WriteString(line(now, 50*ms, 10*ms, "prices", "/fares/1", again+`,"status":500,"bytes_sent":10`) + line(now, 20*ms, 10*ms, "prices", "/fares/1", again+ok))
	for _, f := range []func() (*http.Response, error){
		func() (*http.Response, error) {
			return client.Post(push+"/ingest", "application/x-ndjson", strings.NewReader(prices.String()))
		},
		func() (*http.Response, error) { return client.Get(api + "/api/v1/summary") },
	} {
		res, err := f()
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", res.Request.URL, res.Status)
		}
	}
	return nil
}
