package pipeline

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/keys"
)

// A parcel is one record of the exchange, in this form; numbers are varints, texts
// follow their length:
//
//	"aux" version
//	fingerprint of the salt, 8 bytes
//	partitions of the exchange · name of the source partition · partitions of its topic
//	from, to: offset and number, see place
//	marks: 1 watermark known, 2 idle · watermark, time of the look, in ms
//	number of arrivals
//	for each: offset, less that before · start, less that before · log time less start ·
//	  duration less that · Retry-After · flags and whether late · class, kind, departure ·
//	  outcome, reason · attempt · attempts left · hash of the record, 4 bytes ·
//	  route · peer
//	  and if it is attributable: originator · question, 16 bytes · hash of its key, 16
//	  bytes · lot, 4 bytes
//
// A route, peer or originator is its number in the parcel; the first with a number
// stands behind it. Later versions may change all but the first four bytes.

const (
	parcelMagic   = "aux"
	parcelVersion = 1
	// parcelSize is about how many bytes of arrivals a parcel has at most: half of what
	// a broker takes by default (message.max.bytes).
	parcelSize = 512 << 10
)

// place is where in a source partition an arrival is from: its record, and how many
// arrivals of the record for the same exchange partition stand before it.
type place struct{ offset, nth int64 }

func (p place) before(o place) bool {
	return p.offset < o.offset || p.offset == o.offset && p.nth < o.nth
}

// parcelHead is what a parcel says besides its arrivals.
type parcelHead struct {
	of       int    // partitions of the exchange
	source   string // the source partition
	siblings int    // partitions of its topic
	from, to place  // all arrivals between are in here
	mark     int64  // watermark behind these, in ms; noTick for none
	idle     int64  // when the partition was at its end, idle, in ms; 0: it was not
}

// parcelWriter makes the parcels of one sender for one exchange partition.
type parcelWriter struct {
	size  int   // at most about so many bytes of arrivals
	from  place // of the next parcel: the end of the one before
	last  place // of the latest arrival
	start int64 // likewise

	body                       []byte
	n                          int // arrivals in body
	routes, peers, originators dictionary
	full                       []parcelPart // of the batch at hand, where it takes several parcels
}

type parcelPart struct {
	from, to place
	n        int
	body     []byte
}

// dictionary numbers what a parcel names, by decoder and the decoder's number. A name
// that two decoders found is there twice.
type dictionary map[decoded]uint64

type decoded struct {
	decoder int
	number  uint16
}

// refer appends the number of a name, and says whether it is new.
func (d dictionary) refer(b []byte, name decoded) (_ []byte, fresh bool) {
	n, known := d[name]
	if !known {
		n = uint64(len(d))
		d[name] = n
	}
	return binary.AppendUvarint(b, n), !known
}

func newParcelWriter(from int64, size int) *parcelWriter {
	return &parcelWriter{size: size, from: place{from, 0}, last: place{-1, 0}, routes: dictionary{}, peers: dictionary{}, originators: dictionary{}}
}

// add appends the arrival that a decoder has at hand.
func (w *parcelWriter) add(d *decoder, late bool) {
	at := place{d.at.Offset, 0}
	if at.offset < w.from.offset {
		return // of a log that was cut, see sender.known
	}
	if at.offset == w.last.offset {
		at.nth = w.last.nth + 1
	}
	if w.n == 0 {
		w.last, w.start = w.from, 0
	}
	a := &d.arrival
	b := binary.AppendUvarint(w.body, uint64(at.offset-w.last.offset))
	b = binary.AppendVarint(b, a.Start-w.start)
	b = binary.AppendVarint(b, a.Log-a.Start)
	b = binary.AppendVarint(b, a.Duration-(a.Log-a.Start))
	b = binary.AppendUvarint(b, uint64(aggregate.PackRetry(a.RetryAfter)))
	flags := uint64(a.Flags) << 1
	if late {
		flags |= 1
	}
	b = binary.AppendUvarint(b, flags)
	b = append(b, byte(a.Class)|byte(a.Kind)<<2|byte(a.Departure)<<4, byte(a.Outcome)|byte(a.Reason)<<4, a.Attempt, a.AttemptsLeft)
	b = binary.LittleEndian.AppendUint32(b, uint32(a.Text))
	b, fresh := w.routes.refer(b, decoded{d.number, a.Route})
	if fresh {
		r := d.names.routeList[a.Route]
		b = appendText(appendText(b, r.dependency), r.route)
	}
	if b, fresh = w.peers.refer(b, decoded{d.number, d.peer}); fresh {
		b = appendText(b, d.names.peers[d.peer])
	}
	if a.Class != keys.Unattributable {
		if b, fresh = w.originators.refer(b, decoded{0, a.Originator}); fresh {
			b = appendText(b, d.exchange.originators[a.Originator])
		}
		b = binary.LittleEndian.AppendUint64(b, a.Question.Key)
		b = binary.LittleEndian.AppendUint64(b, a.Question.Rest)
		b = append(b, d.exchange.keyHash[:]...)
		b = binary.LittleEndian.AppendUint32(b, uint32(a.Lot))
	}
	w.body, w.last, w.start = b, at, a.Start
	if w.n++; len(b) >= w.size {
		w.cut(place{at.offset, at.nth + 1})
	}
}

// empty says that no arrival waits to be sent.
func (w *parcelWriter) empty() bool { return w.n == 0 && len(w.full) == 0 }

// cut ends the parcel at hand.
func (w *parcelWriter) cut(to place) {
	w.full = append(w.full, parcelPart{w.from, to, w.n, w.body})
	w.from, w.body, w.n = to, nil, 0
	clear(w.routes)
	clear(w.peers)
	clear(w.originators)
}

// take returns the parcels of a batch, the last of which reaches up to to. Their
// watermark is that before the batch, but for the last.
func (w *parcelWriter) take(h parcelHead, print [8]byte, to, before int64) (out [][]byte) {
	w.cut(place{to, 0})
	for i, p := range w.full {
		own := h
		own.from, own.to = p.from, p.to
		if i < len(w.full)-1 {
			own.mark, own.idle = before, 0
		}
		out = append(out, append(binary.AppendUvarint(own.append(nil, print), uint64(p.n)), p.body...))
	}
	w.full = w.full[:0]
	return out
}

const (
	parcelHasMark = 1 << iota
	parcelIsIdle
)

func (h *parcelHead) append(b []byte, print [8]byte) []byte {
	b = append(append(b, parcelMagic...), parcelVersion)
	b = append(b, print[:]...)
	b = binary.AppendUvarint(b, uint64(h.of))
	b = appendText(b, h.source)
	b = binary.AppendUvarint(b, uint64(h.siblings))
	for _, n := range [...]int64{h.from.offset, h.from.nth, h.to.offset, h.to.nth} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	marks := byte(0)
	if h.mark != noTick {
		marks |= parcelHasMark
	}
	if h.idle != 0 {
		marks |= parcelIsIdle
	}
	b = append(b, marks)
	if h.mark != noTick {
		b = binary.AppendVarint(b, h.mark)
	}
	if h.idle != 0 {
		b = binary.AppendVarint(b, h.idle)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// What a record of the exchange's topic may be that is no parcel of ours.
var (
	errNoParcel      = errors.New("it is no parcel of arrivals")
	errParcelDamaged = errors.New("the parcel is damaged")
)

// parcelReader takes a parcel apart.
type parcelReader struct {
	parcelHead
	cursor

	count       uint64 // arrivals that are still to come
	routes      []routeName
	peers       []string
	originators []string

	// The arrival at hand; its dimensions are numbers in the lists.
	at                      place
	arrival                 aggregate.Arrival
	late                    bool
	route, peer, originator int
	keyHash                 []byte
}

// open reads the head of a parcel.
func (r *parcelReader) open(b []byte, print [8]byte) error {
	*r = parcelReader{cursor: cursor{b: b}, routes: r.routes[:0], peers: r.peers[:0], originators: r.originators[:0]}
	if string(r.bytes(len(parcelMagic))) != parcelMagic {
		return errNoParcel
	}
	if v := r.byte(); r.bad {
		return errNoParcel
	} else if v != parcelVersion {
		return exchangeError("a parcel has version %d, and this program knows %d: another instance runs a later program", v, parcelVersion)
	}
	if string(r.bytes(len(print))) != string(print[:]) && !r.bad {
		return exchangeError("a parcel was made with another salt: keys.salt_file is the same in all instances, and an exchange that was used with another one cannot be used on; name another kafka.exchange.topic and kafka.group")
	}
	r.of, r.source, r.siblings = int(r.number(math.MaxInt32)), r.text(), int(r.number(math.MaxInt32))
	for _, n := range [...]*int64{&r.from.offset, &r.from.nth, &r.to.offset, &r.to.nth} {
		*n = int64(r.number(math.MaxInt64))
	}
	r.mark = noTick
	marks := r.byte()
	if marks&parcelHasMark != 0 {
		r.mark = r.time(latestMS)
	}
	if marks&parcelIsIdle != 0 {
		r.idle = r.time(latestMS)
	}
	r.count = r.number(math.MaxInt32)
	r.at, r.arrival.Start = place{r.from.offset, r.from.nth - 1}, 0
	if _, _, ok := splitPartition(r.source); r.bad || !ok || r.to.before(r.from) || r.of < 1 || r.siblings < 1 {
		return errParcelDamaged
	}
	return nil
}

// The latest times that a parcel may hold: no record has any such.
const (
	latestMS = 1 << 42
	latestNS = 1 << 61
)

// next reads the next arrival. ok is false when there is none.
func (r *parcelReader) next() (ok bool, err error) {
	if r.count == 0 {
		if len(r.b) > 0 {
			return false, errParcelDamaged
		}
		return false, nil
	}
	r.count--
	switch step := int64(r.number(math.MaxInt64)); {
	case step > r.to.offset-r.at.offset:
		return false, errParcelDamaged
	case step == 0:
		r.at.nth++
	default:
		r.at = place{r.at.offset + step, 0}
	}
	a := &r.arrival
	start := a.Start
	*a = aggregate.Arrival{}
	a.Start = start + r.time(latestNS)
	a.Log = a.Start + r.time(latestNS)
	a.Duration = a.Log - a.Start + r.time(latestNS)
	a.RetryAfter = aggregate.UnpackRetry(uint16(r.number(math.MaxUint16)))
	flags := r.number(uint64(allFlags)<<1 | 1)
	a.Flags, r.late = aggregate.Flags(flags>>1), flags&1 != 0
	x, y := r.byte(), r.byte()
	a.Class, a.Kind, a.Departure = keys.Class(x&3), aggregate.Kind(x>>2&3), aggregate.Departure(x>>4)
	a.Outcome, a.Reason = aggregate.Outcome(y&15), keys.Reason(y>>4)
	a.Attempt, a.AttemptsLeft = r.byte(), r.byte()
	if hash := r.bytes(4); hash != nil {
		a.Text = uint64(binary.LittleEndian.Uint32(hash))
	}
	r.route = r.refer(len(r.routes))
	if r.route == len(r.routes) {
		r.routes = append(r.routes, routeName{r.text(), r.text()})
	}
	if r.peer = r.refer(len(r.peers)); r.peer == len(r.peers) {
		r.peers = append(r.peers, r.text())
	}
	r.originator, r.keyHash = 0, nil
	if a.Class != keys.Unattributable {
		if r.originator = r.refer(len(r.originators)); r.originator == len(r.originators) {
			r.originators = append(r.originators, r.text())
		}
		if id := r.bytes(16); id != nil {
			a.Question = aggregate.ID{Key: binary.LittleEndian.Uint64(id), Rest: binary.LittleEndian.Uint64(id[8:])}
		}
		r.keyHash = r.bytes(16)
		if lot := r.bytes(4); lot != nil {
			a.Lot = aggregate.Lot(binary.LittleEndian.Uint32(lot))
		}
	}
	if r.bad || !r.at.before(r.to) || a.Start < -latestNS || a.Start > latestNS || a.Log < -latestNS || a.Log > latestNS ||
		a.Class > keys.Verified || a.Kind > aggregate.KindEnd || a.Departure > aggregate.UnknownPoint || a.Outcome > aggregate.OutcomeOther ||
		int(a.Reason) >= keys.NumReasons || (a.Class == keys.Unattributable) != (a.Reason != keys.None) {
		return false, errParcelDamaged
	}
	return true, nil
}

// allFlags are the facts that a decoder finds.
const allFlags = aggregate.InFront<<1 - 1

// cursor reads a parcel or a table. After the first fault everything is zero, and bad says so.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) fail() { c.b, c.bad = nil, true }

func (c *cursor) bytes(n int) []byte {
	if n > len(c.b) {
		c.fail()
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) byte() byte {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) number(most uint64) uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 || v > most {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) time(most int64) int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 || v > most || v < -most {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) text() string { return string(c.bytes(int(c.number(uint64(len(c.b)))))) }

// refer reads the number of a name, of which some are known.
func (c *cursor) refer(known int) int { return int(c.number(uint64(known))) }
