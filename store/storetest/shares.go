package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/targetside/auditor/store"
)

// shares holds a store through which fleets tell each other something to that; others
// have none.
func (s *suite) shares() {
	x, ok := s.store.(store.Sharer)
	if !ok {
		if _, _, err := store.CountErrors(s.store).Exchange(ctx, "f", "a", 1, nil, store.Since{}); !errors.Is(err, store.ErrNotShared) {
			s.Errorf("a store of one daemon says %v", err)
		}
		return
	}
	tell := func(name string, at int64, state string) store.Share {
		return store.Share{Kind: 1, Name: name, At: at, State: []byte(state)}
	}
	exchange := func(fleet, member string, seq uint64, since store.Since, told ...store.Share) ([]string, store.Since) {
		s.Helper()
		got, next, err := x.Exchange(ctx, fleet, member, seq, told, since)
		if err != nil {
			s.Fatal(err)
		}
		var out []string
		for _, g := range got {
			out = append(out, fmt.Sprintf("%s %d %s %d %s", g.Member, g.Kind, g.Name, g.At, g.State))
		}
		return out, next
	}
	wants := func(got []string, want ...string) {
		s.Helper()
		if !slices.Equal(got, want) {
			s.Errorf("told are %q, want %q", got, want)
		}
	}
	got, since := exchange("f", "a", 1, store.Since{}, tell("p/0", 7, "one\x00\xff"), tell("p/0", -8, ""))
	wants(got, "a 1 p/0 -8 ", "a 1 p/0 7 one\x00\xff")
	got, _ = exchange("another", "a", 1, store.Since{}, tell("p/0", 7, "of another fleet"))
	wants(got, "a 1 p/0 7 of another fleet")
	// What one member tells replaces nothing of another's, and of its own what came
	// before, whichever is written last.
	exchange("f", "b", 1, since, tell("p/0", 7, "b's"))
	exchange("f", "a", 3, since, tell("p/0", 7, "three"))
	exchange("f", "a", 2, since, tell("p/0", 7, "two, held up on the way"))
	got, since = exchange("f", "b", 2, since)
	wants(got, "a 1 p/0 -8 ", "a 1 p/0 7 three", "b 1 p/0 7 b's")
	// Who has read all that is told gets what is new, at least.
	exchange("f", "a", 4, since, tell("p/1", 1, "new"))
	got, _ = exchange("f", "b", 3, since)
	if !slices.Contains(got, "a 1 p/1 1 new") {
		s.Errorf("told are %q, and not what is new", got)
	}
	got, _ = exchange("f", "c", 1, store.Since{})
	wants(got, "a 1 p/0 -8 ", "a 1 p/0 7 three", "a 1 p/1 1 new", "b 1 p/0 7 b's")
	s.Run("cancelled", func(t *testing.T) {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, again, err := x.Exchange(gone, "f", "b", 4, []store.Share{tell("p/9", 1, "never")}, since); !errors.Is(err, context.Canceled) || again != since {
			t.Errorf("cancelled, it says %v", err)
		}
	})
}
