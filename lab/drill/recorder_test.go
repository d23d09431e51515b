package drill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answers makes a client that gives one answer after the other, and notes what came.
func answers(took *bytes.Buffer, statuses ...int) Doer {
	return func(r *http.Request) (*http.Response, error) {
		status := statuses[0]
		if len(statuses) > 1 {
			statuses = statuses[1:]
		}
		if status == 0 {
			return nil, errors.New("nobody there")
		}
		if status == 200 {
			io.Copy(took, r.Body)
		}
		return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: http.Header{"Retry-After": {"2"}}, Body: io.NopCloser(strings.NewReader(""))}, nil
	}
}

// TestRecorder: every record is handed on once, and if not, it is said how many were not.
func TestRecorder(t *testing.T) {
	for name, c := range map[string]struct {
		statuses []int
		pushed   int
		says     string
	}{
		"taken":             {[]int{200}, 3, ""},
		"taken in the end":  {[]int{0, 503, 429, 200}, 3, ""},
		"refused":           {[]int{401}, 0, "3 were not taken: 401"},
		"nobody is there":   {[]int{0}, 0, "3 were not taken: nobody there"},
		"one push is wrong": {[]int{400, 200}, 1, "2 were not taken: 400"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var file, took bytes.Buffer
				r := NewRecorder(&file, "http://127.0.0.1:1/ingest", answers(&took, c.statuses...))
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { r.Run(ctx); close(ended) }()
				r.Add([]byte("one"))
				r.Add([]byte("two"))
				time.Sleep(10 * time.Second)
				r.Add([]byte("three"))
				cancel()
				<-ended
				h, err := r.Handed()
				if h.Written != 3 || h.Pushed != c.pushed || h.Lost != 3-c.pushed || file.String() != "one\ntwo\nthree\n" {
					t.Errorf("%+v, and written is %q", h, &file)
				}
				if got := fmt.Sprint(err); c.says == "" && err != nil || !strings.Contains(got, c.says) {
					t.Errorf("it says %v, want %q", err, c.says)
				}
				if n := bytes.Count(took.Bytes(), []byte("\n")); n != c.pushed {
					t.Errorf("%d lines were taken, of %d", n, c.pushed)
				}
			})
		})
	}
}

// TestAlerts: what is said of alerts is what the auditor said, and when.
func TestAlerts(t *testing.T) {
	quiet := `{"evaluated": true, "alerts": []}`
	low := `{"evaluated": true, "alerts": [{"alert": "RetryBudgetLow", "state": "firing", "labels": {"dependency": "store"}}]}`
	for name, c := range map[string]struct {
		first, then string // answers, from 5 s on the other
		ranOut      time.Duration
		kind        string
		is          float64
		byItself    int // failures of a hundred requests without a fault
	}{
		"in time":               {quiet, low, 9 * time.Second, Before, 4, 2},
		"of a sick dependency":  {quiet, low, 9 * time.Second, Unclear, 0, 3},
		"too late":              {quiet, low, 2 * time.Second, After, 3, 0},
		"never":                 {quiet, quiet, 2 * time.Second, NoAlert, 0, 0},
		"nothing ran out":       {quiet, quiet, 0, Never, 0, 0},
		"already":               {low, low, 2 * time.Second, Unclear, 0, 0},
		"of another":            {quiet, strings.Replace(low, "store", "other", 1), 2 * time.Second, NoAlert, 0, 0},
		"pending alone":         {quiet, strings.Replace(low, "firing", "pending", 1), 2 * time.Second, NoAlert, 0, 0},
		"of something else":     {quiet, strings.Replace(low, "RetryBudgetLow", "DeadAnswers", 1), 2 * time.Second, NoAlert, 0, 0},
		"nobody evaluates them": {`{"evaluated": false, "alerts": []}`, `{"evaluated": false, "alerts": []}`, 2 * time.Second, Off, 0, 0},
		"no auditor":            {"", "", 2 * time.Second, Unclear, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				a := WatchAlerts("http://127.0.0.1:1/", "store", func(r *http.Request) (*http.Response, error) {
					text := c.first
					if time.Since(begun) >= 5*time.Second {
						text = c.then
					}
					if text == "" || r.URL.String() != "http://127.0.0.1:1/api/v1/alerts" {
						return nil, errors.New("nobody there")
					}
					return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(text))}, nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
				defer cancel()
				a.Run(ctx)
				r, limited := &Report{}, true
				if c.ranOut > 0 {
					r.Steps = []StepReport{{From: begun.Add(c.ranOut), Limited: &limited, Route: Figures{ByItself: c.byItself, Passed: 100}}}
				}
				got := a.Answer(r)
				if got.Kind != c.kind || c.is > 0 && (got.Is == nil || *got.Is != c.is) || got.Says == "" {
					t.Errorf("%+v, want %s, %v", got, c.kind, c.is)
				}
			})
		})
	}
}
