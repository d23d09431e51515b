package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Every figure of a measure, one pass over the arrivals each.

// extent is what one measure speaks of.
type extent struct {
	in       func(*fate) bool // of the whole log
	peer     bool
	from, to int64 // ticks
	route    string
	windowed bool
	step     int64
}

func distinctOf(l []*fate, of func(*fate) string) int {
	m := map[string]bool{}
	for _, f := range l {
		if s := of(f); s != "" {
			m[s] = true
		}
	}
	return len(m)
}

func countOf(l []*fate, is func(*fate) bool) int {
	n := 0
	for _, f := range l {
		if is(f) {
			n++
		}
	}
	return n
}

// secondsOf is the time of some of them, which nobody knows where the log tells that of none.
func secondsOf(l []*fate, of func(*fate) bool) any {
	var ms int64
	timed, untimed := 0, 0
	for _, f := range l {
		switch {
		case !of(f):
		case f.untimed:
			untimed++
		default:
			timed++
			ms += f.dur
		}
	}
	if untimed > 0 && timed == 0 {
		return nil
	}
	return float64(ms) / 1000
}

// timeless says that the log gives the time of none of them.
func timeless(l []*fate) bool {
	return len(l) > 0 && !slices.ContainsFunc(l, func(f *fate) bool { return !f.untimed })
}

func quotient(a, b int) any {
	if b == 0 {
		return nil
	}
	return float64(a) / float64(b)
}

func boundOf(a, b int) any {
	if b == 0 {
		return "unbounded"
	}
	return float64(a) / float64(b)
}

// rank is the nearest-rank quantile.
func nearestRank[T cmp.Ordered](l []T, q float64) T {
	l = slices.Clone(l)
	slices.Sort(l)
	return l[max(int(math.Ceil(q*float64(len(l))))-1, 0)]
}

// about is a quantile of a histogram with buckets: 0.5 % and 1 ms are allowed.
type about float64

func quantilesOf(l []int, bucket func(int) int) map[string]any {
	m := map[string]any{"p50": nil, "p90": nil, "p99": nil, "max": nil}
	if len(l) > 0 {
		m["p50"], m["p90"], m["p99"] = bucket(nearestRank(l, .5)), bucket(nearestRank(l, .9)), bucket(nearestRank(l, .99))
		m["max"] = slices.Max(l)
	}
	return m
}

// ordinalBucket is 1…32, then 64 = 33…64 and so on.
func ordinalBucket(k int) int {
	if k <= 32 {
		return k
	}
	b := 64
	for b < k {
		b *= 2
	}
	return b
}

// measure is every field of one measure.
func (t *truth) measure(sc extent) map[string]any {
	s := t.s
	var group, everywhere []*fate
	for _, f := range t.all {
		if sc.in(f) {
			everywhere = append(everywhere, f)
			if f.tick >= sc.from && f.tick < sc.to {
				group = append(group, f)
			}
		}
	}
	pick := func(question, peer func(*fate) string) func(*fate) string {
		if sc.peer {
			return peer
		}
		return question
	}
	attributable := func(f *fate) bool { return f.question != "" }
	verified := func(f *fate) bool { return f.class == "verified" }
	n := len(group)
	a, v := countOf(group, attributable), countOf(group, verified)
	u, c := n-a, a-v
	episode := pick(func(f *fate) string { return f.ep }, func(f *fate) string { return f.peerEp })
	d := distinctOf(group, episode)
	var proven []*fate
	for _, f := range group {
		if verified(f) {
			proven = append(proven, f)
		}
	}
	dv := distinctOf(proven, episode)
	o := countOf(group, func(f *fate) bool { return attributable(f) && !f.repeat })
	rep := countOf(group, func(f *fate) bool { return f.repeat })
	reopened := countOf(group, func(f *fate) bool { return f.reopened })

	reasons := map[string]any{"total": u}
	for _, f := range group {
		if !attributable(f) {
			x, _ := reasons[f.class].(int)
			reasons[f.class] = x + 1
		}
	}

	// questions are counted at their last arrival
	var ks, fans []int
	var spans []int64
	hist := map[string]any{}
	for _, f := range group {
		k, last, first := f.k, f.last, f.epFirst
		if sc.peer {
			k, last, first = f.peerK, f.peerLast, f.peerFirst
		}
		if attributable(f) && last {
			ks = append(ks, k)
			spans = append(spans, f.from-first)
			b := strconv.Itoa(ordinalBucket(k))
			x, _ := hist[b].(int)
			hist[b] = x + 1
		}
	}
	per := quantilesOf(ks, ordinalBucket)
	per["histogram"] = hist
	if sc.windowed {
		spans = t.spans
	}
	short := len(spans) > 0 && (sc.to-sc.from)*1000 < nearestRank(spans, .99)

	// a key's fan-out is counted at the last arrival of its life: those that are
	// never more than a horizon apart
	lives := map[string][]*fate{}
	for _, f := range everywhere {
		if attributable(f) {
			key := f.dep + "\n" + f.originator + "\n" + f.fanKey()
			lives[key] = append(lives[key], f)
		}
	}
	for _, l := range lives {
		m := map[string]bool{}
		for i, f := range l {
			m[f.question] = true
			if i == len(l)-1 || l[i+1].from-f.from > s.horizon {
				if f.tick >= sc.from && f.tick < sc.to {
					fans = append(fans, len(m))
				}
				clear(m)
			}
		}
	}
	if sc.peer {
		fans = nil // a key is not a peer's
	}
	fq := quantilesOf(fans, ordinalBucket)
	fanOut := map[string]any{"p50": fq["p50"], "max": fq["max"]}

	hops := map[string]any{"adjacent": nil, "above": nil, "origin": nil, "between": nil, "logger": nil, "reason": nil,
		"same_peer": quotient(countOf(group, func(f *fate) bool { return f.repeat && f.prev.peer == f.peer }), rep)}
	numbers := countOf(group, func(f *fate) bool { return f.attempt > 0 })
	ones := countOf(group, func(f *fate) bool { return f.attempt == 1 })
	if s.scope == "hop" {
		if rep > 0 && numbers > 0 && ones == numbers && !s.trusted {
			hops["reason"] = "one_attempt_or_rewritten"
		} else if numbers == 0 {
			hops["reason"] = "no_attempt_numbers"
		} else {
			hops["adjacent"] = quotient(numbers, ones)
			hops["above"] = quotient(countOf(group, func(f *fate) bool { return attributable(f) && f.attempt == 1 }),
				distinctOf(group, pick(func(f *fate) string { return f.hopEp }, func(f *fate) string { return f.hopPeerEp })))
		}
	} else {
		hops["reason"] = "no_attempt_numbers" // none of a hop
		pairs := distinctOf(group, pick(func(f *fate) string { return f.numEp }, func(f *fate) string { return f.numPeerEp }))
		some := distinctOf(group, pick(func(f *fate) string { return f.anyEp }, func(f *fate) string { return f.anyPeerEp }))
		hops["origin"] = quotient(pairs, some)
		hops["between"] = quotient(countOf(group, func(f *fate) bool { return attributable(f) && f.attempt > 0 }), pairs)
	}

	after := map[string]any{"gone": 0, "5xx": 0, "429_503": 0, "success": 0, "in_flight": 0}
	for _, f := range group {
		if f.repeat {
			if k := f.prev.got(f.from); k != "" {
				after[k] = after[k].(int) + 1
			}
		}
	}

	gaps := map[string]any{"p50": nil, "p90": nil, "p99": nil}
	var gl []int64
	for _, f := range group {
		if f.repeat && !f.untimed && !f.prev.untimed {
			gl = append(gl, f.gap)
		}
	}
	if len(gl) > 0 {
		for k, q := range map[string]float64{"p50": .5, "p90": .9, "p99": .99} {
			gaps[k] = about(float64(nearestRank(gl, q)) / 1000)
		}
	}

	// returns are charged to the peer that was asked, in the tick of the return
	var asks any
	asked, returned, early := countOf(group, func(f *fate) bool { return f.retryAfter >= 0 }), 0, 0
	for _, b := range t.all {
		if b.tick < sc.from || b.tick >= sc.to {
			continue
		}
		for _, x := range b.asker {
			if sc.in(x) {
				returned++
				if b.from < x.over+int64(x.retryAfter)*1000 {
					early++
				}
			}
		}
	}
	shownAsks := map[string]any{"asked": asked, "returned": returned, "early": early}
	if returned == 0 && timeless(group) {
		shownAsks["returned"], shownAsks["early"] = nil, nil
	}
	if s.format != "json" || asked > 0 || returned > 0 { // canonical records may leave the field out
		asks = shownAsks
	}

	failFirst := countOf(group, func(f *fate) bool { return attributable(f) && f.firstFail })
	failFirsts := distinctOf(group, pick(func(f *fate) string { return f.failEp }, func(f *fate) string { return f.failPeerEp }))
	return map[string]any{
		"arrivals": n, "attributable": a, "verified": v, "claimed": c, "unattributable": reasons,
		"coverage": quotient(a, n), "read_share": quotient(t.read(), t.read()+t.garbage),
		"questions": d, "originals": o, "repeats": rep,
		"orphan_attempts": countOf(group, func(f *fate) bool { return attributable(f) && !f.repeat && f.attempt >= 2 }),
		"reopened":        reopened, "load_factor": quotient(a, o), "amplification": quotient(a, d), "window_short": short,
		"amplification_low": boundOf(a+u, d+u), "amplification_high": boundOf(a+u, d-reopened),
		"strict_low": boundOf(a+u, dv+c+u), "strict_high": boundOf(a+u, dv-reopened),
		"amplification_if_failed": quotient(failFirst, failFirsts),
		"per_question":            per, "fan_out": fanOut, "hops": hops, "repeat_after": after,
		"attempt_budget": map[string]any{
			"overspent":       countOf(group, func(f *fate) bool { return f.overspent }),
			"not_decremented": countOf(group, func(f *fate) bool { return f.kept }),
			"increased":       countOf(group, func(f *fate) bool { return f.rose }),
		},
		"retry_gap": gaps, "retry_after": asks,
		"stale_arrivals":     countOf(group, func(f *fate) bool { return f.stale }),
		"questions_answered": countOf(group, func(f *fate) bool { return f.answered }),
		"double_success":     countOf(group, func(f *fate) bool { return f.again && !idempotent(f.method) }),
		"responses":          t.responsesOf(group, sc.to-sc.from),
		"budget":             t.budget(everywhere, sc),
	}
}

func (t *truth) read() int { return len(t.all) + t.duplicates + t.ignored }

// worst is what a report says of each question's longest episode, by arrivals.
func (t *truth) worst() (rows map[string]int, longest map[string]int) {
	type episode struct {
		first, last *fate
		n           int
	}
	eps := map[string]*episode{}
	peers := map[string][]string{}
	for _, f := range t.all {
		if f.question == "" {
			continue
		}
		if eps[f.ep] == nil {
			eps[f.ep] = &episode{first: f}
		}
		eps[f.ep].last = f
		eps[f.ep].n++
		if !slices.Contains(peers[f.ep], f.peer) {
			peers[f.ep] = append(peers[f.ep], f.peer)
		}
	}
	rows, longest = map[string]int{}, map[string]int{}
	for _, e := range eps {
		p := peers[e.first.ep]
		slices.Sort(p)
		rows[worstRow(e.first.dep, e.first.route, e.first.originator, stampOf(e.first.from), stampOf(e.last.from), p, e.n)] = e.n
		longest[e.first.question] = max(longest[e.first.question], e.n)
	}
	return rows, longest
}

func worstRow(a ...any) string { return fmt.Sprintln(a...) }

func idempotent(method string) bool {
	return slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}, method)
}

func (f *fate) fanKey() string {
	if f.class == "verified" {
		return f.key
	}
	return f.claim
}

// got is what a repeat that starts at ms had got from f.
func (f *fate) got(ms int64) string {
	switch {
	case f.over > ms:
		return "in_flight"
	case f.gone != "":
		return "gone"
	case f.status == 429 || f.status == 503 || f.grpc == 14 || f.grpc == 8:
		return "429_503"
	case f.status >= 500 || f.grpc == 13:
		return "5xx"
	case f.success:
		return "success"
	}
	return ""
}

func (t *truth) responsesOf(group []*fate, seconds int64) map[string]any {
	refused := func(f *fate) bool { return f.local || slices.Contains(t.s.refused, f.status) }
	answer := func(f *fate) bool { return !refused(f) && f.gone != goneBefore }
	kind := func(k string) int { return countOf(group, func(f *fate) bool { return f.gone == k }) }
	dead := func(f *fate) bool { return f.gone != "" || f.expired }
	answers := countOf(group, answer)
	var expired any = countOf(group, func(f *fate) bool { return f.expired })
	deadShare := quotient(countOf(group, func(f *fate) bool { return answer(f) && dead(f) }), answers)
	deadSeconds := secondsOf(group, dead)
	unjudged := countOf(group, func(f *fate) bool { return f.unjudged })
	if unjudged > 0 && timeless(group) {
		expired, deadSeconds = nil, nil
		if deadShare == 0.0 {
			deadShare = nil
		}
	}
	return map[string]any{
		"total": len(group), "answers": answers, "refused": countOf(group, refused),
		"success":       countOf(group, func(f *fate) bool { return f.success }),
		"disconnected":  countOf(group, func(f *fate) bool { return f.gone != "" }),
		goneUndelivered: kind(goneUndelivered), goneDuring: kind(goneDuring), goneBefore: kind(goneBefore), goneUnknown: kind(goneUnknown),
		"visibility":         quotient(countOf(group, func(f *fate) bool { return !f.mute }), len(group)),
		"expired":            expired,
		"unjudged":           unjudged,
		"dead_share":         deadShare,
		"abandoned_share":    quotient(kind(goneBefore), len(group)),
		"dead_seconds":       deadSeconds,
		"busy_seconds":       secondsOf(group, func(*fate) bool { return true }),
		"repeat_seconds":     secondsOf(group, func(f *fate) bool { return f.repeat }),
		"untimed":            countOf(group, func(f *fate) bool { return f.untimed }),
		"goodput_per_second": float64(countOf(group, func(f *fate) bool { return f.success && !dead(f) })) / float64(seconds),
	}
}

// undiscriminated routes have one path, without an id in it, and nothing else to
// tell calls apart.
func (t *truth) undiscriminated(sc extent) bool {
	if sc.route == "" || strings.Contains(sc.route, "{id}") {
		return false
	}
	paths := map[string]bool{}
	for _, f := range t.all {
		if sc.in(f) {
			p, _, _ := strings.Cut(f.path, "?")
			paths[p] = true
		}
	}
	return len(paths) == 1
}

// budget slides [e − window, e) over log time, second by second.
func (t *truth) budget(group []*fate, sc extent) map[string]any {
	b := t.s.budget
	ratio, floor := b.ratio, b.floor
	if r, ok := b.routes[sc.route]; ok && sc.route != "" {
		ratio, floor = r, 0
	}
	m := map[string]any{"model": "ratio", "allowance": nil, "spent": nil, "consumed": nil, "state": nil, "peak_consumed": nil, "exhausted_at": nil}
	type second struct{ n, o, spent, verified int }
	seconds := map[int64]second{}
	for _, f := range group {
		x := seconds[f.sec]
		x.n++
		switch {
		case f.repeat:
			x.spent++
		case f.question != "":
			x.o++
		}
		if f.class == "verified" {
			x.verified++
		}
		seconds[f.sec] = x
	}
	for e := t.from + b.window; e <= t.lastLog+1; e++ {
		if sc.windowed && (e-1)/sc.step != sc.from/sc.step {
			continue
		}
		var n, o, spent, verified int
		for sec := e - b.window; sec < e; sec++ {
			x := seconds[sec]
			n, o, spent, verified = n+x.n, o+x.o, spent+x.spent, verified+x.verified
		}
		if n < b.minArrivals {
			continue
		}
		allowance := ratio*float64(o) + float64(floor*int(b.window)*b.clients)
		var consumed float64
		switch {
		case allowance > 0:
			consumed = float64(spent) / allowance
		case spent > 0:
			continue // null
		}
		if consumed >= 1 && m["exhausted_at"] == nil {
			m["exhausted_at"] = time.Unix(e, 0).UTC().Format(time.RFC3339)
		}
		if p, ok := m["peak_consumed"].(float64); ok && consumed <= p {
			continue
		}
		m["allowance"], m["spent"], m["consumed"], m["peak_consumed"] = allowance, spent, consumed, consumed
		switch {
		case float64(verified) < b.coverageFloor*float64(n):
			m["state"] = "blind"
		case consumed >= 1:
			m["state"] = "exhausted"
		case consumed >= b.low:
			m["state"] = "low"
		default:
			m["state"] = "ok"
		}
	}
	return m
}
