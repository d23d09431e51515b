package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"

	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
	"github.com/targetside/auditor/keys"
)

// What of a file check looks at.
const (
	sampleBytes   = 256 << 10
	sampleRecords = 1000
)

// sampled counts what the first records of a file show.
type sampled struct {
	records, unread int
	others          int // not about a request, and not meant to be
	tried           int // which list what the logger sent upstream
	key             int // something stands where an accepted key should be
	attributable    int // and it is one
	reasons         [keys.NumReasons]int
	visible         int // a departure would show
	numbered        int // an attempt number
	outbound        int // of the caller's side of a mesh
	timed           int
	coarse          int // of those, to a second at best
	lasting         int // with a duration
}

// sample says what the first lines of a file show, and warns of what none of
// them does. It reports whether there were any.
func (c *checker) sample(s *config.Source, at, name string, parser accesslog.Config) bool {
	shown := visible(name, 200, "")
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		c.remark("%s reads %s, which is no plain file and was not looked at", at, shown)
		return false // a pipe would be waited for, and emptied
	}
	f, err := ingest.Open(name, bytes.NewReader(nil))
	if err != nil {
		c.warn("%s.file.paths: %v", at, err)
		return false
	}
	defer f.Close()
	head, err := f.Peek(sampleBytes)
	if err != nil {
		c.warn("%s.file.paths: %v", at, err)
		return false
	}
	if len(bytes.TrimSpace(head)) == 0 {
		c.remark("%s reads %s: empty", at, shown)
		return false
	}
	if parser.Format == "auto" {
		if parser.Format, err = accesslog.Detect(head); err != nil {
			c.warn("%s.format: %s: %v", at, shown, err)
			return false
		}
	}
	parser.Pattern = cmp.Or(accesslog.HeadPattern(parser.Format, head), parser.Pattern)
	p, err := accesslog.New(parser)
	if err != nil {
		c.refuse("%s.%s: %v", at, wrongIn(parser), err)
		return false
	}
	p.Declare("")
	n := c.count(p, head)
	views, _ := accesslog.Shows(parser.Format)
	c.remark("%s reads %s as %s: of the first %d records %d hold a key and %d can be attributed, %d would show a departure, %d have an attempt number%s",
		at, shown, parser.Format, n.records, n.key, n.attributable, n.visible, n.numbered, unreadLines(n.unread))
	switch {
	case n.records == 0 && n.unread == 0:
		c.warn("%s.format: none of the first %d records of %s is about a request, so nothing would be counted", at, n.others, shown)
		return true
	case n.records == 0:
		likely := otherFormat(parser.Format, head)
		if likely != "" {
			likely = ": it looks like " + likely
		}
		c.warn("%s.format: none of the first lines of %s reads as %s%s", at, shown, parser.Format, likely)
		return true
	case n.unread > n.records:
		c.warn("%s.format: most of the first lines of %s do not read as %s", at, shown, parser.Format)
	}
	if n.timed == 0 {
		c.warn("%s.fields.time: no record of %s has a time: nothing in it can be counted", at, shown)
	}
	if n.coarse > 0 && n.coarse == n.timed {
		c.coarse(at, shown, views.Stamp)
	}
	if n.lasting == 0 && c.timed() {
		c.warn("%s.fields.duration: none of the first %d records of %s has a duration%s%s", at, n.records, shown, noTimes, howTo(views.Duration))
	}
	switch {
	case n.key == 0:
		c.warn("%s.fields: none of the first %d records of %s has a key that is accepted: every arrival would be unattributable%s", at, n.records, shown, howTo(views.Key))
	case n.attributable == 0:
		c.warn("%s.fields: no key in the first %d records of %s can be attributed, most are %s", at, n.records, shown, n.mostly())
	}
	if n.visible == 0 {
		c.warn("%s.fields: none of the first %d records of %s could show that the caller had left%s", at, n.records, shown, howTo(views.Departure))
	}
	if n.tried == 0 && s.Vantage == "in_front" {
		c.warn("%s.vantage: none of the first %d records of %s lists what the proxy sent upstream, so what it repeated itself is not counted (%s)", at, n.records, shown, loggedTries(parser.Format))
	}
	if n.outbound == n.records && s.Vantage != "in_front" {
		c.warn("%s.vantage: the first %d records of %s are all of the caller's side of a mesh (upstream_cluster outbound|…), and none of those is an arrival at the target: read the log of the target's sidecar, or say vantage: in_front for a gateway", at, n.records, shown)
	}
	return true
}

func unreadLines(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d lines could not be read", n)
}

func (c *checker) count(p *accesslog.Parser, head []byte) (n sampled) {
	var e accesslog.Entry
	checker := c.ring.NewChecker()
	join := new(accesslog.Joiner)
	joining := join.Needed(head)
	for len(head) > 0 && n.records+n.unread < sampleRecords {
		line, rest, whole := bytes.Cut(head, []byte("\n"))
		if head = rest; !whole && n.records > 0 {
			break // cut by the size of the sample, as likely as not
		}
		if line = bytes.TrimSuffix(line, []byte("\r")); len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if joining {
			full, complete := join.Line(line)
			if !complete {
				continue
			}
			line = full
		}
		for len(line) > 0 {
			more, err := p.Parse(line, &e)
			switch {
			case err == accesslog.RejectOther:
				n.others++
			case err != nil:
				n.unread++
			default:
				n.add(&e, checker.Attribute(e.Keys, e.KeySuspect, e.Start, e.Uncertainty))
			}
			if len(more) >= len(line) {
				break
			}
			line = more
		}
	}
	return n
}

func (n *sampled) add(e *accesslog.Entry, a keys.Attribution) {
	n.records++
	n.reasons[a.Reason]++
	if a.Reason != keys.Absent {
		n.key++
	}
	if a.Class != keys.Unattributable {
		n.attributable++
	}
	if e.Visible {
		n.visible++
	}
	if e.Outbound {
		n.outbound++
	}
	if e.Attempt > 0 {
		n.numbered++
	}
	if e.Tries != nil {
		n.tried++
	}
	if e.HasTime {
		n.timed++
		if e.Uncertainty >= accesslog.WholeSecond {
			n.coarse++
		}
	}
	if e.Duration != accesslog.Unknown {
		n.lasting++
	}
}

// mostly is the reason for which most keys cannot be attributed.
func (n *sampled) mostly() keys.Reason {
	most := keys.Malformed
	for r := range n.reasons {
		if r := keys.Reason(r); r > keys.Absent && n.reasons[r] > n.reasons[most] {
			most = r
		}
	}
	return most
}
