package keys

// A table remembers verdicts on key texts by their hash. It is bounded: each set
// holds four entries, the least recently used gives way, and whoever is evicted
// is checked again.
//
// A set is one cache line, because the table is asked at every arrival and is
// rarely in the fast caches. Which set an entry is in, and its own hash, are
// together more than 64 bits of two hashes under secret seeds: one attempt to be
// taken for a remembered key succeeds with a chance below 1 in 10^18.
type table struct {
	sets   [][4]entry // a power of two
	filled bool       // holds any entry: a table of forgeries seldom does
}

// entry is 16 bytes: the low 16 bits of value are 1 + the index into Ring.keys,
// 0 in a free entry; the rest is the time of minting in Unix milliseconds.
type entry struct {
	hash  uint64
	value uint64
}

const (
	entryKeyBits = 16
	maxRingKeys  = 1<<entryKeyBits - 2
	maxMinted    = 1<<(64-entryKeyBits) - 1 // in the year 10889
)

func newEntry(hash [2]uint64, key int32, minted int64) entry {
	return entry{hash: hash[1], value: uint64(minted)<<entryKeyBits | uint64(key+1)}
}

func (e *entry) key() int32    { return int32(e.value&(1<<entryKeyBits-1)) - 1 }
func (e *entry) minted() int64 { return int64(e.value >> entryKeyBits) }

func newTable(sets int) table { return table{sets: make([][4]entry, sets)} }

func (t *table) set(hash [2]uint64) *[4]entry { return &t.sets[hash[0]&uint64(len(t.sets)-1)] }

// get returns the entry or nil; it stays valid until the next call.
func (t *table) get(hash [2]uint64) *entry {
	if !t.filled {
		return nil
	}
	set := t.set(hash)
	for i := range set {
		if e := &set[i]; e.hash == hash[1] && e.value != 0 {
			if i == 0 {
				return e
			}
			set[i-1], set[i] = set[i], set[i-1]
			return &set[i-1]
		}
	}
	return nil
}

func (t *table) put(hash [2]uint64, e entry) {
	set := t.set(hash)
	copy(set[1:], set[:3])
	set[0] = e
	t.filled = true
}
