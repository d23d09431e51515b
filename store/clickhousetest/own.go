package clickhousetest

import (
	"runtime"
	"sync/atomic"
	"time"
)

// own is the processor time that a server itself takes, to read requests and write
// answers: what a server of ClickHouse does not need in this way.
type own struct {
	measured atomic.Bool
	spent    atomic.Int64
}

// work is some of a server's own, on one thread.
type work struct {
	of    *own
	begun time.Duration
}

// Measure begins to measure the server's own processor time; the engine's, and what the
// runtime does on other threads for the server, are not part of it. It is known on
// Linux only.
func (s *Server) Measure() { s.own.measured.Store(true) }

// Own is the server's own processor time since Measure.
func (s *Server) Own() time.Duration { return time.Duration(s.own.spent.Load()) }

func (s *Server) begin() *work {
	if !s.own.measured.Load() {
		return &work{}
	}
	runtime.LockOSThread()
	return &work{&s.own, threadTime()}
}

func (w *work) end() {
	if w.of != nil {
		w.of.spent.Add(int64(threadTime() - w.begun))
		runtime.UnlockOSThread()
	}
}
