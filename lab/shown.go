package lab

// sight is what a format leaves out of what happens; the zero value nothing. Formats
// that are not in sights have a place for all of it.
type sight struct {
	// without is what a reader cannot know, in words.
	without []string
	// anonymous: no header is in a line, and so no key, attempt, budget or Retry-After.
	anonymous bool
	// seconds: stamps are whole seconds, so that neither the order of a question's arrivals
	// nor the delays between them are known, and thousands of lines have one stamp.
	seconds bool
	// mute: a line without a departure does not prove that nobody left.
	mute bool
	// leaves makes of a fact what is left of it in its line; nil: all.
	leaves func(*fact)
}

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
		mute: true, leaves: func(f *fact) {
			if f.departure == undelivered && (f.status == 503 || f.status == 504) {
				f.departure = before
			}
		}},
	"iis": {without: []string{"when a caller left, before the answer or later", "that who did not leave has stayed", "times below a second"},
		seconds: true, mute: true, leaves: func(f *fact) {
			if f.departure != stays {
				f.departure = unplaced
			}
		}},
	"alb": {without: []string{"keys, attempts and Retry-After", "departures during the answer", "that who did not leave has stayed"}, anonymous: true, mute: true, leaves: func(f *fact) {
		switch f.departure {
		case undelivered:
			f.status = 460
		case during:
			f.departure = stays
		}
	}},
	"traefik-clf": {without: []string{"keys, attempts and Retry-After", "departures but those before the answer", "that who did not leave has stayed", "times below a second"},
		anonymous: true, seconds: true, mute: true, leaves: func(f *fact) {
			if f.departure != before {
				f.departure = stays
			}
		}},
	"linkerd-json": {without: []string{"keys, attempts and Retry-After", "departures"}, anonymous: true,
		mute: true, leaves: func(f *fact) { f.departure = stays }},
}

// Shown is what a log can show of what happened, where its format lacks something: the
// counts of the arrivals as they stand in its lines.
type Shown struct {
	// Without is what a reader of the log cannot know.
	Without []string `json:"without"`
	// Coarse says that the order and the delays of a question's arrivals are among it, and
	// that what rests on them is not to be compared.
	Coarse bool `json:"coarse,omitempty"`
	// Seconds says that stamps are whole seconds.
	Seconds bool    `json:"seconds,omitempty"`
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
	s, c := &m.log.sight, b.shown[m.clients[q.client].route]
	b.seen = append(b.seen[:0], q.facts...)
	for i := range b.seen {
		f := &b.seen[i]
		if s.leaves != nil {
			s.leaves(f)
		}
		if s.anonymous {
			f.key, f.attempt, f.carried, f.retryAfter = keyDropped, 0, -1, 0
		}
		if s.mute && f.departure == stays {
			c.Responses.mute++
		}
	}
	b.tally(m, q, b.seen, func(*fact) *Counts { return c })
}

// view is the truth as the log can show it, nil if that is all of it.
func (m *model) view() *Shown {
	if m.book.shown == nil {
		return nil
	}
	sight := &m.log.sight
	s := &Shown{Without: sight.without, Coarse: sight.seconds && !sight.anonymous, Seconds: sight.seconds}
	s.Total, s.Targets = m.parts(m.book.shown)
	return s
}
