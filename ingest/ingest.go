// Package ingest brings access-log bytes: it opens sources and hands out blocks
// of whole lines with their positions.
//
// A block never splits a line, and blocks of one partition come in order. A file
// is a partition; compressed files (gzip, also of several members, and zstd) are
// known by their first bytes, whatever they are called. Trouble that makes the
// rest of a source unreadable is an error that names the source; what stands in
// the lines is not this package's business but accesslog's, and what a key or a
// window is, it does not know.
//
// # Kafka
//
// A Kafka source reads topics as one consumer group and promises:
//
//   - Every record that was committed to the log is handed over at least once, in
//     order of offset within its partition, and again only from where the handler
//     said after an error, a crash or a change of the group.
//   - What is gone before it was read (retention, deletion, a damaged batch) is
//     counted in Batch.Gap, before the batch that it would have preceded. A log
//     that ends before what was read of it is read on at its end: how much is
//     missing then nobody knows, so it is counted as a truncation, not as a gap.
//   - What no reader may count is not handed over: records of transactions that
//     were aborted, and the marks that end transactions.
//   - A position is what the handler released, with its metadata, committed each
//     second and once more when a session has been closed. Commits carry the
//     generation of the group: those of a member that was given up are refused.
//   - Trouble of one partition stops that one only; trouble of the cluster is named
//     and tried again for as long as the source runs.
//   - Where the topics are not keyed by question one member of the group reads all
//     partitions of all of them, and stays the one for as long as it is there.
//   - A handler may write to other topics of the cluster (KafkaWriter); what was written
//     is in all replicas that are in sync, or there is an error.
//
// It needs brokers of Kafka 1.0 or later, and logs in the format of 0.11 or later.
//
// # Files, HTTP, syslog and Envoy
//
// These sources go on for ever and hand batches to a Handler, each partition apart:
// what a session refuses starts that partition anew, after a pause that grows.
//
// Follow reads files as they grow. A path is a partition, with its rotated parts:
// offsets go on through them and never go back. A file is known by device, inode
// and first bytes, so each line is handed out once, whether the file is renamed,
// copied and cut to zero, switched by a link, or deleted, and after a restart from
// the released position on, wherever the file lies by then. A file that is away is
// waited for, and goes on where it was left when it comes back as it was, or as a copy
// that begins alike and is no shorter. Parts that were rotated away while nobody looked
// are read by age, the oldest first, whatever their suffixes are; those that were there
// before the path was first read only if the patterns name them. Lines that were
// written to a file and cannot be found any more once something else lies in its place
// are a gap, of 1 byte where their number is not known; what is written between a copy
// and the cut to zero is lost without a trace, as it is to everyone. A line longer than
// 64 MiB is passed over and a gap. Compressed files are not followed.
//
// Push takes lines by HTTP into a Spool, which is its partition. What was answered
// with a 2xx is on the disk, and is handed out after a crash; a damaged frame costs
// itself alone and is a gap. A push without an answer may have been kept. The spool
// is bounded: when it is full, pushes are refused, never lines dropped. But no spool stays
// full for ever: when nothing that is in it is let go before newer lines come, it takes one
// write after the other above its limit, ever more slowly.
//
// Syslog takes records by a protocol without answers into such a spool, by TCP, TLS or
// UDP, without the headers that syslog put before them: one message is one line. By TCP
// nothing that was read is dropped: while the spool is full senders are held back. By
// UDP what finds no room is dropped, and counted. A message that came cut is not handed
// out. ALS takes Envoy's access log the same way, as a gRPC service whose streams are held
// back.
package ingest

// Block is a run of whole lines of one partition.
type Block struct {
	Partition int
	Data      []byte // lines, each but perhaps the last with its newline
	Offset    int64  // of Data in the partition, uncompressed
	// Refs locate the lines of Data one by one when they are not simply those at
	// Offset, because parts of split lines were joined.
	Refs []Ref
	// Declares is how a line begins that says what the lines behind it hold, empty if the
	// source looks for none, and Declared what the last of those in front of the block
	// says behind that, empty if there is none. See FollowConfig.Declares.
	Declares, Declared string

	pages []byte // see File.Map
}

// Ref is where a line came from.
type Ref struct {
	Line   int64 // 1-based
	Offset int64
}
