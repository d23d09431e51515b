package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/targetside/auditor/lab"
)

const demoHelp = `Usage: auditor demo [flags]

Runs everything on this machine, with nothing installed: tickets that go on sale
through layers that retry (scenario demo of auditor lab, in real time), a broker that
speaks Kafka's protocol, and the daemon that reads the access log from it. Every five
seconds a line says what the auditor found, beside what is true. It runs until it is
interrupted, and leaves nothing behind.

Flags:
`

// demoOptions is a demo's command line, and what tests change.
type demoOptions struct {
	listen string
	length time.Duration // 0: until it is interrupted
	seed   uint64
	temp   string // where the directory is made; "": the system's
	every  time.Duration
	change func(*lab.Arm) // what is played otherwise; nil: nothing
}

func demoCommand(ctx context.Context, p *program, args []string) (int, error) {
	f := flag.NewFlagSet("demo", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), demoHelp); f.PrintDefaults() }
	o := demoOptions{every: 5 * time.Second}
	f.StringVar(&o.listen, "listen", "127.0.0.1:9464", "serve figures at the loopback `ADDRESS`; if it is taken, at a free port")
	f.DurationVar(&o.length, "for", 0, "end after `TIME`, such as 30s (default: when interrupted)")
	f.Uint64Var(&o.seed, "seed", 1, "play the traffic of the seed `N`: its stamps and keys are new each time, the rest is not")
	rest, err := parse(p, f, args)
	if err != nil {
		return exitUsage, err
	}
	if len(rest) > 0 {
		return exitUsage, fmt.Errorf("found %q: the demo reads nothing but its own traffic; auditor replay reads files", rest[0])
	}
	if o.length < 0 {
		return exitUsage, fmt.Errorf("--for: found %v: want a time above 0", o.length)
	}
	if at, err := netip.ParseAddrPort(o.listen); err != nil || !at.Addr().IsLoopback() {
		return exitUsage, fmt.Errorf("--listen: found %q: want a loopback address and a port, such as 127.0.0.1:9464", o.listen)
	}
	d, err := newDemo(ctx, p, o)
	if err != nil {
		return exitFailed, err
	}
	return exitOK, d.run(ctx)
}

// demo is everything that runs on one machine.
type demo struct {
	demoOptions
	out     io.Writer
	now     func() time.Time
	dir     string // of the configuration and the store
	broker  *demoBroker
	traffic *demoTraffic
	daemon  *daemon
}

// newDemo makes everything; none of it works yet.
func newDemo(ctx context.Context, p *program, o demoOptions) (_ *demo, err error) {
	d := &demo{demoOptions: o, out: p.stdout, now: p.now}
	defer func() {
		if err != nil {
			d.remove()
		}
	}()
	if d.traffic, err = newDemoTraffic(o.seed, d.now()); err != nil {
		return nil, err
	}
	if o.change != nil {
		for i := range d.traffic.arms {
			o.change(&d.traffic.arms[i])
		}
	}
	if d.broker, err = newDemoBroker(); err != nil {
		return nil, err
	}
	if d.dir, err = os.MkdirTemp(o.temp, "auditor-demo-"); err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d.daemon, err = d.open(ctx, p, log, o.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(o.listen)
		fmt.Fprintf(d.out, "%s is taken, so this serves at a free port.\n", o.listen)
		d.daemon, err = d.open(ctx, p, log, net.JoinHostPort(host, "0"))
	}
	return d, err
}

// open writes a configuration as a user would, and prepares a daemon of it.
func (d *demo) open(ctx context.Context, p *program, log *slog.Logger, listen string) (*daemon, error) {
	arm := &d.traffic.arms[0]
	peers, err := json.Marshal(arm.Peers())
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(demoConfig, d.broker.cluster.ListenAddrs()[0], demoTopic, demoGroup, peers, arm.Clients[0].Deadline, listen)
	name := filepath.Join(d.dir, "auditor.yaml")
	if err := errors.Join(
		os.WriteFile(name, []byte(config), 0o600),
		os.WriteFile(filepath.Join(d.dir, "originators.yaml"), arm.Originators(), 0o600),
	); err != nil {
		return nil, err
	}
	read := func() (*loaded, error) { return load(p, name, true) }
	l, err := read()
	if err != nil {
		return nil, err
	}
	return newDaemon(ctx, l, read, log, p.now)
}

// The lateness and the horizon are those of callers that never take long: figures
// are final, and the daemon is warm, sooner than in life.
const demoConfig = `dependency: {field: dependency}
sources:
  - kafka: {brokers: [%q], topics: [%s], group: %s}
    format: json
    attempt_scope: hop
routes: {templates: ["GET /seats/{id}", "POST /holds/{id}", "GET /prices/{id}", "GET /fares/{id}"]}
peers: {map: %s}
time: {lateness: 5s, max_future: 2s}
keys: {accept: [qk1], originators: originators.yaml, horizon: 30s}
declared:
  deadline: %v
  layers: [{name: web, attempts: 3}, {name: gateway, attempts: 3}, {name: peer, attempts: 3}]
store: {sqlite: auditor.db}
api: {listen: %q}
`

// run works until ctx ends or the demo's time is over, and removes everything.
func (d *demo) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, d.remove()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if d.length > 0 {
		ctx, stop = context.WithTimeout(ctx, d.length)
		defer stop()
	}
	d.welcome()
	var (
		working sync.WaitGroup
		once    sync.Once
	)
	work := func(f func(context.Context) error) {
		working.Go(func() {
			if failed := f(ctx); failed != nil {
				once.Do(func() { err = failed })
			}
			stop()
		})
	}
	work(func(ctx context.Context) error { return d.broker.feed(ctx, d.traffic) })
	work(d.daemon.run)
	watch := newDemoWatch(d.out, d.url(), d.traffic)
	work(func(ctx context.Context) error { return watch.run(ctx, d.every) })
	working.Wait()
	return errors.Join(err, watch.conclude())
}

// remove takes everything away that was made.
func (d *demo) remove() error {
	if d.daemon != nil {
		d.daemon.close()
	}
	if d.broker != nil {
		d.broker.close()
	}
	if d.dir == "" {
		return nil
	}
	return os.RemoveAll(d.dir)
}

func (d *demo) url() string { return "http://" + d.daemon.listener.Addr().String() }

// welcome says what runs, and where to look.
func (d *demo) welcome() {
	fmt.Fprintf(d.out, `Tickets go on sale. People at "web" ask for seats and prices, through a gateway and four
peers; each of these three layers makes up to 3 attempts. This is played in turns:

`)
	for i := range d.traffic.arms {
		a := &d.traffic.arms[i]
		fmt.Fprintf(d.out, "  %-10s %v  %s\n", a.Name, a.Lasts+a.Drain, a.Says)
	}
	fmt.Fprintf(d.out, `
  %s/        the live page, for a browser
  curl %[1]s/api/v1/summary        what is live
  curl '%[1]s/api/v1/top?by=peer'    who costs the most
  curl -N %[1]s/api/v1/stream      the summary, each second
  curl %[1]s/metrics               for Prometheus

`, d.url())
}
