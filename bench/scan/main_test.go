package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Every line must be counted once, wherever the chunks are cut and however many
// workers take them.
func TestScanAgainstNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var log bytes.Buffer
	for range 1000 {
		key := ""
		if rng.IntN(10) > 0 {
			key = fmt.Sprintf(`"question_key":"k%d",`, rng.IntN(900))
		}
		fmt.Fprintf(&log, `{"time":"2026-03-02T09:00:%02d.%03dZ","n":%d,"dependency":"d%d","route":"GET /%d",%s"flag":true,"status":%d}`+"\n",
			rng.IntN(20), rng.IntN(1000), rng.IntN(1000), rng.IntN(4), rng.IntN(5), key, []int{0, 200, 404, 500, 503}[rng.IntN(5)])
	}
	for _, text := range [][]byte{log.Bytes(), bytes.TrimSuffix(log.Bytes(), []byte("\n"))} {
		want := naive(t, text)
		for _, workers := range []int{1, 2, 3} {
			for _, chunk := range []int{97, 151, 4096, 1 << 20} {
				got, err := scan(bytes.NewReader(text), int64(len(text)), workers, chunk)
				if err != nil {
					t.Fatalf("%d workers, chunks of %d: %v", workers, chunk, err)
				}
				if got != want {
					t.Errorf("%d workers, chunks of %d: %+v, want %+v", workers, chunk, got, want)
				}
			}
		}
	}
}

func naive(t *testing.T, text []byte) (a answer) {
	t.Helper()
	cells := map[string]bool{}
	for line := range bytes.Lines(text) {
		var r struct {
			Time, Dependency, Route string
			Key                     string `json:"question_key"`
			Status                  int
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		cells[r.Time[:19]+r.Dependency+"\x00"+r.Route] = true
		a.Arrivals++
		if r.Key != "" {
			a.Keyed++
		}
		if r.Status >= 500 {
			a.Failed++
		}
	}
	a.Cells = int64(len(cells))
	return a
}

func TestScanRefuses(t *testing.T) {
	for name, text := range map[string][]byte{
		"a line without a route": []byte(`{"time":"2026-03-02T09:00:00Z","dependency":"d"}` + "\n"),
		"a line cut short":       []byte(`{"time":"2026-03-02T09:`),
		"a line without an end":  bytes.Repeat([]byte("x"), 2*longestOne),
	} {
		if _, err := scan(bytes.NewReader(text), int64(len(text)), 2, 1024); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
