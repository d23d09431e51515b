package alerts

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// What was resolved is remembered once for each time that it fired, for a day, the latest
// first; and it is said since when that is all.
func TestPast(t *testing.T) {
	begun := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return begun.Add(time.Duration(minutes) * time.Minute) }
	alert := func(name string, since, ended int) Alert {
		a := Alert{Name: name, Labels: map[string]string{"dependency": "seats"}, State: Resolved, Told: true, Since: at(since), Fired: at(since), Ended: at(ended)}
		if ended == 0 {
			a.State, a.Ended = Firing, time.Time{}
		}
		return a
	}
	p := NewPast(begun)
	wants := func(from time.Time, names ...string) {
		t.Helper()
		var got []string
		for _, a := range p.Alerts() {
			got = append(got, fmt.Sprint(a.Name, a.Since.Sub(begun).Minutes()))
		}
		if !slices.Equal(got, names) || !p.From().Equal(from) {
			t.Errorf("%v since %v, want %v since %v", got, p.From(), names, from)
		}
	}
	wants(begun)
	p.Take([]Alert{alert("A", 1, 0), alert("B", 2, 3)}, at(3))
	wants(begun, "B2")
	first := p.Alerts()
	p.Take([]Alert{alert("A", 1, 5), alert("B", 2, 3)}, at(5))
	p.Take([]Alert{alert("A", 1, 5), alert("B", 6, 0)}, at(6)) // it fires once more
	wants(begun, "A1", "B2")
	p.Take([]Alert{alert("C", 1, 4), alert("B", 6, 8)}, at(9)) // another instance tells of C now
	wants(begun, "B6", "A1", "C1", "B2")
	if len(first) != 1 || first[0].Name != "B" {
		t.Errorf("what was returned has changed: %v", first)
	}
	p.Take(nil, at(24*60+4))
	wants(at(4), "B6", "A1")
	p.Take(nil, at(48*60))
	wants(at(24 * 60))

	for i := range mostPast + 10 {
		p.Take([]Alert{alert(fmt.Sprint("N", i), 48*60+i, 48*60+i+1)}, at(48*60+i+1))
	}
	if got := p.Alerts(); len(got) != mostPast || got[0].Name != "N209" || !p.From().Equal(at(48*60+10)) {
		t.Errorf("%d, of them the latest %s, since %v", len(got), got[0].Name, p.From())
	}

	// What was resolved before this process began was told of for a while by another.
	p = NewPast(at(100))
	p.Take([]Alert{alert("A", 90, 97)}, at(100))
	wants(at(97), "A90")
}
