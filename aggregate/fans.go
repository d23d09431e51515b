package aggregate

// fans counts, per key, over how many questions it fans out: a key that calls
// three operations asks three questions. It follows episodes: a key's count ends
// when none of its questions is remembered any more.
//
// Most keys ask one question. Those cost one slot of an index; counters are made
// for a key when its second question opens.
type fans struct {
	single index // of questions, by key
	multi  map[fanKey]fan
}

// fanKey is a key and a route of it; allRoutes stands for the whole dependency.
type fanKey struct {
	key   uint64
	route uint32
}

const allRoutes = ^uint32(0)

// fan counts the questions of a key that are remembered, and all since the first
// of them.
type fan struct{ live, distinct uint32 }

func newFans() fans { return fans{multi: map[fanKey]fan{}} }

// keyHash spreads the bits of a key's hash as ID.hash does.
func keyHash(key uint64) uint64 {
	key *= 0x9e3779b97f4a7c15
	return key ^ key>>32
}

// opened counts a question that opened an episode.
func (f *fans) opened(t *questions, i uint32) {
	q := t.at(i)
	key := q.id.Key
	if len(f.multi) > 0 {
		if _, ok := f.multi[fanKey{key, allRoutes}]; ok {
			f.more(key, q.route)
			return
		}
	}
	h := keyHash(key)
	other, ok := f.single.find(h, func(j uint32) bool { return t.at(j).id.Key == key })
	if !ok {
		f.single.insert(h, i, func(j uint32) uint64 { return keyHash(t.at(j).id.Key) })
		return
	}
	f.single.remove(h, other)
	f.more(key, t.at(other).route)
	f.more(key, q.route)
}

func (f *fans) more(key uint64, route uint16) {
	for _, k := range [...]fanKey{{key, allRoutes}, {key, uint32(route)}} {
		x := f.multi[k]
		f.multi[k] = fan{x.live + 1, x.distinct + 1}
	}
}

// closed takes a question out whose episode is over. Where it was the last of
// its key, or of its key's on that route, it reports how many there had been.
func (f *fans) closed(t *questions, i uint32, report func(n uint32, wide bool)) {
	q := t.at(i)
	key := q.id.Key
	if len(f.multi) > 0 {
		if _, ok := f.multi[fanKey{key, allRoutes}]; ok {
			for _, k := range [...]fanKey{{key, allRoutes}, {key, uint32(q.route)}} {
				x := f.multi[k]
				if x.live--; x.live > 0 {
					f.multi[k] = x
					continue
				}
				delete(f.multi, k)
				report(x.distinct, k.route == allRoutes)
			}
			return
		}
	}
	f.single.remove(keyHash(key), i)
	report(1, false)
	report(1, true)
}
