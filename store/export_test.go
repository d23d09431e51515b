package store

import (
	"context"
	"testing"
)

// Pragma runs a pragma on the connection that writes.
func Pragma(ctx context.Context, s Store, text string) error {
	return s.(*sqlite).update(ctx, "test", func(t *transaction) error {
		return t.all("PRAGMA "+text, nil, func(scanner) error { return nil })
	})
}

// Exec runs a statement in a transaction of its own.
func Exec(ctx context.Context, s Store, text string) error {
	return s.(*sqlite).update(ctx, "test", func(t *transaction) error { return t.exec(text) })
}

// SmallParts lets a write make no more of an hour than one series, until the test
// ends.
func SmallParts(t *testing.T) {
	series, minutes := partSeries, partMinutes
	partSeries, partMinutes = 1, 1
	t.Cleanup(func() { partSeries, partMinutes = series, minutes })
}

// Count runs a query for one number.
func Count(ctx context.Context, s Store, text string) (n int, err error) {
	err = s.(*sqlite).update(ctx, "test", func(t *transaction) error { return t.one(text, nil, &n) })
	return n, err
}
