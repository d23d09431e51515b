package store

import (
	"context"
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
)

// SQLite's primary result codes, the low byte of what the driver reports.
const (
	codeBusy     = 5
	codeReadOnly = 8
	codeIO       = 10
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeNotADB   = 26
)

// remedies say what to do, by result code. None of them asks for a restart: the
// next write finds out whether the cause is gone.
var remedies = map[int]string{
	codeBusy:     "another program holds it: close what has it open for writing, such as a sqlite3 shell",
	codeReadOnly: "it cannot be written to: change the owner or mode of the file and of its directory, or name another file (store.sqlite)",
	codeIO:       "the disk gives an error: see the system's log",
	codeCorrupt:  "it is damaged: stop, then restore a copy, save what can be saved with sqlite3 FILE .recover, or move it away to begin anew",
	codeFull:     "the disk is full: make room, or shorten store.retention; what was not stored will be written again",
	codeCantOpen: "it cannot be opened: check that its directory exists and may be written to",
	codeNotADB:   "it is not a SQLite database: name another file (store.sqlite), or move this one away",
}

// sqliteErrors are the named errors, by result code.
var sqliteErrors = map[int]error{
	codeBusy: ErrInUse, codeReadOnly: ErrReadOnly, codeCantOpen: ErrGone, codeCorrupt: ErrDamaged, codeNotADB: ErrDamaged, codeFull: ErrFull,
}

// explain makes an error say which file it is about and what to do.
func (s *sqlite) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var e *driver.Error
	if errors.As(err, &e) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		if remedy, known := remedies[e.Code()&0xff]; known {
			if as := sqliteErrors[e.Code()&0xff]; as != nil {
				err = marked{err, as}
			}
			return fmt.Errorf("store: %s %s: %w: %s", doing, s.path, err, remedy)
		}
	}
	return fmt.Errorf("store: %s %s: %w", doing, s.path, err)
}
