package accesslog

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
)

// A Parser reads records of one format. It is not safe for concurrent use.
type Parser struct {
	cfg    Config
	format *format
	root   *node
	wraps  *node // the names of envelopes alone

	raw        raw
	positional [maxFields]target
	columns    []*member // of the format, or of its pattern
	keys       []field   // of Config.Keys
	extra      []field   // of Config.Extra
	keyMask    [maxFields / 64]uint64

	scratch, spare   []byte // unescaped values of this record and of the last
	keyBuf, extraBuf [][]byte
	tries            []Try
	day              dayCache
	local            localCache
	marks            marks
	otlp             otlpState
	als              alsState
	unmarked         bool   // for tests: read without marks
	lenient          bool   // quotes inside strings are not escaped
	bare             bool   // the record has a value without quotes
	unended          bool   // the line that Line gave last has no line feed
	doubtful         bool   // so the record at hand may be cut
	unframed         []byte // the record without the frame that its format is sent in
	haproxy          haproxyState
	iis              iisState
	traefikAlone     bool     // no server was asked
	program          *program // of formats with a pattern
	apache           []apacheColumn
	protocol         []byte // of the record, as httpd logs it apart
	runs             bool   // the line may be one that is cut off, and the next
	looseKey         bool   // a key stands where blanks would move it
}

// vendor says whose conventions a record follows.
type vendor uint8

const (
	vendorAny vendor = iota
	vendorNginx
	vendorEnvoy
)

// format is one line of the table of formats.
type format struct {
	name     string
	vendor   vendor
	json     bool // records are JSON objects
	stampEnd bool // an unnamed stamp is the end
	duration unit // of a bare number without a unit in its name
	names    [][]alias
	headers  []string // how request headers are named, besides headerSpellings
	columns  []string // names of the columns, where the position tells them
	tokenize func(*Parser, []byte) error
	batch    func(p *Parser, line []byte, depth int, before Notes, e *Entry) (rest []byte, err error) // of lines that hold many records
	next     func(p *Parser, line []byte, e *Entry) (rest []byte, err error)                          // of what such a line had left over
	other    func(*Parser) bool                                                                       // what was read is no access record, and not meant to be one
	depart   func(*Parser, *Entry)                                                                    // how the logger shows tries and departures; nil: as the vendor does
	prepare  func(*Parser) error                                                                      // what New does last, where there is more to do
	runsIn   bool                                                                                     // a line that runs into the next is told by nginx's stamps
	pattern  bool                                                                                     // Config.Pattern means something
	spanned  bool                                                                                     // of fine stamps of start and end both are meant
}

var formats = []format{
	{name: "json", json: true, duration: unitMillis,
		names: [][]alias{jsonNames}},
	{name: "nginx-json", vendor: vendorNginx, json: true, stampEnd: true, duration: unitSeconds,
		names: [][]alias{nginxNames, nginxShared}},
	{name: "envoy-json", vendor: vendorEnvoy, json: true, duration: unitMillis,
		names: [][]alias{envoyNames}},
	{name: "istio-json", vendor: vendorEnvoy, json: true, duration: unitMillis,
		names: [][]alias{envoyNames}},
	{name: "logfmt", duration: unitMillis,
		names: [][]alias{jsonNames, nginxShared}, tokenize: (*Parser).tokenizeLogfmt},
	{name: "nginx-combined", vendor: vendorNginx, stampEnd: true, duration: unitSeconds, columns: nginxColumns,
		names: [][]alias{nginxNames, nginxShared}, tokenize: (*Parser).tokenizeNginxCombined, runsIn: true},
	{name: "ingress-nginx", vendor: vendorNginx, stampEnd: true, duration: unitSeconds, columns: nginxColumns,
		names: [][]alias{nginxNames, nginxShared}, tokenize: (*Parser).tokenizeIngressNginx, runsIn: true},
	{name: "envoy-text", vendor: vendorEnvoy, duration: unitMillis, columns: envoyColumns,
		names: [][]alias{envoyNames}, tokenize: (*Parser).tokenizeEnvoyText},
	{name: "istio-text", vendor: vendorEnvoy, duration: unitMillis, columns: envoyColumns,
		names: [][]alias{envoyNames}, tokenize: (*Parser).tokenizeEnvoyText},
	{name: "caddy-json", json: true, stampEnd: true, duration: unitSeconds,
		names: [][]alias{caddyNames}, other: (*Parser).caddyOther, depart: (*Parser).caddyDeparture},
	{name: "traefik-json", json: true, stampEnd: true, duration: unitNanos, headers: []string{"request_"},
		names: [][]alias{traefikNames}, other: (*Parser).traefikOther, depart: (*Parser).traefikDeparture},
	{name: "alb", stampEnd: true, duration: unitSeconds, columns: albColumns,
		names: [][]alias{albNames}, tokenize: (*Parser).tokenizeALB, depart: (*Parser).albDeparture},
	{name: "otlp-json", duration: unitMillis, columns: otlpColumns,
		headers: []string{"rpc.request.metadata.", "rpc.grpc.request.metadata."},
		names:   [][]alias{otlpNames, envoyNames}, batch: (*Parser).otlpBatch, next: (*Parser).otlpNext, depart: (*Parser).otlpDeparture},
	{name: "otlp-proto", duration: unitMillis, columns: otlpColumns,
		headers: []string{"rpc.request.metadata.", "rpc.grpc.request.metadata."},
		names:   [][]alias{otlpNames, envoyNames}, batch: (*Parser).otlpBatch, next: (*Parser).otlpNext, depart: (*Parser).otlpDeparture},
	{name: "envoy-als", vendor: vendorEnvoy, duration: unitMillis, columns: alsColumns,
		names: [][]alias{envoyNames}, batch: (*Parser).alsBatch, next: (*Parser).alsNext},
	{name: "linkerd-json", json: true, duration: unitNanos,
		names: [][]alias{linkerdNames}, depart: (*Parser).linkerdDeparture},
	{name: "haproxy", duration: unitMillis, columns: haproxyColumns, names: [][]alias{haproxyNames},
		tokenize: (*Parser).tokenizeHAProxy, depart: (*Parser).haproxyDeparture, prepare: (*Parser).bindHAProxy},
	{name: "apache", duration: unitMillis, spanned: true, names: [][]alias{apacheNames},
		tokenize: (*Parser).tokenizeApache, depart: (*Parser).apacheDeparture, prepare: (*Parser).compileApache, pattern: true},
	{name: "traefik-clf", duration: unitMillis, columns: traefikCLFColumns, names: [][]alias{traefikCLFNames},
		tokenize: (*Parser).tokenizeTraefikCLF, depart: (*Parser).traefikCLFDeparture},
	{name: "iis", stampEnd: true, duration: unitMillis, names: [][]alias{iisNames},
		tokenize: (*Parser).tokenizeIIS, depart: (*Parser).iisDeparture, prepare: (*Parser).bindIIS, pattern: true},
	{name: "pattern", duration: unitMillis, names: [][]alias{jsonNames, nginxShared},
		tokenize: (*Parser).tokenizePattern, prepare: (*Parser).compilePattern, pattern: true},
}

// Formats lists the formats that New knows.
func Formats() []string {
	names := make([]string, len(formats))
	for i := range formats {
		names[i] = formats[i].name
	}
	return names
}

// canonicalUnits are the canonical spellings of duration that carry a unit.
var canonicalUnits = map[string]unit{
	"duration_s": unitSeconds, "duration_ms": unitMillis, "duration_us": unitMicros, "duration_ns": unitNanos,
}

// New prepares a parser. An unknown format and an unknown canonical name in
// c.Fields are errors that name the nearest known one.
func New(c Config) (*Parser, error) {
	p := &Parser{cfg: c, root: newNode()}
	for i := range formats {
		if formats[i].name == c.Format {
			p.format = &formats[i]
		}
	}
	if p.format == nil {
		return nil, fmt.Errorf("unknown format %q, did you mean %q? known are %s",
			c.Format, nearest(c.Format, Formats()), strings.Join(Formats(), ", "))
	}
	for f := range p.positional {
		p.positional[f].f = field(f)
		if f < int(fieldCount) {
			p.positional[f].name = fieldNames[f]
		}
	}
	if err := p.bindFields(); err != nil {
		return nil, err
	}
	p.bindUsual()
	var err error
	if p.keys, err = p.bindKeys(c.Keys); err != nil {
		return nil, err
	}
	if p.extra, err = p.bindExtra(c.Extra); err != nil {
		return nil, err
	}
	for _, name := range p.format.columns {
		p.columns = append(p.columns, p.root.lookup([]byte(name)))
	}
	for _, f := range p.keys {
		p.keyMask[f>>6] |= 1 << (f & 63)
	}
	p.otlp.whole.child = p.root
	p.keyBuf = make([][]byte, len(p.keys))
	p.extraBuf = make([][]byte, len(p.extra))
	if c.Pattern != "" && !p.format.pattern {
		return nil, fmt.Errorf("format %s has no pattern: leave it out, or name the format that it is of", c.Format)
	}
	if p.format.prepare != nil {
		if err := p.format.prepare(p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// configured lists the log names that the configuration asks for.
func (p *Parser) configured() []string {
	names := append(append([]string{}, p.cfg.Keys...), p.cfg.Extra...)
	for _, name := range p.cfg.Fields {
		names = append(names, name)
	}
	return names
}

// bindFields binds the configured names of canonical fields, ahead of all usual
// ones.
func (p *Parser) bindFields() error {
	known := map[string]field{}
	for f, name := range fieldNames[:fMessage] {
		known[name] = field(f)
	}
	names := make([]string, 0, len(p.cfg.Fields))
	for name := range p.cfg.Fields {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		log := p.cfg.Fields[name]
		if log == "" {
			return fmt.Errorf("map field %q: name the log's field", name)
		}
		u := canonicalUnits[name]
		f, ok := known[normal(name)]
		if u != unitDefault {
			f, ok = fDuration, true
		}
		if !ok {
			var all []string
			for n := range known {
				all = append(all, n)
			}
			sort.Strings(all)
			return fmt.Errorf("unknown field %q, did you mean %q?", name, nearest(name, all))
		}
		if u == unitDefault {
			u = p.unitOfName(f, log)
		}
		p.root.add(log, &target{name: log, f: f, unit: u}, true)
	}
	return nil
}

// unitOfName reads the unit from the end of a log field's name, or from what the
// format usually means by it.
func (p *Parser) unitOfName(f field, log string) unit {
	n := normal(log)
	for _, list := range append(p.format.names, anyNames) {
		for _, a := range list {
			for _, name := range strings.Fields(a.names) {
				if a.f == f && normal(name) == n && a.unit != unitDefault {
					return a.unit
				}
			}
		}
	}
	for suffix, u := range map[string]unit{"_ms": unitMillis, "_us": unitMicros, "_ns": unitNanos,
		"_s": unitSeconds, ".ms": unitMillis, "_seconds": unitSeconds, "_millis": unitMillis} {
		if strings.HasSuffix(n, suffix) {
			return u
		}
	}
	return unitDefault
}

// bindUsual binds the names that the format knows: the canonical ones first, for
// every format, then the format's, then the general ones.
func (p *Parser) bindUsual() {
	var rank [fieldCount]uint8
	add := func(a alias, name string) {
		if rank[a.f] < 255 {
			rank[a.f]++
		}
		p.root.add(name, &target{name: name, f: a.f, rank: rank[a.f], unit: a.unit}, false)
	}
	each := func(list []alias) {
		for _, a := range list {
			for _, name := range strings.Fields(a.names) {
				add(a, name)
			}
		}
	}
	for _, a := range anyNames {
		if a.f == fTime && p.format.vendor == vendorNginx {
			continue // nginx has finer stamps than the one usually called time
		}
		if name := strings.Fields(a.names)[0]; name == fieldNames[a.f] || canonicalUnits[name] != unitDefault {
			add(a, name)
		}
	}
	for _, a := range headerNames {
		add(a, strings.Fields(a.names)[0])
	}
	for _, list := range p.format.names {
		each(list)
	}
	each(anyNames)
	for _, a := range headerNames {
		for _, h := range strings.Fields(a.names) {
			for _, name := range p.headerSpellings(h) {
				add(a, name)
			}
		}
	}
	for _, a := range responseHeaderNames {
		for _, name := range responseSpellings(a.names) {
			add(a, name)
		}
	}
	each(wrapNames)
	p.wraps = newNode()
	for i, a := range wrapNames {
		p.wraps.add(a.names, &target{name: a.names, f: a.f, rank: uint8(i)}, false)
	}
}

// bindKeys finds or makes the field of every key. A canonical name is that
// field; any other is a log field, or a header in one of its usual spellings.
func (p *Parser) bindKeys(names []string) ([]field, error) {
	var out []field
	for _, name := range names {
		if f, ok := canonicalField(normal(name)); ok {
			out = append(out, f)
			continue
		}
		f, err := p.dynamic(name)
		if err != nil {
			return nil, err
		}
		for i, s := range p.headerSpellings(normal(name)) {
			p.root.add(s, &target{name: s, f: f, rank: uint8(i + 1)}, false)
		}
		out = append(out, f)
	}
	return out, nil
}

// headerSpellings lists how the format names the request header h.
func (p *Parser) headerSpellings(h string) []string {
	names := headerSpellings(h)
	for _, prefix := range p.format.headers {
		names = append(names, prefix+h)
	}
	return names
}

func (p *Parser) bindExtra(names []string) ([]field, error) {
	var out []field
	for _, name := range names {
		f, err := p.dynamic(name)
		if err != nil {
			return nil, err
		}
		if c, ok := canonicalField(normal(name)); ok && !p.format.json {
			f = c // the position may be what names it
		}
		out = append(out, f)
	}
	return out, nil
}

func canonicalField(name string) (field, bool) {
	for f := field(0); f <= fArrivalID; f++ {
		if fieldNames[f] == name {
			return f, true
		}
	}
	return 0, false
}

// dynamic is the field of one log name.
func (p *Parser) dynamic(name string) (field, error) {
	for f := int(fieldCount); f < maxFields; f++ {
		switch p.positional[f].name {
		case name:
			return field(f), nil
		case "":
			t := &p.positional[f]
			t.name = name
			p.root.add(name, t, true)
			return field(f), nil
		}
	}
	return 0, fmt.Errorf("bind field %q: more than %d configured fields", name, maxFields-int(fieldCount))
}

// maxDepth is how many envelopes are taken off one record.
const maxDepth = 4

// Parse reads one record into e. The rest is not empty when another record
// follows on the same line: call Parse with it. The error is a Reject; e then
// holds nothing of use but Damaged and Notes.
//
// Envelopes are taken off wherever they appear. Of a line whose beginning is
// broken the first whole record is read, and Damaged counts what was skipped.
func (p *Parser) Parse(line []byte, e *Entry) (rest []byte, err error) {
	// The rest of the line before may lie in the scratch memory.
	p.scratch, p.spare = p.spare[:0], p.scratch
	line = line[:len(line):len(line)] // words are read up to the capacity
	e.Damaged, e.Notes = 0, 0
	p.doubtful, p.unended = p.unended, false
	if p.format.batch != nil && p.otlpGoesOn(line) {
		return p.format.next(p, line, e)
	}
	if len(line) > MaxLine {
		return nil, RejectTooLong
	}
	before := Notes(0)
	if len(line) != 0 && line[0] != '{' || len(line) == 0 {
		if line, before, err = leading(line); err != nil {
			return nil, err
		}
	}
	return p.record(line, 0, before, e)
}

// Line cuts the first line off text, without the line feed. Of what it finds on
// the way Parse makes use, if it is called next, with that line: in a format of
// text a line without a line feed may be cut anywhere, also where what is left of it
// reads like a record, and is refused. p may be nil, as it is for a file of blanks.
func (p *Parser) Line(text []byte) (line, rest []byte) {
	n := -1
	if p != nil && p.format.json && !p.unmarked {
		n = p.marks.line(text)
	}
	if n < 0 {
		n = bytes.IndexByte(text, '\n')
	}
	if p != nil {
		p.unended = n < 0
	}
	if n < 0 {
		return text, nil
	}
	return text[:n], text[n+1:]
}

// leading takes off what is no part of a line: a byte order mark, the NULs that
// a truncated file starts with, blanks.
func leading(line []byte) ([]byte, Notes, error) {
	var n Notes
	if bytes.HasPrefix(line, []byte("\xEF\xBB\xBF")) {
		line, n = line[3:], n|NoteBOM
	}
	for len(line) > 0 && line[0] == 0 {
		line, n = line[1:], n|NoteNULsSkipped
	}
	if len(line) != 0 && line[0] <= ' ' {
		line = bytes.TrimLeft(line, " \t\r\n")
	}
	if len(line) == 0 {
		return nil, n, RejectSyntax
	}
	if line[0] < ' ' || line[0] == 0x7f || line[0] >= 0xfe {
		return nil, n, RejectBinary
	}
	return line, n, nil
}

// record reads the record at the start of text, which lies in depth envelopes.
func (p *Parser) record(text []byte, depth int, before Notes, e *Entry) (rest []byte, err error) {
	if depth > maxDepth {
		return nil, RejectSyntax
	}
	if len(text) != 0 && text[0] >= '0' && text[0] <= '9' {
		if c, ok := cutCRI(text); ok {
			rest, err = p.record(c.content, depth+1, before|NoteUnwrapped, e)
			if c.partial {
				p.otlp.rest = nil
				return nil, RejectCut // nobody joined it
			}
			return rest, p.other(c.stderr, err)
		}
	}
	if p.format.batch != nil {
		return p.format.batch(p, text, depth, before, e)
	}
	if p.format.json {
		return p.jsonRecord(text, depth, before, e)
	}
	if len(text) != 0 && text[0] == '{' {
		if w, ok := p.unwrap(text); ok {
			return p.unwrapped(w, depth, before, e)
		}
		if !p.format.pattern {
			return nil, RejectSyntax
		}
	}
	end := "\r\n \t"
	if p.format.pattern {
		end = "\r\n" // the pattern may want the blanks
	}
	if n := len(text); n != 0 && text[n-1] <= ' ' {
		text = bytes.TrimRight(text, end)
	}
	if len(text) == 0 {
		return nil, RejectSyntax
	}
	if p.doubtful {
		return nil, RejectCut
	}
	p.raw.reset(p.format.vendor)
	p.raw.notes = before
	p.marks.clear()
	p.unframed = text
	p.runs = false
	err = p.format.tokenize(p, text)
	if p.format.runsIn && (err != nil || p.runs || p.raw.notes&NoteQuoteInHeader != 0) {
		if at, broken := runsIn(text); broken > 0 {
			text = text[at:]
			p.raw.reset(p.format.vendor)
			p.raw.notes, p.unframed = before|NoteResynchronised, text
			if p.format.tokenize(p, text) != nil {
				return text, RejectDamaged // and this one, too
			}
			e.Damaged, err = e.Damaged+broken, nil
		}
	}
	if err != nil {
		e.Notes = p.raw.notes
		return nil, err
	}
	text = p.unframed
	return nil, p.interpret(text, e)
}

// inner reads what an envelope held.
func (p *Parser) inner(text []byte, depth int, before Notes, e *Entry) (rest []byte, err error) {
	text, n, err := leading(text)
	if err != nil {
		return nil, err
	}
	return p.record(text, depth+1, before|n|NoteUnwrapped, e)
}

// unwrapped reads what unwrap found, then what stands behind it.
func (p *Parser) unwrapped(w wrapping, depth int, before Notes, e *Entry) (rest []byte, err error) {
	p.doubtful = false // the envelope says that it is whole
	rest, err = p.inner(w.inner, depth, before, e)
	if len(rest) == 0 {
		rest = w.behind
	}
	return rest, p.other(w.stderr, err)
}

// other makes what a container said on stderr, and that is no record, an other
// line and not a damaged one.
func (p *Parser) other(stderr bool, err error) error {
	if stderr && (err == RejectSyntax || err == RejectNoTime || err == RejectBinary) {
		return RejectOther
	}
	return err
}

// nearest is the known name with the fewest edits to name.
func nearest(name string, known []string) string {
	best, least := "", 1<<30
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the edits between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			d := diagonal
			if a[i-1] != b[j-1] {
				d = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], d
		}
	}
	return row[len(b)]
}
