package aggregate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/targetside/auditor/keys"
)

// rowsEvery are the rows of some arrivals, by tick, every so many ticks.
func rowsEvery(in []Arrival, horizon, every int64) []Row {
	l := NewLedger(Config{Horizon: horizon, Lateness: 60 * sec, Views: []View{{Every: every, ByRoute: true, ByOriginator: true}, {Every: every, ByRoute: true, ByPeer: true}}})
	out := new(Output)
	for i := range in {
		l.Add(&in[i], nil, minTick)
	}
	l.Finish(out)
	var rows []Row
	wide := map[Row]*Counts{}
	for _, r := range out.Rows {
		if !r.Wide {
			rows = append(rows, r)
			continue
		}
		id := r // of the whole: which of its routes is named does not matter
		id.Dims.Route, id.Counts = 0, nil
		merge(wide, id, r.Counts)
	}
	for id, c := range wide {
		id.Counts = c
		rows = append(rows, id)
	}
	return rows
}

// ownKeys gives each key one originator, as it has in life.
func ownKeys(in []Arrival) []Arrival {
	for i := range in {
		if a := &in[i]; a.Class != keys.Unattributable {
			a.Class, a.Originator = keys.Verified, uint16(1+a.Question.Key%2)
		}
	}
	return in
}

func TestCountsSurviveEncoding(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 21))
		in := ownKeys(randomArrivals(r, 200, 10*sec))
		shuffled := disorder(r, in, 20*sec)
		encoded := map[string][]byte{}
		for _, row := range rowsEvery(in, 10*sec, 1) {
			b := row.Counts.Append(nil)
			c, err := DecodeCounts(b)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "decoded", c, row.Counts)
			if got, want := fmt.Sprint(c.FanOut, sortedCarries(c)), fmt.Sprint(row.Counts.FanOut, sortedCarries(row.Counts)); got != want && c.FanOut.N() == 0 {
				t.Fatalf("decoded fan-out and carries are %s, want %s", got, want)
			}
			if again := c.Append(nil); !bytes.Equal(again, b) {
				t.Fatalf("decoded and encoded again it is\n%x, was\n%x", again, b)
			}
			encoded[fmt.Sprint(row.View, row.From, row.Dims, row.Wide)] = b
		}
		for _, row := range rowsEvery(shuffled, 10*sec, 1) {
			if b := row.Counts.Append(nil); !bytes.Equal(b, encoded[fmt.Sprint(row.View, row.From, row.Dims, row.Wide)]) {
				t.Fatal("equal counts have unequal bytes")
			}
		}
	}
}

// A row of a coarser view is what its finer rows are together.
func TestCoarserRowsFollowFromFiner(t *testing.T) {
	const horizon = 25 * sec
	for seed := range uint64(40) {
		in := ownKeys(randomArrivals(rand.New(rand.NewPCG(seed, 22)), 200, horizon))
		got := map[string]*Counts{}
		for _, row := range rowsEvery(in, horizon, 1) {
			id := fmt.Sprint(row.View, floorDiv(row.From, 10), row.Dims, row.Wide)
			if got[id] == nil {
				got[id] = new(Counts)
			}
			finer := row.Counts.Append(nil)
			got[id].MergeFiner(row.Counts, row.From, 10)
			if !bytes.Equal(row.Counts.Append(nil), finer) {
				t.Fatalf("seed %d: merging changed the finer row of %s", seed, id)
			}
		}
		want := rowsEvery(in, horizon, 10)
		for _, row := range want {
			id := fmt.Sprint(row.View, row.From/10, row.Dims, row.Wide)
			if got[id] == nil || !bytes.Equal(got[id].Append(nil), row.Counts.Append(nil)) {
				t.Fatalf("seed %d: row %s does not follow from its ticks", seed, id)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d rows, want %d", len(got), len(want))
		}
	}
}

func FuzzDecodeCounts(f *testing.F) {
	for _, row := range rowsEvery(randomArrivals(rand.New(rand.NewPCG(1, 23)), 60, 10*sec), 10*sec, 10) {
		f.Add(row.Counts.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeCounts(b)
		if err != nil {
			return
		}
		again, err := DecodeCounts(c.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		again.Merge(c)
	})
}
