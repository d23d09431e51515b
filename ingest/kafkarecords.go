package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/segmentio/kafka-go/compress"
)

// A record batch as it lies in the log since Kafka 0.11:
// https://kafka.apache.org/documentation/#recordbatch
const (
	batchPrefix = 12 // base offset and length, which the length does not count
	batchHeader = 61 // up to the first record

	attrCodec       = 0x07
	attrTransaction = 0x10
	attrControl     = 0x20
)

// largestBatch bounds the memory that a batch takes once it is unpacked: 10 MiB of
// log shrink to some 100 KiB, and a batch of bytes that are all the same to less.
const largestBatch = 512 << 20

// batchError is a batch that cannot be read. Next is the offset behind it, so
// that it can be passed over.
type batchError struct {
	at, next int64
	err      error
}

func (e *batchError) Error() string {
	return fmt.Sprintf("%v: the batch at offset %d: %v", ErrKafkaUnreadable, e.at, e.err)
}

func (e *batchError) Unwrap() []error { return []error{ErrKafkaUnreadable, e.err} }

// recordSink takes what a recordReader finds, in order of offset.
type recordSink interface {
	// record is one that counts; its value is the sink's until it returns. What
	// lies between two records and is no hidden one is gone.
	record(offset int64, value []byte) error
	// hidden is a run of offsets that hold nothing for a reader.
	hidden(first, next int64) error
	// passed says that all below next was told.
	passed(next int64) error
}

// recordReader takes record batches apart.
type recordReader struct {
	unpacked []byte
	aborted  map[int64]bool // producers whose transaction at this place was aborted
}

// read hands the records from an offset on to a sink. Records before it, which
// come when it lies inside a batch, are skipped. It returns how many bytes the
// next batch has, if that was cut off at the end of set.
func (r *recordReader) read(f *fetched, from int64, sink recordSink) (cut int, err error) {
	clear(r.aborted)
	set, aborted := f.records, f.aborted
	for len(set) >= batchPrefix {
		size := batchPrefix + int(int32(binary.BigEndian.Uint32(set[8:])))
		if size < batchHeader {
			return 0, &batchError{int64(binary.BigEndian.Uint64(set)), from, fmt.Errorf("it has %d bytes", size)}
		}
		if size > len(set) {
			return size, nil
		}
		b := set[:size]
		set = set[size:]
		next, err := r.batch(b, from, &aborted, sink)
		if err != nil {
			return 0, err
		}
		from = max(from, next)
	}
	return 0, nil
}

// batch reads one batch and returns the offset behind it.
func (r *recordReader) batch(b []byte, from int64, aborted *[]abortedTransaction, sink recordSink) (next int64, err error) {
	base := int64(binary.BigEndian.Uint64(b))
	if magic := b[16]; magic != 2 {
		return 0, &batchError{base, from, fmt.Errorf("format %d is older than Kafka 0.11", magic)}
	}
	var (
		attributes = binary.BigEndian.Uint16(b[21:])
		producer   = int64(binary.BigEndian.Uint64(b[43:]))
		count      = int(int32(binary.BigEndian.Uint32(b[57:])))
	)
	next = base + int64(int32(binary.BigEndian.Uint32(b[23:]))) + 1
	if base < 0 || next <= base {
		return 0, &batchError{base, from, errors.New("it ends before it begins")}
	}
	for len(*aborted) > 0 && (*aborted)[0].first < next {
		if r.aborted == nil {
			r.aborted = map[int64]bool{}
		}
		r.aborted[(*aborted)[0].producer] = true
		*aborted = (*aborted)[1:]
	}
	if next <= from {
		if attributes&attrControl != 0 {
			delete(r.aborted, producer)
		}
		return next, nil
	}
	if crc32.Checksum(b[21:], castagnoli) != binary.BigEndian.Uint32(b[17:]) {
		return 0, &batchError{base, next, errors.New("its checksum is wrong")}
	}
	switch {
	case attributes&attrControl != 0: // the end of a transaction, aborted or not
		delete(r.aborted, producer)
		return next, sink.hidden(max(base, from), next)
	case attributes&attrTransaction != 0 && r.aborted[producer]:
		return next, sink.hidden(max(base, from), next)
	}
	records := b[batchHeader:]
	if codec := compress.Compression(attributes & attrCodec); codec != compress.None {
		if records, err = r.unpack(codec, records); err != nil {
			return 0, &batchError{base, next, err}
		}
	}
	least := base // the smallest offset that the next record may have
	for range count {
		var offset int64
		var value []byte
		var ok bool
		if offset, value, records, ok = nextRecord(records); !ok {
			return 0, &batchError{base, next, errors.New("its records do not fit into it")}
		}
		if offset += base; offset < least || offset >= next {
			return 0, &batchError{base, next, fmt.Errorf("it has a record at %d", offset)}
		}
		if least = offset + 1; offset < from {
			continue
		}
		if err := sink.record(offset, value); err != nil {
			return 0, err
		}
	}
	return next, sink.passed(next)
}

// unpack decompresses into memory that stays, unless a huge batch needed it.
func (r *recordReader) unpack(c compress.Compression, b []byte) ([]byte, error) {
	codec := c.Codec()
	if codec == nil {
		return nil, fmt.Errorf("it is compressed in a way with number %d", c)
	}
	z := codec.NewReader(bytes.NewReader(b))
	defer z.Close()
	const keep = 16 << 20
	if cap(r.unpacked) > keep {
		r.unpacked = nil
	}
	out := r.unpacked[:0]
	if cap(out) < 4*len(b) {
		out = make([]byte, 0, 4*len(b))
	}
	for {
		if len(out) == cap(out) {
			out = append(out, 0)[:len(out)]
		}
		n, err := z.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if errors.Is(err, io.EOF) {
			r.unpacked = out
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", codec.Name(), err)
		}
		if len(out) > largestBatch {
			return nil, fmt.Errorf("%s: it unpacks to more than %d MiB", codec.Name(), largestBatch>>20)
		}
	}
}

// nextRecord takes the first record off b. The offset is counted from the batch's.
func nextRecord(b []byte) (offset int64, value, rest []byte, ok bool) {
	size, n := binary.Varint(b)
	if n <= 0 || size < 0 || size > int64(len(b)-n) {
		return 0, nil, nil, false
	}
	b, rest = b[n:n+int(size)], b[n+int(size):]
	if len(b) < 1 {
		return 0, nil, nil, false
	}
	b = b[1:] // attributes, unused
	if _, n = binary.Varint(b); n <= 0 {
		return 0, nil, nil, false
	}
	b = b[n:] // time
	if offset, n = binary.Varint(b); n <= 0 || offset < 0 {
		return 0, nil, nil, false
	}
	b = b[n:]
	key, n := binary.Varint(b)
	if n <= 0 || key > int64(len(b)-n) {
		return 0, nil, nil, false
	}
	b = b[n+int(max(key, 0)):]
	length, n := binary.Varint(b)
	if n <= 0 || length > int64(len(b)-n) {
		return 0, nil, nil, false
	}
	if length > 0 {
		value = b[n : n+int(length)]
	}
	return offset, value, rest, true // headers are of no interest
}
