package main

import "time"

// truth holds the exact counts of one generated log. They are taken from what
// was decided before a line was written, never read back from the log.
//
// Times: a record's start is its end minus its duration, both whole
// milliseconds. From is the second of the first start, To the one after the
// second of the last.
type truth struct {
	Seed  uint64    `json:"seed"`
	Lines int       `json:"lines"` // every one is an arrival; none repeats another's text
	Bytes int64     `json:"bytes"` // newlines included
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`

	counts
	AttemptOne int `json:"attempt_one"` // attributable arrivals whose attempt (scope hop) is 1

	// Histogram counts questions by the number of their arrivals.
	Histogram map[int]int `json:"arrivals_per_question"`

	Success      int          `json:"success"` // status 200 to 399, whether or not the caller was gone
	Refused      int          `json:"refused"` // status 429 or 503
	Answers      int          `json:"answers"` // neither refused nor before_response
	Status503    int          `json:"status_503"`
	Failed       int          `json:"failed"` // status 500 and above
	Disconnected disconnected `json:"disconnected"`

	// With the deadline that originators.yaml declares, counted from minted.
	Stale   int `json:"stale_arrivals"` // started after it
	Expired int `json:"expired"`        // ended after it, and nobody was seen to leave
	// ExpiredAnswers are the expired ones that were not refused.
	ExpiredAnswers int `json:"expired_answers"`

	BusyMillis   int64 `json:"busy_ms"`   // durations of all arrivals
	RepeatMillis int64 `json:"repeat_ms"` // durations of repeats

	Dependencies map[string]*dependency `json:"dependencies"`
	Originators  map[string]*counts     `json:"originators"` // attributable arrivals only
}

// counts are those that add up over routes, dependencies and originators. No
// retry comes a horizon (2 min) after the one before it and a key has one path,
// so questions, originals and distinct keys are one number.
type counts struct {
	Arrivals       int `json:"arrivals"`
	Attributable   int `json:"attributable"`
	Unattributable int `json:"unattributable"` // all of them for want of a key
	Questions      int `json:"questions"`
	Repeats        int `json:"repeats"`
}

type dependency struct {
	counts
	Routes map[string]*counts `json:"routes"`
}

// disconnected counts records that say the caller was gone, by kind.
type disconnected struct {
	Total             int `json:"total"`
	UndeliveredAnswer int `json:"undelivered_answer"` // no bytes sent, and a status other than 0 and 499
	DuringResponse    int `json:"during_response"`    // some bytes sent
	BeforeResponse    int `json:"before_response"`    // no bytes sent, status 0 or 499
	UnknownPoint      int `json:"unknown_point"`      // the record does not say how many bytes were sent
}

func newTruth(p params) *truth {
	t := &truth{
		Seed:         p.seed,
		Histogram:    map[int]int{},
		Dependencies: map[string]*dependency{},
		Originators:  map[string]*counts{},
	}
	for _, d := range dependencyNames {
		t.Dependencies[d] = &dependency{Routes: map[string]*counts{}}
		for _, r := range routes {
			t.Dependencies[d].Routes[r.name()] = &counts{}
		}
	}
	for _, o := range originators {
		t.Originators[o.id] = &counts{}
	}
	return t
}

// add counts one arrival of a.
func (t *truth) add(a *ask, v *arrival) {
	start := v.end - int64(v.duration)
	from := time.UnixMilli(start).UTC().Truncate(time.Second)
	if t.From.IsZero() || from.Before(t.From) {
		t.From = from
	}
	if to := from.Add(time.Second); to.After(t.To) {
		t.To = to
	}
	t.Lines++
	t.BusyMillis += int64(v.duration)

	d := t.Dependencies[dependencyNames[a.dependency]]
	everywhere := []*counts{&t.counts, &d.counts, d.Routes[routes[a.route].name()]}
	if a.keyed {
		everywhere = append(everywhere, t.Originators[originators[a.originator].id])
	}
	for _, c := range everywhere {
		c.Arrivals++
		switch {
		case !a.keyed:
			c.Unattributable++
		case v.ordinal == 1:
			c.Attributable++
			c.Questions++
		default:
			c.Attributable++
			c.Repeats++
		}
	}
	if a.keyed {
		deadline := a.minted + originatorDeadline.Milliseconds()
		if v.attempt() == 1 {
			t.AttemptOne++
		}
		if v.ordinal > 1 {
			t.RepeatMillis += int64(v.duration)
		}
		if v.last {
			t.Histogram[int(v.ordinal)]++
		}
		if start > deadline {
			t.Stale++
		}
		if v.end > deadline && v.departure == stayed {
			t.Expired++
			if !v.refused() {
				t.ExpiredAnswers++
			}
		}
	}

	if v.status >= 200 && v.status < 400 {
		t.Success++
	}
	if v.refused() {
		t.Refused++
	} else if v.departure != beforeResponse {
		t.Answers++
	}
	if v.status == 503 {
		t.Status503++
	}
	if v.status >= 500 {
		t.Failed++
	}
	switch v.departure {
	case stayed:
		return
	case undeliveredAnswer:
		t.Disconnected.UndeliveredAnswer++
	case duringResponse:
		t.Disconnected.DuringResponse++
	case beforeResponse:
		t.Disconnected.BeforeResponse++
	case unknownPoint:
		t.Disconnected.UnknownPoint++
	}
	t.Disconnected.Total++
}
