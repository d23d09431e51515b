package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
)

// The configuration is read anew whole, and comes into force whole or not at all.
// What it changes decides what happens:
//
//   - what cannot change while the daemon runs is refused;
//   - what only says how figures are shown or judged is in force at once;
//   - everything else says how records are read or identified: what is final is
//     stored, and what is not is read again from the committed positions, by the
//     next version of the rules. Sources whose own configuration is the same run on,
//     with their listeners, spools and memberships; others stop and start.

// atOnce are keys that say nothing about how records are read or identified.
var atOnce = []string{"budget", "declared", "api", "alerts", "store.retention"}

// fixed are keys that cannot change while the daemon runs.
var fixed = []string{"store.sqlite", "store.clickhouse", "api.listen"}

// handoverTime is how long what is final may take to be stored. After that the daemon
// goes on with the configuration that it has.
const handoverTime = 10 * time.Second

// under says that a key is one of some, or below one.
func under(key string, some []string) bool {
	return slices.ContainsFunc(some, func(s string) bool {
		rest, ok := strings.CutPrefix(key, s)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// changes lists the keys whose values, or whose files' contents, are others than in
// an older configuration.
func (l *loaded) changes(old *loaded) []string {
	out := l.Changes(old.Config)
	for key := range l.Files() {
		if was, ok := old.files[key]; ok && was != l.files[key] && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	if !slices.Contains(out, "keys.originators") && !reflect.DeepEqual(l.originators, old.originators) {
		out = append(out, "keys.originators")
	}
	slices.Sort(out)
	return out
}

// reading is different for each way in which records are read and identified, as far
// as that is no secret. Paths of files are no part of it.
func (l *loaded) reading() string {
	c := *l.Config
	c.Budget, c.Declared, c.API, c.Alerts, c.Store = config.Budget{}, config.Declared{}, config.API{}, config.Alerts{}, config.Store{Questions: c.Store.Questions}
	c.Keys.Originators, c.Keys.SaltFile = "", ""
	c.Sources = slices.Clone(c.Sources)
	for i := range c.Sources {
		s := &c.Sources[i]
		if s.Kafka != nil {
			s.Kafka = &config.Kafka{Topics: s.Kafka.Topics, Keyed: s.Kafka.Keyed}
		}
		if s.HTTP != nil {
			s.HTTP = &config.HTTP{Listen: s.HTTP.Listen}
		}
		if s.Syslog != nil {
			s.Syslog = &config.Syslog{Protocol: s.Syslog.Protocol, Listen: s.Syslog.Listen}
		}
		if s.ALS != nil {
			s.ALS = &config.ALS{Listen: s.ALS.Listen}
		}
		s.DeadLetter = nil
	}
	text, err := json.Marshal(struct {
		Config      config.Config
		Originators []config.Originator
	}{c, l.originators})
	if err != nil {
		return "" // of numbers and texts alone: it does not happen
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// identity is what a source is opened of.
type identity struct {
	config.Source
	form  string // of records that are taken in another way than lines are
	files map[string][sha256.Size]byte
}

func (l *loaded) identity(i int) identity {
	s := l.Sources[i]
	form := ""
	if strings.HasPrefix(s.Format, "otlp-") || accesslog.Declares(s.Format) != "" {
		form = s.Format
	}
	out := identity{config.Source{Kafka: s.Kafka, File: s.File, HTTP: s.HTTP, Syslog: s.Syslog, ALS: s.ALS, DeadLetter: s.DeadLetter}, form, map[string][sha256.Size]byte{}}
	at := fmt.Sprintf("sources[%d]", i)
	for key, sum := range l.files {
		if rest, ok := strings.CutPrefix(key, at); ok {
			out.files[rest] = sum
		}
	}
	return out
}

func (x identity) same(o identity) bool { return reflect.DeepEqual(x, o) } // looks into secrets, too

// newSource is the source of a configuration; it is not open yet.
func (d *daemon) newSource(l *loaded, i int) *source {
	c := &l.Sources[i]
	s := &source{name: sourceName(c), kind: c.Kind(), identity: l.identity(i), log: d.log}
	s.open = func() (reads, *ingest.DeadLetter, error) { return openSource(i, c, d.store, d.log) }
	return s
}

// gate keeps partitions from being assigned while the setup changes.
type gate struct {
	mu   sync.RWMutex
	shut chan struct{} // closed when it opens; nil: it is open
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

func (g *gate) isShut() bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.shut != nil
}

// handing hands what a source reads to whatever counts at the time.
type handing struct {
	d *daemon
	s *source
}

// Assigned implements ingest.Handler.
func (h handing) Assigned(ctx context.Context, p ingest.Partition, left ingest.Position) (ingest.Session, ingest.Position, error) {
	g := &h.d.gate
	for {
		g.mu.RLock()
		shut := g.shut
		if shut == nil {
			defer g.mu.RUnlock()
			p.Source = h.s.number
			return h.d.setup.Load().live.Assigned(ctx, p, left)
		}
		g.mu.RUnlock()
		select {
		case <-shut:
		case <-ctx.Done():
			return nil, left, ctx.Err()
		}
	}
}

// hangups reads the configuration anew when it is asked to.
func (d *daemon) hangups(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.hangup:
			d.reload(ctx) // says what comes of it
		}
	}
}

// reload reads the configuration anew, one time after the other. Once it is at it ctx
// does not matter: whoever asked need not wait.
func (d *daemon) reload(ctx context.Context) (*api.Reloaded, error) {
	select {
	case d.changing <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("an earlier reload is under way: %w", errors.Join(api.ErrUnavailable, ctx.Err()))
	}
	defer func() { <-d.changing }()
	done, err := d.change(d.reading)
	note := *d.reloaded.Load()
	if note.Failed = err != nil; err != nil {
		d.log.Error("the configuration was not taken; the one before stays in force", "error", err)
	} else {
		note.At = d.now()
		d.log.Info("the configuration is in force", "changed", done.Changed, "recounts", done.Recounts)
	}
	d.reloaded.Store(&note)
	return done, err
}

// change brings the configuration of the file into force.
func (d *daemon) change(ctx context.Context) (*api.Reloaded, error) {
	was := d.setup.Load()
	l, err := d.read()
	if err != nil {
		return nil, err
	}
	done := &api.Reloaded{Changed: l.changes(was.loaded)}
	for _, key := range done.Changed {
		if under(key, fixed) || key == "api.tls" {
			return nil, l.Refuse(key, "cannot change while the daemon runs: put it back, or restart the daemon")
		}
		if under(key, atOnce) {
			continue
		}
		done.Recounts = true
		if len(exchanges(l.Config))+len(exchanges(was.loaded.Config)) > 0 {
			return nil, l.Refuse(key, "cannot change while an exchange is in use, whose instances all count alike: put it back, or stop all instances and start them anew")
		}
	}
	show, err := d.server.Change(l.apiOptions(d.log))
	if err != nil {
		return nil, err
	}
	told, err := l.sinks()
	if err != nil {
		return nil, err
	}
	apply := func() { show(); d.alerting.notifier.Configure(told) }
	c, err := l.pipelineConfig(d.now())
	if err != nil {
		return nil, err
	}
	for _, w := range l.Warnings() {
		d.log.Warn(w)
	}
	if !done.Recounts {
		now := *was
		now.loaded = l
		now.live.SetBudgets(c.Budget, c.RouteBudgets, c.Rules)
		d.setup.Store(&now)
		apply()
		return done, nil
	}
	if err := d.recount(ctx, was, l); err != nil {
		return nil, err
	}
	apply()
	return done, nil
}

// recount makes the setup of another configuration go on where this one stops.
func (d *daemon) recount(ctx context.Context, was *setup, l *loaded) (err error) {
	if len(l.Sources) == 0 {
		return errNoSources
	}
	sources := d.newSources(l)
	fresh, gone := []*source{}, slices.Clone(was.sources)
	for i, s := range sources {
		if j := slices.IndexFunc(gone, func(o *source) bool { return o.identity.same(s.identity) }); j >= 0 {
			s = gone[j]
			gone = slices.Delete(gone, j, j+1)
		} else {
			fresh = append(fresh, s)
		}
		sources[i] = s
	}
	if err := l.fits(was.loaded, sources); err != nil {
		return err
	}
	opened := 0
	defer func() {
		if err != nil {
			for _, s := range fresh[:opened] {
				s.giveUp()
			}
		}
	}()
	for _, s := range fresh {
		if err := s.begin(); err != nil {
			return err
		}
		opened++
	}
	now, err := d.newSetup(l, sources)
	if err != nil {
		return err
	}
	now.changed = true

	d.gate.close()
	defer d.gate.open()
	storing, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	if err := was.live.Handover(storing, now.live); err != nil {
		return fmt.Errorf("%w; try again when it can: %w", err, api.ErrUnavailable)
	}
	// From here on nothing can fail.
	for _, s := range gone {
		s.stop()
	}
	within(stopTime, func() {
		for _, s := range gone {
			<-s.ended
		}
	})
	for _, s := range gone {
		s.closeDead()
	}
	d.gate.mu.Lock()
	for i, s := range sources {
		s.number = i
	}
	d.setup.Store(now)
	d.gate.mu.Unlock()
	was.stop()
	within(stopTime, func() { <-was.ended })
	now.start(d.counting)
	for _, s := range fresh {
		s.start(d.reading, handing{d, s})
	}
	return nil
}

// fits says which source cannot take the place of those that run.
func (l *loaded) fits(was *loaded, sources []*source) error {
	for i := range l.Sources {
		s, at := &l.Sources[i], fmt.Sprintf("sources[%d]", i)
		for j := range was.Sources {
			o := &was.Sources[j]
			if s.Kafka != nil && o.Kafka != nil && s.Kafka.Keyed != o.Kafka.Keyed && s.Kafka.Group == o.Kafka.Group &&
				slices.ContainsFunc(s.Kafka.Topics, func(topic string) bool { return slices.Contains(o.Kafka.Topics, topic) }) {
				return l.Refuse(at+".kafka.keyed", "cannot change for a topic that is read: put it back, or restart the daemon")
			}
			network, listen, spool := s.Listener()
			hadNetwork, hadListen, hadSpool := o.Listener()
			if network == "" || hadNetwork == "" || sources[i].identity.same(was.identity(j)) {
				continue
			}
			if network == hadNetwork && listen == hadListen || spool == hadSpool {
				return l.Refuse(at+"."+s.Kind(), "the settings of a listener or spool that is in use cannot change while the daemon runs: put it back, or restart the daemon")
			}
		}
	}
	return nil
}
