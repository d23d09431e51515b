package accesslog

import (
	"slices"
	"testing"
)

func TestSplitTries(t *testing.T) {
	const ms = int64(1e6)
	type try struct {
		addr   string
		status int
		time   int64
		group  int
		sent   bool
	}
	tests := []struct {
		name                string
		addr, status, times string
		want                []try
		says                bool // nil or not, where there are none
		notes               Notes
	}{
		{name: "no columns"},
		{name: "nothing tried", addr: "-", status: "-", times: "-", says: true},
		{name: "nothing tried, status only", status: "-", says: true},
		{name: "one", addr: "10.0.0.1:80", status: "200", times: "0.012",
			want: []try{{"10.0.0.1:80", 200, 12 * ms, 0, true}}},
		{name: "addresses keep their colons", addr: "[::1]:80, unix:/run/a.sock : 10.0.0.1:80", status: "502, 502 : 200", times: "0.002, 0.003 : 0.036",
			want:  []try{{"[::1]:80", 502, 2 * ms, 0, true}, {"unix:/run/a.sock", 502, 3 * ms, 0, true}, {"10.0.0.1:80", 200, 36 * ms, 1, true}},
			notes: NoteManyTries},
		{name: "client left in the last try", addr: "a:1, b:1", status: "504, -", times: "5.000, 2.479",
			want: []try{{"a:1", 504, 5000 * ms, 0, true}, {"b:1", 0, 2479 * ms, 0, true}}, notes: NoteManyTries},
		{name: "null try", addr: "a:1, b:1", status: "200, -", times: "0.090, -",
			want: []try{{"a:1", 200, 90 * ms, 0, true}, {"b:1", 0, Unknown, 0, false}}, notes: NoteManyTries},
		{name: "refused", addr: "a:1, b:1", status: "502, 200", times: "0.000, 0.001",
			want: []try{{"a:1", 502, 0, 0, false}, {"b:1", 200, ms, 0, true}}, notes: NoteManyTries},
		{name: "a quick answer was sent", addr: "a:1", status: "200", times: "0.000",
			want: []try{{"a:1", 200, 0, 0, true}}},
		{name: "no live peer", addr: "backend", status: "502", times: "0.000",
			want: []try{{"backend", 502, 0, 0, false}}},
		{name: "trailing joint", addr: "a:1 : ", status: "200 : ", times: "0.001 : ",
			want: []try{{"a:1", 200, ms, 0, true}}},
		{name: "trailing joint, trimmed", addr: "a:1 :", status: "200 :", times: "0.001 :",
			want: []try{{"a:1", 200, ms, 0, true}}},
		{name: "status only", status: "504, 504, 200",
			want: []try{{"", 504, Unknown, 0, true}, {"", 504, Unknown, 0, true}, {"", 200, Unknown, 0, true}}, notes: NoteManyTries},
		{name: "times only", times: "0.001",
			want: []try{{"", 0, ms, 0, true}}},
		{name: "negative time", addr: "a:1", status: "200", times: "-0.004",
			want: []try{{"a:1", 200, Unknown, 0, true}}},
		{name: "lengths disagree", addr: "a:1, b:1", status: "200", times: "0.001, 0.001", notes: NoteListsDisagree},
		{name: "groups disagree", addr: "a:1, b:1", status: "502 : 200", notes: NoteListsDisagree},
		{name: "not a status", addr: "a:1", status: "fine", notes: NoteListsDisagree},
		{name: "not a time", addr: "a:1", times: "soon", notes: NoteListsDisagree},
		{name: "no time that long", addr: "a:1", times: "999999999999.0", notes: NoteListsDisagree},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list := func(s string) []byte {
				if s == "" {
					return nil
				}
				return []byte(s)
			}
			got, notes := splitTries(nil, list(tt.addr), list(tt.status), list(tt.times))
			if notes != tt.notes {
				t.Errorf("notes %v, want %v", notes.Strings(), tt.notes.Strings())
			}
			if says := got != nil; says != (tt.says || tt.want != nil) {
				t.Errorf("got %#v: nil must mean that the record does not say", got)
			}
			var have []try
			for _, g := range got {
				have = append(have, try{string(g.Addr), g.Status, g.Time, g.Group, g.Sent})
			}
			if !slices.Equal(have, tt.want) {
				t.Errorf("got %v, want %v", have, tt.want)
			}
		})
	}
}

func TestSplitTriesReusesMemory(t *testing.T) {
	addr, status, times := []byte("a:1, b:1 : c:1"), []byte("502, 502 : 200"), []byte("0.001, 0.002 : 0.003")
	dst := make([]Try, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		if got, _ := splitTries(dst, addr, status, times); len(got) != 3 {
			t.Fatal("want three tries")
		}
	}); n != 0 {
		t.Errorf("%v allocations a record, want none", n)
	}
}

func FuzzSplitTries(f *testing.F) {
	f.Add([]byte("a:1, b:1 : c:1"), []byte("502, 502 : 200"), []byte("0.001, 0.002 : 0.003"))
	f.Add([]byte(" : "), []byte(","), []byte("-"))
	f.Fuzz(func(t *testing.T, addr, status, times []byte) {
		tries, notes := splitTries(nil, addr, status, times)
		if notes&NoteListsDisagree != 0 && tries != nil {
			t.Fatal("lists that disagree gave tries")
		}
		group := 0
		for _, try := range tries {
			if try.Group < group || try.Time < Unknown || try.Status < 0 || try.Status > 999 {
				t.Fatalf("impossible try %+v", try)
			}
			group = try.Group
		}
	})
}
