package pipeline

import (
	"math"
	"testing"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/keys"
)

// What the ledger looks at must come through a batch as it was put in.
func TestItemHoldsTheArrival(t *testing.T) {
	full := aggregate.Arrival{
		Start: math.MinInt64 + 1, Log: math.MaxInt64, Duration: math.MaxInt64 - 1, RetryAfter: 7_130_000_000,
		Question: aggregate.ID{Key: math.MaxUint64, Rest: math.MaxUint64 - 1}, Text: math.MaxUint32,
		Route: 2, Originator: math.MaxUint16, Peer: 200, Class: keys.Verified, Reason: keys.Late,
		Outcome: aggregate.OutcomeOther, Departure: 4, Kind: aggregate.KindEnd,
		Attempt: 255, AttemptsLeft: aggregate.NoBudget, Flags: aggregate.InFront | aggregate.Refused,
	}
	none := aggregate.Arrival{Duration: -1, RetryAfter: -1}
	zero := aggregate.Arrival{RetryAfter: 0}
	p := part{}
	all := []aggregate.Arrival{full, none, zero, full}
	texts := []string{"a key", "", "another", ""}
	for i := range all {
		a := all[i]
		a.Route = 1 - a.Route/2 // to be mapped
		p.add(&a, uint16(i), int64(i), []byte(texts[i]))
	}
	rest := p.keys
	for i := range p.items {
		var got aggregate.Arrival
		p.items[i].arrival(&got, []uint16{2, 0}, []uint8{200, 0, 0, 200})
		if got != all[i] {
			t.Errorf("arrival %d came out as\n%+v, want\n%+v", i, got, all[i])
		}
		n := p.items[i].keyLen
		if string(rest[:n]) != texts[i] || p.items[i].before != int64(i) {
			t.Errorf("arrival %d has the key %q after %d", i, rest[:n], p.items[i].before)
		}
		rest = rest[n:]
	}
	for ns, want := range map[int64]int64{-5: -1, 1: 0, 12_345_678: 10_000_000, math.MaxInt64: 655_340_000_000} {
		if got := aggregate.UnpackRetry(aggregate.PackRetry(ns)); got != want {
			t.Errorf("a Retry-After of %d ns comes out as %d, want %d", ns, got, want)
		}
	}
}
