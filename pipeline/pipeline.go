// Package pipeline turns access-log bytes into rows: it decodes and attributes
// records, hands arrivals to the ledgers of their shards, says when ticks may be
// closed, and sees that what comes out does not depend on how the work was cut.
//
// Decoding and attribution run in parallel, a block of lines at a time. What
// depends on order is done in the order of positions: names get their numbers,
// watermarks move, late records are told from others. A shard is a goroutine
// with a ledger; all questions of one key are in one shard, so shards add up.
//
//	file ─ block ─┬ decoder ─┬ in order ─┬ shard ─┬ summary ─ report
//	              └ decoder ─┘           └ shard ─┘
//
// The package reads no configuration file and no flag; package main wires it.
package pipeline

import (
	"time"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/ingest/accesslog"
	"github.com/targetside/auditor/keys"
)

// Config says how records are read, attributed and counted.
type Config struct {
	Sources []Source
	Keys    *keys.Ring
	Routes  Routes
	Peers   Peers
	Ignore  Ignore
	// Refused are the statuses that turn a caller away without work.
	Refused []int
	// Discriminators name, by route, the log field that tells the questions of
	// one key apart, instead of the path.
	Discriminators map[string]string
	Horizon        time.Duration
	Lateness       time.Duration
	MaxFuture      time.Duration
	// Now is the wall clock of the run, by which records are from the future.
	Now    time.Time
	Budget budget.Ratio
	// RouteBudgets are those of single routes.
	RouteBudgets map[string]*budget.Ratio
	// Salt keys the hashes under which question keys are shown.
	Salt []byte
	// Worst is how many of the worst questions a report names.
	Worst int
	// Parallel is the number of decoders, and that of shards. 0 is half of the
	// processors, so that each runs one of either and keeps its memory at hand.
	Parallel int
	// Reading is different for each way in which records are read and identified.
	// It is kept with positions, so it must not hold a secret.
	Reading string

	block int // size of the blocks that are decoded at once; 0 is blockSize
}

// Source says how the records of one source are read.
type Source struct {
	// Name tells the source from others of a daemon, also after its configuration
	// has changed.
	Name string
	// Dependency is the name of the protected target, or DependencyField the log
	// field that holds it.
	Dependency      string
	DependencyField string
	// Parser is the configuration of its parsers, but for Keys and Extra. An
	// empty or "auto" Format is detected for each file.
	Parser accesslog.Config
	// InFront says that the log is written before the dependency, so that the
	// tries inside one record are its arrivals.
	InFront bool
	// TrustedHops says that no sidecar rewrites attempt numbers before the log.
	TrustedHops bool

	name []byte // Dependency
}

// Routes says how paths are folded into routes.
type Routes struct {
	Templates []string // "METHOD /path/{id}" or "/path/{id}"
	Max       int      // distinct routes of a dependency; the rest are "other"
}

// Peers says how callers are folded into workloads.
type Peers struct {
	Map           map[string]string // name, address or CIDR to workload
	Max           int               // distinct peers; the rest are "other"
	CallerTimeout map[string]time.Duration
}

// Ignore names requests that are no arrivals, such as health checks.
type Ignore struct {
	Paths      []string // exact paths without their query
	UserAgents []string // beginnings of user agents, before a "/" or a space
	Peers      []string // workloads
}
