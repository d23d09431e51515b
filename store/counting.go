package store

import (
	"context"
	"sync/atomic"
	"time"
)

// ErrorCounter is a store that counts the errors of the one within, by kind.
type ErrorCounter struct {
	Store
	counts map[string]*atomic.Uint64 // never changed
}

// CountErrors wraps a store.
func CountErrors(s Store) *ErrorCounter {
	c := &ErrorCounter{Store: s, counts: map[string]*atomic.Uint64{}}
	for _, kind := range Kinds() {
		c.counts[kind] = new(atomic.Uint64)
	}
	return c
}

// Errors are how many there were since the start, by kind, those without any too.
func (c *ErrorCounter) Errors() map[string]uint64 {
	out := map[string]uint64{}
	for kind, n := range c.counts {
		out[kind] = n.Load()
	}
	return out
}

// noted counts an error, and returns it.
func (c *ErrorCounter) noted(err error) error {
	if n := c.counts[Kind(err)]; n != nil {
		n.Add(1)
	}
	return err
}

// Write implements Store.
func (c *ErrorCounter) Write(ctx context.Context, w *Write) error {
	return c.noted(c.Store.Write(ctx, w))
}

// Rows implements Store.
func (c *ErrorCounter) Rows(ctx context.Context, q Query) ([]Row, error) {
	out, err := c.Store.Rows(ctx, q)
	return out, c.noted(err)
}

// Questions implements Store.
func (c *ErrorCounter) Questions(ctx context.Context, keyHash [16]byte, limit int) ([]Question, error) {
	out, err := c.Store.Questions(ctx, keyHash, limit)
	return out, c.noted(err)
}

// WorstQuestions implements Store.
func (c *ErrorCounter) WorstQuestions(ctx context.Context, q QuestionQuery) ([]Question, error) {
	out, err := c.Store.WorstQuestions(ctx, q)
	return out, c.noted(err)
}

// Splits implements Store.
func (c *ErrorCounter) Splits(ctx context.Context, from, to int64) ([]string, error) {
	out, err := c.Store.Splits(ctx, from, to)
	return out, c.noted(err)
}

// Counted implements Store.
func (c *ErrorCounter) Counted(ctx context.Context, partition string) ([]Range, error) {
	out, err := c.Store.Counted(ctx, partition)
	return out, c.noted(err)
}

// Closed implements Store.
func (c *ErrorCounter) Closed(ctx context.Context) (map[string]int64, error) {
	out, err := c.Store.Closed(ctx)
	return out, c.noted(err)
}

// NextRules implements Store.
func (c *ErrorCounter) NextRules(ctx context.Context, scope string) (uint32, error) {
	out, err := c.Store.NextRules(ctx, scope)
	return out, c.noted(err)
}

// Note implements Store.
func (c *ErrorCounter) Note(ctx context.Context, scope string) ([]byte, error) {
	out, err := c.Store.Note(ctx, scope)
	return out, c.noted(err)
}

// Load implements Store.
func (c *ErrorCounter) Load(ctx context.Context, name string) ([]byte, error) {
	out, err := c.Store.Load(ctx, name)
	return out, c.noted(err)
}

// Save implements Store.
func (c *ErrorCounter) Save(ctx context.Context, name string, state []byte) error {
	return c.noted(c.Store.Save(ctx, name, state))
}

// Expire implements Store.
func (c *ErrorCounter) Expire(ctx context.Context, now time.Time, retention map[Resolution]time.Duration) error {
	return c.noted(c.Store.Expire(ctx, now, retention))
}

// Check implements Store.
func (c *ErrorCounter) Check(ctx context.Context) error { return c.noted(c.Store.Check(ctx)) }
