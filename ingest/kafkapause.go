package ingest

import (
	"context"
	"math/rand/v2"
	"time"
)

// pause waits longer each time, and never as long as others who began to wait at
// the same moment.
type pause struct {
	least, most time.Duration
	next        time.Duration
}

func (c *KafkaConfig) pause() *pause {
	return &pause{least: c.tune.retryMin, most: c.tune.retryMax}
}

// wait waits and returns true, or false as soon as ctx ends.
func (p *pause) wait(ctx context.Context) bool {
	p.next = min(max(2*p.next, p.least), p.most)
	timer := time.NewTimer(p.next/2 + rand.N(p.next/2+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// reset begins with short pauses again.
func (p *pause) reset() { p.next = 0 }
