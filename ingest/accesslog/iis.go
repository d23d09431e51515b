package accesslog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// IIS writes the columns that its #Fields line names, separated by single blanks;
// blanks in values are "+". Config.Pattern is that line, with or without
// "#Fields:"; without one it is what IIS logs unless told otherwise. The time is
// the end, in whole seconds of UTC whatever the machine's zone, and time-taken
// the milliseconds until then.
//
// The columns may change within a file, and what a record says then depends on a line
// before it. Whoever reads a file in order calls Declare before each block of lines: from
// there on a #Fields line holds for the records after it, which are refused where it
// cannot be used. Without Declare a parser keeps nothing from one line to the next: a
// #Fields line that says the same is passed over, as are the other lines that begin with
// "#", and one that says otherwise is refused, as are the records after it, where their
// columns do not fit.
func (p *Parser) tokenizeIIS(line []byte) error {
	c := &p.iis
	if line[0] == '#' {
		rest, ok := bytes.CutPrefix(line, []byte(iisFields))
		switch {
		case !ok:
		case c.follows:
			if p.useIIS(string(rest)); c.names == nil {
				return RejectSyntax
			}
		case !p.sameFields(rest):
			return RejectSyntax
		}
		return RejectOther
	}
	if c.names == nil {
		return RejectSyntax // nobody knows what its columns are
	}
	rest, more := line, true
	var date, clock, stem, query, substatus []byte
	for i, name := range c.names {
		if !more {
			return RejectCut
		}
		n := bytes.IndexByte(rest, ' ')
		if more = n >= 0; !more {
			n = len(rest)
		}
		v := rest[:n]
		if rest = rest[n:]; more {
			rest = rest[1:]
		}
		switch name {
		case "date":
			date = v
		case "time":
			clock = v
		case "cs-uri-stem":
			stem = v
		case "cs-uri-query":
			query = v
		case "sc-substatus":
			substatus = v
		case "sc-status":
			if len(v) != 3 || !allDigits(v) {
				return RejectSyntax
			}
		case "time-taken", "sc-win32-status":
			if !allDigits(v) && !isDash(v) {
				return RejectSyntax
			}
		}
		p.putColumn(i, v)
	}
	if more {
		return RejectSyntax
	}
	if len(date) != len("2026-03-03") || len(clock) < len("10:15:42") || clock[2] != ':' {
		return RejectSyntax
	}
	stamp := append(p.grow(len(date)+len(clock)+2), date...)
	p.putMember(c.stamp, p.keep(append(append(append(stamp, 'T'), clock...), 'Z')))
	if len(query) != 0 && !isDash(query) {
		path := append(p.grow(len(stem)+len(query)+1), stem...)
		stem = p.keep(append(append(path, '?'), query...))
	}
	p.putMember(c.path, stem)
	c.substatus = substatus
	return nil
}

type iisState struct {
	iisColumns
	follows     bool                  // #Fields lines hold
	known       map[string]iisColumns // by what such a line says
	stamp, path *member
	substatus   []byte
}

// iisColumns are the columns of a log, in order; without names they are not known.
type iisColumns struct {
	names   []string
	columns []*member
}

const iisDefault = "date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken"

// iisNames are what IIS calls its columns. date and time, and the two parts of the
// path, are put together.
var iisNames = []alias{
	{fEnd, 0, "date+time"}, {fPath, 0, "cs-uri-stem+cs-uri-query"}, {fMethod, 0, "cs-method"}, {fPeer, 0, "c-ip"},
	{fAuthority, 0, "cs-host"}, {fStatus, 0, "sc-status"}, {fBytesSent, 0, "sc-bytes"}, {fDuration, unitMillis, "time-taken"},
	{fTermination, 0, "sc-win32-status"},
}

func (p *Parser) bindIIS() (err error) {
	c := &p.iis
	c.stamp = p.root.lookup([]byte("date+time"))
	c.path = p.root.lookup([]byte("cs-uri-stem+cs-uri-query"))
	if c.iisColumns, err = p.iisColumnsOf(iisPattern(p.cfg.Pattern)); err != nil {
		return err
	}
	for name, log := range p.cfg.Fields {
		if p.cfg.Pattern == "" {
			break // the log's own head may say more
		}
		if !slices.Contains(c.names, log) && !slices.Contains(c.names, "cs("+log+")") {
			return fmt.Errorf("#Fields: nothing in it is called %q, which fields.%s names", log, name)
		}
	}
	p.columns = c.columns
	return nil
}

// iisPattern is what a pattern says of the columns, or else what IIS logs unless it is
// told otherwise.
func iisPattern(pattern string) string {
	text := strings.TrimPrefix(strings.TrimSpace(pattern), iisFields)
	if strings.TrimSpace(text) == "" {
		return iisDefault
	}
	return text
}

// iisColumnsOf finds who wants the columns that a #Fields line names.
func (p *Parser) iisColumnsOf(text string) (c iisColumns, err error) {
	c.names = strings.Fields(text)
	for _, need := range []string{"date", "time", "sc-status"} {
		if !slices.Contains(c.names, need) {
			return c, fmt.Errorf("#Fields: no %s: choose it among the fields that IIS logs", need)
		}
	}
	for i, name := range c.names {
		if slices.Index(c.names, name) != i {
			return c, fmt.Errorf("#Fields: %s is there twice", name)
		}
		m := &member{}
		lookup := []string{name}
		if header, ok := strings.CutPrefix(name, "cs("); ok {
			header = strings.TrimSuffix(header, ")")
			lookup = []string{name, header, "http_" + header}
		}
		for k, l := range lookup {
			var found *member
			switch {
			case k == 1 || name == "date" || name == "time":
				found = p.root.exact[l]
			default:
				found = p.root.lookup([]byte(l))
			}
			if found == nil {
				continue
			}
			for _, t := range found.targets {
				own := *t
				own.name = name
				m.bind(&own)
			}
		}
		c.columns = append(c.columns, m)
	}
	c.columns = append(c.columns, p.iis.stamp, p.iis.path)
	return c, nil
}

// Declare says what the lines that are read from now on were declared to hold: what the
// last line before them that begins as Declares says has behind that, or the empty text
// where there is no such line. Formats whose records do not depend on other lines ignore it.
func (p *Parser) Declare(pattern string) {
	if p == nil || p.format.name != "iis" { // a file of blanks has none
		return
	}
	p.iis.follows = true
	if pattern == "" {
		pattern = p.cfg.Pattern
	}
	p.useIIS(iisPattern(pattern))
}

// maxColumns bounds the #Fields lines of a log that are remembered.
const maxColumns = 64

// useIIS reads records by the columns of a #Fields line, or refuses them where it
// cannot be used.
func (p *Parser) useIIS(text string) {
	c := &p.iis
	columns, known := c.known[text]
	if !known {
		var err error
		if columns, err = p.iisColumnsOf(text); err != nil {
			columns = iisColumns{}
		}
		if len(c.known) >= maxColumns || c.known == nil {
			c.known = map[string]iisColumns{}
		}
		c.known[text] = columns
	}
	c.iisColumns, p.columns = columns, columns.columns
}

// Declares is how the lines of a format begin that say what the lines behind them hold;
// empty for a format without.
func Declares(format string) string {
	if format == "iis" {
		return iisFields
	}
	return ""
}

const iisFields = "#Fields:"

// sameFields says that a #Fields line names the columns that are known.
func (p *Parser) sameFields(line []byte) bool {
	for _, name := range p.iis.names {
		var word []byte
		if word, line = cutBlank(skipBlanks(line)); string(word) != name {
			return false
		}
	}
	return len(bytes.TrimSpace(line)) == 0
}

// HeadPattern is the pattern that a source of the format declares of itself where
// it begins: the last #Fields line before the first record of IIS. It is empty
// where there is none.
func HeadPattern(format string, sample []byte) string {
	found := ""
	if format != "iis" {
		return found
	}
	sample = bytes.TrimPrefix(sample, []byte("\xEF\xBB\xBF"))
	for len(sample) > 0 && sample[0] == '#' {
		line, rest, whole := bytes.Cut(sample, []byte("\n"))
		if fields, ok := bytes.CutPrefix(line, []byte(iisFields)); ok && whole {
			found = string(bytes.TrimSpace(fields))
		}
		sample = rest
	}
	return found
}

// iisDeparture reads what a record of IIS's can show. Win32 status 64 says that
// the connection broke, while the answer was sent or after all of it was; 995,
// and 64 with 500.19, that an operation on it was given up. Neither says what
// reached the caller, and a record without them says nothing.
func (p *Parser) iisDeparture(e *Entry) {
	if e.Status >= 200 && e.Status < 400 {
		e.Work = WorkYes
	}
	switch string(p.raw.val(fTermination)) {
	case "64":
		e.Gone, e.Departure = GoneLikely, UnknownPoint
		if e.Status == 500 && string(p.iis.substatus) == "19" {
			e.Notes |= NoteLowConfidence
			e.Work = WorkUnknown
		}
	case "995":
		e.Gone, e.Departure, e.Work = GoneLikely, UnknownPoint, WorkUnknown
		e.Notes |= NoteLowConfidence
	}
	e.Visible = e.Gone >= GoneLikely
}
