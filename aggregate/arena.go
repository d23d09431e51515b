package aggregate

// arena hands out small blocks of 64-bit words without pointers, in sizes that
// are powers of two. Blocks are numbered, so a question refers to one in four
// bytes.
type arena struct {
	classes [28]class
}

type class struct {
	pages [][]uint64 // each holds one or more blocks
	free  []uint32
	used  uint32
}

// block names a block: its class in the high five bits, its number in the rest;
// 0 is no block. A block of class c has 1<<c words.
type block uint32

const (
	blockBits     = 27
	arenaPageBits = 12 // words in a page of small blocks
)

func (b block) class() int { return int(b >> blockBits) }

// words returns the words of a block.
func (a *arena) words(b block) []uint64 {
	if b == 0 {
		return nil
	}
	c := b.class()
	i := int(b & (1<<blockBits - 1))
	perPage := max(0, arenaPageBits-c)
	page := a.classes[c].pages[i>>perPage]
	at := (i & (1<<perPage - 1)) << c
	return page[at : at+1<<c : at+1<<c]
}

// alloc returns a block of at least n words; their content is undefined.
func (a *arena) alloc(n int) block {
	c := 1
	for 1<<c < n {
		c++
	}
	k := &a.classes[c]
	if m := len(k.free); m > 0 {
		i := k.free[m-1]
		k.free = k.free[:m-1]
		return block(c<<blockBits) | block(i)
	}
	i := k.used
	k.used++
	perPage := max(0, arenaPageBits-c)
	if int(i)>>perPage == len(k.pages) {
		k.pages = append(k.pages, make([]uint64, 1<<(perPage+c)))
	}
	return block(c<<blockBits) | block(i)
}

func (a *arena) release(b block) {
	if b != 0 {
		k := &a.classes[b.class()]
		k.free = append(k.free, uint32(b&(1<<blockBits-1)))
	}
}
