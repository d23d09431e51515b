package store

import "errors"

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
)
