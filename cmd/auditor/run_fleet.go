package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/alerts"
	"github.com/targetside/auditor/pipeline"
	"github.com/targetside/auditor/store"
)

// fleet is this instance among those that share out the scopes of a dependency. Once a
// second it tells the others, through the store, what it counts, and hears what they do:
// what is asked of the fleet is the sum, in each of them. One of them tells sinks of the
// alerts on it.
//
// Nobody compares clocks: a member is well as long as it is heard to go on. Whoever is to
// tell sinks says so first, and for two more rounds hears whether others do, so that of
// two that begin at once one gives way; who tells goes on until it is not heard any more,
// and stops by itself when it cannot hear the others.
type fleet struct {
	store  store.Sharer
	member string // this process
	log    *slog.Logger

	// Of step alone.
	pending map[toldKey][]byte
	since   store.Since
	seq     uint64
	failing bool // the latest exchange did not succeed, and that was said

	mu      sync.Mutex
	name    string // empty: none
	sums    *pipeline.Fleet
	peers   map[string]*peer // this member among them, by member
	own     memberState      // but for scopes, as of the newest picture
	may     bool             // it may tell sinks
	reached time.Time        // when the latest exchange that succeeded began
	ended   time.Time        // when the latest exchange ended, or else when it began to
	lacked  time.Duration    // for how long exchanges have failed since one succeeded
	claims  int              // for how many rounds it says that it is to tell sinks
	telling bool
}

const (
	// exchangeEvery is how often members tell each other what they count, and
	// exchangeWithin how long that may take.
	exchangeEvery  = time.Second
	exchangeWithin = 4 * time.Second
	// staleAfter is after how long without a word a member is not well any more: its
	// scopes are counted by nobody, and another tells sinks.
	staleAfter = 5 * time.Second
	// aloneAfter is for how long a member does not get to hear the others before it goes by
	// what it knows itself. While the process does not run it asks nobody: one exchange
	// that fails is no longer than it may be.
	aloneAfter = 10 * time.Second
	// claimRounds is for how many more rounds a member hears the others before it tells
	// sinks.
	claimRounds = 2
	// toldFor is how long what could not be told is kept to be told, in log time: longer
	// than windows reach.
	toldFor = 15 * 60
)

// toldMember is the kind of share that a member's state is; others are pipeline's.
const toldMember = 100

// toldKey names what is to be told.
type toldKey struct {
	kind  pipeline.ToldKind
	scope string
	at    int64
}

// memberState is what a member tells of itself.
type memberState struct {
	Seq     uint64                `json:"seq"`
	Claims  bool                  `json:"claims,omitempty"`  // it is to tell sinks, if nobody else is
	Next    bool                  `json:"next,omitempty"`    // and does so from now on, unless it hears now that another is
	Telling bool                  `json:"telling,omitempty"` // it tells sinks
	Gone    bool                  `json:"gone,omitempty"`    // that is its last word
	Scopes  []pipeline.ScopeState `json:"scopes"`
	Routes  []string              `json:"routes,omitempty"` // that it tells of by themselves
	Sources []alerts.Source       `json:"sources"`
	Store   bool                  `json:"store,omitempty"` // what it counts cannot be stored
	Read    uint64                `json:"read"`
	Lost    uint64                `json:"lost"`
	Bits    int                   `json:"bits,omitempty"`
	Split   []string              `json:"split,omitempty"`  // dependencies
	Alerts  alerts.List           `json:"alerts,omitempty"` // of whoever tells sinks
}

// peer is a member as it was heard.
type peer struct {
	memberState
	seen   time.Time // when it was last heard to go on
	heard  int       // how often
	broken time.Time // when something of it could not be read
}

func newFleet(s store.Sharer, log *slog.Logger) *fleet {
	return &fleet{store: s, member: rand.Text(), log: log}
}

// begin makes it a member of a fleet.
func (f *fleet) begin(name string, now time.Time) {
	f.name, f.sums, f.peers, f.pending, f.since = name, pipeline.NewFleet(), map[string]*peer{}, map[toldKey][]byte{}, store.Since{}
	f.ended, f.reached, f.lacked, f.claims, f.telling = now, time.Time{}, 0, 0, false
}

// offer sets what this member tells of itself. may says that it may tell sinks.
func (f *fleet) offer(own memberState, may bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.own, f.may = own, may
}

// run exchanges until ctx ends, and then tells the others that this member is gone.
func (f *fleet) run(ctx context.Context, setup func() *setup) {
	every(ctx, exchangeEvery, func() { f.step(ctx, setup(), false) })
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime/3)
	defer cancel()
	f.step(ctx, setup(), true)
}

// step tells what there is, and hears the others.
func (f *fleet) step(ctx context.Context, x *setup, gone bool) {
	name := x.loaded.fleetName()
	if name == "" {
		f.mu.Lock()
		f.name = ""
		f.mu.Unlock()
		return
	}
	var own memberState
	var told []pipeline.Told
	told, own.Scopes, own.Routes = x.live.Tell()
	own.Gone = gone
	f.round(ctx, name, told, own)
}

// round is one exchange of the fleet with this name. own is what this member tells of its
// scopes.
func (f *fleet) round(ctx context.Context, name string, told []pipeline.Told, own memberState) {
	now := time.Now()
	f.mu.Lock()
	if f.name != name {
		f.begin(name, now)
	}
	f.fresh(now)
	f.collect(told)
	f.seq++
	say := f.own
	say.Scopes, say.Routes, say.Gone = own.Scopes, own.Routes, own.Gone
	say.Seq, say.Telling, say.Claims, say.Next = f.seq, f.telling, f.claims > 0, f.claims == claimRounds
	if !f.telling {
		say.Alerts = nil
	}
	f.mu.Unlock()

	shares := []store.Share{{Kind: toldMember, State: say.encode()}}
	for k, state := range f.pending {
		shares = append(shares, store.Share{Kind: uint8(k.kind), Name: k.scope, At: k.at, State: state})
	}
	within, cancel := context.WithTimeout(ctx, exchangeWithin)
	defer cancel()
	heard, next, err := f.store.Exchange(within, name, f.member, f.seq, shares, f.since)
	if err == nil && !f.returned(heard) {
		err, f.since = errNotReturned, store.Since{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	took := time.Since(f.ended)
	f.ended = time.Now()
	if err != nil {
		f.lacked += min(took, exchangeEvery+exchangeWithin)
		if ctx.Err() == nil && !f.failing {
			f.failing = true
			f.log.Warn("what the other instances count cannot be had; alerts go by this one's share if that lasts", "error", err)
		}
		return
	}
	if f.failing {
		f.failing = false
		f.log.Info("what the other instances count can be had again")
	}
	clear(f.pending)
	f.fresh(f.ended)
	f.since, f.reached, f.lacked = next, now, 0
	f.hear(heard, f.ended)
	f.elect(f.ended)
}

// errNotReturned is the error of a store that takes what it is told, and does not return it:
// what others tell is then missing, too.
var errNotReturned = errors.New("the store does not return what it was told a moment ago: its clock was set back, or it has several servers, of which one lags behind the others; see docs/clickhouse.md")

// returned says whether this member's newest word is among what was heard.
func (f *fleet) returned(shares []store.Share) bool {
	return slices.ContainsFunc(shares, func(s store.Share) bool {
		var state memberState
		return s.Member == f.member && s.Kind == toldMember && json.Unmarshal(s.State, &state) == nil && state.Seq == f.seq
	})
}

// fresh says whether it is known of a moment ago what the others say. If not, another may
// tell sinks by now: this one does not any more.
func (f *fleet) fresh(now time.Time) bool {
	if now.Sub(f.reached) < staleAfter {
		return true
	}
	f.claims, f.telling = 0, false
	return false
}

// collect adds what is to be told. What no window reaches any more is left out, of a
// store that was away for long.
func (f *fleet) collect(told []pipeline.Told) {
	newest := map[toldKey]int64{}
	for i := range told {
		t := &told[i]
		f.pending[toldKey{t.Kind, t.Scope, t.At}] = t.State
	}
	for k := range f.pending {
		of := toldKey{kind: k.kind, scope: k.scope}
		newest[of] = max(newest[of], k.at)
	}
	for k := range f.pending {
		if k.at < newest[toldKey{kind: k.kind, scope: k.scope}]-toldFor {
			delete(f.pending, k)
		}
	}
}

func (m *memberState) encode() []byte {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // of numbers and texts alone
	}
	return text
}

// hear takes what members tell.
func (f *fleet) hear(shares []store.Share, now time.Time) {
	broken := func(member string, err error) {
		p := f.peer(member)
		if p.broken.IsZero() {
			f.log.Error("what another instance counts cannot be read; its share is missing until all are of one version", "member", member, "error", err)
		}
		p.broken = now
	}
	for i := range shares {
		s := &shares[i]
		if s.Kind != toldMember {
			t := pipeline.Told{Kind: pipeline.ToldKind(s.Kind), Scope: s.Name, At: s.At, State: s.State}
			if err := f.sums.Hear(s.Member, &t); err != nil {
				broken(s.Member, err)
			}
			continue
		}
		var state memberState
		if err := json.Unmarshal(s.State, &state); err != nil {
			broken(s.Member, err)
			continue
		}
		p := f.peer(s.Member)
		if state.Seq <= p.Seq {
			continue // it is read again
		}
		p.memberState, p.seen = state, now
		p.heard++
		f.sums.HearStates(s.Member, state.Scopes, state.Routes)
	}
	for name, p := range f.peers {
		if now.Sub(later(p.seen, p.broken)) > store.SharesFor {
			delete(f.peers, name)
			f.sums.Forget(name)
		}
	}
}

func (f *fleet) peer(member string) *peer {
	if f.peers[member] == nil {
		f.peers[member] = new(peer)
	}
	return f.peers[member]
}

// well says that a member goes on.
func (p *peer) well(now time.Time) bool { return !p.Gone && now.Sub(p.seen) < staleAfter }

// elect finds who tells sinks.
func (f *fleet) elect(now time.Time) {
	others, lower, next := false, false, false // somebody else does; is to, before this one; may do so already
	for name, p := range f.peers {
		if name == f.member || !p.well(now) {
			continue
		}
		others = others || p.Telling && (!f.telling || name < f.member)
		lower = lower || p.Claims && name < f.member
		next = next || p.Next
	}
	switch {
	case !f.may || others || !f.telling && lower:
		f.claims, f.telling = 0, false
	case f.telling:
	case f.claims < claimRounds:
		f.claims++
	case next: // whether that one has heard of this it says in its next round
	default:
		f.claims, f.telling = 0, true
		f.log.Info("this instance tells of the fleet's alerts")
	}
}

// fleetMode is what a member goes by.
type fleetMode int

const (
	apart   fleetMode = iota // what it knows itself: the others cannot be had
	waiting                  // nothing: they could a moment ago
	hearing                  // the sum, of which another tells sinks
	telling                  // the sum, of which it tells sinks
)

// fleetView is what a member knows of its fleet.
type fleetView struct {
	mode    fleetMode
	members int
	*pipeline.FleetPicture
	sources    []alerts.Source
	store      bool
	read, lost uint64
	bits       int
	split      map[string]bool // by dependency
	evaluated  bool            // another tells
	shown      []alerts.Alert  // by that one
}

// view is what is known now: expected are the scopes that there are.
func (f *fleet) view(expected []string, all *budget.Model, routes map[string]*budget.Model) *fleetView {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	v := &fleetView{mode: waiting, split: map[string]bool{}}
	if f.name == "" { // it begins
		return v
	}
	if !f.fresh(now) {
		if f.lacked >= aloneAfter {
			v.mode = apart
		}
		return v
	}
	if v.mode = hearing; f.telling {
		v.mode = telling
	}
	var present []pipeline.ScopeState
	for _, name := range slices.Sorted(maps.Keys(f.peers)) {
		p := f.peers[name]
		if !p.well(now) {
			continue
		}
		if p.Telling && name != f.member && !f.telling {
			v.evaluated, v.shown = true, p.Alerts
		}
		if p.heard < 2 && name != f.member {
			continue // that it is there is known, but not that it goes on
		}
		v.members++
		if now.Sub(p.broken) >= staleAfter {
			present = append(present, p.Scopes...)
		}
		v.add(&p.memberState)
	}
	v.FleetPicture = f.sums.Picture(present, expected, v.bits, *all, routes)
	for i := range v.Dependencies {
		d := &v.Dependencies[i]
		d.ScopeSplit = v.split[d.Name]
	}
	return v
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// add adds what a member tells of itself.
func (v *fleetView) add(m *memberState) {
	v.store, v.read, v.lost, v.bits = v.store || m.Store, v.read+m.Read, v.lost+m.Lost, max(v.bits, m.Bits)
	for _, name := range m.Split {
		v.split[name] = true
	}
	for _, s := range m.Sources {
		i, found := slices.BinarySearchFunc(v.sources, s.Name, func(o alerts.Source, name string) int { return cmp.Compare(o.Name, name) })
		if !found {
			v.sources = slices.Insert(v.sources, i, s)
			continue
		}
		o := &v.sources[i]
		o.Failed, o.Behind, o.Lag = o.Failed || s.Failed, o.Behind || s.Behind, max(o.Lag, s.Lag)
	}
}
