package pipeline

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// hasher hashes the texts by which arrivals are told apart. Nobody who does not know
// its secret can make two texts one: that is the process's own or, with a key, the one
// that all instances share.
type hasher struct {
	seed maphash.Seed
	key  *sipKey
}

func (h *hasher) of(text []byte) uint64 {
	if h.key != nil {
		return h.key.hash(text)
	}
	return maphash.Bytes(h.seed, text)
}

// sipKey is a key of SipHash-2-4 (Aumasson and Bernstein, 2012), which is the same
// everywhere, as maphash is not.
type sipKey [2]uint64

func (k *sipKey) hash(text []byte) uint64 {
	v0, v1 := k[0]^0x736f6d6570736575, k[1]^0x646f72616e646f6d
	v2, v3 := k[0]^0x6c7967656e657261, k[1]^0x7465646279746573
	round := func() {
		v0 += v1
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v0 = bits.RotateLeft64(v0, 32)
		v2 += v3
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v0 += v3
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 += v1
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v2 = bits.RotateLeft64(v2, 32)
	}
	last := uint64(len(text)) << 56
	for ; len(text) >= 8; text = text[8:] {
		m := binary.LittleEndian.Uint64(text)
		v3 ^= m
		round()
		round()
		v0 ^= m
	}
	for i, c := range text {
		last |= uint64(c) << (8 * i)
	}
	v3 ^= last
	round()
	round()
	v0 ^= last
	v2 ^= 0xff
	round()
	round()
	round()
	round()
	return v0 ^ v1 ^ v2 ^ v3
}
