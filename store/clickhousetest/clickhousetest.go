// Package clickhousetest is a real ClickHouse engine for tests, without a server to
// install. Only tests import it.
//
// The engine is ClickHouse's own code, as the library that the chDB project makes of
// it, within the process of the test. Before it stands an HTTP server that speaks as
// much of ClickHouse's HTTP protocol as clickhouse-go uses. So what is tested is the
// real SQL, the real tables and the real client; what is not are the native TCP
// protocol, several queries at once (here they wait for one another), replication
// and ON CLUSTER.
//
// For the first two there is Native, the same engine in a process of its own, and
// Debian, an old server, which also speaks TLS. For the others there is Cluster: old
// servers that agree through a ZooKeeper.
//
// The library has 178 MB as it is fetched. It lies in the folder .cache of the
// module, fetched once by npm, in a pinned version whose hash is checked.
package clickhousetest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Server is an HTTP server before the engine, with a database of its own. A test may
// start several; they share the engine, and what is in it.
type Server struct {
	// Addr is the host:port that it listens on.
	Addr string
	// Database is the name of an empty database, which is dropped with the server.
	Database string

	engine *engine
	http   *httptest.Server
	own    own

	mu       sync.Mutex
	password string
	faults   []Fault
	judge    func(statement string) (Fault, bool)
	hooks    []hook
	down     bool
}

// User is the one user that there is.
const User = "default"

// Fault is what goes wrong with one request.
type Fault struct {
	// Of is a part of the statements that it strikes; empty strikes any.
	Of string
	// Code and Message are the exception that is answered; no code: the connection is
	// cut without an answer.
	Code    int
	Message string
	// Done says that the statement is carried out first.
	Done bool
}

// hook is what a test wants to happen between two statements.
type hook struct {
	of string
	f  func()
}

// shared is the engine of the process, while a server uses it.
var shared struct {
	mu     sync.Mutex
	users  int
	engine *engine
	err    error
}

var databases atomic.Int64

// Start starts a server, which the test's end stops. Where the engine cannot be had
// the test is skipped, unless CI is set in the environment: then it fails.
func Start(t testing.TB) *Server {
	t.Helper()
	e, err := take()
	if err != nil {
		missing(t, "ClickHouse engine", err)
	}
	s := &Server{engine: e, Database: fmt.Sprintf("test_%d", databases.Add(1))}
	s.run(t, "default", "CREATE DATABASE "+s.Database)
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.Addr = strings.TrimPrefix(s.http.URL, "http://")
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
		s.run(t, "default", "DROP DATABASE "+s.Database+" SYNC")
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// missing skips a test for want of something, or fails it where CI is set.
func missing(t testing.TB, what string, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("there is no %s: %v", what, err)
	}
	t.Skipf("skipped, since there is no %s: %v", what, err)
}

// take returns the engine, opened if no server uses it. What was wrong once is wrong
// for the rest of the process: nobody wants to wait for each test's download.
func take() (*engine, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.err != nil {
		return nil, shared.err
	}
	if shared.users == 0 {
		if shared.engine, shared.err = open(); shared.err != nil {
			return nil, shared.err
		}
	}
	shared.users++
	return shared.engine, nil
}

func release() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.users--; shared.users > 0 {
		return nil
	}
	return shared.engine.close()
}

// Exec runs a statement on the engine, past the HTTP server.
func (s *Server) Exec(t testing.TB, text string) {
	t.Helper()
	s.Query(t, text)
}

// ExecIn is Exec in another database.
func (s *Server) ExecIn(t testing.TB, database, text string) {
	t.Helper()
	s.run(t, database, text)
}

// Query runs a query in the server's database, past the HTTP server, and returns its
// rows with tabs between columns.
func (s *Server) Query(t testing.TB, text string) []string {
	t.Helper()
	out := s.run(t, s.Database, text)
	if out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
}

func (s *Server) run(t testing.TB, database, text string) string {
	t.Helper()
	out, err := s.engine.run(session{database: database}, text, nil, "TabSeparated")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(out)
}

// SetPassword asks for a password from now on.
func (s *Server) SetPassword(password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.password = password
}

// Fail lets the next request that a fault is of go wrong. Several come in the order
// in which they were asked for.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Judge lets a function decide of every statement what goes wrong with it, if no fault
// of Fail strikes it. It is called by several goroutines, one at a time; nil ends it.
func (s *Server) Judge(judge func(statement string) (f Fault, faulty bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judge = judge
}

// Before runs f once, before the next statement that has some text in it is carried
// out.
func (s *Server) Before(of string, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(s.hooks, hook{of, f})
}

func (s *Server) runHooks(statement string) {
	s.mu.Lock()
	var due []func()
	s.hooks = slices.DeleteFunc(s.hooks, func(h hook) bool {
		if strings.Contains(statement, h.of) {
			due = append(due, h.f)
			return true
		}
		return false
	})
	s.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// Down lets every request go unanswered until up is called.
func (s *Server) Down() (up func()) {
	s.setDown(true)
	s.http.CloseClientConnections()
	return func() { s.setDown(false) }
}

func (s *Server) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// next takes the fault of a statement, if there is one.
func (s *Server) next(statement string) (f Fault, faulty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return Fault{}, true
	}
	for i, f := range s.faults {
		if strings.Contains(statement, f.Of) {
			s.faults = slices.Delete(s.faults, i, i+1)
			return f, true
		}
	}
	if s.judge != nil {
		return s.judge(statement)
	}
	return Fault{}, false
}

// cut ends a connection without an answer.
func cut(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// exception is an error in the words of ClickHouse.
type exception struct {
	code int
	text string
}

func (e exception) Error() string { return fmt.Sprintf("Code: %d. DB::Exception: %s", e.code, e.text) }

var errPassword = exception{516, User + ": Authentication failed: password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)"}
