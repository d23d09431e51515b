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
//
// # The exchange
//
// A topic that is not keyed by question is counted right by who sees all of it. To
// share it out nevertheless, instances hand each other arrivals through one more
// topic, the exchange, whose partitions hold questions whole:
//
//	source partition ─ sender ─┬─ exchange partition ─ receiver ─ scope
//	source partition ─ sender ─┴─ exchange partition ─ receiver ─ scope
//
// The sender of a source partition decodes its records, decides which are late by
// the watermark of that partition alone, and writes the arrivals, each to the
// exchange partition that its question's hash names, in parcels: a parcel says of
// which source partition it is, from which record up to which it holds all that is
// for this exchange partition, and the watermark behind these. Each second there is a
// parcel for every exchange partition, if only to say so.
//
// A receiver counts one exchange partition as any keyed partition is counted, with
// a table of what it has seen of each source partition. It promises that each arrival
// is counted once, by these rules:
//
//  1. A sender writes in the order of its source, has one write under way for each
//     exchange partition, and begins none before the one before is acknowledged. Where
//     one is not, it begins anew, at a place below which everything is.
//  2. A source's position is released when everything below it is acknowledged by all
//     exchange partitions. So whoever begins there has left out nothing.
//  3. A receiver drops what is not beyond the largest place that it has seen of the
//     source partition.
//
// By 1 and 2 each sender's parcels in an exchange partition, whoever writes between
// them, reach from a place below which everything is there, without a hole. So the
// first parcel that goes beyond the largest place seen goes on just there, and by 3
// each arrival counts where it comes first. A batch that is sent again, an owner of a
// source partition who was given up and does not know it yet, a write that comes long
// after its sender has stopped waiting: all of these only repeat what is known.
//
// Everything that a receiver finds depends on its exchange partition alone: on the
// parcels up to some offset, and on the table before the first of them, which is
// kept with the position (see position.go). That is what makes a crash harmless.
//
// The watermark of an exchange partition is the smallest of those of the source
// partitions. One that has never been heard of, of a topic that is to be read, holds
// it back. So does one that is quiet, unless its sender says that it has been at its
// end for LiveConfig.Idle: then it counts as far on as the smallest of those that are not
// idle, but not further than the moment at which its sender looked. What a sender that
// hangs says late was true at that moment, and moves nothing beyond. An arrival that
// was in time at its source may be late for the exchange where the source partition
// was idle, as it would be if one instance had read both.
//
// All instances hash alike, under keys that are made of the salt, and so must have the
// same salt, and the exchange the same number of partitions for ever; parcels say
// which, and a receiver refuses others. Raw keys do not leave the sender.
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
	Budget budget.Model
	// RouteBudgets are those of single routes, with the window of Budget.
	RouteBudgets map[string]*budget.Model
	// Rules are what verdicts go by; their window is that of Budget.
	Rules budget.Rules
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

// onlyRepeats says that no budget is read from anything but the number of repeats.
func (c *Config) onlyRepeats() bool {
	yes := c.Budget.Repeats()
	for _, m := range c.RouteBudgets {
		yes = yes && m.Repeats()
	}
	return yes
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
