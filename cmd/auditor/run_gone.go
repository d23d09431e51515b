package main

import "math"

// gone is what was lost of a source, in bytes and in records. How many records that is
// is decided when it is lost: later it would change with the records that are read.
type gone struct{ bytes, records uint64 }

// inBytes says that offsets of the source are bytes, and so what is lost of it.
func (s *source) inBytes() bool { return s.kind != "kafka" && s.kind != kindExchange }

// lost is how many records are gone with a gap, which only rises. Where it is of bytes
// that is taken from how long the records are that were read, and at least one each time.
func (s *source) lost(gap uint64) uint64 {
	if !s.inBytes() {
		return gap
	}
	r, _, _ := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if gap < s.gone.bytes {
		s.gone = gone{} // counted anew
	}
	more := gap - s.gone.bytes
	if more == 0 {
		return s.gone.records
	}
	var records, bytes int64
	for _, p := range r.Partitions() {
		records, bytes = records+p.Records, bytes+p.Bytes
	}
	if records == 0 || bytes == 0 {
		return s.gone.records + 1 // for the time being
	}
	s.gone.bytes = gap
	s.gone.records += uint64(max(1, math.Round(float64(more)*float64(records)/float64(bytes))))
	return s.gone.records
}
