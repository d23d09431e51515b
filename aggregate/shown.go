package aggregate

import "slices"

// A daemon shows and stores single questions, under the hash of their key. A
// ledger gets the key's text with each arrival and keeps no text, so it takes the
// hash when a question comes back, or at its first arrival if even that is wanted.
//
// Hashes lie beside the table, page by page: a question's entry is a whole cache
// line, and what most arrivals need should stay in it.

// Lot is a hash of a question's key and discriminator that is the same in every
// process with the same salt, as an ID is not. 0 is none.
type Lot uint32

// DrawnOneIn is how many questions there are to one that is drawn by its lot:
// handed out however often it was asked, and compared over scopes.
const DrawnOneIn = 256

// Drawn says that the question is one of those.
func (l Lot) Drawn() bool { return l != 0 && l < 1<<32/DrawnOneIn }

// Episode is one question, from an original to its last repeat.
type Episode struct {
	KeyHash [16]byte // Config.KeyHash of its key
	// Lot tells apart the questions that one key asks on one route.
	Lot         Lot
	Dims        Dims // Peer is that of the latest arrival
	Arrivals    uint32
	First, Last int64   // starts, Unix nanoseconds
	Peers       []uint8 // in no order
	Over        int64   // the tick in which it was forgotten; 0 while it goes on
}

// Sighting is an arrival of a question that is drawn.
type Sighting struct {
	Question ID
	Route    uint16
	Start    int64
}

// shown is what a question is shown under.
type shown struct {
	keyHash [16]byte // zero: not known
	lot     Lot
}

type shownPage [pageSize]shown

// show takes the hash of a question to which an arrival was just filed, once it is
// wanted.
func (l *Ledger) show(i uint32, q *question, made bool, a *Arrival, start int64, key []byte) {
	if int(i>>pageBits) == len(l.hashes) {
		l.hashes = append(l.hashes, nil)
	}
	page := &l.hashes[i>>pageBits]
	if made && *page != nil {
		(*page)[i&(pageSize-1)] = shown{}
	}
	drawn := a.Lot.Drawn()
	if drawn {
		l.sightings = append(l.sightings, Sighting{a.Question, q.route, start})
	}
	if q.n+q.open < 2 && l.cfg.Episodes != 1 && !drawn {
		return
	}
	if *page == nil {
		*page = new(shownPage)
	}
	if s := &(*page)[i&(pageSize-1)]; s.keyHash == [16]byte{} {
		*s = shown{l.cfg.KeyHash(key), a.Lot}
	}
}

// shownAs returns what a question is shown under, nothing if that is not known.
func (l *Ledger) shownAs(i uint32) (s shown) {
	if page := int(i >> pageBits); page < len(l.hashes) && l.hashes[page] != nil {
		s = l.hashes[page][i&(pageSize-1)]
	}
	return s
}

// keepOver keeps an episode that is over until it is handed out.
func (l *Ledger) keepOver(i uint32, q *question, now int64) {
	if !l.cfg.shows() {
		return
	}
	s := l.shownAs(i)
	wanted := s.lot.Drawn() || l.cfg.Episodes > 0 && q.n >= l.cfg.Episodes
	if s.keyHash == [16]byte{} || !wanted || l.weight(q.id) == 0 { // with none its beginning was not followed
		return
	}
	l.over = append(l.over, Episode{
		KeyHash: s.keyHash, Lot: s.lot, Dims: Dims{q.route, q.originator, q.peer}, Arrivals: q.n,
		First: q.last - q.span(), Last: q.last, Peers: l.peersOf(q), Over: now,
	})
}

// peersOf are the peers that a question's episode came by.
func (l *Ledger) peersOf(q *question) []uint8 {
	peers := []uint8{q.peer}
	for w := l.arena.records(q); len(w) > 0; w = w[2:] {
		r := record{w[:2]}
		if p := r.property(); (p == seenPeer || p == cameBy) && !slices.Contains(peers, r.value()) {
			peers = append(peers, r.value())
		}
	}
	return peers
}

// handOut gives what was kept for the next output.
func (l *Ledger) handOut(out *Output) {
	out.Episodes = append(out.Episodes, l.over...)
	out.Sightings = append(out.Sightings, l.sightings...)
	clear(l.over)
	l.over, l.sightings = l.over[:0], l.sightings[:0]
}
