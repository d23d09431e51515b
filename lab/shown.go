package lab

// sight is what a format leaves out of what happens; the zero value nothing. Formats
// that are not in sights have a place for all of it.
type sight struct {
	// without is what a reader cannot know, in words.
	without []string
	// anonymous: no header is in a line, and so no key, attempt, budget or Retry-After.
	anonymous bool
	// coarse: stamps are whole seconds, so that neither the order of a question's arrivals
	// nor the delays between them are known.
	coarse bool
	// leaves makes of a fact what is left of it in its line; nil: all.
	leaves func(*fact)
	// proves says whether such a line would have shown a departure; nil: each would.
	proves func(*fact) bool
}

// What is left of departures: those that a line shows prove themselves, and a line
// without one proves nothing.
func showsItself(f *fact) bool { return f.departure != stays }

// sights are those of the formats that lack something, whoever reads them. Each is what
// the logger was measured or is documented to write.
var sights = map[string]sight{
	// CD is a departure while the answer was sent; whether any of it had left is not said.
	"haproxy": {without: []string{"whether any of the answer had been sent to who left while it was"}, leaves: func(f *fact) {
		if f.departure == undelivered {
			f.departure = during
		}
	}},
	// The callers here reset their connections when they leave, which %X shows.
	// A 503 or 504 that nobody got may be httpd's own, and is read as such.
	"apache": {without: []string{"that who did not leave has stayed: callers who close in the ordinary way, while httpd waits, are not in the log", "whose a 503 or 504 was that reached nobody"},
		proves: showsItself, leaves: func(f *fact) {
			if f.departure == undelivered && (f.status == 503 || f.status == 504) {
				f.departure = before
			}
		}},
	"iis": {without: []string{"when a caller left, before the answer or later", "that who did not leave has stayed", "times below a second"},
		coarse: true, proves: showsItself, leaves: func(f *fact) {
			if f.departure != stays {
				f.departure = unplaced
			}
		}},
	"alb": {without: []string{"keys, attempts and Retry-After", "departures during the answer", "that who did not leave has stayed"}, anonymous: true, proves: showsItself, leaves: func(f *fact) {
		switch f.departure {
		case undelivered:
			f.status = 460
		case during:
			f.departure = stays
		}
	}},
	"traefik-clf": {without: []string{"keys, attempts and Retry-After", "departures but those before the answer", "that who did not leave has stayed", "times below a second"},
		anonymous: true, proves: showsItself, leaves: func(f *fact) {
			if f.departure != before {
				f.departure = stays
			}
		}},
	"linkerd-json": {without: []string{"keys, attempts and Retry-After", "departures"}, anonymous: true,
		proves: func(*fact) bool { return false }, leaves: func(f *fact) { f.departure = stays }},
}

// Shown is what a log can show of what happened, where its format lacks something: the
// counts of the arrivals as they stand in its lines.
type Shown struct {
	// Without is what a reader of the log cannot know.
	Without []string `json:"without"`
	// Coarse says that the order and the delays of a question's arrivals are among it, and
	// that what rests on them is not to be compared.
	Coarse  bool    `json:"coarse,omitempty"`
	Total   *Counts `json:"total"`
	Targets []Part  `json:"targets"`
}

// Without says what a reader of a log in a format cannot know of what happens; nil of
// one that has a place for all.
func Without(format string) []string { return sights[format].without }

// shows counts a question's arrivals once more, as they stand in their lines.
func (b *book) shows(m *model, q *question) {
	if b.shown == nil {
		return
	}
	b.seen = append(b.seen[:0], q.facts...)
	for i := range b.seen {
		f := &b.seen[i]
		if b.sight.leaves != nil {
			b.sight.leaves(f)
		}
		if b.sight.anonymous {
			f.key, f.attempt, f.carried, f.retryAfter = keyDropped, 0, -1, 0
		}
	}
	c := b.shown[m.clients[q.client].route]
	b.tally(m, q, b.seen, func(*fact) *Counts { return c })
	if b.sight.proves == nil {
		return
	}
	for i := range b.seen {
		if !b.sight.proves(&b.seen[i]) {
			c.Responses.visible--
		}
	}
}

// view is the truth as the log can show it, nil if that is all of it.
func (m *model) view() *Shown {
	if m.book.shown == nil {
		return nil
	}
	s := &Shown{Without: m.book.sight.without, Coarse: m.book.sight.coarse}
	s.Total, s.Targets = m.parts(m.book.shown)
	return s
}
