package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/targetside/auditor/migrations"

	_ "modernc.org/sqlite" // the driver "sqlite", in pure Go: the binary stays static
)

// sqlite is a store in one SQLite file. All writes go through one connection, one
// at a time: SQLite has one writer anyway, and whoever waits here does so in order
// and can be cancelled. Reads have connections of their own and see the file as it
// was when they began.
type sqlite struct {
	path   string
	lock   *os.File
	writer *sql.DB
	reader *sql.DB
	closed atomic.Bool
	held   *os.File    // the file, see hold
	file   os.FileInfo // which one it is

	// turn holds one token; who has it may use the fields below.
	turn  chan struct{}
	conn  *sql.Conn            // nil after an error, until the next write
	wal   os.FileInfo          // the write-ahead log that conn writes to
	stmts map[string]*sql.Stmt // of conn, by their text
	names names
}

// names remembers the numbers of texts and series that are in the file.
type names struct {
	texts  map[string]int64
	scopes map[string]int64
	series map[series]int64
}

// maxNames is how many series are remembered; beyond it all are looked up again.
const maxNames = 1 << 18

// readers is how many reads run at once. A read takes a processor or the disk for
// itself, so that more would only share them.
const readers = 4

// The settings of the writing connection. auto_vacuum holds for files made with it.
// synchronous is FULL, which waits for the disk at every commit:
// once a write is acknowledged its offsets are released, and with NORMAL a loss of
// power could take rows back that nothing would read again. It costs one fsync for
// each write, of which a scope has about one a second.
var (
	writerPragmas = []string{
		"busy_timeout(5000)", "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)",
		"synchronous(FULL)", "cache_size(-32768)", "journal_size_limit(67108864)", "foreign_keys(0)",
	}
	readerPragmas = []string{"busy_timeout(5000)", "query_only(1)", "cache_size(-8192)"}
)

// OpenSQLite opens the store in a file, which is made if it does not exist; its
// directory must. The store belongs to one process at a time, which holds a lock
// on a file beside it, named like it with ".lock" at the end; that one stays and
// means nothing by itself. An error names the file and says what to do; it is
// ErrInUse or ErrSchema where those say what is wrong.
func OpenSQLite(ctx context.Context, path string) (Store, error) {
	s, err := openSQLite(ctx, path)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openSQLite(ctx context.Context, path string) (*sqlite, error) {
	path, err := place(path)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", path, lockError(path, err))
	}
	if err := writable(path); err != nil {
		return nil, errors.Join(fmt.Errorf("store: open %s: %w: %s", path, marked{err, ErrReadOnly}, remedies[codeReadOnly]), lock.Close())
	}
	s := &sqlite{path: path, lock: lock, turn: make(chan struct{}, 1), names: newNames()}
	s.turn <- struct{}{}
	// sql.Open connects to nothing yet.
	s.writer, _ = sql.Open("sqlite", dsn(path, writerPragmas))
	s.reader, _ = sql.Open("sqlite", dsn(path, readerPragmas))
	s.writer.SetMaxOpenConns(1)
	s.reader.SetMaxOpenConns(readers)
	s.reader.SetMaxIdleConns(readers)
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(err, s.release())
	}
	if err := s.hold(); err != nil {
		return nil, errors.Join(fmt.Errorf("store: open %s: %w", path, err), s.release())
	}
	return s, nil
}

// writable returns an error if the file exists and cannot be written to. SQLite
// would open it for reading and leave files beside it that are read-only too, and
// stay so when the file is not any more. Closing the file here takes SQLite's locks
// on it away from this process, which has none while nothing is open.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return f.Close()
}

// place returns where a file really lies, so that two names of one file have one
// lock.
func place(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("store: open %s: %w", path, err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("store: open %s: its directory does not exist: create %s", path, filepath.Dir(abs))
	} else if err != nil {
		return "", fmt.Errorf("store: open %s: %w", path, err)
	}
	abs = filepath.Join(dir, filepath.Base(abs))
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	if info, err := os.Stat(abs); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("store: open %s: it is not a file: name a file that the store may keep its rows in", path)
	}
	return abs, nil
}

func lockError(path string, err error) error {
	switch {
	case errors.Is(err, ErrInUse):
		return fmt.Errorf("%w: stop the other one, or give this one a file of its own (store.sqlite)", err)
	case errors.Is(err, fs.ErrPermission), isReadOnly(err):
		return fmt.Errorf("%w: the store must be able to create files in %s; change its owner or mode, or name another file (store.sqlite)",
			marked{err, ErrReadOnly}, filepath.Dir(path))
	}
	return err
}

func newNames() names {
	return names{texts: map[string]int64{}, scopes: map[string]int64{}, series: map[series]int64{}}
}

// dsn names the file in a form in which every character of its path is allowed.
func dsn(path string, pragmas []string) string {
	q := url.Values{"_pragma": pragmas}
	u := url.URL{Path: filepath.ToSlash(path)}
	return "file:" + u.EscapedPath() + "?" + q.Encode()
}

// take waits for the turn to write, and returns the way to give it back.
func (s *sqlite) take(ctx context.Context) (func(), error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	err := ctx.Err()
	if s.closed.Load() {
		err = errClosed
	}
	if err != nil {
		s.turn <- struct{}{}
		return nil, err
	}
	return func() { s.turn <- struct{}{} }, nil
}

var errClosed = errors.New("the store is closed")

// update runs a transaction that writes. When there was an error nothing of it is
// kept, and the connection, whatever state the error left it in, is not used again.
func (s *sqlite) update(ctx context.Context, doing string, f func(*transaction) error) error {
	give, err := s.take(ctx)
	if err != nil {
		return s.explain(doing, err)
	}
	defer give()
	if err := present(s.path, s.file, s.wal); err != nil {
		return s.explain(doing, err)
	}
	if s.conn == nil {
		conn, err := s.writer.Conn(ctx)
		if err != nil {
			return s.explain(doing, err)
		}
		s.conn, s.stmts = conn, map[string]*sql.Stmt{}
	}
	t := &transaction{ctx: ctx, s: s, fresh: newNames()}
	if err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return s.explain(doing, s.giveUp(err))
	}
	if s.wal == nil {
		if s.wal, err = os.Stat(s.path + "-wal"); err != nil {
			return s.explain(doing, s.giveUp(err))
		}
	}
	if err := f(t); err != nil {
		return s.explain(doing, s.giveUp(err))
	}
	// From here on the outcome is SQLite's alone.
	if err := t.exec("COMMIT"); err != nil {
		return s.explain(doing, s.giveUp(err))
	}
	s.names.add(&t.fresh)
	// Had the file gone meanwhile, nothing of it would be kept.
	return s.explain(doing, present(s.path, s.file, s.wal))
}

// giveUp rolls back and drops the connection.
func (s *sqlite) giveUp(err error) error {
	_, _ = s.conn.ExecContext(context.Background(), "ROLLBACK") // nothing to roll back is fine
	for _, st := range s.stmts {
		_ = st.Close()
	}
	s.stmts = nil
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.dropConn()
	return err
}

// dropConn closes the connection and, before it, its statements: as long as one
// is left, SQLite keeps the file open behind a closed connection.
func (s *sqlite) dropConn() (err error) {
	if s.conn == nil {
		return nil
	}
	for _, st := range s.stmts {
		err = errors.Join(err, st.Close())
	}
	err = errors.Join(err, s.conn.Close())
	s.conn, s.stmts, s.wal = nil, nil, nil
	return err
}

// add takes over the names that a transaction gave.
func (n *names) add(fresh *names) {
	if len(n.series)+len(fresh.series) > maxNames {
		*n = newNames()
	}
	for k, v := range fresh.texts {
		n.texts[k] = v
	}
	for k, v := range fresh.scopes {
		n.scopes[k] = v
	}
	for k, v := range fresh.series {
		n.series[k] = v
	}
}

// migrate brings the schema to that of this program.
func (s *sqlite) migrate(ctx context.Context) error {
	steps, err := migrations.SQLite()
	if err != nil {
		return err
	}
	return s.update(ctx, "open", func(t *transaction) error {
		done, err := t.stepsDone()
		if err != nil {
			return err
		}
		for i, name := range done {
			if i >= len(steps) || steps[i].Name != name {
				return fmt.Errorf("%w: step %d of it is %q; use the version of auditor that made it or a later one, or name another file (store.sqlite)",
					ErrSchema, i+1, name)
			}
		}
		for _, step := range steps[len(done):] {
			for _, text := range step.Statements {
				if err := t.exec(text); err != nil {
					return fmt.Errorf("%s: %w", step.Name, err)
				}
			}
			if err := t.exec("INSERT INTO migrations (number, name) VALUES (?, ?)", step.Number, step.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

// stepsDone returns the names of the steps that were run on the file. One with
// tables that are not of this program has none of them, and is refused.
func (t *transaction) stepsDone() ([]string, error) {
	var tables, ours int
	err := t.one("SELECT count(*), count(CASE WHEN name = 'migrations' THEN 1 END) FROM sqlite_schema WHERE type = 'table'", nil, &tables, &ours)
	if err != nil {
		return nil, err
	}
	if ours == 0 {
		if tables > 0 {
			return nil, fmt.Errorf("%w: it is the database of another program; name another file (store.sqlite)", ErrSchema)
		}
		return nil, t.exec("CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT")
	}
	var names []string
	err = t.all("SELECT number, name FROM migrations ORDER BY number", nil, func(scan scanner) error {
		var number int
		var name string
		if err := scan(&number, &name); err != nil {
			return err
		}
		if number != len(names)+1 {
			return fmt.Errorf("%w: step %d of it is missing; restore the file from a copy, or name another (store.sqlite)", ErrSchema, len(names)+1)
		}
		names = append(names, name)
		return nil
	})
	if err != nil && strings.Contains(err.Error(), "no such column") {
		err = fmt.Errorf("%w: it is the database of another program; name another file (store.sqlite)", ErrSchema)
	}
	return names, err
}

// Close waits for the write under way, and lets the file go.
func (s *sqlite) Close() error {
	<-s.turn
	defer func() { s.turn <- struct{}{} }()
	if s.closed.Swap(true) {
		return nil
	}
	return s.release()
}

// release closes what is open. The last connection to go moves what is in the
// write-ahead log into the file.
func (s *sqlite) release() error {
	err := errors.Join(s.reader.Close(), s.dropConn(), s.writer.Close())
	if s.held != nil {
		err = errors.Join(err, s.held.Close())
	}
	return errors.Join(err, s.lock.Close())
}
