package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// present returns an error unless the file, and the write-ahead log beside it, are
// still those that are open. What goes into one that was deleted or replaced looks
// stored, and is gone when the process ends; SQLite itself does not look. Where a
// file was moved, it is enough to move it back.
//
// file and wal are nil while they are not known yet.
func present(path string, file, wal os.FileInfo) error {
	for _, f := range []struct {
		path string
		open os.FileInfo
	}{{path, file}, {path + "-wal", wal}} {
		if f.open == nil {
			continue
		}
		now, err := os.Stat(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s was deleted or moved: put it back, or restart to go on with what is there then", ErrGone, f.path)
		case err != nil:
			return err
		case !os.SameFile(now, f.open):
			return fmt.Errorf("%w: another file was put in the place of %s: put the one that was there back, or restart to go on with what is there then", ErrGone, f.path)
		}
	}
	return nil
}

// hold keeps the file open and remembers which one it is: as long as it is open,
// no other can look the same. It must be the last descriptor of it that is closed,
// since SQLite's locks end when any is.
func (s *sqlite) hold() (err error) {
	if s.held, err = os.Open(s.path); err != nil {
		return err
	}
	s.file, err = s.held.Stat()
	return err
}
