package store

import "context"

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
