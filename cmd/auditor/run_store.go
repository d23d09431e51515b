package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/pipeline"
	"github.com/targetside/auditor/store"
)

// resolutions are those of rows at rest, by the names that store.retention has for
// them.
var resolutions = map[string]store.Resolution{"1s": store.Tick, "10s": store.TenSeconds, "1m": store.Minute, "1h": store.Hour}

// openStore opens the store that the configuration names.
func (l *loaded) openStore(ctx context.Context) (store.Store, error) {
	if l.Store.ClickHouse == nil {
		return store.OpenSQLite(ctx, l.Store.SQLite)
	}
	at, err := l.clickhouse()
	if err != nil {
		return nil, err
	}
	return store.OpenClickHouse(ctx, at)
}

// openWithin is how long a daemon that starts waits for a store that does not answer,
// as one does that is started at the same time. It is less than a supervisor allows.
const openWithin = 30 * time.Second

// awaitStore opens the store. One that does not answer is asked again for a while; all
// else that is wrong with it is said at once.
func (l *loaded) awaitStore(ctx context.Context, log *slog.Logger) (store.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	for pause := 200 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		s, err := l.openStore(ctx)
		if !errors.Is(err, store.ErrUnreachable) || ctx.Err() != nil {
			return s, err
		}
		log.Warn("the store does not answer yet; trying again", "error", err, "pause", pause)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// clickhouse is how to reach the database that the configuration names.
func (l *loaded) clickhouse() (store.ClickHouse, error) {
	c := l.Store.ClickHouse
	at := store.ClickHouse{
		Addr: c.Addr, Database: c.Database, User: c.Username, Password: string(c.Password.Bytes()),
		HTTP: c.Protocol == "http", Compression: c.Compression, Connections: c.Connections, Cluster: c.Cluster,
	}
	if c.PasswordFile != "" {
		b, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return at, fmt.Errorf("store.clickhouse.password_file: %w", err)
		}
		at.Password = strings.TrimRight(string(b), "\r\n")
	}
	if c.TLS != nil {
		var err error
		if at.TLS, err = clientTLS(c.TLS); err != nil {
			return at, fmt.Errorf("store.clickhouse.%w", err)
		}
	}
	return at, nil
}

// rowWriter gives the pipeline's rows to the store, and knows how long that took.
type rowWriter struct {
	store store.Store

	mu    sync.Mutex
	times api.Distribution
}

// Write implements pipeline.Writer.
func (w *rowWriter) Write(ctx context.Context, in *pipeline.Written) error {
	out := &store.Write{Scope: in.Scope, Rules: in.Rules, Closed: in.Closed, Horizon: in.Horizon, Note: in.Note}
	for _, r := range in.Rows {
		row := store.Row{
			At: r.At, Scope: in.Scope, LateBlock: store.OnTime, Dependency: r.Dependency, Route: r.Route, Name: r.Name,
			Wide: r.Wide, Rules: in.Rules, Version: r.Version, Counts: r.Counts,
		}
		if r.ByPeer {
			row.Family = store.ByPeer
		}
		if r.Late != 0 {
			row.LateBlock = r.Late
		}
		out.Rows = append(out.Rows, row)
	}
	for _, c := range in.Counted {
		out.Counted = append(out.Counted, store.Range(c))
	}
	for i := range in.Questions {
		out.Questions = append(out.Questions, storedQuestion(in.Scope, &in.Questions[i]))
	}
	start := time.Now()
	err := w.store.Write(ctx, out)
	w.took(time.Since(start).Seconds())
	return err
}

// NextRules implements pipeline.Writer.
func (w *rowWriter) NextRules(ctx context.Context, scope string) (uint32, error) {
	return w.store.NextRules(ctx, scope)
}

// Note implements pipeline.Writer.
func (w *rowWriter) Note(ctx context.Context, scope string) ([]byte, error) {
	return w.store.Note(ctx, scope)
}

func (w *rowWriter) took(seconds float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &w.times
	if d.Buckets == nil {
		for _, upper := range api.StoreWriteBounds {
			d.Buckets = append(d.Buckets, api.Bucket{Upper: upper})
		}
	}
	d.Count++
	d.Sum += seconds
	for i := range d.Buckets {
		if seconds <= d.Buckets[i].Upper {
			d.Buckets[i].N++
			return
		}
	}
}

// distribution is a copy of the times that writes took.
func (w *rowWriter) distribution() api.Distribution {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.times
	d.Buckets = append([]api.Bucket(nil), d.Buckets...)
	return d
}
