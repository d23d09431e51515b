package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Share is something that one member of a fleet tells the others of. What is in it the
// store does not know.
type Share struct {
	Member string // a process; another for each start
	Kind   uint8
	Name   string
	At     int64
	State  []byte
}

// SharesFor is for how long what is told is kept: from then on a member that has told
// nothing more is as if it had never been.
const SharesFor = 15 * time.Minute

// Since is how far a member has read what others tell; the zero Since is nothing.
type Since struct{ at time.Time }

// sharesAgain is how much of what was read before is read again: an insert becomes
// visible some time after the time that it carries. Who tells something takes it for
// told only if that took less.
const sharesAgain = 10 * time.Second

// Sharer is a store through which the members of a fleet tell each other what they
// count. That of a single daemon is none.
type Sharer interface {
	// Exchange stores what a member tells, all of it or nothing, in place of what it told
	// before of the same kind, name and time; and returns what all members have told
	// since, itself too, some of it perhaps once more. Of the rest that was told in the
	// last SharesFor it returns all to who asks since nothing. An error does not say
	// whether it was stored: whoever gets one tells the same again, or more, and asks
	// since the same. Shares are told in the order of seq, which rises; one that was held
	// up for longer than its teller waited may be returned though a later one was before.
	Exchange(ctx context.Context, fleet, member string, seq uint64, told []Share, since Since) ([]Share, Since, error)
}

// ErrNotShared is the error of a store that one daemon has for itself.
var ErrNotShared = fmt.Errorf("a store of one daemon: others cannot be told anything")

// Exchange implements Sharer, if the store within does.
func (c *ErrorCounter) Exchange(ctx context.Context, fleet, member string, seq uint64, told []Share, since Since) ([]Share, Since, error) {
	s, ok := c.Store.(Sharer)
	if !ok {
		return nil, since, ErrNotShared
	}
	out, since, err := s.Exchange(ctx, fleet, member, seq, told, since)
	return out, since, c.noted(err)
}

// toldID names a share.
type toldID struct {
	fleet, member string
	kind          uint8
	name          string
	at            int64
}

// toldShare is a share, and when it was told.
type toldShare struct {
	state []byte
	seq   uint64
	at    time.Time
}

// Exchange implements Sharer. The time is that of the process.
func (m *Memory) Exchange(ctx context.Context, fleet, member string, seq uint64, told []Share, since Since) (out []Share, next Since, err error) {
	err = m.do(ctx, func() error {
		now := time.Now()
		for _, x := range told {
			id := toldID{fleet, member, x.Kind, x.Name, x.At}
			if was, ok := m.shares[id]; !ok || was.seq <= seq {
				m.shares[id] = toldShare{bytes.Clone(x.State), seq, now}
			}
		}
		for id, x := range m.shares {
			switch {
			case now.Sub(x.at) > SharesFor:
				delete(m.shares, id)
			case id.fleet == fleet && x.at.After(since.at.Add(-sharesAgain)):
				out = append(out, Share{id.member, id.kind, id.name, id.at, bytes.Clone(x.state)})
				if x.at.After(next.at) {
					next.at = x.at
				}
			}
		}
		slices.SortFunc(out, func(a, b Share) int {
			return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.At, b.At))
		})
		return nil
	})
	if err != nil {
		return nil, since, err
	}
	return out, later(next, since), nil
}

func later(a, b Since) Since {
	if a.at.After(b.at) {
		return a
	}
	return b
}
