package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate"
)

// series is everything that names a row but its time and late block.
type series struct {
	family                         Family
	scope, dependency, route, name string
	wide                           bool
}

func seriesOf(r *Row) series {
	return series{family: r.Family, scope: r.Scope, dependency: r.Dependency, route: r.Route, name: r.Name, wide: r.Wide}
}

// key names a row of one level. In roll-ups, late is OnTime or anyBlock.
type key struct {
	at     int64
	series int64 // see tables.series
	late   int64
}

// anyBlock is the late block of what was made of the late rows of all blocks.
// What was on time and what was late are rolled up apart, and put together when
// they are read.
const anyBlock = 0

// part is the late block that a row has in roll-ups.
func (k key) part() int64 { return min(k.late, anyBlock) }

// value is a row at rest.
type value struct {
	rules   uint32
	version uint64
	open    bool
	plain   aggregate.Totals
	counts  []byte // of Counts.Append
}

// newer says that v replaces o, of the same name.
func (v *value) newer(o *value) bool {
	return v.rules > o.rules || v.rules == o.rules && v.version > o.version
}

// tables is where a write finds and leaves rows, within one transaction. Levels
// are those of resolutions; ranges of time are from up to to, not included.
type tables interface {
	// state returns a copy of what is known of a scope, and setState keeps it.
	state(scope string) (*state, error)
	setState(scope string, s *state) error
	// series returns the number of a series, given if it has none.
	series(s series) (int64, error)

	// put writes a row of a level unless there is one that it is not newer than,
	// or, if always, whatever there is.
	put(level int, k key, v *value, always bool) (changed bool, err error)
	// remove deletes a row of a level, if there is one.
	remove(level int, k key) error
	// clear deletes all rows of a scope from a level.
	clear(level int, scope string, from, to int64) error
	// dropTicks deletes the ticks of a scope with rules below some, and dropBlock
	// those of one late block; both report what they deleted.
	dropTicks(scope string, from, to int64, below uint32, each func(key)) error
	dropBlock(scope string, block int64, below uint32, each func(key)) error
	// tickRules returns the highest rules of a tick's rows that were on time, and
	// blockRules those of a late block's rows; 0 if there are none.
	tickRules(scope string, at int64) (uint32, error)
	blockRules(scope string, block int64) (uint32, error)
	// rows reports the rows of a scope from a level, those of one series and part
	// together and in order of time.
	rows(level int, scope string, from, to int64, each func(key, *value) error) error
	// someRows reports those of the next n series after one, and returns the last of
	// these; 0 if there are none.
	someRows(level int, scope string, from, to, after int64, n int, each func(key, *value) error) (last int64, err error)
	// first is the time of the scope's first row of a level; to if there is none.
	first(level int, scope string, from, to int64) (int64, error)
	// rowsOf reports the rows of one series and part.
	rowsOf(level int, series, part, from, to int64, each func(key, *value) error) error

	question(q *Question) error
	// elsewhere says whether another scope has stored an episode of a question within
	// some time of this one, and with another last arrival.
	elsewhere(q *Question, within time.Duration) (bool, error)
	// split notes that one question of a dependency is in two scopes.
	split(dependency string, at int64) error
	count(r Range) error
}

// addRange adds a range to others of its partition, which are in order and do not
// touch one another.
func addRange(list []Range, r Range) []Range {
	var kept []Range
	for _, o := range list {
		if o.To < r.From || o.From > r.To {
			kept = append(kept, o)
			continue
		}
		r.From, r.To = min(r.From, o.From), max(r.To, o.To)
	}
	kept = append(kept, r)
	slices.SortFunc(kept, func(a, b Range) int { return cmp.Compare(a.From, b.From) })
	return kept
}
