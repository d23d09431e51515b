package pipeline

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/targetside/auditor/ingest"
)

// Outlet writes to the topic of an exchange.
type Outlet interface {
	Topic() string
	// Partitions is how many partitions a topic of the exchange's cluster has.
	Partitions(ctx context.Context, topic string) (int, error)
	// Write appends records to a partition. Without an error they are there and stay;
	// with one some may be, now or later.
	Write(ctx context.Context, partition int, records [][]byte) error
}

// exchange is what this process needs to hand over arrivals and to take them.
type exchange struct {
	key      sipKey
	salt     []byte
	print    [8]byte       // fingerprint of the salt
	decoders chan *decoder // of senders

	originators map[string]uint16 // numbers by name
	receiving   *shared

	mu     sync.Mutex
	parts  map[string]*sentPart
	counts map[int]*SourceCounts // by source, of what was sent
}

// sentPart is a source partition whose arrivals are sent.
type sentPart struct {
	ingest.Partition
	assigned bool
	next     int64 // everything below is acknowledged
	mark     int64 // watermark there
	sent     int64 // the largest next ever; not next only where the log was cut
	idle     bool
}

func newExchange(c *LiveConfig, of *shared, decoders int) *exchange {
	x := &exchange{salt: c.Salt, parts: map[string]*sentPart{}, counts: map[int]*SourceCounts{}}
	sum := x.mac("exchange")
	x.key = sipKey{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
	sum = x.mac("fingerprint")
	copy(x.print[:], sum[:])
	receiving := *of
	receiving.offsetBlock = cmp.Or(c.exchangeBlock, exchangeBlock)
	x.receiving = &receiving
	x.newDecoders(c, of, decoders)
	return x
}

func (x *exchange) mac(text string) (sum [sha256.Size]byte) {
	m := hmac.New(sha256.New, x.salt)
	m.Write([]byte("auditor " + text))
	m.Sum(sum[:0])
	return sum
}

// newKeyHash returns the state by which one goroutine hashes keys as KeyHasher does.
func (x *exchange) newKeyHash() hash.Hash { return hmac.New(sha256.New, x.salt) }

// ErrExchange is what keeps an exchange from being used as it is configured.
var ErrExchange = errors.New("the exchange cannot be used")

// sentState is the metadata of the position of a source partition that is sent.
type sentState struct {
	Version  int    `json:"v"`
	Exchange string `json:"exchange"`       // its topic
	Of       int    `json:"of"`             // and how many partitions that has
	Mark     int64  `json:"mark"`           // the watermark just before the offset, Unix ns
	Sent     int64  `json:"sent,omitempty"` // the largest offset so far, if that is another
}

const sentVersion = 2 // 1 is that of positions that are counted here, see left

// splitPartition takes a partition's name apart, which ends in its number.
func splitPartition(name string) (topic string, number int, ok bool) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "", 0, false
	}
	number, err := strconv.Atoi(name[i+1:])
	return name[:i], number, err == nil && number >= 0 && strconv.Itoa(number) == name[i+1:]
}

// partitionPrefix stands before a topic in the names of its partitions.
const partitionPrefix = "kafka "

// TopicName is a topic as LiveConfig.Exchanged names it: as in the names of its
// partitions.
func TopicName(topic string) string { return partitionPrefix + topic }

// count adds to the counts of a source.
func (x *exchange) count(source int, c *SourceCounts) {
	if x.counts[source] == nil {
		x.counts[source] = newSourceCounts()
	}
	x.counts[source].add(c)
}

// picture adds what is known of the sources.
func (x *exchange) picture(p *Picture) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for source, c := range x.counts {
		p.Sources[source].add(c)
	}
	for _, s := range x.parts {
		p.Partitions = append(p.Partitions, LivePartition{Source: s.Source, Name: s.Name, Idle: s.idle, Watermark: s.mark})
	}
}

func exchangeError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrExchange, fmt.Sprintf(format, args...))
}

// ms rounds a time in Unix nanoseconds down to milliseconds.
func ms(ns int64) int64 {
	if ns == noTick {
		return noTick
	}
	return time.Unix(0, ns).UnixMilli()
}

func ns(ms int64) int64 {
	if ms == noTick {
		return noTick
	}
	return ms * 1e6
}
