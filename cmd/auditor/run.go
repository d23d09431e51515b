package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/pipeline"
	"github.com/targetside/auditor/store"
)

const runHelp = `Usage: auditor run [flags]

Reads the sources of the configuration as records come, counts them, keeps the
rows in the store and answers at api.listen: figures under /api/v1/, metrics under
/metrics, readiness under /readyz. It runs until it is interrupted; then it stores
what is final, commits its positions and exits.

SIGHUP, or POST /-/reload, makes it read its configuration again, and the files that
this names: all of it comes into force, or none and the log says why.

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
	read := func() (*loaded, error) { return load(p, *configFile, true) }
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	l, err := read()
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
	d, err := newDaemon(ctx, l, read, log, p.now)
	if err != nil {
		return exitFailed, err
	}
	d.hangup = hangup
	fmt.Fprintf(p.stdout, "auditor: figures at http://%s/api/v1/summary, metrics at /metrics\n", d.listener.Addr())
	return exitOK, d.run(ctx)
}

// daemon is everything that runs, and what it runs on.
type daemon struct {
	log      *slog.Logger
	store    store.Store
	sharer   store.Sharer // the same
	watch    *storeWatch
	rows     *rowWriter
	reader   *reader
	alerting *alerting
	server   *api.Server
	listener net.Listener
	now      func() time.Time

	storeErrors func() map[string]uint64 // by kind

	setup    atomic.Pointer[setup]
	read     func() (*loaded, error) // the configuration, anew
	hangup   <-chan os.Signal        // asks for that; nil: nobody does
	changing chan struct{}           // has room while the setup does not change
	reloaded atomic.Pointer[api.Reload]
	patience time.Duration // with the store, when the setup changes
	gate     gate

	// While it runs: until when sources read, and until when is counted.
	reading, counting context.Context
}

// setup is what follows from one configuration.
type setup struct {
	loaded  *loaded
	live    *pipeline.Live
	sources []*source // in the order of the configuration, and exchanges behind them
	hash    func([]byte) [16]byte
	changed bool // it took over from another

	stop  context.CancelFunc // of live
	ended chan struct{}
}

// newSetup makes a setup; nothing of it works yet.
func (d *daemon) newSetup(l *loaded, sources []*source) (*setup, error) {
	c, err := l.pipelineConfig(d.now())
	if err != nil {
		return nil, err
	}
	live := pipeline.LiveConfig{
		Config: c, Idle: l.Time.Idle, Writer: d.rows, Log: d.log, Clock: d.now, MaxLive: l.Ledger.MaxLiveQuestions,
		StoreFrom: storeFrom[l.Store.Questions],
	}
	live.Reading = l.reading()
	for i, s := range l.Sources {
		live.Keyed = append(live.Keyed, s.Kafka != nil && s.Kafka.Keyed)
		live.Parts = append(live.Parts, s.File != nil)
		live.DeadLetters = append(live.DeadLetters, nil)
		if s.DeadLetter != nil {
			live.DeadLetters[i] = sources[i].letter
		}
	}
	connect(&live, l, sources)
	return &setup{loaded: l, live: pipeline.NewLive(live), sources: sources, hash: pipeline.KeyHasher(c.Salt)}, nil
}

// start counts until ctx is done or stop is called.
func (x *setup) start(ctx context.Context) {
	ctx, x.stop = context.WithCancel(ctx)
	x.ended = make(chan struct{})
	go func() {
		defer close(x.ended)
		x.live.Run(ctx)
	}()
}

// stopTime bounds how long a daemon takes to stop: well below what supervisors
// wait (systemd 90 s, Kubernetes 30 s) and below a consumer group's session.
const stopTime = 15 * time.Second

// newDaemon opens the store and the listener, so that what is wrong with these is
// said before anything runs.
func newDaemon(ctx context.Context, l *loaded, read func() (*loaded, error), log *slog.Logger, now func() time.Time) (_ *daemon, err error) {
	if len(l.Sources) == 0 {
		return nil, errNoSources
	}
	d := &daemon{log: log, read: read, now: now, changing: make(chan struct{}, 1), patience: handoverTime}
	var sources []*source
	defer func() {
		if err != nil {
			for _, s := range sources {
				s.giveUp()
			}
			d.close()
		}
	}()
	opened, err := l.awaitStore(ctx, log)
	if err != nil {
		return nil, err
	}
	counter := store.CountErrors(opened)
	d.store, d.sharer, d.storeErrors = counter, counter, counter.Errors
	d.watch = &storeWatch{store: d.store, log: log}
	d.rows = &rowWriter{store: d.store}
	for _, s := range d.newSources(l) {
		if err = s.begin(); err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	x, err := d.newSetup(l, sources)
	if err != nil {
		return nil, err
	}
	d.setup.Store(x)
	d.reloaded.Store(&api.Reload{At: now()})
	d.reader, d.alerting = newReader(d), newAlerting(d)
	told, err := l.sinks()
	if err != nil {
		return nil, err
	}
	d.alerting.notifier.Configure(told)
	options := l.apiOptions(log)
	options.Reload = d.reload
	if d.server, err = api.New(d.reader, options); err != nil {
		return nil, err
	}
	if d.listener, err = net.Listen("tcp", l.API.Listen); err != nil {
		return nil, fmt.Errorf("api.listen %s: %w", l.API.Listen, err)
	}
	return d, nil
}

var errNoSources = errors.New("nothing to read: the configuration has no sources")

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
	d.reading, d.counting = reading, counting

	var counters sync.WaitGroup
	d.setup.Load().start(counting)
	counters.Go(func() { d.reader.run(counting) })
	counters.Go(func() { d.reader.watchSplits(counting, d.log) })
	counters.Go(func() { d.expire(counting) })
	counters.Go(func() { d.watch.run(counting) })
	counters.Go(func() { d.alerting.keep(counting) })
	counters.Go(func() { d.alerting.fleet.run(counting, d.setup.Load) })
	counters.Go(func() { d.alerting.notifier.Run(counting) })
	serving := make(chan error, 1)
	go func() { serving <- d.server.Serve(counting, d.listener) }()
	for i, s := range d.setup.Load().sources {
		s.number = i
		s.start(reading, handing{d, s})
	}
	counters.Go(func() { d.hangups(reading) })

	var failed error
	select {
	case <-ctx.Done():
	case failed = <-serving:
		failed = fmt.Errorf("the API has ended: %w", failed)
	}
	d.log.Info("stopping")
	stopReading()
	within(stopTime, func() { d.changing <- struct{}{} }) // a reload gives up by now
	x := d.setup.Load()
	within(stopTime, func() {
		for _, s := range x.sources {
			<-s.ended
		}
	})
	stopCounting()
	within(stopTime, func() { <-x.ended; counters.Wait() })
	for _, s := range x.sources {
		s.closeDead()
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

// every calls f again and again, the first time after d, until ctx ends.
func every(ctx context.Context, d time.Duration, f func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}

// expireEvery is how often rows that are older than their retention are deleted.
const expireEvery = time.Minute

func (d *daemon) expire(ctx context.Context) {
	every(ctx, expireEvery, func() {
		retention := map[store.Resolution]time.Duration{}
		for name, r := range resolutions {
			retention[r] = d.setup.Load().loaded.Store.Retention[name]
		}
		if err := d.store.Expire(ctx, d.now(), retention); err != nil && ctx.Err() == nil {
			d.log.Warn("old rows were not deleted", "error", err)
		}
	})
}
