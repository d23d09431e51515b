package pipeline

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/targetside/auditor/aggregate"
)

// Where instances share out the scopes of a dependency, each tells the others what it
// counts in its own: of each second of log time and of each closed tick the sums, again
// whenever they change, and how far each scope is. That is all that live windows of a
// dependency and its budgets are made of, so that whoever hears it makes of it what one
// instance would that counts everything: see Fleet.

// Told is what an instance tells of a second of log time, or of a closed tick, of a
// scope.
type Told struct {
	Kind  ToldKind
	Scope string
	At    int64
	State []byte
}

// ToldKind says what is told.
type ToldKind uint8

// The kinds of what is told. They are kept: new ones come last.
const (
	ToldSecond ToldKind = 1
	ToldTick   ToldKind = 2
)

// ScopeState is how a scope stands at an instance that counts it.
type ScopeState struct {
	Scope string `json:"scope"`
	Rules uint32 `json:"rules"`
	// Read is up to which offset its partition is read, as far as that is in what is told.
	Read int64 `json:"read"`
	// The seconds of log time of which all is known that is read, from the one after First
	// up to Head.
	First int64 `json:"first"`
	Head  int64 `json:"head"`
	// The closed ticks that are known, Closed not among them.
	From   int64 `json:"from"`
	Closed int64 `json:"closed"`
	// Rebuilding says that its figures are not of now, and Warming that repeats are
	// missing in them.
	Rebuilding bool `json:"rebuilding,omitempty"`
	Warming    bool `json:"warming,omitempty"`
}

// toldVersion is that of the form in which a state is told.
const toldVersion = 2

// Tell returns what has changed since it was last called, of the scopes that this
// instance counts, and how they stand; and the routes that it tells of by themselves, in
// what it has told before too. What is not told in the end, whoever called it has to tell
// with the next.
func (l *Live) Tell() (told []Told, scopes []ScopeState, routes []string) {
	l.picturing.Lock()
	defer l.picturing.Unlock()
	n := l.names()
	routes = sortedKeys(l.cfg.RouteBudgets)
	for _, s := range l.all() {
		s.mu.Lock()
		if s.counts() {
			scopes = append(scopes, s.toldState())
			if s.rules != 0 {
				told = s.tell(told, n)
			}
		}
		s.mu.Unlock()
	}
	return told, scopes, routes
}

func (s *scope) toldState() ScopeState {
	w := s.windows
	return ScopeState{
		Scope: s.name, Rules: s.rules, Read: s.read, First: max(s.wholeAfter(), w.head-w.keep), Head: w.head, From: s.recent.begun(s.closed), Closed: s.closed,
		Rebuilding: s.rules == 0 || s.closed < s.emitFrom, Warming: s.warming(),
	}
}

func (s *scope) tell(told []Told, n *names) []Told {
	for at := range s.windows.touched {
		if sec := s.windows.seconds[at]; sec != nil {
			told = append(told, Told{ToldSecond, s.name, at, s.tellSecond(s.toldHead(), sec, n)})
		}
	}
	clear(s.windows.touched)
	for tick := range s.recent.touched {
		if tick >= s.closed { // some shard may still add to it
			continue
		}
		delete(s.recent.touched, tick)
		state := s.toldHead()
		for _, home := range slices.Sorted(maps.Keys(s.recent.ticks[tick])) {
			name, _ := n.Route(home)
			state = s.recent.ticks[tick][home].AppendSums(appendName(state, routeName{name, ""}))
		}
		told = append(told, Told{ToldTick, s.name, tick, state})
	}
	return told
}

// toldHead begins what is told: by which rules it was counted, after which second this
// instance has all of each, and how far it has read.
func (s *scope) toldHead() []byte {
	return binary.AppendVarint(binary.AppendVarint(binary.AppendUvarint([]byte{toldVersion}, uint64(s.rules)), s.wholeAfter()), s.read)
}

// wholeAfter is the second of log time after which all records come that were not read
// before this instance began to: it begins in the midst of one, and records come in any
// order within the lateness.
func (s *scope) wholeAfter() int64 {
	if s.midst == noTick {
		return s.windows.begun
	}
	return s.midst
}

// tellSecond tells the sums of each dependency, and of each route that has a budget.
func (s *scope) tellSecond(state []byte, sec *liveSecond, n *names) []byte {
	sums := map[routeName]*aggregate.Sums{}
	var order []routeName
	add := func(k routeName, x *aggregate.Sums) {
		if sums[k] == nil {
			sums[k] = new(aggregate.Sums)
			order = append(order, k)
		}
		sums[k].Merge(x)
	}
	for route, x := range sec.routes {
		if x == nil {
			continue
		}
		dep, name := n.Route(uint16(route))
		add(routeName{dep, ""}, x)
		if s.live.cfg.RouteBudgets[name] != nil {
			add(routeName{dep, name}, x)
		}
	}
	for _, k := range order {
		state = sums[k].AppendSums(appendName(state, k))
	}
	return state
}

func appendName(b []byte, k routeName) []byte {
	for _, text := range [...]string{k.dependency, k.route} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// toldRow is a state as it was told.
type toldRow struct {
	member      string
	rules       uint32
	begun, read int64
	whole       bool     // it is of a second after begun
	tellers     []string // all who told of it
	entries     []byte
}

// over says that a row takes another's place: of higher rules, or of who has begun to read
// before it, or of who had read on when it was told, or else of who has counted for longer
// and so knows more of what came before. Not of who tells of more arrivals: a record may
// take the place of an earlier one in another second. What one member tells takes the place
// of what it told before.
func (r *toldRow) over(o *toldRow) bool {
	switch {
	case r.rules != o.rules:
		return r.rules > o.rules
	case r.whole != o.whole:
		return r.whole
	case r.read != o.read:
		return r.read > o.read
	case r.member == o.member:
		return true
	case r.begun != o.begun:
		return r.begun < o.begun
	}
	return r.member < o.member
}

// readTold reads what Tell wrote. The error is one of a text that this program does not
// know, say because a newer one told it.
func readTold(member string, t *Told) (*toldRow, error) {
	bad := fmt.Errorf("what is told of %s at %d cannot be read: of another version of auditor", t.Scope, t.At)
	if len(t.State) == 0 || t.State[0] != toldVersion {
		return nil, bad
	}
	rest := t.State[1:]
	rules, n := binary.Uvarint(rest)
	if n <= 0 || rules > math.MaxUint32 {
		return nil, bad
	}
	rest = rest[n:]
	r := &toldRow{member: member, rules: uint32(rules), tellers: []string{member}}
	for _, x := range [...]*int64{&r.begun, &r.read} {
		if *x, n = binary.Varint(rest); n <= 0 {
			return nil, bad
		}
		rest = rest[n:]
	}
	r.whole = t.Kind != ToldSecond || t.At > r.begun
	if r.entries = rest; !r.readable(t.Kind) {
		return nil, bad
	}
	return r, nil
}

// readable says whether what is told can be read.
func (r *toldRow) readable(kind ToldKind) bool {
	if kind == ToldTick {
		return r.ticks(func(string, *aggregate.ClosedSums) {})
	}
	all := new(aggregate.Sums)
	for rest := r.entries; len(rest) > 0; {
		_, after, ok := splitName(rest)
		if !ok {
			return false
		}
		var err error
		if rest, err = all.AddTold(after); err != nil {
			return false
		}
	}
	return true
}

// ticks reports the sums of a closed tick; it is false if they cannot be read.
func (r *toldRow) ticks(each func(dependency string, s *aggregate.ClosedSums)) bool {
	for rest := r.entries; len(rest) > 0; {
		k, after, ok := readName(rest)
		if !ok {
			return false
		}
		s, after, err := aggregate.DecodeClosedSums(after)
		if err != nil {
			return false
		}
		each(k.dependency, s)
		rest = after
	}
	return true
}

// splitName cuts off the name that a text begins with, as it is told.
func splitName(b []byte) (name, rest []byte, ok bool) {
	rest = b
	for range 2 {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) {
			return nil, nil, false
		}
		rest = rest[size+int(n):]
	}
	return b[:len(b)-len(rest)], rest, true
}

// readName reads the name that a text begins with.
func readName(b []byte) (k routeName, rest []byte, ok bool) {
	name, rest, ok := splitName(b)
	if !ok {
		return k, nil, false
	}
	n, size := binary.Uvarint(name)
	k.dependency, name = string(name[size:size+int(n)]), name[size+int(n):]
	_, size = binary.Uvarint(name)
	k.route = string(name[size:])
	return k, rest, true
}
