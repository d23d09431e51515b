package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A webhook is told once of each change, in order, signed.
func TestWebhook(t *testing.T) {
	inWorld(t, Sinks{Webhooks: []Webhook{{endpoint("http://hook/x"), "a secret of ours"}, {Endpoint: endpoint("http://bare")}}}, func(n *Notifier, w *world) {
		begun := time.Now()
		a := firing(begun)
		over := resolved(a, begun.Add(time.Minute))
		for range 10 {
			n.Tell([]Alert{a}, nil)
		}
		n.Tell([]Alert{a}, []Alert{a})
		n.Tell([]Alert{over}, []Alert{over})
		time.Sleep(time.Hour)
		var notices []Notice
		ids := map[string]bool{}
		for _, x := range w.got() {
			signed := x.header.Get(SignatureHeader)
			if strings.Contains(x.to, "bare") {
				if signed != "" {
					t.Error("signed without a secret")
				}
				continue
			}
			if stamp := x.header.Get(TimestampHeader); signed != Sign([]byte("a secret of ours"), stamp, []byte(x.body)) || stamp != fmt.Sprint(x.at.Unix()) {
				t.Errorf("signed %q at %q", signed, stamp)
			}
			var notice Notice
			if err := json.Unmarshal([]byte(x.body), &notice); err != nil {
				t.Fatal(err)
			}
			if notice.ID != x.header.Get(NoticeHeader) {
				t.Errorf("%q and %q", notice.ID, x.header.Get(NoticeHeader))
			}
			ids[notice.ID] = true
			notices = append(notices, notice)
		}
		if len(notices) != 2 || len(ids) != 2 || notices[0].Status != Firing || notices[0].EndsAt != nil || notices[1].Status != Resolved || !notices[1].EndsAt.Equal(over.Ended) {
			t.Fatalf("%+v", notices)
		}
		want := Notice{
			Schema: WebhookSchema, ID: notices[0].ID, Status: Firing, Labels: map[string]string{"alertname": RetryBudgetLow, "dependency": "seats", "severity": warning},
			Annotations: map[string]string{"summary": a.Summary, "description": a.Description, "runbook_url": a.Runbook()}, StartsAt: notices[0].StartsAt,
		}
		if !reflect.DeepEqual(notices[0], want) {
			t.Errorf("%+v", notices[0])
		}
	})
}

// The vector by which receivers can be written.
func TestSignature(t *testing.T) {
	// printf '1764493200.{}' | openssl dgst -sha256 -hmac 'a secret of ours'
	if got := Sign([]byte("a secret of ours"), "1764493200", []byte("{}")); got != "v1=058f2d3235c64c58905d374d41271a417724df250372ddf420d15d1cb48d8bd0" {
		t.Error(got)
	}
}

// What can pass is tried again, with the same notice; what the receiver has said of
// the request itself is not.
func TestWebhookRetries(t *testing.T) {
	for name, c := range map[string]struct {
		statuses             []int // then 200; 0: no connection
		header               http.Header
		tries                int
		taken, failed, drops uint64
		least                time.Duration // until the last try
	}{
		"taken":              {nil, nil, 1, 1, 0, 0, 0},
		"trouble that ends":  {[]int{500, 0, 502}, nil, 4, 1, 3, 0, 3 * time.Second},
		"too many":           {[]int{429}, http.Header{"Retry-After": {"40"}}, 2, 1, 1, 0, 40 * time.Second},
		"too slow a request": {[]int{408}, nil, 2, 1, 1, 0, 0},
		"not found":          {[]int{404, 404}, nil, 1, 0, 1, 1, 0},
		"not allowed":        {[]int{401, 401}, nil, 1, 0, 1, 1, 0},
		"moved":              {[]int{301, 301}, http.Header{"Location": {"http://elsewhere/"}}, 1, 0, 1, 1, 0},
		"moved for now":      {[]int{307, 307}, http.Header{"Location": {"http://elsewhere/"}}, 1, 0, 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, Sinks{Webhooks: []Webhook{{Endpoint: endpoint("http://hook/")}}}, func(n *Notifier, w *world) {
				i := 0
				w.answer = func(*http.Request) (int, http.Header, error) {
					if i++; i > len(c.statuses) {
						return 204, nil, nil
					}
					if c.statuses[i-1] == 0 {
						return 0, nil, errors.New("connection reset")
					}
					return c.statuses[i-1], c.header, nil
				}
				begun := time.Now()
				a := firing(begun)
				n.Tell([]Alert{a}, []Alert{a})
				time.Sleep(time.Hour)
				got := w.got()
				s := n.Sent()[1]
				if len(got) != c.tries || s.Taken != c.taken || s.Failed != c.failed || s.Dropped != c.drops {
					t.Fatalf("%d tries, %+v", len(got), s)
				}
				for _, x := range got {
					if x.to != "http://hook/" || x.body != got[0].body || x.header.Get(NoticeHeader) != got[0].header.Get(NoticeHeader) {
						t.Errorf("%+v", x)
					}
				}
				if took := got[len(got)-1].at.Sub(begun); took < c.least/2 || c.header != nil && took < c.least {
					t.Errorf("the last try was after %v", took)
				}
			})
		})
	}
}

// A receiver that is away is not stormed, however much there is to tell, and nothing is
// told when it is too old to be of use.
func TestWebhooksKeepABudget(t *testing.T) {
	inWorld(t, Sinks{Webhooks: []Webhook{{Endpoint: endpoint("http://hook/")}}}, func(n *Notifier, w *world) {
		w.answer = func(*http.Request) (int, http.Header, error) { return 503, nil, nil }
		begun := time.Now()
		for i := range 60 {
			a := firing(begun)
			a.Labels = map[string]string{"dependency": fmt.Sprint(i)}
			n.Tell([]Alert{a}, []Alert{a})
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Hour)
		tries, seen := w.got(), map[string]bool{}
		for _, x := range tries {
			seen[x.header.Get(NoticeHeader)] = true
		}
		// In two hours: ten at once and one a minute, beside the first of each.
		if retries := len(tries) - len(seen); retries > 10+120 {
			t.Errorf("%d retries", retries)
		}
		if s := n.Sent()[1]; s.Dropped != 60 || s.Taken != 0 {
			t.Errorf("%+v", s)
		}
		w.mu.Lock()
		w.answer = nil
		w.mu.Unlock()
		a := firing(time.Now())
		n.Tell([]Alert{a}, []Alert{a})
		time.Sleep(time.Minute)
		if s := n.Sent()[1]; s.Taken != 1 || s.Error != "" {
			t.Errorf("back, it hears nothing: %+v", s)
		}
	})
}
