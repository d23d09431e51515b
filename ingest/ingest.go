// Package ingest brings access-log bytes: it opens sources and hands out blocks
// of whole lines with their positions.
//
// A block never splits a line, and blocks of one partition come in order. A file
// is a partition; compressed files (gzip, also of several members, and zstd) are
// known by their first bytes, whatever they are called. Trouble that makes the
// rest of a source unreadable is an error that names the source; what stands in
// the lines is not this package's business but accesslog's, and what a key or a
// window is, it does not know.
package ingest

// Block is a run of whole lines of one partition.
type Block struct {
	Partition int
	Data      []byte // lines, each but perhaps the last with its newline
	Offset    int64  // of Data in the partition, uncompressed
	// Refs locate the lines of Data one by one when they are not simply those at
	// Offset, because parts of split lines were joined.
	Refs []Ref

	pages []byte // see File.Map
}

// Ref is where a line came from.
type Ref struct {
	Line   int64 // 1-based
	Offset int64
}
