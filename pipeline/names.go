package pipeline

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/targetside/auditor/keys"
)

// routeName is a route of a dependency.
type routeName struct{ dependency, route string }

// localNames numbers the routes and peers that one decoder has seen. What is new
// travels with each batch; the registry gives the numbers that count, in the
// order of positions, so that they do not depend on which decoder was first.
type localNames struct {
	deps       map[string]uint16
	depList    []string
	recentDeps recent

	routes       map[routeName]uint16
	routeList    []routeName
	recentRoutes recent
	info         []routeInfo // by route
	sentRoute    int
	discs        map[string]int // the discriminator of a route, by its name

	callers     *callers
	recentPeers recent
	byRaw       map[string]uint16
	byName      map[string]uint16
	peers       []string
	sentPeer    int

	hasher *hasher
}

// routeInfo is what a decoder needs to know of a route.
type routeInfo struct {
	disc  int // index into Entry.Extra; -1: the path tells questions apart
	paths pathsOf
}

// pathsOf says whether a route was seen under one path or several.
type pathsOf struct {
	first  uint64
	some   bool
	varied bool
}

const (
	otherName    = "other"
	noDependency = "unknown" // the record has no value in the dependency's field
	maxLocal     = 60000     // names that a decoder numbers; what comes later is "other"
	maxRaw       = 1 << 16
	// maxLocalDeps leaves the registry to decide, which does not depend on the
	// decoder; with maxLocal it stays below 65,536.
	maxLocalDeps = 4 * maxDependencies
)

func newLocalNames(c *callers, discs map[string]int, h *hasher) *localNames {
	return &localNames{discs: discs, routes: map[routeName]uint16{}, deps: map[string]uint16{}, callers: c, byRaw: map[string]uint16{}, byName: map[string]uint16{}, hasher: h}
}

const recentBits = 12

// recent finds the number of a name that was seen a short while ago, without the
// cost of a map: names are few and come again and again. It knows a name by 64
// bits of hash under a secret seed, which also tell questions apart; so it lies
// in one piece and is not scattered over the memory of the names.
type recent [1 << recentBits]recentName

type recentName struct {
	hash  uint64 // of the name
	under uint16 // a route belongs to a dependency
	id    uint16
	some  bool
}

// find returns the number of the name with that hash, or the slot to put it in.
func (r *recent) find(hash uint64, under uint16) (slot *recentName, ok bool) {
	s := &r[(hash+uint64(under)*0x9e3779b97f4a7c15)>>(64-recentBits)]
	return s, s.hash == hash && s.under == under && s.some
}

// dependency numbers the dependency of a record. The hash is that of its own
// name, also where it is numbered as "other": questions are told apart by it.
func (n *localNames) dependency(src *Source, field []byte) (number uint16, hash uint64) {
	if src.DependencyField == "" {
		field = src.name
	}
	if len(field) == 0 {
		field = []byte(noDependency)
	}
	hash = n.hasher.of(field)
	slot, ok := n.recentDeps.find(hash, 0)
	if ok {
		return slot.id, hash
	}
	name := string(field)
	i, ok := n.deps[name]
	if !ok {
		if len(n.depList) >= maxLocalDeps {
			name = otherName
		}
		if i, ok = n.deps[name]; !ok {
			i = uint16(len(n.depList))
			n.deps[name] = i
			n.depList = append(n.depList, name)
		}
	}
	*slot = recentName{hash: hash, id: i, some: true}
	return i, hash
}

// route numbers the route of a record, and hashes its own name.
func (n *localNames) route(dep uint16, route []byte) (number uint16, hash uint64) {
	hash = n.hasher.of(route)
	slot, ok := n.recentRoutes.find(hash, dep)
	if ok {
		return slot.id, hash
	}
	name := routeName{n.depList[dep], string(route)}
	i, ok := n.routes[name]
	if !ok {
		if len(n.routeList) >= maxLocal {
			name.route = otherName
		}
		if i, ok = n.routes[name]; !ok {
			i = n.newRoute(name)
		}
	}
	*slot = recentName{hash: hash, under: dep, id: i, some: true}
	return i, hash
}

func (n *localNames) newRoute(name routeName) uint16 {
	disc, ok := n.discs[name.route]
	if !ok {
		disc = -1
	}
	i := uint16(len(n.routeList))
	n.routes[name] = i
	n.routeList = append(n.routeList, name)
	n.info = append(n.info, routeInfo{disc: disc})
	return i
}

// saw notes a path by its hash.
func (p *pathsOf) saw(path uint64) {
	if !p.some {
		p.first, p.some = path, true
	} else if p.first != path {
		p.varied = true
	}
}

func (n *localNames) peer(raw []byte) uint16 {
	hash := n.hasher.of(raw)
	slot, ok := n.recentPeers.find(hash, 0)
	if ok {
		return slot.id
	}
	i, ok := n.byRaw[string(raw)]
	if !ok {
		i = n.newPeer(raw)
	}
	*slot = recentName{hash: hash, id: i, some: true}
	return i
}

func (n *localNames) newPeer(raw []byte) uint16 {
	name := n.callers.workload(string(raw))
	i, ok := n.byName[name]
	if !ok {
		switch {
		case len(n.peers) == maxLocal:
			name = otherName
			fallthrough
		case len(n.peers) < maxLocal:
			i = uint16(len(n.peers))
			n.peers = append(n.peers, name)
			n.byName[name] = i
		default:
			i = maxLocal
		}
	}
	if len(n.byRaw) >= maxRaw { // ports make every peer new
		clear(n.byRaw)
	}
	n.byRaw[string(raw)] = i
	return i
}

// fresh returns the names that are new since the last call.
func (n *localNames) fresh() ([]routeName, []string) {
	r, p := n.routeList[n.sentRoute:], n.peers[n.sentPeer:]
	n.sentRoute, n.sentPeer = len(n.routeList), len(n.peers)
	return r, p
}

// registry gives the numbers that count. It belongs to the goroutine that puts
// batches in order; others read the tables of a batch, which never change.
type registry struct {
	maxRoutes, maxPeers int

	mu        sync.Mutex // of the lists, which are read meanwhile
	routes    map[routeName]uint16
	routeList []routeName
	homes     []uint16          // by route, the first route of its dependency
	homeOf    map[string]uint16 // by dependency
	perDep    map[string]int
	peers     map[string]uint8
	peerList  []string

	// By decoder: from its numbering to the registry's.
	routeOf [][]uint16
	peerOf  [][]uint8
}

const (
	maxDependencies = 1000
	maxRouteNumber  = 65000
	// maxPeerNumber is how many peers a ledger can tell apart, besides "other".
	maxPeerNumber = 250
)

func newRegistry(decoders, maxRoutes, maxPeers int) *registry {
	return &registry{
		maxRoutes: maxRoutes, maxPeers: min(maxPeers, maxPeerNumber),
		routes: map[routeName]uint16{}, homeOf: map[string]uint16{}, perDep: map[string]int{}, peers: map[string]uint8{},
		routeOf: make([][]uint16, decoders), peerOf: make([][]uint8, decoders),
	}
}

// add takes the new names of a batch, and gives those tables by which its numbers are
// read. What no decoder has numbered has numbers of its own in each batch.
func (r *registry) add(b *batch) (routes []uint16, peers []uint8) {
	if b.decoder == noDecoder {
		for _, n := range b.routes {
			routes = append(routes, r.route(n))
		}
		for _, p := range b.peers {
			peers = append(peers, r.peer(p))
		}
		return routes, peers
	}
	for _, n := range b.routes {
		r.routeOf[b.decoder] = append(r.routeOf[b.decoder], r.route(n))
	}
	for _, p := range b.peers {
		r.peerOf[b.decoder] = append(r.peerOf[b.decoder], r.peer(p))
	}
	return r.routeOf[b.decoder], r.peerOf[b.decoder]
}

func (r *registry) route(n routeName) uint16 {
	if i, ok := r.routes[n]; ok {
		return i
	}
	if _, known := r.perDep[n.dependency]; (!known || n.dependency == otherName) && len(r.perDep) >= maxDependencies {
		n = routeName{otherName, otherName}
	} else if n.route != otherName && (r.perDep[n.dependency] >= r.maxRoutes || len(r.routeList) >= maxRouteNumber) {
		n.route = otherName
	}
	if i, ok := r.routes[n]; ok {
		return i
	}
	if n.route != otherName {
		r.perDep[n.dependency]++
	} else if _, known := r.perDep[n.dependency]; !known {
		r.perDep[n.dependency] = 0 // one more dependency
	}
	i := uint16(len(r.routeList))
	r.routes[n] = i
	r.mu.Lock()
	r.routeList = append(r.routeList, n)
	home, ok := r.homeOf[n.dependency]
	if !ok {
		home = i
		r.homeOf[n.dependency] = i
	}
	r.homes = append(r.homes, home)
	r.mu.Unlock()
	return i
}

func (r *registry) peer(name string) uint8 {
	if i, ok := r.peers[name]; ok {
		return i
	}
	if name != otherName && len(r.peerList) >= r.maxPeers {
		name = otherName
	}
	if i, ok := r.peers[name]; ok {
		return i
	}
	i := uint8(len(r.peerList))
	r.peers[name] = i
	r.mu.Lock()
	r.peerList = append(r.peerList, name)
	r.mu.Unlock()
	return i
}

// names gives the names behind the numbers of a report. It is read while the
// registry grows, so it keeps to what is settled under a lock.
type names struct {
	reg       *registry
	ring      *keys.Ring
	claimedAt uint16
	constant  []bool
}

func (n *names) Route(id uint16) (dependency, route string) {
	n.reg.mu.Lock()
	defer n.reg.mu.Unlock()
	r := n.reg.routeList[id]
	return r.dependency, r.route
}

func (n *names) Peer(id uint8) string {
	n.reg.mu.Lock()
	defer n.reg.mu.Unlock()
	return n.reg.peerList[id]
}

func (n *names) Originator(id uint16) string {
	switch {
	case id == 0:
		return ""
	case id < n.claimedAt:
		return n.ring.Originators()[id-1]
	}
	return "claimed:" + n.ring.Accepted()[id-n.claimedAt].Name()
}

// Undiscriminated says that all requests of a route had one path, so that nothing
// but the key tells its questions apart.
func (n *names) Undiscriminated(id uint16) bool { return int(id) < len(n.constant) && n.constant[id] }

// vary settles which routes were seen under one path, when all decoders are done.
func (n *names) vary(decoders []*decoder) {
	all := make([]pathsOf, len(n.reg.routeList))
	for _, d := range decoders {
		for local := range d.names.info {
			p := d.names.info[local].paths
			g := &all[n.reg.routeOf[d.number][local]]
			switch {
			case !p.some:
			case !g.some:
				*g = p
			case p.varied || p.first != g.first:
				g.varied = true
			}
		}
	}
	n.constant = make([]bool, len(all))
	for i, g := range all {
		n.constant[i] = g.some && !g.varied && !strings.Contains(n.reg.routeList[i].route, "{")
	}
}

// KeyHasher hashes keys for showing: the first 128 bits of HMAC-SHA-256 under the
// salt.
func KeyHasher(salt []byte) func([]byte) [16]byte {
	idle := sync.Pool{New: func() any { return hmac.New(sha256.New, salt) }}
	return func(key []byte) (out [16]byte) {
		m := idle.Get().(hash.Hash)
		defer idle.Put(m)
		m.Reset()
		m.Write(key)
		var sum [sha256.Size]byte
		copy(out[:], m.Sum(sum[:0]))
		return out
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
