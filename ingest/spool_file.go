package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// spoolFile is a segment that is written.
type spoolFile interface {
	io.Writer
	Truncate(size int64) error
	Sync() error
	Close() error
}

// spoolDisk is what a spool does to the disk; tests make it fail.
type spoolDisk struct {
	create  func(path string) (spoolFile, error)
	reopen  func(path string, size int64) (spoolFile, error) // to append at size
	syncDir func(dir string) error
	replace func(path string, data []byte) error // at once, and durably
	now     func() time.Time
}

func realDisk() spoolDisk {
	d := spoolDisk{
		now: time.Now,
		create: func(path string) (spoolFile, error) {
			return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
		},
		reopen: func(path string, size int64) (spoolFile, error) {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				return nil, err
			}
			if err := errors.Join(f.Truncate(size), f.Sync()); err != nil {
				f.Close()
				return nil, err
			}
			return f, nil
		},
		syncDir: func(dir string) error {
			f, err := os.Open(dir)
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Sync()
		},
	}
	d.replace = func(path string, data []byte) error {
		next := path + ".new"
		f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			os.Remove(next) // it may be room that is wanting
			return err
		}
		if err := os.Rename(next, path); err != nil {
			return err
		}
		return d.syncDir(filepath.Dir(path))
	}
	return d
}

func errorIs(err error, any ...error) bool {
	for _, e := range any {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// segment is one file of a spool.
type segment struct {
	path string
	base int64 // offset of its first byte
	end  int64 // offset behind its last durable byte

	file os.FileInfo // which one is written to
}

// firstOffset is where a spool begins that is made now: behind whatever another one under
// its name came to before it was lost, unless that took more than 4 MiB/s all its life.
// So nobody who remembers what was counted of that one takes the new lines for the old.
func firstOffset(now time.Time) int64 { return now.UnixMilli() << 12 &^ (1<<16 - 1) }

// errDisplaced is of a segment that somebody else deleted, moved or replaced.
var errDisplaced = errors.New("is not where it was made")

// present returns an error unless the file that is written to is in its place. What
// goes into one that was deleted is gone when the process ends.
func (seg *segment) present() error {
	now, err := os.Stat(seg.path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(now, seg.file) {
		return fmt.Errorf("%s %w", seg.path, errDisplaced)
	}
	return err
}

const segmentSuffix = ".segment"

func segmentPath(dir string, base int64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", base, segmentSuffix))
}

// segments lists the segments of a directory in order, ends by their sizes.
func segments(dir string) ([]*segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*segment // ReadDir sorts by name, and so by base
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), segmentSuffix)
		base, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil || len(digits) != 20 || base < 0 {
			continue
		}
		st, err := e.Info()
		if err != nil {
			return nil, err
		}
		all = append(all, &segment{path: filepath.Join(dir, e.Name()), base: base, end: base + st.Size()})
	}
	for i := 0; i+1 < len(all); i++ { // what was not durable when the next began is void
		all[i].end = min(all[i].end, all[i+1].base)
	}
	return all, nil
}

// spoolPosition is the released position as it lies in the spool.
type spoolPosition struct {
	Version  int    `json:"version"`
	Offset   int64  `json:"offset"`
	Metadata string `json:"metadata"`
	Sum      uint32 `json:"sum"` // CRC-32C of the others
}

const spoolPositionVersion = 1

func (p spoolPosition) sum() uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "%d %d %s", p.Version, p.Offset, p.Metadata), castagnoli)
}

func positionPath(dir string) string { return filepath.Join(dir, "position") }

// loadPosition reads the released position; damaged says that there is one which
// cannot be believed.
func loadPosition(dir string) (p Position, damaged bool, err error) {
	text, err := os.ReadFile(positionPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return Position{}, false, nil
	}
	if err != nil {
		return Position{}, false, err
	}
	var s spoolPosition
	if json.Unmarshal(text, &s) != nil || s.Sum != s.sum() || s.Offset < 0 {
		return Position{}, true, nil
	}
	if s.Version != spoolPositionVersion {
		return Position{}, false, fmt.Errorf("the position is of version %d, and this program knows version %d", s.Version, spoolPositionVersion)
	}
	return Position{Offset: s.Offset, Metadata: s.Metadata}, false, nil
}

func encodePosition(p Position) []byte {
	s := spoolPosition{Version: spoolPositionVersion, Offset: p.Offset, Metadata: p.Metadata}
	s.Sum = s.sum()
	text, _ := json.Marshal(s) // of numbers and a string
	return append(text, '\n')
}
