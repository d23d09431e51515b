package ingest

// PartitionState is how far the reading of one partition is.
type PartitionState struct {
	Name           string
	Lag            int64 // records (Kafka) or bytes (files, spools) not yet read; -1 unknown
	Next           int64 // offset to be read next
	Gap            int64 // records or bytes that were lost before they could be read
	Records, Bytes int64
	Restarts       int64
	Err            string // why it does not read at the moment, empty if it does
}
