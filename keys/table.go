package keys

// A table remembers verdicts on key texts by their 128-bit hash. It is bounded: each set holds four entries, the least
// recently used gives way, and whoever is evicted is checked again. Nothing is ever wrongly found but by a collision of two
// 128-bit hashes under secret seeds.
type table struct {
	sets [][4]entry // a power of two
}

type entry struct {
	hash   [2]uint64
	minted int64
	key    int32 // 1 + index into Ring.keys; 0 = free
}

func newTable(sets int) table { return table{sets: make([][4]entry, sets)} }

func (t *table) set(hash [2]uint64) *[4]entry { return &t.sets[hash[0]&uint64(len(t.sets)-1)] }

// get returns the entry or nil; it stays valid until the next call.
func (t *table) get(hash [2]uint64) *entry {
	set := t.set(hash)
	for i := range set {
		if e := &set[i]; e.hash == hash && e.key != 0 {
			if i == 0 {
				return e
			}
			set[i-1], set[i] = set[i], set[i-1]
			return &set[i-1]
		}
	}
	return nil
}

func (t *table) put(e entry) {
	set := t.set(e.hash)
	copy(set[1:], set[:3])
	set[0] = e
}
