package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

var ofDependency = []string{
	"/api/v1/summary?", "/api/v1/budgets?", "/api/v1/policy?", "/api/v1/alerts?", "/api/v1/top?by=peer&", "/api/v1/top?by=question&window=1m&",
}

// One that is configured is there before its first record, and no ratio of it is a
// number.
func TestAConfiguredDependencyWithoutARecord(t *testing.T) {
	f := newFake()
	s := newServer(t, f, Options{})
	for _, snap := range []*Snapshot{
		{At: noon, State: Starting, Configured: "orders"},
		{At: noon, State: Standby, Configured: "orders", Dependencies: stormSnapshot().Dependencies},
	} {
		f.set(snap)
		for _, path := range ofDependency {
			w := ask(s, "GET", path+"dependency=orders")
			if w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
				continue
			}
			v := object(t, w.Body)
			for _, name := range []string{"coverage", "coverage_verified", "coverage_claimed", "complete_until", "sampling"} {
				if v[name] != nil {
					t.Errorf("%s: %s is %v", path, name, v[name])
				}
			}
		}
		v := object(t, ask(s, "GET", "/api/v1/summary?dependency=orders").Body)
		if at(v, "dependencies", 0, "dependency") != "orders" || len(at(v, "dependencies", 0, "windows").([]any)) != 3 {
			t.Errorf("the summary is %v", v)
		}
		for i := range 3 {
			for name, x := range at(v, "dependencies", 0, "windows", i).(map[string]any) {
				switch number, is := x.(float64); {
				case strings.Contains(name, "per_second"), strings.Contains(name, "coverage"), strings.Contains(name, "amplification"),
					strings.Contains(name, "load_factor"), strings.Contains(name, "strict"), name == "from", name == "to":
					if x != nil {
						t.Errorf("%s is %v", name, x)
					}
				case is && number != 0:
					t.Errorf("%s is %v", name, x)
				}
			}
		}
		// Asked for all, it is not among them.
		all := object(t, ask(s, "GET", "/api/v1/summary").Body)
		if n := len(at(all, "dependencies").([]any)); n != len(snap.Dependencies) {
			t.Errorf("%d dependencies are live, want %d", n, len(snap.Dependencies))
		}
	}
	event := make(chan string, 1)
	server := httptest.NewServer(s)
	defer server.Close()
	r, err := http.Get(server.URL + "/api/v1/stream?dependency=orders")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); len(event) == 0 && lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			event <- data
		}
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(<-event), &v); err != nil || at(v, "dependencies", 0, "dependency") != "orders" {
		t.Errorf("%v: the stream says %v", err, v)
	}
}

// One that is not known is not found, and those that are are said.
func TestAnUnknownDependency(t *testing.T) {
	f := newFake()
	s := newServer(t, f, Options{})
	many := &Snapshot{At: noon}
	for i := range 25 {
		many.Dependencies = append(many.Dependencies, Dependency{Name: fmt.Sprintf("d%02d", i)})
	}
	for _, c := range []struct {
		snap *Snapshot
		want string
	}{
		{stormSnapshot(), `dependency "nosuch" is not known here: there is "inventory"`},
		{&Snapshot{At: noon, Configured: "orders"}, `there is "orders"`},
		{&Snapshot{At: noon}, "no record has come yet"},
		{many, `"d19" and 5 more`},
	} {
		f.set(c.snap)
		for _, path := range append(ofDependency, "/api/v1/stream?") {
			w := ask(s, "GET", path+"dependency=nosuch")
			if v := isProblem(t, w.Header(), w.Body.Bytes(), http.StatusNotFound); !strings.Contains(fmt.Sprint(v["detail"]), c.want) {
				t.Errorf("%s: %v, want %s", path, v, c.want)
			}
		}
		// What is wrong with the request comes first.
		if w := ask(s, "GET", "/api/v1/summary?dependency=nosuch&x=1"); w.Code != http.StatusBadRequest {
			t.Errorf("a faulty request is answered %d", w.Code)
		}
	}
}
