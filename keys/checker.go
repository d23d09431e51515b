package keys

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"hash/maphash"
	"math"
)

// How many verdicts one checker remembers: 32,768 proven keys (512 KiB: twice that leaves no room in a core's cache) and,
// apart from them so that a flood of forgeries cannot push them out, 4,096 forged ones.
const (
	provenSets = 1 << 13
	forgedSets = 1 << 10
)

// maxValueSize bounds a field's value: two joined copies of a 255-character key with every character escaped fit, and so
// does any x-goog-api-client header seen. Above it the value is malformed without being looked at.
const maxValueSize = 2048

// A Checker attributes arrivals for one goroutine. It holds the HMAC states and remembers verdicts; without an entry the tag
// is checked again, so remembering changes the cost and never the answer.
type Checker struct {
	ring    *Ring
	macs    []hash.Hash // by index into Ring.keys; nil for qk2
	proven  table
	forged  table
	logTime int64 // Unix ns; 0 = not told

	digest  [sha256.Size]byte
	sig     [ed25519.SignatureSize]byte
	scratch [maxValueSize]byte // identity texts that differ from the logged ones
}

// NewChecker returns a checker with empty caches. Give each goroutine its own.
func (r *Ring) NewChecker() *Checker { return r.newChecker(provenSets, forgedSets) }

func (r *Ring) newChecker(proven, forged int) *Checker {
	c := &Checker{ring: r, macs: make([]hash.Hash, len(r.keys)), proven: newTable(proven), forged: newTable(forged)}
	for i, k := range r.keys {
		if k.secret != nil {
			c.macs[i] = hmac.New(sha256.New, k.secret)
		}
	}
	return c
}

// LogTime tells the checker the log time (Unix ns) of the records that follow. Only Config.VerifyPerSecond counts by it;
// until it is told, the start of each arrival stands in.
func (c *Checker) LogTime(t int64) { c.logTime = t }

// Attribute judges one arrival. The values are those of Ring.Fields, in that order; missing ones count as empty. suspect
// says that the quoting of the log line cannot be trusted, so that whatever a field holds may be someone else's text.
// start is when the request began (Unix ns), uncertainty how coarse that stamp is (ns).
//
// It allocates nothing, except that the first check of a qk2 key costs what crypto/ed25519 allocates.
func (c *Checker) Attribute(values [][]byte, suspect bool, start, uncertainty int64) (a Attribution) {
	a.SchemeIndex, a.OriginatorIndex = -1, -1
	for i := range c.ring.fields {
		if i == len(values) {
			break
		}
		f, value := &c.ring.fields[i], values[i]
		if len(value) <= maxValueSize {
			if value = trimBlanks(value); len(value) == 0 || len(value) == 1 && value[0] == '-' {
				continue
			}
		}
		if suspect || len(value) > maxValueSize {
			c.refuse(&a, f.accept, Malformed)
			return a
		}
		if f.read == nil {
			c.signed(&a, f, value, start, max(uncertainty, 0))
			return a
		}
		key, ok := f.read(c.scratch[:0], value)
		switch {
		case !ok:
			c.refuse(&a, f.accept, Malformed)
		case key == nil:
			continue
		case c.ring.unsigned:
			c.refuse(&a, f.accept, Unsigned)
		default:
			a.Class, a.Key, a.Hash = Claimed, key, c.hash(key)
			a.Scheme, a.SchemeIndex = c.ring.schemes[f.accept], f.accept
		}
		return a
	}
	a.Reason = Absent
	return a
}

func (c *Checker) refuse(a *Attribution, accept int, why Reason) {
	a.Reason, a.Scheme, a.SchemeIndex = why, c.ring.schemes[accept], accept
}

// signed judges a question_key value by its prefix.
func (c *Checker) signed(a *Attribution, f *keyField, text []byte, start, uncertainty int64) {
	accept := -1
	if len(text) > prefixSize && text[0] == 'q' && text[1] == 'k' && text[3] == '.' && (text[2] == '1' || text[2] == '2') {
		accept = f.qk[text[2]-'1']
	}
	if accept < 0 {
		c.refuse(a, f.accept, Malformed)
		return
	}

	// A text with a verdict is one whole key of an accepted scheme: nothing else is ever remembered.
	sum := c.hash(text)
	if e := c.proven.get(sum); e != nil {
		c.timed(a, accept, e.key(), e.minted(), text, sum, start, uncertainty)
		return
	}
	if c.forged.get(sum) != nil {
		c.refuse(a, accept, Forged)
		return
	}

	k, fault := parseText(text)
	if fault != "" {
		if one, ok := collapse(text); ok && len(one) < len(text) {
			c.signed(a, f, one, start, uncertainty)
			return
		}
		c.refuse(a, accept, Malformed)
		return
	}
	key, known := c.ring.authors[string(k.author)]
	if known {
		known = (c.ring.keys[key].secret != nil) == (text[2] == '1')
	}
	if !known {
		c.refuse(a, accept, UnknownOriginator)
		return
	}
	genuine := false
	if text[2] == '1' {
		genuine = c.checkTag(key, k.signed, k.tag)
	} else {
		at := c.logTime
		if at == 0 {
			at = start
		}
		if !c.ring.limit.allow(at) {
			// The tests that need no tag still come first.
			if why := c.ring.timeTest(k.minted, start, uncertainty); why != None {
				c.refuse(a, accept, why)
				return
			}
			c.refuse(a, accept, Unchecked)
			return
		}
		genuine = c.checkSignature(key, k.signed, k.tag)
	}
	if !genuine {
		c.forged.put(sum, newEntry(sum, 0, 0))
		c.refuse(a, accept, Forged)
		return
	}
	if key <= maxRingKeys && k.minted <= maxMinted {
		c.proven.put(sum, newEntry(sum, key, k.minted))
	}
	c.timed(a, accept, key, k.minted, text, sum, start, uncertainty)
}

func (c *Checker) hash(text []byte) [2]uint64 {
	return [2]uint64{maphash.Bytes(c.ring.seeds[0], text), maphash.Bytes(c.ring.seeds[1], text)}
}

// checkTag takes a tag that parseText has passed.
func (c *Checker) checkTag(key int32, signed, tag []byte) bool {
	mac := c.macs[key]
	mac.Reset()
	mac.Write(signed)
	sum := mac.Sum(c.digest[:0])
	high, low := tagBits(tag)
	return (binary.BigEndian.Uint64(sum)^high)|(binary.BigEndian.Uint64(sum[8:])^low) == 0
}

func (c *Checker) checkSignature(key int32, signed, tag []byte) bool {
	if _, err := base64.RawURLEncoding.Decode(c.sig[:], tag); err != nil {
		return false
	}
	return ed25519.Verify(c.ring.keys[key].public, signed, c.sig[:])
}

// timed applies the time tests, which every arrival of a proven key has to pass.
func (c *Checker) timed(a *Attribution, accept int, key int32, minted int64, text []byte, sum [2]uint64, start, uncertainty int64) {
	origin := c.ring.keys[key].origin
	a.Scheme, a.SchemeIndex = c.ring.schemes[accept], accept
	a.Originator, a.OriginatorIndex = c.ring.origins[origin].ID, origin
	a.Minted, a.Deadline = minted, c.ring.origins[origin].Deadline
	if a.Reason = c.ring.timeTest(minted, start, uncertainty); a.Reason == None {
		a.Class, a.Key, a.Hash = Verified, text, sum
	}
}

const nsPerMS = 1_000_000

// timeTest returns Expired, NotYetValid or None for a key minted at the Unix ms given.
func (r *Ring) timeTest(minted, start, uncertainty int64) Reason {
	mintedNS := int64(math.MaxInt64) // beyond the year 2262: ahead of any start
	if minted <= math.MaxInt64/nsPerMS {
		mintedNS = minted * nsPerMS
	}
	if exceeds(start, mintedNS, r.lifetime, uncertainty) {
		return Expired
	}
	if exceeds(mintedNS, start, r.skew, uncertainty) {
		return NotYetValid
	}
	return None
}

// exceeds reports whether a - b > limit + slack, limit and slack not negative, without overflow.
func exceeds(a, b, limit, slack int64) bool {
	return a > b && uint64(a)-uint64(b) > uint64(limit)+uint64(slack)
}

func trimBlanks(v []byte) []byte {
	for len(v) > 0 && (v[0] == ' ' || v[0] == '\t') {
		v = v[1:]
	}
	for len(v) > 0 && (v[len(v)-1] == ' ' || v[len(v)-1] == '\t') {
		v = v[:len(v)-1]
	}
	return v
}

// collapse undoes what proxies make of a repeated header, "K, K": it returns K when all parts are the same, and false when
// they differ. A value without a comma is its own only part.
func collapse(v []byte) ([]byte, bool) {
	comma := bytes.IndexByte(v, ',')
	if comma < 0 {
		return v, true
	}
	one, rest := trimBlanks(v[:comma]), v[comma+1:]
	for {
		part, more := rest, false
		if comma = bytes.IndexByte(rest, ','); comma >= 0 {
			part, rest, more = rest[:comma], rest[comma+1:], true
		}
		if !bytes.Equal(trimBlanks(part), one) {
			return nil, false
		}
		if !more {
			return one, len(one) > 0
		}
	}
}
