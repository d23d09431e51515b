package main

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/targetside/auditor/lab"
)

// demoTraffic plays the scenario "demo" of the lab in real time, arm after arm, again
// and again. Given a seed it is always the same: only stamps and the texts of keys differ.
type demoTraffic struct {
	arms  []lab.Arm
	begun time.Time // whole milliseconds
	truth *demoTruth
	arm   atomic.Pointer[lab.Arm] // that is played
}

// newDemoTraffic begins with nothing asked.
func newDemoTraffic(seed uint64, begun time.Time) (*demoTraffic, error) {
	f, err := labScenario("demo")
	if err != nil {
		return nil, err
	}
	for i := range f.Arms {
		f.Arms[i].Seed = seed
	}
	t := &demoTraffic{arms: f.Arms, begun: begun.Truncate(time.Millisecond), truth: newDemoTruth()}
	t.arm.Store(&t.arms[0])
	return t, nil
}

// playEvery is how much is played at a time.
const playEvery = 100 * time.Millisecond

// play plays until ctx ends or something fails. What was logged up to a moment is
// written when that is over, and wait returns when a moment has come.
func (t *demoTraffic) play(ctx context.Context, write func(lines [][]byte) error, wait func(context.Context, time.Time) error) error {
	begins := t.begun
	for n := uint64(0); ; n++ {
		arm := t.arms[n%uint64(len(t.arms))]
		arm.Seed += n // of keys, above all
		arm.Start(begins)
		t.arm.Store(&arm)
		turn := &demoTurn{demoTruth: t.truth, begins: begins, ctx: ctx, write: write, wait: wait}
		if _, err := lab.Run(ctx, &arm, lab.Output{Format: "json", Log: &turn.log, Live: turn}); err != nil {
			return err
		}
		over := arm.Lasts + arm.Drain
		if err := turn.Until(over); err != nil {
			return err
		}
		begins = begins.Add(over)
	}
}

// demoTurn is one arm, played once.
type demoTurn struct {
	*demoTruth
	begins time.Time
	log    bytes.Buffer
	played time.Duration
	ctx    context.Context
	write  func(lines [][]byte) error
	wait   func(context.Context, time.Time) error
}

// Until writes what was logged, and waits until its time and what is played next are
// over, so that no record is of the future.
func (t *demoTurn) Until(at time.Duration) error {
	if at < t.played {
		return nil
	}
	t.played = at.Truncate(playEvery) + playEvery
	if t.log.Len() > 0 {
		lines := bytes.Split(bytes.Clone(t.log.Bytes()), []byte("\n"))
		t.log.Reset()
		if err := t.write(lines[:len(lines)-1]); err != nil {
			return fmt.Errorf("write records: %w", err)
		}
	}
	t.reached(t.begins.Add(at).Unix())
	return t.wait(t.ctx, t.begins.Add(t.played))
}

// sleepUntil waits for a moment of the real clock.
func sleepUntil(ctx context.Context, at time.Time) error {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
