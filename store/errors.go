package store

import (
	"context"
	"errors"
)

// The errors that callers tell apart. An error of a store wraps one of them, or
// says by itself what is wrong and what to do.
var (
	// ErrTooMany is the error of a query with more rows than its limit.
	ErrTooMany = errors.New("more rows than asked for at most")
	// ErrInUse is the error of opening a store that another process writes to.
	ErrInUse = errors.New("is in use by another process")
	// ErrGone is the error of a store whose file is no longer in its place. Nothing
	// is kept any more.
	ErrGone = errors.New("is not there any more, and nothing is kept")
	// ErrSchema is the error of a store made by another version of this program.
	ErrSchema = errors.New("has a schema that this version does not know")
	// ErrReadOnly is the error of a store that may not be written to.
	ErrReadOnly = errors.New("cannot be written to")
	// ErrFull is the error of a store without room.
	ErrFull = errors.New("has no room left")
	// ErrDamaged is the error of a file that cannot be read, or is no database.
	ErrDamaged = errors.New("is damaged")
)

// The errors of stores that are servers.
var (
	// ErrUnreachable is the error of a server that does not answer.
	ErrUnreachable = errors.New("does not answer")
	// ErrSlow is the error of a server that does not answer in time, or has too much to
	// do to take what it is given.
	ErrSlow = errors.New("is too slow")
	// ErrPassword is the error of a user or password that the server does not accept.
	ErrPassword = errors.New("does not accept the user or the password")
	// ErrNoDatabase is the error of a database that is not there.
	ErrNoDatabase = errors.New("has no such database")
	// ErrTooOld is the error of a server of a version that lacks what is needed.
	ErrTooOld = errors.New("is too old")
	// ErrTakenOver is the error of a write that another process came before. It may be
	// stored or not; written again, it is.
	ErrTakenOver = errors.New("was taken over by another process")
)

// kinds are what errors are counted by.
var kinds = []struct {
	name string
	err  error
}{
	{"unreachable", ErrUnreachable}, {"slow", ErrSlow}, {"read_only", ErrReadOnly}, {"full", ErrFull}, {"password", ErrPassword},
	{"no_database", ErrNoDatabase}, {"schema", ErrSchema}, {"too_old", ErrTooOld}, {"taken_over", ErrTakenOver}, {"in_use", ErrInUse},
	{"gone", ErrGone}, {"damaged", ErrDamaged},
}

// KindOther is the kind of errors without a name.
const KindOther = "other"

// Kinds are all that Kind returns, but for the empty one.
func Kinds() []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.name)
	}
	return append(out, KindOther)
}

// Kind is what an error of a store is counted by. It is empty for what is no fault of
// the store's: no error, one of the caller's, or a call that was given up.
func Kind(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, ErrTooMany) || errors.Is(err, errClosed) {
		return ""
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "slow"
	}
	return KindOther
}

// marked is an error that is also one of those that callers tell apart, which its text
// need not say.
type marked struct {
	error
	as error
}

func (m marked) Unwrap() []error { return []error{m.error, m.as} }
