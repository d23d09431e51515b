package aggregate

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
)

// What is told of seconds and of closed ticks is what was counted, and what is cut
// short or of a newer program is no sums.
func TestSumsSurviveBeingTold(t *testing.T) {
	const horizon, lateness = 60 * sec, 25 * sec
	ones := 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 41))
		l := NewLedger(Config{Horizon: horizon, Lateness: lateness, Live: true, Views: []View{{Every: 1, ByRoute: true, ByOriginator: true}}})
		out := new(Output)
		for _, a := range disorder(r, randomArrivals(r, 200, 20*sec), lateness-8*sec) {
			l.Add(&a, nil, minTick)
			l.Live(out)
		}
		l.Finish(out)
		live, closed := new(Sums), map[int64]*ClosedSums{}
		for i := range out.Beats {
			live.Add(&out.Beats[i])
		}
		for _, row := range out.Rows {
			if !row.Wide {
				if closed[row.From] == nil {
					closed[row.From] = new(ClosedSums)
				}
				closed[row.From].AddCounts(row.Counts)
			}
		}
		told := live.AppendSums(nil)
		got := new(Sums)
		rest, err := got.AddTold(append(told, "what follows"...))
		if err != nil || string(rest) != "what follows" {
			t.Fatalf("%q follows, %v", rest, err)
		}
		if got.Totals() != live.Totals() || got.Budget() != live.Budget() {
			t.Fatalf("seed %d: told\n%+v\ncounted\n%+v", seed, got.Budget(), live.Budget())
		}
		if _, err := got.AddTold(told); err != nil || got.Totals().Arrivals != 2*live.Totals().Arrivals {
			t.Fatalf("told twice are %d arrivals, %v", got.Totals().Arrivals, err)
		}
		all, want := new(RangeSums), new(RangeSums)
		for tick, c := range closed {
			again, rest, err := DecodeClosedSums(c.AppendSums(nil))
			if err != nil || len(rest) > 0 {
				t.Fatalf("%d bytes follow, %v", len(rest), err)
			}
			all.Add(again, tick)
			want.Add(c, tick)
			ones += len(c.ones)
		}
		d, verified := all.Questions()
		d2, verified2 := want.Questions()
		if all.Totals() != want.Totals() || d != d2 || verified != verified2 || !reflect.DeepEqual(all.Hops(), want.Hops()) {
			t.Fatalf("seed %d: closed ticks are told as %d questions, want %d", seed, d, d2)
		}
		for n := range told {
			if _, err := new(Sums).AddTold(told[:n]); !errors.Is(err, ErrCounts) {
				t.Fatalf("%d bytes of %d are sums, %v", n, len(told), err)
			}
		}
	}
	if ones == 0 {
		t.Error("no question had a hop number")
	}
	newer := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}
	if _, err := new(Sums).AddTold(newer); numCounters < 64 && !errors.Is(err, ErrCounts) {
		t.Errorf("counters that are not known: %v", err)
	}
}
