package ingest

import "time"

// PartitionState is how one partition of a source stands: what an operator asks
// when figures look late or wrong. Counters run from the start of the process.
// Offsets, gaps and the lag are in records of a Kafka partition, and in bytes of
// files and spools.
type PartitionState struct {
	Partition Partition
	// Assigned says that this process reads the partition now.
	Assigned bool
	// Next is the offset to be read next, End the one that the source will give
	// to its next record. Both are -1 until they are known, and old while the
	// partition is not assigned.
	Next, End int64
	// Committed is the offset that a restart would be told; -1 while none is kept.
	Committed int64

	// Records have a value, Bytes are those values, Empty had none.
	Records, Bytes, Empty int64
	// Hidden are records that no reader may count: those of transactions that
	// were aborted, and the marks that end transactions.
	Hidden int64
	// Gap is how many offsets were gone before they were read.
	Gap int64

	// Restarts is how often the session was begun anew after an error, Stalls how
	// often its connection was, though nothing was said to be wrong with it.
	// Truncations is how often the log ended before what had been read of it, so
	// that what was written since is missing, nobody knows how much.
	Restarts, Stalls, Truncations int64
	// Refused is how often a position was not kept, most likely because another
	// process reads the partition by now.
	Refused int64

	// Progress is when records were last taken over, zero if never.
	Progress time.Time
	// Err is what keeps the partition from being read now, also that a file is gone of
	// which all was read; nil when nothing does.
	Err error
	// Full is why what is sent finds no room, though all that was taken is read; nil
	// while it finds some.
	Full error
}

// Lag is how many records this process has still to read, 0 while that is not
// known or not its business.
func (s *PartitionState) Lag() int64 {
	if !s.Assigned || s.Next < 0 || s.End < s.Next {
		return 0
	}
	return s.End - s.Next
}
