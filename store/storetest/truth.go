package storetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/keys"
	"github.com/targetside/auditor/store"
)

const second = int64(1e9)

// horizon is that of all traffic here.
const horizon = 40 * second

// traffic is what two scopes saw in some hours.
type traffic struct {
	onTime map[string][]aggregate.Arrival
	late   map[block][]aggregate.Arrival
}

// block is one late block.
type block struct {
	scope string
	of    int64
}

func arrival(start int64) aggregate.Arrival {
	return aggregate.Arrival{
		Start: start, Log: start, Duration: -1, RetryAfter: -1, Text: uint64(start), Route: 1, Originator: 1, Peer: 1,
		Question: aggregate.ID{Key: uint64(start), Rest: uint64(start)}, Class: keys.Verified, Kind: aggregate.KindEnd,
		Outcome: aggregate.OutcomeSuccess, AttemptsLeft: aggregate.NoBudget, Flags: aggregate.Head,
	}
}

// random makes traffic of some seconds from base on: questions with many tries,
// within the horizon of one another or beyond it, and across all kinds of buckets.
func random(r *rand.Rand, questions int, seconds int64) *traffic {
	t := &traffic{map[string][]aggregate.Arrival{}, map[block][]aggregate.Arrival{}}
	for q := range questions {
		scope := []string{"a", "b"}[q%2]
		at := base*second + r.Int64N(seconds)*second
		for range 1 + r.IntN(8) {
			a := arrival(at + r.Int64N(1000)*1e6)
			a.Text, a.Question = r.Uint64(), aggregate.ID{Key: uint64(q/3/2*2 + q%2), Rest: uint64(q)}
			a.Route, a.Originator, a.Peer = uint16(1+q%4), uint16(1+q%2), uint8(1+r.IntN(2))
			a.Duration = r.Int64N(2000) * 1e6
			a.Outcome = aggregate.Outcome(r.IntN(5))
			if q%5 == 0 {
				a.Class, a.Originator = keys.Claimed, 3
			}
			if r.IntN(3) == 0 {
				a.Attempt = uint8(1 + r.IntN(3))
			}
			if r.IntN(12) == 0 {
				a.Class, a.Reason, a.Question, a.Originator = keys.Unattributable, keys.Absent, aggregate.ID{}, 0
			}
			a.Log = a.Start + a.Duration
			if r.IntN(10) == 0 {
				in := block{scope, r.Int64N(5)}
				a.Originator = 0
				t.late[in] = append(t.late[in], a)
			} else {
				t.onTime[scope] = append(t.onTime[scope], a)
			}
			at += r.Int64N(horizon * 5 / 4)
		}
	}
	return t
}

// ledger counts arrivals, every so many ticks.
func ledger(in []aggregate.Arrival, every int64, late bool) []aggregate.Row {
	l := aggregate.NewLedger(aggregate.Config{Horizon: horizon, Lateness: 60 * second, Views: []aggregate.View{
		{Every: every, ByRoute: true, ByOriginator: true}, {Every: every, ByRoute: true, ByPeer: true},
	}})
	watermark := int64(math.MinInt64)
	if late {
		watermark = math.MaxInt64
	}
	out := new(aggregate.Output)
	for i := range in {
		l.Add(&in[i], nil, watermark)
	}
	l.Finish(out)
	return out.Rows
}

// rowsOf are the rows of arrivals of one scope and late block. Two dependencies
// have two routes each.
func rowsOf(in []aggregate.Arrival, every int64, scope string, late int64) []store.Row {
	byName := map[name]*store.Row{}
	for _, r := range ledger(in, every, late != store.OnTime) {
		x := store.Row{
			At: r.From, Scope: scope, LateBlock: late, Dependency: []string{"orders", "seats"}[r.Dims.Route%2],
			Wide: r.Wide, Rules: 1, Version: 1000, Counts: r.Counts,
		}
		if !r.Wide {
			x.Route = fmt.Sprint("GET /", r.Dims.Route)
		}
		if r.View == 0 {
			x.Name = fmt.Sprint("originator ", r.Dims.Originator)
		} else {
			x.Family, x.Name = store.ByPeer, fmt.Sprint("peer ", r.Dims.Peer)
		}
		merge(byName, x)
	}
	return inOrder(byName)
}

// merge adds a row to those of its name.
func merge(rows map[name]*store.Row, r store.Row) {
	if was := rows[nameOf(&r)]; was != nil {
		was.Counts.Merge(r.Counts)
		return
	}
	rows[nameOf(&r)] = &r
}

func inOrder(rows map[name]*store.Row) []store.Row {
	var out []store.Row
	for _, r := range rows {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b store.Row) int { return int(a.At - b.At) })
	return out
}

// rows are all rows of a resolution, as counted directly: late ones apart in
// ticks, and together with the others in everything coarser.
func (t *traffic) rows(every int64) []store.Row {
	all := map[name]*store.Row{}
	add := func(rows []store.Row) {
		for _, r := range rows {
			if every > 1 {
				r.LateBlock = store.OnTime
			}
			merge(all, r)
		}
	}
	for scope, in := range t.onTime {
		add(rowsOf(in, every, scope, store.OnTime))
	}
	for b, in := range t.late {
		add(rowsOf(in, every, b.scope, b.of))
	}
	return inOrder(all)
}

// questions is how many questions were under way from one tick to another, not
// included: arrivals of one that are at most one horizon apart are one question's.
func (t *traffic) questions(from, to int64) (n uint64) {
	starts := map[aggregate.ID][]int64{}
	for _, in := range t.onTime {
		for _, a := range in {
			if a.Class != keys.Unattributable {
				starts[a.Question] = append(starts[a.Question], a.Start)
			}
		}
	}
	for _, list := range starts {
		slices.Sort(list)
		last, counted := int64(math.MinInt64/2), false
		for _, at := range list {
			if at-last > horizon {
				counted = false
			}
			last = at
			if at >= from*second && at < to*second && !counted {
				counted = true
				n++
			}
		}
	}
	return n
}
