package aggregate

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// episodes are those of a set of arrivals, straight from the definition: the
// arrivals of one question, cut where more than a horizon lies between two.
func (n *naive) episodes() (all []Episode) {
	at := map[ID]int{}
	for i := range n.real {
		a := &n.real[i]
		if !n.known(a) {
			continue
		}
		k, ok := at[a.Question]
		if !ok || a.Start-all[k].Last > n.horizon {
			k = len(all)
			at[a.Question] = k
			all = append(all, Episode{KeyHash: hashOf(keyText(a)), Lot: lotOf(a), Dims: Dims{Route: a.Route, Originator: a.Originator}, First: a.Start})
		}
		e := &all[k]
		e.Arrivals++
		e.Last, e.Over, e.Dims.Peer = a.Start, tickOf(a.Start+n.horizon), a.Peer
		if !slices.Contains(e.Peers, a.Peer) {
			e.Peers = append(e.Peers, a.Peer)
		}
	}
	return all
}

func keyText(a *Arrival) []byte { return binary.BigEndian.AppendUint64(nil, a.Question.Key) }

func hashOf(key []byte) (h [16]byte) {
	copy(h[:], "hash of ")
	copy(h[8:], key)
	return h
}

// lotOf draws one question in four.
func lotOf(a *Arrival) Lot { return Lot(a.Question.Rest%4<<24 + a.Question.Rest) }

func told(list []Episode) (out []string) {
	for _, e := range list {
		slices.Sort(e.Peers)
		e.Dims.Peer = 0 // of arrivals with one start, either
		e.First = floorDiv(e.First, 1e6)
		out = append(out, fmt.Sprintf("%+v", e))
	}
	slices.Sort(out)
	return out
}

func showing(horizon, lateness int64, episodes uint32) Config {
	return Config{Horizon: horizon, Lateness: lateness, Live: true, KeyHash: hashOf, Episodes: episodes}
}

// However arrivals come in: what is handed out is every episode that is wanted,
// once, and those that are drawn.
func TestEpisodesAreHandedOut(t *testing.T) {
	const horizon, lateness = 60 * sec, 25 * sec
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 51))
		in := randomArrivals(r, 1+r.IntN(250), 20*sec)
		wanted := uint32(r.IntN(4))
		l := NewLedger(showing(horizon, lateness, wanted))
		out := new(Output)
		mark := int64(minTick)
		sightings := 0
		for _, a := range disorder(r, in, lateness-8*sec) {
			if a.Lot = lotOf(&a); a.Class > 0 && a.Lot.Drawn() {
				sightings++
			}
			l.Add(&a, keyText(&a), minTick)
			if r.IntN(5) == 0 {
				l.Live(out)
			}
			mark = max(mark, a.Log)
			l.Close(floorDiv(mark-lateness, sec), out)
		}
		l.Finish(out)
		want := slices.DeleteFunc(newNaive(in, horizon).episodes(), func(e Episode) bool {
			return !e.Lot.Drawn() && (wanted == 0 || e.Arrivals < wanted)
		})
		if got, want := told(out.Episodes), told(want); !slices.Equal(got, want) {
			t.Fatalf("seed %d, from %d arrivals on:\n%q\nwant\n%q", seed, wanted, got, want)
		}
		if len(out.Sightings) != sightings {
			t.Fatalf("seed %d: %d sightings, want %d", seed, len(out.Sightings), sightings)
		}
	}
}

// At every moment, what is told of the questions under way is what the arrivals so
// far make of them.
func TestQuestionsUnderWay(t *testing.T) {
	const horizon, lateness = 60 * sec, 25 * sec
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 52))
		in := randomArrivals(r, 1+r.IntN(250), 20*sec)
		l := NewLedger(showing(horizon, lateness, 2))
		out := new(Output)
		mark := int64(minTick)
		var come []Arrival
		for _, a := range disorder(r, in, lateness-8*sec) {
			a.Lot = lotOf(&a)
			l.Add(&a, keyText(&a), minTick)
			come = append(come, a)
			mark = max(mark, a.Log)
			l.Close(floorDiv(mark-lateness, sec), out)
			if r.IntN(20) > 0 {
				continue
			}
			// The latest episode of each question, unless it is over.
			latest := map[string]Episode{}
			for _, e := range newNaive(come, horizon).episodes() {
				latest[fmt.Sprint(e.KeyHash, e.Lot)] = e
			}
			var want []Episode
			groups := map[uint16]int{}
			for _, e := range latest {
				if over := e.Over; over >= l.closed && e.Arrivals > 1 {
					e.Over = 0
					want = append(want, e)
					groups[e.Dims.Route%2]++
				}
			}
			group := []uint16{0, 1, 0, 1}
			got := l.UnderWay(1000, group)
			if got, want := told(got), told(want); !slices.Equal(got, want) {
				t.Fatalf("seed %d, after %d: under way are\n%q\nwant\n%q", seed, len(come), got, want)
			}
			key := hashOf(keyText(&a))
			other := func(e Episode) bool { return e.KeyHash != key }
			found := slices.DeleteFunc(l.Find(key), func(e Episode) bool { return e.Arrivals < 2 })
			if got, want := told(found), told(slices.DeleteFunc(slices.Clone(want), other)); !slices.Equal(got, want) {
				t.Fatalf("seed %d, after %d: found are\n%q\nwant\n%q", seed, len(come), got, want)
			}
			// The worst of each group only.
			few := l.UnderWay(2, group)
			for g, n := range groups {
				of := func(list []Episode) (arrivals []uint32) {
					for _, e := range list {
						if e.Dims.Route%2 == g {
							arrivals = append(arrivals, e.Arrivals)
						}
					}
					slices.Sort(arrivals)
					return arrivals
				}
				if got, want := of(few), of(want)[max(0, n-2):]; !slices.Equal(got, want) {
					t.Fatalf("seed %d, after %d: the worst have %d arrivals, want %d", seed, len(come), got, want)
				}
			}
		}
	}
}

// A question that is over is found no more, and another in its place in the table
// is not taken for it.
func TestWhatIsOverIsNotFound(t *testing.T) {
	const horizon = 60 * sec
	l, out := NewLedger(showing(horizon, 10*sec, 2)), new(Output)
	a := Arrival{Start: testBase, Log: testBase, RetryAfter: -1, Question: ID{1, 2}, Lot: 1 << 31, Text: 7, Class: 1, Flags: Head, AttemptsLeft: NoBudget, Kind: KindEnd}
	for range 3 {
		a.Start, a.Log, a.Text = a.Start+sec, a.Start+sec, a.Text+1
		l.Add(&a, keyText(&a), minTick)
	}
	first := hashOf(keyText(&a))
	if got := l.Find([16]byte{}); len(got) != 0 { // that of places without a question
		t.Errorf("questions without a hash were found: %v", got)
	}
	if got := l.Find(first); len(got) != 1 || got[0].Arrivals != 3 {
		t.Fatalf("found %+v", got)
	}
	l.Close(tickOf(a.Start)+62, out)
	if got := l.Find(first); len(got) != 0 || len(l.UnderWay(10, nil)) != 0 {
		t.Errorf("it is over and found: %+v", got)
	}
	if len(out.Episodes) != 1 || out.Episodes[0].Arrivals != 3 {
		t.Errorf("handed out is %+v", out.Episodes)
	}
	a.Question, a.Start, a.Log = ID{3, 4}, a.Start+100*sec, a.Start+100*sec
	l.Add(&a, keyText(&a), minTick) // asked once: its hash is not wanted
	if got := l.Find(first); len(got) != 0 {
		t.Errorf("another question is taken for it: %+v", got)
	}
	l.Finish(out)
	if len(out.Episodes) != 1 {
		t.Errorf("handed out is %+v", out.Episodes)
	}
}
