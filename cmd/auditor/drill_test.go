package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/targetside/auditor/keys"
)

// TestDrillIntoADaemon drills a caller on loopback, which retries by a budget of a
// fifth, and hands its records to a daemon: both say the same, and the daemon raises an
// alert.
func TestDrillIntoADaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	push := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	config := writeIn(t, filepath.Join(dir, "auditor.yaml"), fmt.Sprintf(`dependency: {field: dependency}
sources: [{http: {listen: %q}, format: json}]
keys: {originators: originators.yaml, horizon: 2s}
budget: {window: 2s}
api: {listen: "127.0.0.1:0"}
`, push))
	secret, err := keys.NewSecret("web", "a")
	if err != nil {
		t.Fatal(err)
	}
	writeIn(t, filepath.Join(dir, "originators.yaml"), fmt.Sprintf("originators: [{id: web, keys: [{kid: a, secret: %q}]}]\n", secret.Secret))
	daemon := startDaemon(t, config)

	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") }))
	defer upstream.Close()
	p := &program{stdout: new(bytes.Buffer), stderr: new(bytes.Buffer), now: time.Now, getenv: os.LookupEnv}
	o, err := drillFlags(p, []string{"--upstream", upstream.URL, "--dependency", "store", "--route", "GET /seats/", "--steps", "25,50,100", "--step", "2s", "--hold", "4s",
		"--records", filepath.Join(dir, "records"), "--push", "http://" + push + "/ingest", "--alerts", "http://" + daemon.d.listener.Addr().String(), "--output", "json"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDrill(p, o, l)
	if err != nil {
		t.Fatal(err)
	}
	asking := make(chan struct{})
	var asked sync.WaitGroup
	asked.Go(func() {
		askWithBudget("http://"+l.Addr().String(), keys.Minter{Originator: "web", KID: "a", Secret: []byte(secret.Secret)}, asking)
	})
	err = d.run(t.Context())
	close(asking)
	asked.Wait()
	if err != nil {
		t.Fatal(err)
	}
	var says struct {
		Requests int
		Answers  struct {
			Ceiling struct {
				Kind string
				Is   float64
			}
			Alert struct{ Kind, Alert, Says string }
		}
		Records struct{ Written, Pushed, Lost int }
	}
	out := p.stdout.(*bytes.Buffer)
	if err := json.Unmarshal(out.Bytes(), &says); err != nil {
		t.Fatal(err, out)
	}
	switch c := says.Answers.Ceiling; {
	case says.Requests < 2000 && c.Kind == "unclear":
		t.Logf("%d requests in 14 s: the machine is too busy to say what bounds repeats", says.Requests)
	case c.Kind != "share" || math.Abs(c.Is-0.2) > 0.03:
		t.Errorf("the ceiling is %+v\n%s", c, out)
	}
	if a := says.Answers.Alert; a.Kind != "before" && a.Kind != "after" || !strings.HasPrefix(a.Alert, "RetryBudget") {
		t.Errorf("of alerts it says %+v", a)
	}
	text, err := os.ReadFile(filepath.Join(dir, "records"))
	if err != nil {
		t.Fatal(err)
	}
	n := bytes.Count(text, []byte("\n"))
	if r := says.Records; n != says.Requests || r.Written != n || r.Pushed != n || r.Lost != 0 || n < 100 {
		t.Errorf("%d requests, %d lines, records %+v", says.Requests, n, r)
	}
	var w any
	defer func() {
		if t.Failed() {
			t.Log(daemon.get("/api/v1/sources"), w, n)
		}
	}()
	until(t, "the daemon has counted them", func() bool {
		w = dig(daemon.get("/api/v1/summary"), "dependencies", 0, "windows", 1)
		return dig(w, "arrivals") == float64(n)
	})
	var own struct{ questions, repeats int }
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var x struct {
			Key string `json:"question_key"`
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		if seen[x.Key] {
			own.repeats++
		} else {
			own.questions++
		}
		seen[x.Key] = true
	}
	if dig(w, "originals") != float64(own.questions) || dig(w, "repeats") != float64(own.repeats) {
		t.Errorf("the daemon has %v and %v of %d questions and %d repeats", dig(w, "originals"), dig(w, "repeats"), own.questions, own.repeats)
	}
}

// askWithBudget asks a question every 5 ms and repeats one once, for a fifth of them. It saves up
// for no more than two: a machine too busy to ask often would else see what was saved, not the share.
func askWithBudget(url string, minter keys.Minter, until <-chan struct{}) {
	holds := 0.0
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	defer http.DefaultClient.CloseIdleConnections()
	for {
		select {
		case <-until:
			return
		case <-tick.C:
		}
		holds = min(holds+0.2, 2)
		key, err := minter.Mint(time.Now())
		if err != nil {
			return
		}
		for try := 1; try <= 2; try++ {
			req, err := http.NewRequest("GET", url+"/seats/1", nil)
			if err != nil {
				return
			}
			req.Header.Set("Question-Key", key)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				break // it listens no more
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode == 200 || holds < 1 {
				break
			}
			if try == 1 {
				holds--
			}
		}
	}
}

// TestDrillText: the text has every answer, and an interrupted drill says that it was.
func TestDrillText(t *testing.T) {
	p := &program{stdout: new(bytes.Buffer), stderr: new(bytes.Buffer), now: time.Now, getenv: os.LookupEnv}
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	o, err := drillFlags(p, []string{"--upstream", upstream.URL, "--route", "GET /", "--control", "POST /prices/", "--stay"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDrill(p, o, l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := contextUntil(t, func() bool {
		res, err := http.Get("http://" + l.Addr().String() + "/x")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == 404
	})
	defer stop()
	if err := d.run(ctx); err == nil || !strings.Contains(err.Error(), "interrupted before the last step") {
		t.Errorf("an interrupted drill says %v", err)
	}
	text := p.stdout.(*bytes.Buffer).String()
	if strings.Contains(text, "5 %") {
		t.Errorf("there are steps that never began:\n%s", text)
	}
	for _, want := range []string{"error=503 on GET / of 127.0.0.1", "as it is", "control repeated", "ceiling     1 of 1 requests had no key", "scope", "once spent", "alert       no auditor was named", "1 requests", "ended before its last step"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestDrillOfItself: a drill whose upstream is where it listens is refused at once.
func TestDrillOfItself(t *testing.T) {
	p := &program{stdout: new(bytes.Buffer), stderr: new(bytes.Buffer), now: time.Now, getenv: os.LookupEnv}
	at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	code, err := drillCommand(t.Context(), p, []string{"--upstream", "http://" + at, "--listen", at, "--route", "/"})
	if code != exitUsage || err == nil || !strings.Contains(err.Error(), "where the drill itself listens") {
		t.Errorf("it leaves with %d: %v", code, err)
	}
}

// contextUntil is a context that ends once something holds.
func contextUntil(t *testing.T, holds func() bool) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil && !holds() {
			time.Sleep(10 * time.Millisecond)
		}
		stop()
	}()
	return ctx, stop
}
