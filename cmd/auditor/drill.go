package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/targetside/auditor/lab/drill"
)

const drillHelp = `Usage: auditor drill --upstream URL --route ROUTE [flags]

Stands in front of a staging dependency and makes a route fail, in steps, so that its
callers show what bounds their repeats: a count for each call, or a share of traffic;
for each route, or for all; and what they do once it is spent. It holds traffic as it
is for a while before the steps, and again after them. One fault at a time: two would
hide what answers to which.

Every request becomes a record in the format json, with departures as the socket
showed them: written with --records, handed to an auditor with --push. The
configuration of that auditor has "dependency: {field: dependency}" and accepts the
keys that callers send.

The exit status is 0 when the drill came to its end and all records were handed on, 1
when not, and 2 for a command line that cannot be read.

Flags:
`

// drillOptions is the command line of a drill.
type drillOptions struct {
	plan                  drill.Plan
	listen, output        string
	records, push, alerts string
	pushToken, apiToken   string
	stay                  bool
}

func drillCommand(ctx context.Context, p *program, args []string) (int, error) {
	o, err := drillFlags(p, args)
	if err != nil {
		return exitUsage, err
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return exitFailed, err
	}
	if err := o.plan.ValidateListen(ctx, l.Addr()); err != nil {
		l.Close()
		return exitUsage, err
	}
	d, err := newDrill(p, o, l)
	if err != nil {
		l.Close()
		return exitFailed, err
	}
	if err := d.run(ctx); err != nil {
		return exitFailed, err
	}
	return exitOK, nil
}

func drillFlags(p *program, args []string) (*drillOptions, error) {
	o := &drillOptions{}
	f := flag.NewFlagSet("drill", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), drillHelp); f.PrintDefaults() }
	upstream := f.String("upstream", "", "the dependency, at a loopback `URL`, such as http://127.0.0.1:8080")
	f.StringVar(&o.plan.Allowed, "allow", "", "let the upstream be this `HOST:PORT`, which is staging")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8081", "take requests at this `ADDRESS`")
	f.StringVar(&o.plan.Dependency, "dependency", "", "the `NAME` of the dependency in records (default: the upstream's host)")
	route := f.String("route", "", "fault this `ROUTE`: a method, if one is meant, and the beginning of a path: \"GET /seats/\"")
	control := f.String("control", "", "fail another `ROUTE` as well, by its own small share alone: does it lose its repeats?")
	controlShare := f.Float64("control-share", 5, "of the control's requests, in `PERCENT`")
	fault := f.String("fault", "error=503", "error=STATUS, latency=TIME, reset or limit=NUMBER (of the chosen requests at a time)")
	f.DurationVar(&o.plan.Fault.RetryAfter, "retry-after", 0, "say so with an error or a refusal; in whole seconds")
	steps := f.String("steps", "5,25,50,100", "choose these shares of the route's requests, in `PERCENT`, one after the other")
	f.DurationVar(&o.plan.Step, "step", 20*time.Second, "each for this `TIME`")
	f.DurationVar(&o.plan.Hold, "hold", 10*time.Second, "hold traffic as it is for this `TIME`, before and after")
	f.StringVar(&o.plan.Key, "key", "Question-Key", "the `HEADER` that bears the question's key")
	f.Uint64Var(&o.plan.Seed, "seed", 1, "choose by the seed `N`")
	f.StringVar(&o.records, "records", "", "append records to this `FILE`")
	f.StringVar(&o.push, "push", "", "hand records to an auditor at this `URL`, such as http://127.0.0.1:9465/ingest")
	f.StringVar(&o.alerts, "alerts", "", "ask an auditor at this `URL`, such as http://127.0.0.1:9464, for alerts")
	f.StringVar(&o.pushToken, "push-token-file", "", "the bearer token for pushes is in this `FILE`")
	f.StringVar(&o.apiToken, "alerts-token-file", "", "the bearer token for alerts is in this `FILE`")
	f.BoolVar(&o.stay, "stay", false, "go on passing traffic after the report, until interrupted")
	f.StringVar(&o.output, "output", "text", "print json or `text`")
	rest, err := parse(p, f, args)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("found %q: a drill takes flags alone", rest[0])
	}
	if o.output != "text" && o.output != "json" {
		return nil, fmt.Errorf("--output %q is unknown: json or text", o.output)
	}
	if err := o.read(*upstream, *route, *control, *fault, *steps, *controlShare); err != nil {
		return nil, err
	}
	return o, nil
}

// read makes the plan of what stands in flags.
func (o *drillOptions) read(upstream, route, control, fault, steps string, controlShare float64) (err error) {
	if upstream == "" || route == "" {
		return errors.New("--upstream and --route say what is faulted: both are needed")
	}
	p := &o.plan
	if p.Upstream, err = url.Parse(upstream); err != nil {
		return errors.New("--upstream is no URL: want one such as http://127.0.0.1:8080")
	}
	if p.Dependency == "" {
		p.Dependency = p.Upstream.Hostname()
	}
	if p.Route, err = drill.ParseRoute(route); err != nil {
		return fmt.Errorf("--route: %w", err)
	}
	if control != "" {
		if p.Control, err = drill.ParseRoute(control); err != nil {
			return fmt.Errorf("--control: %w", err)
		}
		p.ControlShare = controlShare / 100
	}
	after := p.Fault.RetryAfter
	if p.Fault, err = drill.ParseFault(fault); err != nil {
		return fmt.Errorf("--fault: %w", err)
	}
	p.Fault.RetryAfter = after
	for text := range strings.SplitSeq(steps, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return fmt.Errorf("--steps %q: want shares in percent, with commas between", steps)
		}
		p.Steps = append(p.Steps, v/100)
	}
	for flag, at := range map[string]string{"--push": o.push, "--alerts": o.alerts} {
		if u, err := url.Parse(at); at != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			return fmt.Errorf("%s is no URL: want one such as http://127.0.0.1:9464", flag)
		}
	}
	return p.Validate()
}

// drilling is a drill that runs.
type drilling struct {
	*drillOptions
	p        *program
	listener net.Listener
	file     *os.File // of records; nil: none
	recorder *drill.Recorder
	alerts   *drill.Alerts // nil: nobody is asked
	proxy    *drill.Proxy
	forward  *http.Transport
}

func newDrill(p *program, o *drillOptions, l net.Listener) (*drilling, error) {
	d := &drilling{drillOptions: o, p: p, listener: l}
	push, err := bearer(o.pushToken)
	if err != nil {
		return nil, err
	}
	ask, err := bearer(o.apiToken)
	if err != nil {
		return nil, err
	}
	var w io.Writer
	if o.records != "" {
		if d.file, err = os.OpenFile(o.records, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return nil, err
		}
		w = d.file
	}
	d.recorder = drill.NewRecorder(w, o.push, push)
	if o.alerts != "" {
		d.alerts = drill.WatchAlerts(o.alerts, o.plan.Dependency, ask)
	}
	d.forward = drill.Transport(&o.plan)
	d.proxy = drill.New(o.plan, d.forward, d.recorder.Add)
	return d, nil
}

// bearer makes requests that bear the token of a file, if one is named.
func bearer(file string) (drill.Doer, error) {
	token := ""
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if token = strings.TrimSpace(string(text)); token == "" {
			return nil, fmt.Errorf("%s holds no token", file)
		}
	}
	client := &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return func(r *http.Request) (*http.Response, error) {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return client.Do(r)
	}, nil
}

// drillOutput is what is printed as JSON.
type drillOutput struct {
	*drill.Report
	Records drill.Handed `json:"records"`
}

// run drills to the end, or until ctx ends, and prints the report.
func (d *drilling) run(ctx context.Context) (err error) {
	server := &http.Server{Handler: d.proxy, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	d.proxy.Begin()
	go func() { served <- server.Serve(d.listener) }()
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	recording, stopRecording := context.WithCancel(context.WithoutCancel(ctx))
	var watch, record sync.WaitGroup
	if d.alerts != nil {
		watch.Go(func() { d.alerts.Run(watching) })
	}
	record.Go(func() { d.recorder.Run(recording) })

	fmt.Fprintf(d.p.stderr, "%s at http://%s, for %v.\n", d.plan.Dependency, d.listener.Addr(), d.plan.Lasts())
	ended := d.wait(ctx, d.plan.Lasts(), served)
	stopWatching()
	watch.Wait()
	finish := func() {
		d.stop(server)
		stopRecording()
		record.Wait()
	}
	if !d.stay {
		finish()
	}
	report := d.proxy.Report()
	report.Answers.Alert = drill.AlertAnswer{Answer: drill.Answer{Kind: drill.NotAsked, Says: "no auditor was named to be asked"}}
	if d.alerts != nil {
		report.Answers.Alert = d.alerts.Answer(report)
	}
	err = d.print(report)
	if d.stay {
		if ended == nil {
			fmt.Fprintln(d.p.stderr, "The drill is over; traffic passes as it is until this is interrupted.")
			ended = d.wait(ctx, 0, served)
		}
		finish()
	}
	if !report.Whole && ended == nil {
		ended = errors.New("interrupted before the last step: the answers are of what was seen until then")
	}
	_, lost := d.recorder.Handed()
	if d.file != nil {
		lost = errors.Join(lost, d.file.Close())
	}
	return errors.Join(err, ended, lost)
}

// wait ends after a time (0: never), with ctx, or when the server fails, which is an
// error.
func (d *drilling) wait(ctx context.Context, lasts time.Duration, served <-chan error) error {
	var over <-chan time.Time
	if lasts > 0 {
		t := time.NewTimer(lasts)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-over:
	case <-ctx.Done():
	case err := <-served:
		return err
	}
	return nil
}

// stop lets requests end that are under way, for a while.
func (d *drilling) stop(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		server.Close()
	}
	d.forward.CloseIdleConnections()
}

func (d *drilling) print(r *drill.Report) error {
	handed, _ := d.recorder.Handed()
	if d.output == "text" {
		return writeDrill(d.p.stdout, r, &handed)
	}
	e := json.NewEncoder(d.p.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(drillOutput{r, handed})
}
