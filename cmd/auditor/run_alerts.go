package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/alerts"
	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/pipeline"
)

// alerting judges each picture and tells what comes of it. What fires is kept in the
// store, so that a restart, or another instance that takes over, goes on with it.
type alerting struct {
	d         *daemon
	notifier  *alerts.Notifier
	evaluator *alerts.Evaluator // of whoever takes pictures
	lost      lostRecords
	past      *alerts.Past
	fleet     *fleet
	alone     *alerts.Evaluator // of its own share, while the others of its fleet cannot be had
	// What was kept was asked for, and is known: from here on it may be kept anew.
	asked, restored bool

	keptAs  string      // the name under which it is kept since
	wanted  chan string // the name of what is to be read
	loaded  chan []byte
	unsaved chan keptState // the newest
}

// keptState is what is to be kept, and under what name.
type keptState struct {
	name  string
	state []byte
}

func newAlerting(d *daemon) *alerting {
	return &alerting{
		d: d, notifier: alerts.NewNotifier(d.log), evaluator: alerts.NewEvaluator(), past: alerts.NewPast(time.Now()), fleet: newFleet(d.sharer, d.log),
		wanted: make(chan string, 1), loaded: make(chan []byte, 1), unsaved: make(chan keptState, 1),
	}
}

// judge looks at a picture, and puts what comes of it into its snapshot.
func (a *alerting) judge(x *setup, p *pipeline.Picture, s *api.Snapshot) {
	in := a.input(x, p, s)
	name := x.loaded.alertsName()
	if x.loaded.fleetName() != "" {
		a.judgeFleet(x, p, in, name, s)
	} else {
		s.Alerts = a.tell(in, name)
		s.Share, s.Evaluated = in.Share, !in.Standby && !in.Unknown
	}
	a.past.Take(s.Alerts, in.Now)
	s.Past, s.PastFrom = a.past.Alerts(), a.past.From()
	s.Notified = a.notifier.Sent()
}

// tell judges, tells sinks, and keeps what fires.
func (a *alerting) tell(in *alerts.Input, name string) []alerts.Alert {
	a.restore(name, in.Standby, in.Now)
	changes := a.evaluator.Step(in)
	current := a.evaluator.Alerts()
	a.notifier.Tell(current, changes)
	if a.restored {
		state, is := a.evaluator.Unsaved()
		if a.keptAs != name { // of another configuration, and all of it is to be there
			a.keptAs, state, is = name, a.evaluator.State(), true
		}
		if is {
			a.keepNext(keptState{name, state})
		}
	}
	return current
}

// keepNext has a state kept in place of those that wait to be.
func (a *alerting) keepNext(k keptState) {
	select {
	case <-a.unsaved:
	default:
	}
	a.unsaved <- k
}

// judgeFleet judges the sum of what the instances of the fleet count, if it is this one
// that tells sinks; else it shows what that one found. Where the others cannot be had
// it goes by its own share, as instances without a shared store do: what fires then is
// told by each, and nothing is resolved.
func (a *alerting) judgeFleet(x *setup, p *pipeline.Picture, in *alerts.Input, name string, s *api.Snapshot) {
	whole := x.whole()
	own, routes := x.loaded.budgets()
	a.offer(p, in, len(whole) > 0)
	v := a.fleet.view(whole, &own, routes)
	if v.mode == hearing || v.mode == telling {
		s.Fleet = showFleet(v)
	}
	if v.mode != telling {
		if a.asked { // another may: what is kept is its
			a.keepNext(keptState{})
		}
		a.restore(name, true, in.Now)
		a.evaluator.Step(&alerts.Input{Now: in.Now, Standby: true})
	}
	if v.mode != apart {
		a.alone = nil
	}
	switch v.mode {
	case telling:
		s.Evaluated = v.FleetPicture.Scopes > 0
		if a.restore(name, false, in.Now); !a.restored { // what fires already is no news
			s.Alerts = a.d.reader.Snapshot().Alerts
			break
		}
		s.Alerts = a.tell(a.sum(x, in, v), name)
	case hearing:
		a.notifier.Tell(nil, nil)
		s.Alerts, s.Evaluated = v.shown, v.evaluated
	case waiting:
		s.Alerts = a.d.reader.Snapshot().Alerts
	case apart:
		if a.alone == nil {
			a.alone = alerts.NewEvaluator()
		}
		changes := a.alone.Step(in)
		s.Alerts = a.alone.Alerts()
		a.notifier.Tell(s.Alerts, changes)
		s.Share, s.Evaluated = in.Share, !in.Standby && !in.Unknown
	}
}

// offer is what this instance tells the others of itself. One that reads nothing, or does
// not know yet what there is to be read, tells no sinks.
func (a *alerting) offer(p *pipeline.Picture, in *alerts.Input, knows bool) {
	m := memberState{Sources: in.Sources, Store: in.Store, Read: in.Read, Lost: in.Lost, Bits: p.SampleBits, Alerts: a.d.reader.Snapshot().Alerts}
	for i := range in.Dependencies {
		if d := &in.Dependencies[i]; d.ScopeSplit {
			m.Split = append(m.Split, d.Dependency)
		}
	}
	a.fleet.offer(m, knows && !in.Standby)
}

// sum is what alerts are judged by of the whole fleet. Of its sources each is as far
// behind as it is in the member that is worst.
func (a *alerting) sum(x *setup, in *alerts.Input, v *fleetView) *alerts.Input {
	return &alerts.Input{
		Now: in.Now, Rules: in.Rules, Warming: v.Warming, Unknown: v.FleetPicture.Scopes == 0, Missing: v.Missing, Sources: v.sources, Store: v.store,
		Read: v.read, Lost: v.lost, Dependencies: a.figures(x, v.Dependencies, v.bits),
	}
}

// restore takes over what was kept, once it was read. On a standby another instance
// goes on with what fires: what that kept counts.
func (a *alerting) restore(name string, standby bool, now time.Time) {
	if standby {
		a.asked, a.restored = false, false
	} else if !a.asked {
		a.asked, a.keptAs = true, name
		select {
		case <-a.wanted:
		default:
		}
		a.wanted <- name
	}
	select {
	case state := <-a.loaded:
		if a.restored = a.asked; !a.asked || state == nil {
			return
		}
		if err := a.evaluator.Restore(state, now); err != nil {
			a.d.log.Error("which alerts fired before is not known; those that still do fire anew", "error", err)
		}
	default:
	}
}

// input is what alerts are judged by.
func (a *alerting) input(x *setup, p *pipeline.Picture, s *api.Snapshot) *alerts.Input {
	b := &x.loaded.Budget
	in := &alerts.Input{
		Now: p.At, Standby: x.standby(), Warming: p.Warming, Share: x.share(),
		Unknown: p.Scopes == 0 || p.Rebuilding || a.d.gate.isShut(),
		Store:   p.StoreErr != nil || a.d.watch.failed() != nil || len(p.Stalled) > 0,
		Rules: alerts.Rules{
			Low: b.Low, CoverageFloor: b.CoverageFloor, CoverageExpected: b.CoverageExpected, VisibilityFloor: b.VisibilityFloor,
			MinArrivals: b.MinArrivals, Declared: s.Policy,
		},
	}
	for i := range s.Sources {
		in.Sources = append(in.Sources, alertSource(&s.Sources[i]))
	}
	in.Read, in.Lost = a.lost.lately(p.At, p, x.sources)
	in.Dependencies = a.figures(x, p.Dependencies, p.SampleBits)
	return in
}

// figures are what is live of dependencies.
func (a *alerting) figures(x *setup, dependencies []pipeline.LiveDependency, bits int) (out []alerts.Figures) {
	own, routes := x.loaded.budgets()
	for i := range dependencies {
		d := &dependencies[i]
		if f := alertFigures(d, &own, routes); f != nil {
			f.SampleBits, f.ScopeSplit = bits, d.ScopeSplit || a.d.reader.splits.has(d.Name)
			out = append(out, *f)
		}
	}
	return out
}

// alertFigures is what is live of a dependency; nil, if nothing is.
func alertFigures(d *pipeline.LiveDependency, own *budget.Model, routes map[string]*budget.Model) *alerts.Figures {
	if len(d.Windows) == 0 {
		return nil
	}
	f := &alerts.Figures{Dependency: d.Name}
	for i := range d.Windows {
		w := &d.Windows[i]
		f.At, f.Known = tickTime(w.To), max(f.Known, time.Duration(w.To-w.From)*time.Second)
		switch w.Length {
		case 10 * time.Second:
			f.Ten = w.Total
		case time.Minute:
			f.Minute = w.Total
		}
	}
	if n := len(d.ClosedWindows); n > 0 {
		w := &d.ClosedWindows[n-1]
		f.Closed = &alerts.Closed{Span: time.Duration(w.To-w.From) * time.Second, Totals: w.Total, Questions: w.Questions, Hops: w.Hops}
	}
	for i := range d.Budgets {
		b := &d.Budgets[i]
		model := own
		if b.Route != "" {
			model = routes[b.Route]
		}
		f.Budgets = append(f.Budgets, alerts.Budget{
			Route: b.Route, Model: b.Model, Window: time.Duration(b.To-b.From) * time.Second, Repeats: model != nil && model.Repeats(),
			Timed: model != nil && model.Timed(), Some: b.Some, Part: b.Part, Reading: b.Reading, ExhaustsIn: b.ExhaustsIn,
		})
	}
	return f
}

// alertSource is how a source stands, by its slowest partition that has something to
// be read.
func alertSource(s *api.Source) alerts.Source {
	out := alerts.Source{Name: s.Name, Failed: s.State == "failed"}
	for i := range s.Partitions {
		p := &s.Partitions[i]
		if seconds, ok := p.LagSeconds.Value(); p.Lag > 0 && ok {
			out.Behind, out.Lag = true, max(out.Lag, time.Duration(seconds*float64(time.Second)))
		}
	}
	return out
}

// standby says that another instance counts, or that this one only sends.
func (x *setup) standby() bool {
	return len(x.sources) > 0 && !slices.ContainsFunc(x.sources, func(s *source) bool { return !s.standby() && !s.sends })
}

// share says that other instances count a part of the questions.
func (x *setup) share() bool {
	return slices.ContainsFunc(x.sources, func(s *source) bool {
		r, _, _ := s.now()
		k, ok := r.(interface{ Shared() bool })
		return ok && !s.sends && k.Shared()
	})
}

// whole are the scopes that the instances share out; nil, if it is not known yet which
// there are.
func (x *setup) whole() (names []string) {
	for _, s := range x.sources {
		if k := s.identity.Kafka; s.sends || k == nil || !k.Divided() {
			continue
		}
		r, _, _ := s.now()
		known := r.(interface{ Whole() []string }).Whole()
		if known == nil {
			return nil
		}
		names = append(names, known...)
	}
	return names
}

// lostRecords remembers how many records were read, and how many were not, so that
// what was lost once does not count for ever.
type lostRecords struct{ samples []lostSample }

type lostSample struct {
	at         time.Time
	read, lost uint64
}

// lostFor is how far back it goes, and lostEvery how often it looks.
const (
	lostFor   = 5 * time.Minute
	lostEvery = 10 * time.Second
)

func (l *lostRecords) lately(now time.Time, p *pipeline.Picture, sources []*source) (read, lost uint64) {
	read, lost = readAndLost(p, sources)
	if n := len(l.samples); n > 0 && (read < l.samples[n-1].read || lost < l.samples[n-1].lost) {
		l.samples = nil // other sources
	}
	if n := len(l.samples); n == 0 || now.Sub(l.samples[n-1].at) >= lostEvery {
		l.samples = append(l.samples, lostSample{now, read, lost})
	}
	for len(l.samples) > 1 && now.Sub(l.samples[0].at) > lostFor {
		l.samples = l.samples[1:]
	}
	return read - l.samples[0].read, lost - l.samples[0].lost
}

// keep reads and keeps what outlives a restart, until ctx ends; then it keeps what is
// left.
func (a *alerting) keep(ctx context.Context) {
	retry := time.NewTicker(watchEvery)
	defer retry.Stop()
	load, written := "", ""
	var unsaved keptState
	save := func(ctx context.Context) {
		if unsaved.name != "" && a.save(ctx, unsaved) {
			if written != "" && written != unsaved.name { // nobody is to find there what fired once
				a.save(ctx, keptState{written, alerts.NewEvaluator().State()})
			}
			written, unsaved = unsaved.name, keptState{}
		}
	}
	for {
		select {
		case <-ctx.Done():
			if len(a.unsaved) > 0 {
				unsaved = <-a.unsaved
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime/3)
			defer cancel()
			save(ctx)
			return
		case load = <-a.wanted:
		case unsaved = <-a.unsaved:
		case <-retry.C:
		}
		if load != "" {
			text, err := a.d.store.Load(ctx, load)
			if err != nil {
				continue // the store is watched, and that is said elsewhere
			}
			written, load = load, ""
			select {
			case a.loaded <- text:
			case <-ctx.Done():
			}
		}
		save(ctx)
	}
}

func (a *alerting) save(ctx context.Context, s keptState) bool {
	if err := a.d.store.Save(ctx, s.name, s.state); err != nil {
		if ctx.Err() == nil {
			a.d.log.Debug("which alerts fire was not kept; it is tried again", "error", err)
		}
		return false
	}
	return true
}

// alertsName is the name under which the state of alerts is kept. A store of one
// daemon has one, whatever that daemon reads. In a store that many share it is the same
// for all instances that may take over from each other, which are those of a consumer
// group: whether one reads all, or they share it out and one tells of the sum; another for
// a log of its own, which only its host reads; and another for each dependency. What else
// is read says nothing of it.
func (l *loaded) alertsName() string {
	if l.Store.ClickHouse == nil {
		return "alerts"
	}
	parts := []string{l.Dependency.Name, l.Dependency.Field}
	groups := l.groups()
	parts = append(parts, groups...)
	switch {
	case l.fleetName() != "":
		parts = append(parts, "shared out")
	case len(groups) == 0:
		host, _ := os.Hostname()
		parts = append(parts, host)
	}
	return "alerts/" + hashed(parts)
}

// groups are the consumer groups, in order.
func (l *loaded) groups() (groups []string) {
	for i := range l.Sources {
		if k := l.Sources[i].Kafka; k != nil {
			groups = append(groups, k.Group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// fleetName names those that share out the scopes of the dependency in a store that they
// share; it is empty, if nobody does.
func (l *loaded) fleetName() string {
	if l.Store.ClickHouse == nil || !slices.ContainsFunc(l.Sources, func(s config.Source) bool { return s.Kafka != nil && s.Kafka.Divided() }) {
		return ""
	}
	return hashed(append([]string{l.Dependency.Name, l.Dependency.Field}, l.groups()...))
}

// hashed is the same for the same texts, and no other.
func hashed(texts []string) string {
	text, err := json.Marshal(texts)
	if err != nil {
		panic(err) // of texts alone
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// minWebhookSecret is how many bytes a webhook's secret has at least: a shorter one
// could be guessed from one message.
const minWebhookSecret = 16

// sinks are who is told of alerts, by the configuration.
func (l *loaded) sinks() (alerts.Sinks, error) {
	var out alerts.Sinks
	for _, e := range l.Alerts.Alertmanagers {
		out.Alertmanagers = append(out.Alertmanagers, alerts.Endpoint{URL: e.URL(), Shown: e.String()})
	}
	for i := range l.Alerts.Webhooks {
		w := &l.Alerts.Webhooks[i]
		at, secret := fmt.Sprintf("alerts.webhooks[%d]", i), string(w.Secret.Bytes())
		if w.SecretFile != "" {
			b, err := os.ReadFile(w.SecretFile)
			if err != nil {
				return out, fmt.Errorf("%s.secret_file: %w", at, err)
			}
			secret = strings.TrimRight(string(b), "\r\n")
		}
		if signed := w.SecretFile != "" || secret != ""; signed && len(secret) < minWebhookSecret {
			return out, l.Refuse(at, "its secret has %d bytes: want at least %d, such as openssl rand -hex 32 prints", len(secret), minWebhookSecret)
		}
		out.Webhooks = append(out.Webhooks, alerts.Webhook{Endpoint: alerts.Endpoint{URL: w.URL.URL(), Shown: w.URL.String()}, Secret: secret})
	}
	return out, nil
}
