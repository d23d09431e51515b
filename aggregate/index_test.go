package aggregate

import (
	"math/rand/v2"
	"testing"
)

// TestIndex holds the index to a map while entries come and go, and its count of
// removed entries to what stands in its slots: if that were off, a look-up might
// never end, or a removed entry hide those behind it.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	table := newQuestions()
	where := map[uint64]uint32{}
	var keys []uint64
	for step := range 200_000 {
		if want := 3000 * (1 + step/50_000%2); len(keys) < want/2 || len(keys) < want && r.IntN(2) == 0 {
			key := r.Uint64()
			i, made := table.get(ID{Key: key})
			if !made {
				t.Fatal("a new key was found")
			}
			where[key], keys = i, append(keys, key)
		} else {
			k := r.IntN(len(keys))
			table.drop(where[keys[k]])
			delete(where, keys[k])
			keys[k] = keys[len(keys)-1]
			keys = keys[:len(keys)-1]
		}
		if step%10_000 > 0 {
			continue
		}
		for key, i := range where {
			if at, ok := table.index.find(&table, key); !ok || at != i {
				t.Fatalf("step %d: entry %d is found at %d, %v", step, i, at, ok)
			}
		}
		live := 0
		for s := range table.index.segs {
			seg, gone := &table.index.segs[s], 0
			for _, v := range seg.slots {
				if v == slotGone {
					gone++
				}
			}
			if live += seg.live; gone != seg.gone {
				t.Fatalf("step %d: %d slots are of removed entries, not %d", step, gone, seg.gone)
			}
		}
		if live != len(where) || table.live != live {
			t.Fatalf("step %d: %d and %d live, not %d", step, live, table.live, len(where))
		}
	}
}
