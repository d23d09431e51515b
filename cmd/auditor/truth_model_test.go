package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A naive model of the report: every figure from the facts, by the words of its
// definition, with whole histories in memory and a pass over them per figure. It
// shares no code with the program.

// fate is what the model knows of one arrival.
type fate struct {
	seen
	late bool
	from int64 // effective start: clamped to log time − (lateness − 10 s)
	tick int64 // second of it
	over int64 // when it had ended
	sec  int64 // second of the log time

	class      string // verified, claimed or the reason
	originator string
	question   string // "" is unattributable
	proven     bool   // verified but for being late
	gap        int64  // to the previous arrival of the question, if it is a repeat
	repeat     bool
	prev       *fate
	k, peerK   int
	failed     bool // outcome of its own
	success    bool
	expired    bool
	unjudged   bool // there is a deadline, and no time to judge it by
	stale      bool
	reopened   bool
	firstFail  bool
	answered   bool // first success of its question in the look-back
	again      bool // a further success
	overspent  bool
	kept, rose bool // carried budget against the same peer's previous arrival

	// episodes: an arrival opens a new one when its predecessor in the list is
	// more than a horizon away; last is true at an episode's last arrival
	ep, peerEp         string
	epFirst            int64
	peerFirst          int64
	last, peerLast     bool
	hopEp, hopPeerEp   string
	numEp, numPeerEp   string
	anyEp, anyPeerEp   string
	failEp, failPeerEp string

	asker []*fate
}

// truth is a log as the model understands it.
type truth struct {
	s          *scenario
	all        []*fate
	from, to   int64 // ticks
	lastLog    int64 // second
	duplicates int
	ignored    int
	garbage    int
	late       int
	clamped    int
	spans      []int64 // last start − first start of every question
}

func (t *truth) lateness() int64 { return max(t.s.horizon, t.s.lateness) }

func startOrder(a, b *fate) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.end(), b.end()), cmp.Compare(a.line, b.line))
}

// understand derives everything that is a property of single arrivals. lines are
// in the order of the files.
func understand(s *scenario, lines []seen) *truth {
	t := &truth{s: s}
	known := map[string]bool{}
	watermark := map[int]int64{}
	for _, l := range lines {
		if l.garbage {
			t.garbage++
			continue
		}
		f := &fate{seen: l}
		mark, any := watermark[l.file]
		watermark[l.file] = max(mark, f.end())
		if !any {
			watermark[l.file] = f.end()
		}
		if l.healthcheck {
			t.ignored++
			continue
		}
		f.from = max(f.start, f.end()-(t.lateness()-10_000))
		f.tick, f.sec = f.from/1000, f.end()/1000
		f.over = f.end()
		f.late = any && f.tick*1000+t.lateness() <= mark
		again := known[l.line]
		known[l.line] = true
		if f.from != f.start && !again {
			t.clamped++
		}
		if again {
			t.duplicates++
			continue
		}
		if f.late {
			t.late++
		}
		t.all = append(t.all, f)
	}
	slices.SortFunc(t.all, startOrder)
	for i, f := range t.all {
		if i == 0 {
			t.from, t.to = f.tick, f.tick+1
		}
		t.from, t.to = min(t.from, f.tick), max(t.to, f.tick+1)
		t.lastLog = max(t.lastLog, f.sec)
		t.attribute(f)
		t.outcome(f)
	}
	questions := map[string][]*fate{}
	for _, f := range t.all {
		if f.question != "" {
			questions[f.question] = append(questions[f.question], f)
		}
	}
	for _, q := range questions {
		t.question(q)
		for _, f := range q {
			if f.last {
				t.spans = append(t.spans, f.from-f.epFirst)
			}
		}
	}
	return t
}

// attribute decides the class: the first accepted scheme whose field is there, and
// of the reasons the first that holds.
func (t *truth) attribute(f *fate) {
	s := t.s
	schemes := []string{"qk1"}
	if s.claimField != "" {
		schemes = []string{"qk1", s.claimField}
		if s.claimFirst {
			schemes = []string{s.claimField, "qk1"}
		}
	}
	f.class = "absent"
	id := ""
	for _, scheme := range schemes {
		if scheme == "qk1" && f.key != "" {
			id, f.class = "qk1 "+f.key, "verified"
			age := f.start - f.minted.at
			switch {
			case f.minted.verdict != "good":
				f.class = f.minted.verdict
			case age > s.lifetime:
				f.class = "expired"
			case -age > s.skew:
				f.class = "not_yet_valid"
			default:
				f.originator = f.minted.originator
			}
			break
		}
		if scheme != "qk1" && f.claim != "" {
			id, f.class, f.originator = scheme+" "+f.claim, "claimed", "claimed:"+s.claimName()
			if s.requireVerified {
				f.class = "unsigned"
			}
			break
		}
	}
	f.proven = f.class == "verified"
	if f.late && (f.class == "verified" || f.class == "claimed") {
		f.class = "late"
	}
	if f.class != "verified" && f.class != "claimed" {
		f.originator = ""
		return
	}
	path, _, _ := strings.Cut(f.path, "?")
	discriminator := path
	if s.item && f.route == "POST /holds/{id}" {
		discriminator = "item " + f.item
	}
	f.question = f.dep + "\n" + f.route + "\n" + id + "\n" + discriminator
}

func (t *truth) outcome(f *fate) {
	f.success = f.status >= 200 && f.status <= 399 && f.grpc <= 0
	f.failed = !f.success || f.gone != ""
	verified := f.class == "verified" || f.class == "late" && f.proven
	deadline := int64(-1) // from the Unix epoch
	own := t.s.deadlines[f.minted.originator]
	earlier := func(ms int64) {
		if deadline < 0 || ms < deadline {
			deadline = ms
		}
	}
	if f.timeout >= 0 {
		earlier(f.start + f.timeout)
	}
	if c := t.s.callerTimeout[f.peer]; c > 0 {
		earlier(f.start + c)
	}
	if verified && own > 0 {
		earlier(f.minted.at + own)
	}
	f.expired = f.gone == "" && !f.untimed && deadline >= 0 && f.end() > deadline
	f.unjudged = f.gone == "" && f.untimed && deadline >= 0
	f.stale = verified && own > 0 && f.start-f.minted.at > own
}

func (t *truth) question(q []*fate) {
	h := t.s.horizon
	for i, f := range q {
		f.k, f.peerK = 1, 1
		first, left := f, f.left
		for j := i - 1; j >= 0; j-- {
			e := q[j]
			if f.from-e.from > h {
				break
			}
			f.k++
			if e.peer == f.peer {
				f.peerK++
			}
			first, left = e, max(left, e.left)
			f.again = f.again || e.success
		}
		f.firstFail = first.failed
		f.answered = f.success && !f.again
		f.again = f.success && f.again
		f.overspent = left >= 0 && f.k > left+1
		if i > 0 && f.from-q[i-1].from <= h {
			f.prev, f.repeat, f.gap = q[i-1], true, f.from-q[i-1].from
		}
		f.reopened = !f.repeat && f.class == "verified" && f.start-f.minted.at > h
		for j := i - 1; j >= 0; j-- {
			if q[j].peer != f.peer {
				continue
			}
			if f.from-q[j].from <= h && f.left >= 0 && q[j].left >= 0 {
				f.kept, f.rose = f.left == q[j].left, f.left > q[j].left
			}
			break
		}
	}
	name := q[0].question
	chain := func(in func(*fate) bool, key func(*fate) string, set func(f *fate, ep string, first int64, last bool)) {
		lists := map[string][]*fate{}
		for _, f := range q {
			if in(f) {
				lists[key(f)] = append(lists[key(f)], f)
			}
		}
		for k, l := range lists {
			var first int64
			n := 0
			for i, f := range l {
				if i == 0 || f.from-l[i-1].from > h {
					first, n = f.from, n+1
				}
				last := i == len(l)-1 || l[i+1].from-f.from > h
				set(f, name+"\n"+k+"\n"+strconv.Itoa(n), first, last)
			}
		}
	}
	all := func(*fate) bool { return true }
	none := func(*fate) string { return "" }
	peer := func(f *fate) string { return f.peer }
	num := func(f *fate) string { return strconv.Itoa(f.attempt) }
	numPeer := func(f *fate) string { return strconv.Itoa(f.attempt) + " " + f.peer }
	one := func(f *fate) bool { return f.attempt == 1 }
	numbered := func(f *fate) bool { return f.attempt > 0 }
	fails := func(f *fate) bool { return f.firstFail }
	chain(all, none, func(f *fate, e string, first int64, last bool) { f.ep, f.epFirst, f.last = e, first, last })
	chain(all, peer, func(f *fate, e string, first int64, last bool) { f.peerEp, f.peerFirst, f.peerLast = e, first, last })
	chain(one, none, func(f *fate, e string, _ int64, _ bool) { f.hopEp = e })
	chain(one, peer, func(f *fate, e string, _ int64, _ bool) { f.hopPeerEp = e })
	chain(numbered, num, func(f *fate, e string, _ int64, _ bool) { f.numEp = e })
	chain(numbered, numPeer, func(f *fate, e string, _ int64, _ bool) { f.numPeerEp = e })
	chain(numbered, none, func(f *fate, e string, _ int64, _ bool) { f.anyEp = e })
	chain(numbered, peer, func(f *fate, e string, _ int64, _ bool) { f.anyPeerEp = e })
	chain(fails, none, func(f *fate, e string, _ int64, _ bool) { f.failEp = e })
	chain(fails, peer, func(f *fate, e string, _ int64, _ bool) { f.failPeerEp = e })

	// Retry-After: a repeat returns to its predecessor, once that has ended
	for _, b := range q {
		if b.repeat && b.prev.retryAfter >= 0 && b.from >= b.prev.over && !b.untimed { // else its start is not known
			b.asker = append(b.asker, b.prev)
		}
	}
}
