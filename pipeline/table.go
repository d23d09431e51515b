package pipeline

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
)

// table is what the receiver of an exchange partition knows of the source partitions,
// as of one offset.
type table struct {
	of      int      // partitions of the exchange; 0: nothing has come
	origins []origin // by name
}

// origin is a source partition.
type origin struct {
	topic  string // with what stands before it in the name
	number int
	of     int   // partitions of its topic
	next   place // the largest place seen: everything before it has come
	mark   int64 // watermark there, in ms; noTick for none
	idle   int64 // until when it does not hold back others, in ms; 0: it does
}

// maxOrigins is how many source partitions there may be: a table has to fit into the
// metadata of a position (ingest.MaxMetadata), with 18 bytes and a third for each.
const maxOrigins = 150

func (t *table) clone() *table { return &table{t.of, slices.Clone(t.origins)} }

func (t *table) find(topic string, number int) (i int, known bool) {
	return slices.BinarySearchFunc(t.origins, number, func(o origin, n int) int {
		return cmp.Or(strings.Compare(o.topic, topic), o.number-n)
	})
}

// origin finds a source partition, put in if it is new.
func (t *table) origin(topic string, number int) (o *origin, fresh bool) {
	i, known := t.find(topic, number)
	if !known {
		t.origins = slices.Insert(t.origins, i, origin{topic: topic, number: number, mark: noTick})
	}
	return &t.origins[i], !known
}

// next is the largest place of a source partition that was seen.
func (t *table) next(topic string, number int) place {
	i, known := t.find(topic, number)
	if !known {
		return place{}
	}
	return t.origins[i].next
}

// heard takes what a parcel says of its source partition.
func (o *origin) heard(h *parcelHead) {
	o.of = max(o.of, h.siblings)
	switch {
	case h.to.before(o.next):
		return
	case o.next.before(h.to):
		o.idle = 0 // that was said of an earlier end
	}
	o.next = h.to
	o.mark = max(o.mark, h.mark)
	o.idle = max(o.idle, h.idle)
}

// watermark is up to where all source partitions of some topics have come, in Unix
// nanoseconds; noTick while one of them was not heard of, or has no record.
func (t *table) watermark(topics []string) int64 {
	low, busy := int64(math.MaxInt64), int64(math.MaxInt64)
	for _, topic := range topics {
		of, some := 0, 0
		for i := range t.origins {
			if o := &t.origins[i]; o.topic == topic {
				of, some = max(of, o.of), some+1
				if o.idle == 0 {
					busy = min(busy, o.mark)
				}
			}
		}
		if of == 0 || some < of {
			return noTick
		}
	}
	for i := range t.origins {
		o := &t.origins[i]
		if !slices.Contains(topics, o.topic) {
			continue
		}
		mark := o.mark
		if o.idle != 0 && busy != math.MaxInt64 {
			mark = max(mark, min(o.idle, busy))
		}
		low = min(low, mark)
	}
	return ns(low)
}

var errTable = errors.New("what a position says of an exchange cannot be read")

// A table in metadata is, in base64: partitions of the exchange, number of topics, and
// for each of these its name, its number of partitions, how many of them are here, and
// for each: what there is · its number less that before · next · watermark and idle
// less base.

const (
	originHasNth = 1 << iota
	originHasMark
	originIsIdle
)

// text is the table in a position's metadata; base is a watermark, in ms.
func (t *table) text(base int64) string {
	if t == nil || t.of == 0 {
		return ""
	}
	var topics []string
	for _, o := range t.origins {
		if !slices.Contains(topics, o.topic) {
			topics = append(topics, o.topic)
		}
	}
	b := binary.AppendUvarint(nil, uint64(t.of))
	b = binary.AppendUvarint(b, uint64(len(topics)))
	for _, topic := range topics {
		var of, last int
		var some []byte
		n := 0
		for _, o := range t.origins {
			if o.topic != topic {
				continue
			}
			of, n = max(of, o.of), n+1
			has := byte(0)
			if o.next.nth != 0 {
				has |= originHasNth
			}
			if o.mark != noTick {
				has |= originHasMark
			}
			if o.idle != 0 {
				has |= originIsIdle
			}
			some = append(some, has)
			some = binary.AppendUvarint(some, uint64(o.number-last))
			some = binary.AppendUvarint(some, uint64(o.next.offset))
			if o.next.nth != 0 {
				some = binary.AppendUvarint(some, uint64(o.next.nth))
			}
			if o.mark != noTick {
				some = binary.AppendVarint(some, o.mark-base)
			}
			if o.idle != 0 {
				some = binary.AppendVarint(some, o.idle-base)
			}
			last = o.number
		}
		b = appendText(b, topic)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(of)), uint64(n))
		b = append(b, some...)
	}
	return base64.RawStdEncoding.EncodeToString(b)
}

// parseTable reads what text wrote.
func parseTable(text string, base int64) (*table, error) {
	t := &table{}
	if text == "" {
		return t, nil
	}
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, errTable
	}
	c := cursor{b: b}
	t.of = int(c.number(math.MaxInt32))
	for range c.number(maxOrigins) {
		topic, of := c.text(), int(c.number(math.MaxInt32))
		last := 0
		for range c.number(maxOrigins) {
			has := c.byte()
			number := last + int(c.number(math.MaxInt32))
			o, fresh := t.origin(topic, number)
			if !fresh || c.bad {
				return nil, errTable
			}
			last, o.of, o.next.offset = number, of, int64(c.number(math.MaxInt64))
			if has&originHasNth != 0 {
				o.next.nth = int64(c.number(math.MaxInt64))
			}
			if has&originHasMark != 0 {
				o.mark = base + c.time(latestMS)
			}
			if has&originIsIdle != 0 {
				o.idle = base + c.time(latestMS)
			}
		}
	}
	if c.bad || len(c.b) > 0 {
		return nil, errTable
	}
	return t, nil
}
