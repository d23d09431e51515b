package api

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/alerts"
)

// Bounds of what is exported, above what a Reader that keeps its contract ever
// shows: they hold whatever it does. What is more than these goes into "other".
const (
	mostDependencies = 100
	mostRoutes       = 501 // of one dependency: routes.max and "other"
	mostSources      = 500
	mostReasons      = 50
)

const other = "other"

// collector exports the newest snapshot.
type collector struct {
	reader Reader
	*families

	mu sync.Mutex
	// floor is the highest value shown of each counter: the next is never below,
	// or Prometheus would take it for a restart and count it all again.
	floor map[string]float64
	// seen are the label values shown, by what they are values of.
	seen map[string]map[string]bool
}

func newCollector(r Reader) *collector {
	return &collector{reader: r, families: newFamilies(), floor: map[string]float64{}, seen: map[string]map[string]bool{}}
}

// Describe lists every metric, so that a name can be registered once only.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range c.all() {
		ch <- f.desc
	}
}

// Collect exports one snapshot. A mistake in it costs a scrape and not the daemon.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		if v := recover(); v != nil {
			ch <- prometheus.NewInvalidMetric(c.build.desc, fmt.Errorf("collect: %v", v))
		}
	}()
	x := &scrape{collector: c, values: map[string]*sample{}}
	x.snapshot(c.reader.Snapshot())
	for _, key := range x.order {
		s := x.values[key]
		if s.f.kind == prometheus.CounterValue {
			s.value = math.Max(s.value, c.floor[key])
			c.floor[key] = s.value
		}
		ch <- prometheus.MustNewConstMetric(s.f.desc, s.f.kind, s.value, s.labels...)
	}
	for _, h := range x.histograms {
		ch <- h
	}
}

// admit returns the value itself while there are fewer than most, else "other".
// What was admitted once stays: a counter that moved into "other" would fall.
func (c *collector) admit(of, value string, most int) string {
	set := c.seen[of]
	if set == nil {
		set = map[string]bool{}
		c.seen[of] = set
	}
	value = alerts.SafeLabel(value)
	if !set[value] {
		if len(set) >= most {
			return other
		}
		set[value] = true
	}
	return value
}

// sample is one value of a family.
type sample struct {
	f      *family
	labels []string
	value  float64
}

// scrape gathers the samples of one snapshot. Those with equal labels add.
type scrape struct {
	*collector
	values     map[string]*sample
	order      []string
	histograms []prometheus.Metric
}

func (x *scrape) put(f *family, v float64, labels ...string) {
	key := f.name + "\xff" + strings.Join(labels, "\xff")
	if s := x.values[key]; s != nil {
		if f.kind == prometheus.CounterValue {
			s.value += v
		}
		return
	}
	x.values[key] = &sample{f, labels, v}
	x.order = append(x.order, key)
}

func (x *scrape) count(f *family, n uint64, labels ...string) { x.put(f, float64(n), labels...) }

// known counts what may not be known: then there is no sample.
func (x *scrape) known(f *family, n *uint64, labels ...string) {
	if n != nil {
		x.count(f, *n, labels...)
	}
}

// time counts seconds. Where they are not known, or no time, there is no sample.
func (x *scrape) time(f *family, v aggregate.Figure, labels ...string) {
	if n, ok := v.Value(); ok {
		x.put(f, math.Max(0, n), labels...)
	}
}

// ratio exports a figure: null has no sample, unbounded is +Inf.
func (x *scrape) ratio(f *family, v aggregate.Figure, labels ...string) {
	if n, ok := v.Value(); ok {
		x.put(f, n, labels...)
	} else if v.Unbounded() {
		x.put(f, math.Inf(1), labels...)
	}
}

// histogram exports a distribution under fixed bounds. Its parts never fall.
func (x *scrape) histogram(f *family, d *Distribution, bounds []float64, labels ...string) {
	key := f.name + "\xff" + strings.Join(labels, "\xff")
	rise := func(part string, v float64) float64 {
		v = math.Max(v, x.floor[key+part])
		x.floor[key+part] = v
		return v
	}
	cumulative := make(map[float64]uint64, len(bounds))
	n, at := uint64(0), 0
	for _, bound := range bounds {
		for at < len(d.Buckets) && d.Buckets[at].Upper <= bound {
			n += d.Buckets[at].N
			at++
		}
		cumulative[bound] = uint64(rise(fmt.Sprint("\xff", bound), float64(n)))
	}
	count := uint64(rise("\xffcount", float64(max(d.Count, n))))
	sum := rise("\xffsum", math.Max(0, finite(d.Sum)))
	x.histograms = append(x.histograms, prometheus.MustNewConstHistogram(f.desc, count, sum, cumulative, labels...))
}

// finite keeps a sum that can be printed.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
