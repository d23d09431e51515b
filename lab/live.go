package lab

import "time"

// Live is told of a run while it goes on: what plays in real time waits in it, and has
// the truth of every second as soon as there is one. Its methods are called by the
// goroutine of Run.
type Live interface {
	// Until is called before anything happens that is later than all before, with how
	// long after the beginning that is. Whatever was logged is written by then. An error
	// ends the run.
	Until(at time.Duration) error
	// Opened is a question's first arrival at a target, and the second of that (Unix).
	Opened(question uint64, target string, second int64)
	// Settled is what is true of a question's arrivals that have a record, by the second
	// in which they began, once nothing more can happen to it.
	Settled(question uint64, target string, truth map[int64]*Counts)
}

// Start lets a scenario begin at a moment, to the millisecond, instead of the one that
// it says.
func (s *Scenario) Start(at time.Time) { s.begins = at.UTC().Truncate(time.Millisecond) }

// Peers names the layers by the addresses that stand for them in the log.
func (s *Scenario) Peers() map[string]string {
	peers := map[string]string{}
	for i := range s.Layers {
		peers[address(i)] = s.Layers[i].Name
	}
	return peers
}

// tell says what is true of a question that is over.
func (b *book) tell(m *model, q *question) {
	truth := map[int64]*Counts{}
	b.tally(m, q, q.facts, func(f *fact) *Counts {
		c := truth[f.start/1000]
		if c == nil {
			c = newCounts()
			truth[f.start/1000] = c
		}
		return c
	})
	m.live.Settled(q.id, m.targets[m.routes[m.clients[q.client].route].target].Name, truth)
}

// happensLater lets a live run wait for the moment of what happens next.
func (m *model) happensLater(at int64) error {
	if m.live == nil || at <= m.now {
		return nil
	}
	if err := m.log.flush(); err != nil {
		return err
	}
	return m.live.Until(time.Duration(at))
}
