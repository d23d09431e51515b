package ingest

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// A segment is a header and then frames. Offsets count the bytes of all segments,
// headers and all, so that they say where a frame lies.
//
//	header  magic (6) version (2) base offset (8) CRC-32C of these (4)
//	frame   length of the entry (4) CRC-32C of offset, length and entry (4) entry
//
// All numbers are little-endian. As the offset is part of the sum, what lies at
// the wrong place is as bad as what is damaged.
const (
	segmentMagic   = "AUDSPL"
	segmentVersion = 1
	segmentHeader  = 20
	frameHeader    = 8

	// maxEntry bounds an entry, and so a line of it.
	maxEntry = 4 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errFrame says that there is no frame, or a damaged one.
var errFrame = errors.New("no sound frame")

func appendHeader(b []byte, base int64) []byte {
	at := len(b)
	b = append(b, segmentMagic...)
	b = binary.LittleEndian.AppendUint16(b, segmentVersion)
	b = binary.LittleEndian.AppendUint64(b, uint64(base))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
}

// headerVersion is the version of a segment; ok says that the header is sound and
// of the segment at base.
func headerVersion(b []byte, base int64) (version int, ok bool) {
	if len(b) < segmentHeader || string(b[:len(segmentMagic)]) != segmentMagic ||
		binary.LittleEndian.Uint32(b[16:]) != crc32.Checksum(b[:16], castagnoli) {
		return 0, false
	}
	return int(binary.LittleEndian.Uint16(b[6:])), int64(binary.LittleEndian.Uint64(b[8:])) == base
}

func frameSum(offset int64, length uint32, entry []byte) uint32 {
	var head [12]byte
	binary.LittleEndian.PutUint64(head[:], uint64(offset))
	binary.LittleEndian.PutUint32(head[8:], length)
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, entry)
}

// appendFrame appends an entry as the frame at offset.
func appendFrame(b []byte, offset int64, entry []byte) []byte {
	n := uint32(len(entry))
	b = binary.LittleEndian.AppendUint32(b, n)
	b = binary.LittleEndian.AppendUint32(b, frameSum(offset, n, entry))
	return append(b, entry...)
}

// frameLength is how long the entry of the frame that begins b says it is; ok
// says that it can be.
func frameLength(b []byte) (n int, ok bool) {
	if len(b) < frameHeader {
		return 0, false
	}
	length := binary.LittleEndian.Uint32(b)
	return int(length), length > 0 && length <= maxEntry
}

// frame is the entry of the frame that begins b at offset. io.ErrShortBuffer says
// that b ends before the frame does, if it is one; errFrame that it is none.
func frame(b []byte, offset int64) ([]byte, error) {
	if len(b) < frameHeader {
		return nil, io.ErrShortBuffer
	}
	n, ok := frameLength(b)
	if !ok {
		return nil, errFrame
	}
	if len(b) < frameHeader+n {
		return nil, io.ErrShortBuffer
	}
	entry := b[frameHeader : frameHeader+n]
	if binary.LittleEndian.Uint32(b[4:]) != frameSum(offset, uint32(n), entry) {
		return nil, errFrame
	}
	return entry, nil
}

// nextFrame looks for a sound frame in r, whose first byte is at offset base, from
// offset from on and wholly before limit; -1 if there is none.
func nextFrame(r io.ReaderAt, base, from, limit int64) (int64, error) {
	const step = 1 << 20
	window := make([]byte, max(0, min(step+frameHeader, limit-from)))
	var entry []byte
	for at := from; at+frameHeader < limit; at += step {
		n, err := r.ReadAt(window[:min(int64(len(window)), limit-at)], at-base)
		if err != nil && err != io.EOF {
			return -1, err
		}
		for i := 0; i < step && i+frameHeader <= n; i++ {
			length, ok := frameLength(window[i:])
			size := int64(frameHeader + length)
			offset := at + int64(i)
			if !ok || offset+size > limit {
				continue
			}
			if int64(cap(entry)) < size {
				entry = make([]byte, size)
			}
			if m, _ := r.ReadAt(entry[:size], offset-base); int64(m) < size {
				continue
			}
			if _, err := frame(entry[:size], offset); err == nil {
				return offset, nil
			}
		}
		if n < len(window) {
			break
		}
	}
	return -1, nil
}
