package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/pipeline"
	"github.com/targetside/auditor/store"
)

const runHelp = `Usage: auditor run [flags]

Reads the sources of the configuration as records come, counts them, keeps the
rows in the store and answers at api.listen: figures under /api/v1/, metrics under
/metrics, readiness under /readyz. It runs until it is interrupted; then it stores
what is final, commits its positions and exits.

Flags:
`

func runCommand(ctx context.Context, p *program, args []string) (int, error) {
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), runHelp); f.PrintDefaults() }
	configFile := f.String("config", "", "read the configuration from `FILE`")
	verbose := f.Bool("verbose", false, "log more than what somebody has to know")
	rest, err := parse(p, f, args)
	if err != nil {
		return exitUsage, err
	}
	if len(rest) > 0 {
		return exitUsage, fmt.Errorf("found %q: files belong into the configuration, or to auditor replay", rest[0])
	}
	l, err := load(p, *configFile, true)
	if err != nil {
		return exitFailed, err
	}
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: level}))
	for _, w := range l.Warnings() {
		log.Warn(w)
	}
	d, err := newDaemon(ctx, l, log, p.now)
	if err != nil {
		return exitFailed, err
	}
	fmt.Fprintf(p.stdout, "auditor: figures at http://%s/api/v1/summary, metrics at /metrics\n", d.listener.Addr())
	return exitOK, d.run(ctx)
}

// daemon is everything that runs, and what it runs on.
type daemon struct {
	log      *slog.Logger
	loaded   *loaded
	store    store.Store
	watch    *storeWatch
	live     *pipeline.Live
	sources  []source
	reader   *reader
	server   *api.Server
	listener net.Listener
	now      func() time.Time
}

// stopTime bounds how long a daemon takes to stop: well below what supervisors
// wait (systemd 90 s, Kubernetes 30 s) and below a consumer group's session.
const stopTime = 15 * time.Second

// newDaemon opens the store and the listener, so that what is wrong with these is
// said before anything runs.
func newDaemon(ctx context.Context, l *loaded, log *slog.Logger, now func() time.Time) (_ *daemon, err error) {
	if len(l.Sources) == 0 {
		return nil, errors.New("nothing to read: the configuration has no sources")
	}
	d := &daemon{log: log, loaded: l, now: now}
	defer func() {
		if err != nil {
			for _, s := range d.sources {
				if p, ok := s.reads.(*ingest.Push); ok {
					p.Close()
				}
				s.closeDead(log)
			}
			d.close()
		}
	}()
	if l.Store.ClickHouse != nil {
		return nil, errors.New("store.clickhouse: this version keeps rows in SQLite only: set store.sqlite")
	}
	if d.store, err = store.OpenSQLite(ctx, l.Store.SQLite); err != nil {
		return nil, err
	}
	d.watch = &storeWatch{store: d.store, log: log}
	c, err := l.pipelineConfig(now())
	if err != nil {
		return nil, err
	}
	rows := &rowWriter{store: d.store}
	keyed, parts := make([]bool, len(l.Sources)), make([]bool, len(l.Sources))
	for i, s := range l.Sources {
		keyed[i] = s.Kafka != nil && s.Kafka.Keyed
		parts[i] = s.File != nil
	}
	if d.sources, err = l.openSources(d.store, log); err != nil {
		return nil, err
	}
	letters := make([]func([]byte, string, ingest.Partition, ingest.Ref), len(d.sources))
	for i := range d.sources {
		if dead := d.sources[i].dead; dead != nil {
			letters[i] = dead.Put
		}
	}
	d.live = pipeline.NewLive(pipeline.LiveConfig{
		Config: c, Idle: l.Time.Idle, Keyed: keyed, Parts: parts, Writer: rows, Log: log, Clock: now, DeadLetters: letters,
		MaxLive: l.Ledger.MaxLiveQuestions, StoreFrom: storeFrom[l.Store.Questions],
	})
	d.reader = newReader(d, rows, c.Salt)
	options, err := l.apiOptions(log)
	if err != nil {
		return nil, err
	}
	if d.server, err = api.New(d.reader, options); err != nil {
		return nil, err
	}
	if d.listener, err = net.Listen("tcp", l.API.Listen); err != nil {
		return nil, fmt.Errorf("api.listen %s: %w", l.API.Listen, err)
	}
	return d, nil
}

func (d *daemon) close() error {
	if d.listener != nil {
		d.listener.Close()
	}
	if d.store != nil {
		return d.store.Close()
	}
	return nil
}

// run works until ctx ends. It stops from the front to the back: sources first,
// whose sessions settle what they can, then the counting, then the store.
func (d *daemon) run(ctx context.Context) error {
	defer d.close()
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	counting, stopCounting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCounting()

	var counters, sources sync.WaitGroup
	counters.Go(func() { d.live.Run(counting) })
	counters.Go(func() { d.reader.run(counting) })
	counters.Go(func() { d.reader.watchSplits(counting, d.log) })
	counters.Go(func() { d.expire(counting) })
	counters.Go(func() { d.watch.run(counting) })
	serving := make(chan error, 1)
	go func() { serving <- d.server.Serve(counting, d.listener) }()
	for _, s := range d.sources {
		sources.Go(func() {
			if err := s.reads.Run(reading, d.live); err != nil && reading.Err() == nil {
				d.log.Error("a source has ended; the others go on", "source", s.name, "error", err)
			}
		})
	}

	var failed error
	select {
	case <-ctx.Done():
	case failed = <-serving:
		failed = fmt.Errorf("the API has ended: %w", failed)
	}
	d.log.Info("stopping")
	stopReading()
	within(stopTime, sources.Wait)
	stopCounting()
	within(stopTime, counters.Wait)
	for _, s := range d.sources {
		s.closeDead(d.log)
	}
	if failed == nil {
		within(stopTime, func() { <-serving })
	}
	return failed
}

// within waits for f to return, but not for longer than d.
func within(d time.Duration, f func()) {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// expireEvery is how often rows that are older than their retention are deleted.
const expireEvery = time.Minute

func (d *daemon) expire(ctx context.Context) {
	retention := map[store.Resolution]time.Duration{}
	for name, r := range resolutions {
		retention[r] = d.loaded.Store.Retention[name]
	}
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := d.store.Expire(ctx, d.now(), retention); err != nil && ctx.Err() == nil {
				d.log.Warn("old rows were not deleted", "error", err)
			}
		}
	}
}
