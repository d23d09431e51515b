package ingest

import (
	"bytes"
	"encoding/base64"
	"sync"
	"time"
)

// batcher makes batches of lines from records and hands them to take.
type batcher struct {
	take func(*Batch) error
	size int   // about how many bytes a batch has
	next int64 // the offset to come; what is missing from here on is gone

	whole  bool      // records are no lines
	binary bool      // nor text
	asked  time.Time // when the broker was asked for what is being told

	open  *Batch // nil until there is something to tell
	gap   int64  // just before whatever comes next
	empty int64  // of records before the first line of a batch

	told tally // since it was last asked
}

// tally counts what was found.
type tally struct{ records, bytes, empty, hidden, gap int64 }

// batchPool keeps the memory of batches that were consumed. One that a huge
// record needed is not kept.
var batchPool = sync.Pool{New: func() any { return &pooledBatch{} }}

type pooledBatch struct{ Batch }

func newBatch() *Batch {
	p := batchPool.Get().(*pooledBatch)
	data, refs, sizes := p.Data, p.Refs, p.Sizes
	if cap(data) > 4<<20 {
		data, refs, sizes = nil, nil, nil
	}
	p.Batch = Batch{Block: Block{Data: data[:0], Refs: refs[:0]}, Sizes: sizes[:0]}
	var once sync.Once
	p.Done = func() { once.Do(func() { batchPool.Put(p) }) }
	return &p.Batch
}

// jump notes that all records from next up to an offset are gone.
func (b *batcher) jump(offset int64) error {
	if offset <= b.next {
		return nil
	}
	if b.open != nil {
		if err := b.flush(false); err != nil {
			return err
		}
	}
	b.gap += offset - b.next
	b.told.gap += offset - b.next
	b.next = offset
	return nil
}

func (b *batcher) record(offset int64, value []byte) error {
	if err := b.jump(offset); err != nil {
		return err
	}
	b.next = offset + 1
	if len(value) == 0 {
		b.told.empty++
		if b.open != nil {
			b.open.Empty++
			b.open.Next = b.next
		} else {
			b.empty++
		}
		return nil
	}
	b.told.records++
	b.told.bytes += int64(len(value))
	o := b.open
	if o == nil {
		o = newBatch()
		o.Offset, o.Gap, o.Empty = offset, b.gap, b.empty
		b.open, b.gap, b.empty = o, 0, 0
	}
	switch {
	case b.whole:
		o.Data, o.Sizes = append(o.Data, value...), append(o.Sizes, len(value))
		o.Refs = append(o.Refs, Ref{Line: 1, Offset: offset})
	case b.binary:
		o.Data = append(base64.StdEncoding.AppendEncode(o.Data, value), '\n')
		o.Refs = append(o.Refs, Ref{Line: 1, Offset: offset})
	default:
		o.lines(offset, value)
	}
	o.Next = b.next
	if len(o.Data) >= b.size {
		return b.flush(false)
	}
	return nil
}

// lines adds a record that is lines.
func (o *Batch) lines(offset int64, value []byte) {
	line := int64(1)
	for {
		o.Refs = append(o.Refs, Ref{Line: line, Offset: offset})
		end := bytes.IndexByte(value, '\n')
		if end < 0 || end == len(value)-1 {
			break
		}
		o.Data = append(o.Data, value[:end+1]...)
		value = value[end+1:]
		line++
	}
	o.Data = append(o.Data, value...)
	if o.Data[len(o.Data)-1] != '\n' {
		o.Data = append(o.Data, '\n')
	}
}

func (b *batcher) hidden(first, next int64) error {
	if err := b.jump(first); err != nil {
		return err
	}
	b.told.hidden += next - first
	b.next = next
	return nil
}

// passed: where a batch of the log ends behind its last record, that is because
// those behind it were deleted.
func (b *batcher) passed(next int64) error { return b.jump(next) }

// flush hands over what there is. At the end of the partition there is always
// something to tell.
func (b *batcher) flush(atEnd bool) error {
	o := b.open
	if o == nil {
		if !atEnd && b.gap == 0 && b.empty == 0 {
			return nil
		}
		o = &Batch{Gap: b.gap, Empty: b.empty}
		o.Offset = b.next
		b.gap, b.empty = 0, 0
	}
	b.open = nil
	if o.Next, o.AtEnd = b.next, atEnd; atEnd {
		o.Asked = b.asked
	}
	return b.take(o)
}
