package clickhousetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// engine is ClickHouse within this process. It has one connection, which stands for
// one session, so that queries come one after the other.
type engine struct {
	mu   sync.Mutex
	dir  string
	conn *unsafe.Pointer
	set  session // of the connection
}

// chdb are the functions of the library.
var chdb struct {
	once sync.Once
	err  error

	signals func(enabled int32)
	connect func(argc int32, argv **byte) *unsafe.Pointer
	close   func(conn *unsafe.Pointer)
	query   func(conn unsafe.Pointer, text *byte, n uintptr, format *byte, formatN uintptr) unsafe.Pointer
	buffer  func(result unsafe.Pointer) *byte
	length  func(result unsafe.Pointer) uintptr
	error   func(result unsafe.Pointer) string
	destroy func(result unsafe.Pointer)
}

// load fetches and loads the library, once.
func load() error {
	c := &chdb
	c.once.Do(func() {
		var path string
		if path, c.err = library(); c.err != nil {
			return
		}
		var lib uintptr
		if lib, c.err = purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL); c.err != nil {
			return
		}
		for name, f := range map[string]any{
			"chdb_set_signal_handlers_enabled": &c.signals, "chdb_connect": &c.connect, "chdb_close_conn": &c.close,
			"chdb_query_n": &c.query, "chdb_result_buffer": &c.buffer, "chdb_result_length": &c.length,
			"chdb_result_error": &c.error, "chdb_destroy_query_result": &c.destroy,
		} {
			purego.RegisterLibFunc(f, lib, name)
		}
		c.signals(0) // they are Go's
	})
	return c.err
}

// open starts the engine on an empty folder of its own.
func open() (*engine, error) {
	if err := load(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "clickhousetest-")
	if err != nil {
		return nil, err
	}
	args := [][]byte{[]byte("clickhouse\x00"), append([]byte("--path="+dir), 0)}
	argv := []*byte{&args[0][0], &args[1][0], nil}
	conn := chdb.connect(int32(len(args)), &argv[0])
	runtime.KeepAlive(args)
	if conn == nil || *conn == nil {
		return nil, errors.Join(errors.New("the engine does not start"), os.RemoveAll(dir))
	}
	return &engine{dir: dir, conn: conn, set: session{"default", map[string]string{}}}, nil
}

// close ends the engine and deletes what it kept.
func (e *engine) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	chdb.close(e.conn)
	e.conn = nil
	return os.RemoveAll(e.dir)
}

// run runs a query in a session as it asks for, with nobody else's in between. It has
// data if it is an insert of native blocks.
func (e *engine) run(in session, text string, data []byte, format string) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn == nil {
		return nil, errors.New("the engine has ended")
	}
	if err := e.change(in); err != nil {
		return nil, err
	}
	if data != nil {
		return nil, e.insert(text, data)
	}
	return e.query(text, format)
}

// change brings the session of the connection to another. Most queries want the one
// that the query before had.
func (e *engine) change(to session) error {
	do := func(text string) error {
		_, err := e.query(text, "Null")
		return err
	}
	if to.database != e.set.database {
		if err := do("USE " + quoted(to.database, '`')); err != nil {
			return err
		}
		e.set.database = to.database
	}
	for name := range e.set.settings {
		if _, kept := to.settings[name]; kept {
			continue
		}
		if !strings.HasPrefix(name, "param_") {
			if err := do("SET " + name + " = DEFAULT"); err != nil {
				return err
			}
		}
		delete(e.set.settings, name)
	}
	for name, value := range to.settings {
		if was, same := e.set.settings[name]; same && was == value {
			continue
		}
		if err := do("SET " + name + " = " + quoted(value, '\'')); err != nil {
			return err
		}
		e.set.settings[name] = value
	}
	return nil
}

func (e *engine) query(text, format string) ([]byte, error) {
	r := chdb.query(*e.conn, unsafe.StringData(text), uintptr(len(text)), unsafe.StringData(format), uintptr(len(format)))
	runtime.KeepAlive(text)
	runtime.KeepAlive(format)
	return result(r)
}

// result copies the result of a query, and frees it.
func result(r unsafe.Pointer) ([]byte, error) {
	defer chdb.destroy(r)
	if message := chdb.error(r); message != "" {
		return nil, errors.New(message)
	}
	n := chdb.length(r)
	if n == 0 {
		return nil, nil
	}
	return append([]byte(nil), unsafe.Slice(chdb.buffer(r), n)...), nil
}

// insert runs an insert of native blocks, which go through a file: in the text of a
// query they would be cut where they look like the end of it.
func (e *engine) insert(text string, data []byte) error {
	const suffix = " FORMAT Native"
	into, ok := strings.CutSuffix(strings.TrimSpace(text), suffix)
	if !ok {
		return exception{48, fmt.Sprintf("data comes with %.100q, which does not end in%s. (NOT_IMPLEMENTED)", text, suffix)}
	}
	path := filepath.Join(e.dir, "insert.native")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	_, err := e.query(into+" FROM INFILE "+quoted(path, '\'')+suffix, "Native")
	return errors.Join(err, os.Remove(path))
}

// local is the program clickhouse-local. It returns when that has ended.
func local(library string, args []string) error {
	lib, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return err
	}
	var run func(argc int32, argv **byte) unsafe.Pointer
	for name, f := range map[string]any{
		"chdb_query_cmdline": &run, "chdb_result_buffer": &chdb.buffer, "chdb_result_length": &chdb.length,
		"chdb_result_error": &chdb.error, "chdb_destroy_query_result": &chdb.destroy,
	} {
		purego.RegisterLibFunc(f, lib, name)
	}
	argv := []*byte{unsafe.StringData("clickhouse\x00")}
	for _, a := range args {
		argv = append(argv, unsafe.StringData(a+"\x00"))
	}
	argv = append(argv, nil)
	r := run(int32(len(args)+1), &argv[0])
	runtime.KeepAlive(argv)
	_, err = result(r)
	return err
}

// threadTime is the processor time of the calling thread.
func threadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// lock waits for the lock on a file, and returns the way to let go of it.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}
