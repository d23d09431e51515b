package alerts

import (
	"encoding/json"
	"net"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

type postedAlert struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
}

func decode(t *testing.T, body string) (out []postedAlert) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// An Alertmanager is told at once, and again before what it was told last is over, for
// as long as it fires; then that it is over.
func TestAlertmanagerIsToldAgain(t *testing.T) {
	inWorld(t, Sinks{Alertmanagers: []Endpoint{endpoint("http://am:9093/base/")}}, func(n *Notifier, w *world) {
		begun := time.Now()
		a := firing(begun)
		n.Tell([]Alert{a}, []Alert{a})
		synctest.Wait()
		if got := w.got(); len(got) != 1 || got[0].to != "http://am:9093/base/api/v2/alerts" || got[0].header.Get("Content-Type") != "application/json" {
			t.Fatalf("%+v", got)
		}
		for range 600 { // ten minutes
			time.Sleep(time.Second)
			n.Tell([]Alert{a}, nil)
		}
		synctest.Wait()
		got := w.got()
		if len(got) < 20 || len(got) > 22 {
			t.Errorf("told %d times in ten minutes", len(got))
		}
		for i, x := range got {
			list := decode(t, x.body)
			want := map[string]string{"alertname": RetryBudgetLow, "dependency": "seats", "severity": warning}
			if len(list) != 1 || !reflect.DeepEqual(list[0].Labels, want) || !list[0].StartsAt.Equal(begun) || list[0].Annotations["runbook_url"] != runbooks+"RetryBudgetLow.md" {
				t.Fatalf("%+v", list)
			}
			ends := list[0].EndsAt
			if i+1 < len(got) && !ends.After(got[i+1].at.Add(time.Minute)) || ends.Sub(x.at) >= 5*time.Minute {
				t.Errorf("told at %v that it ends at %v", x.at, ends)
			}
		}
		over := time.Now()
		a = resolved(a, over)
		n.Tell([]Alert{a}, []Alert{a})
		synctest.Wait()
		got = w.got()
		if list := decode(t, got[len(got)-1].body); !list[0].EndsAt.Equal(over) {
			t.Errorf("%+v", list)
		}
		// And when it is forgotten nothing more is said.
		n.Tell(nil, nil)
		synctest.Wait()
		before := len(w.got())
		time.Sleep(time.Hour)
		if after := len(w.got()); after != before {
			t.Errorf("told %d times of nothing", after-before)
		}
	})
}

// What an Alertmanager is told never begins after it ends or after now, whatever the
// clock said by which it began.
func TestPostedTimesAreInOrder(t *testing.T) {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	ahead := firing(now.Add(5 * time.Second))
	for _, a := range []Alert{ahead, resolved(ahead, now), resolved(firing(now.Add(2*time.Second)), now.Add(time.Second))} {
		x := decode(t, string(posted([]Alert{a}, now.Add(time.Second))))[0]
		if x.StartsAt.After(now.Add(time.Second)) || x.EndsAt.Before(x.StartsAt) {
			t.Errorf("%+v", x)
		}
	}
}

// A peer that is away is asked no more often than one that is there, and hears all when
// it is back.
func TestAlertmanagerThatIsAway(t *testing.T) {
	inWorld(t, Sinks{Alertmanagers: []Endpoint{endpoint("http://away"), endpoint("http://there")}}, func(n *Notifier, w *world) {
		w.answer = func(r *http.Request) (int, http.Header, error) {
			if r.URL.Host == "away" {
				return 0, nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return 200, nil, nil
		}
		a := firing(time.Now())
		b := a
		b.Name = DeadAnswers
		n.Tell([]Alert{a}, []Alert{a})
		count := func(host string) (n int) {
			for _, x := range w.got() {
				if strings.Contains(x.to, host) {
					n++
				}
			}
			return n
		}
		for i := range 3600 {
			time.Sleep(time.Second)
			if i%10 == 0 { // much happens meanwhile
				n.Tell([]Alert{a, b}, []Alert{b})
			}
		}
		synctest.Wait()
		if away, there := count("away"), count("there"); away > 3600/15+10 || there < 300 {
			t.Errorf("in an hour the one that is away was asked %d times, the other %d times", away, there)
		}
		sent := n.Sent()
		if sent[1].Sink != "alertmanagers[0]" || sent[1].Failed < 100 || sent[1].Taken > 0 || sent[1].Error != "connection refused" || sent[2].Failed > 0 || sent[2].Error != "" {
			t.Errorf("%+v", sent)
		}
		w.mu.Lock()
		w.answer = nil
		w.mu.Unlock()
		time.Sleep(31 * time.Second)
		var last asked
		for _, x := range w.got() {
			if strings.Contains(x.to, "away") {
				last = x
			}
		}
		if list := decode(t, last.body); len(list) != 2 || n.Sent()[1].Taken == 0 {
			t.Errorf("it hears %v", list)
		}
	})
}

// A peer that was away for as long as an alert stood is told of the next one at once:
// there is nothing any more that it has not heard of.
func TestAlertmanagerThatWasAway(t *testing.T) {
	inWorld(t, Sinks{Alertmanagers: []Endpoint{endpoint("http://am")}}, func(n *Notifier, w *world) {
		w.answer = func(*http.Request) (int, http.Header, error) { return 503, nil, nil }
		n.Tell([]Alert{firing(time.Now())}, []Alert{firing(time.Now())})
		time.Sleep(10 * time.Second)
		n.Tell(nil, nil)
		time.Sleep(tellEvery + time.Second) // the last of its pauses is over
		w.mu.Lock()
		w.answer, w.asked = nil, nil
		w.mu.Unlock()
		next := firing(time.Now())
		n.Tell([]Alert{next}, []Alert{next})
		synctest.Wait()
		if got := w.got(); len(got) != 1 {
			t.Errorf("told %d times", len(got))
		}
	})
}
