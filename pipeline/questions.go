package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate"
)

// A daemon tells of single questions under the hash of their key: of those under way
// the worst, and any that is asked for; and those that are over it gives to the writer
// with the rows of the tick in which they ended.
//
// An episode ends one horizon after its last arrival, whatever else comes. So the
// tick in which it does is that of rows which a restart makes anew or leaves alone:
// what ends before the first of these was stored by an earlier run, and what ends
// later is found again. Its last arrival is found again too, and all of the horizon
// before that, which is two before its end; but of an episode that is longer not its
// first ones. So an episode is known by its last arrival, and of two that are one the
// one with more arrivals is right.

// Question is one question, under the hash of its key.
type Question struct {
	KeyHash                       [16]byte
	Lot                           aggregate.Lot
	Dependency, Route, Originator string
	Peers                         []string // by name
	First, Last                   time.Time
	Arrivals                      uint32
	Live                          bool // it is not over
}

// WorstPlaces is how many of a dependency's questions are in a picture.
const WorstPlaces = 100

// lots draws questions: by their key and discriminator, and alike wherever the salt
// is the same. Nothing but the choice hangs on it, so it may be cheap.
type lots uint32

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newLots(salt []byte) lots {
	sum := sha256.Sum256(append([]byte("lots"), salt...))
	return lots(binary.LittleEndian.Uint32(sum[:]))
}

func (l lots) draw(key, discriminator []byte) aggregate.Lot {
	h := crc32.Update(uint32(l), castagnoli, key)
	h = crc32.Update(h+uint32(len(key)), castagnoli, discriminator)
	return aggregate.Lot(h * 0x9e3779b1)
}

// rank takes, now and then, the worst questions under way: it goes through all that
// the ledger holds, which for each million a second takes about a hundredth of the
// time.
func (sh *liveShard) rank(s *scope, number int) {
	if sh.unranked > 0 {
		sh.unranked--
		return
	}
	stats := sh.ledger.Stats()
	sh.unranked = int(time.Second/PulseEvery)*(1+(stats.Live+stats.Open)/1e6) - 1
	worst := sh.ledger.UnderWay(WorstPlaces, s.live.homes())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worst[number] = worst
}

// episodes are the questions of a scope that are over, by the tick in which they
// ended, until they are stored.
type episodes struct {
	ticks  map[int64][]aggregate.Episode
	n      int
	picked int64 // ticks before have no more than are stored
}

// mostEpisodes is how many questions are stored of those that ended in one second,
// beside those that are drawn: a storm would fill any disk with its questions. Those
// with the most arrivals are.
const mostEpisodes = 100

func newEpisodes() *episodes {
	return &episodes{ticks: map[int64][]aggregate.Episode{}, picked: noTick}
}

// take keeps the questions that ended in ticks from one on.
func (p *episodes) take(list []aggregate.Episode, from int64) {
	for i := range list {
		if at := list[i].Over; at >= from {
			p.ticks[at] = append(p.ticks[at], list[i])
			p.n++
		}
	}
}

// pick chooses what is stored of the ticks before closed, of which all is known, and
// returns how many are not; all leaves nothing out.
func (p *episodes) pick(closed int64, all bool) (leftOut int) {
	for at, list := range p.ticks {
		if all || at < p.picked || at >= closed || len(list) <= mostEpisodes {
			continue
		}
		slices.SortFunc(list, func(a, b aggregate.Episode) int {
			return cmp.Or(cmp.Compare(b.Arrivals, a.Arrivals), cmp.Compare(a.First, b.First), slices.Compare(a.KeyHash[:], b.KeyHash[:]), cmp.Compare(a.Lot, b.Lot))
		})
		stays := list[:mostEpisodes:mostEpisodes]
		for _, e := range list[mostEpisodes:] {
			if e.Lot.Drawn() {
				stays = append(stays, e)
			}
		}
		p.ticks[at] = stays
		leftOut += len(list) - len(stays)
	}
	p.n -= leftOut
	p.picked = max(p.picked, closed)
	return leftOut
}

// drop forgets those that are stored.
func (p *episodes) drop(closed int64) {
	for at, list := range p.ticks {
		if at < closed {
			p.n -= len(list)
			delete(p.ticks, at)
		}
	}
}

// ended are the questions that ended in ticks before closed.
func (s *scope) ended(closed int64) (out []Question) {
	n := s.live.names()
	for at, list := range s.episodes.ticks {
		for i := range list {
			if at < closed {
				out = append(out, n.question(&list[i]))
			}
		}
	}
	return out
}

// waiting is how much there is to store, in rows.
func (s *scope) waiting() int { return s.pending + s.episodes.n/8 }

// question gives an episode its names.
func (n *names) question(e *aggregate.Episode) Question {
	q := Question{
		KeyHash: e.KeyHash, Lot: e.Lot, Originator: n.Originator(e.Dims.Originator), Arrivals: e.Arrivals,
		First: time.Unix(0, e.First).UTC(), Last: time.Unix(0, e.Last).UTC(), Live: e.Over == 0,
	}
	q.Dependency, q.Route = n.Route(e.Dims.Route)
	for _, p := range e.Peers {
		q.Peers = append(q.Peers, n.Peer(p))
	}
	slices.Sort(q.Peers)
	return q
}

// settled says that the scope's questions may be told of: it is this instance's, and
// has read again what it had to.
func (s *scope) settled() bool { return s.closed >= s.emitFrom && s.counts() }

// search is a key that is looked for in every shard of a scope.
type search struct {
	keyHash [16]byte
	found   chan []aggregate.Episode // has room for all
}

// Questions returns the questions of a key that are under way, and those that are
// over and not stored yet. It waits for what is being counted.
func (l *Live) Questions(ctx context.Context, keyHash [16]byte) (out []Question, err error) {
	n := l.names()
	for _, s := range l.all() {
		found := s.search(keyHash)
		for range cap(found) {
			select {
			case list := <-found:
				for i := range list {
					out = append(out, n.question(&list[i]))
				}
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	return out, nil
}

// search asks every shard for a key. What comes is as many lists as there is room for.
func (s *scope) search(keyHash [16]byte) <-chan []aggregate.Episode {
	s.sending.Lock()
	defer s.sending.Unlock()
	found := make(chan []aggregate.Episode, len(s.shards)+1)
	s.mu.Lock()
	settled := s.settled()
	var over []aggregate.Episode
	for _, list := range s.episodes.ticks {
		for _, e := range list {
			if e.KeyHash == keyHash {
				over = append(over, e)
			}
		}
	}
	s.mu.Unlock()
	if s.shards == nil || !settled {
		return nil
	}
	found <- over
	s.send(&liveJob{find: &search{keyHash, found}})
	return found
}

// worstOf adds the worst questions of a scope, by dependency.
func (s *scope) worstOf(into map[string][]Question, n *names) {
	if !s.settled() {
		return
	}
	for _, list := range s.worst {
		for i := range list {
			q := n.question(&list[i])
			into[q.Dependency] = append(into[q.Dependency], q)
		}
	}
}

// worstFirst returns those with the most arrivals.
func worstFirst(list []Question) []Question {
	slices.SortFunc(list, func(a, b Question) int {
		return cmp.Or(cmp.Compare(b.Arrivals, a.Arrivals), a.First.Compare(b.First), slices.Compare(a.KeyHash[:], b.KeyHash[:]), cmp.Compare(a.Lot, b.Lot))
	})
	return list[:min(len(list), WorstPlaces)]
}
