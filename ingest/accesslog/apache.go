package accesslog

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Format apache reads the lines of the LogFormat that Config.Pattern is: the
// string as it stands between the quotes in httpd.conf, the whole directive, or
// one of the names common, combined, combinedio and vhost_combined. Without one
// it is combined.
//
// A directive is the field that it stands for, or that Config maps by the
// directive itself (%{X-Key}i) or by the name in it (X-Key). Request and response
// headers are known by their usual names. Of the stamps of one moment the finest
// wins, and so of the durations; where begin and end are both logged to the
// millisecond, the duration is what lies between.
//
// httpd escapes quotes and backslashes in whatever a caller can write, so a value
// in quotes is whole. One without may hold blanks, and then two readings of the
// line are possible: no key is taken from a place without quotes.
func (p *Parser) tokenizeApache(line []byte) error {
	prog := p.program
	if !prog.match(line) {
		return prog.reason()
	}
	loose := false
	p.protocol = nil
	for i := range p.apache {
		c := &p.apache[i]
		from := prog.groups[2*i]
		v := line[from:prog.groups[2*i+1]]
		switch c.how {
		case apacheQuoted:
			if len(c.member.targets) != 0 {
				v = p.unescaped(v)
			}
		case apacheLoose:
			loose = loose || bytes.IndexByte(v, ' ') >= 0
			v = p.unescaped(v)
		case apacheSize:
			if isDash(v) {
				v = zero
			}
		case apacheProtocol:
			p.protocol = v
		}
		if len(c.member.targets) != 0 {
			p.putMember(c.member, v)
		}
	}
	if loose && p.looseKey {
		p.suspectKey()
	}
	return nil
}

var zero = []byte("0")

// apacheColumn is one directive, or several that make up one value.
type apacheColumn struct {
	how    apacheHow
	text   string // as in the LogFormat
	member *member
	size   int    // of apacheFixed
	set    string // of apacheWord: what it is made of, where that is known
}

type apacheHow uint8

const (
	apacheWord     apacheHow = iota // no blank in it
	apacheFixed                     // so many bytes
	apacheQuoted                    // escaped, between quotes
	apacheLoose                     // escaped, and nothing says where it ends but what follows
	apacheSize                      // a number, or "-" for 0
	apacheProtocol                  // a word: HTTP/1.1
	apacheText                      // no directive
)

var apacheFormats = map[string]string{
	"common":         `%h %l %u %t "%r" %>s %b`,
	"combined":       `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"`,
	"combinedio":     `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %I %O`,
	"vhost_combined": `%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"`,
}

// apacheNames are names that operators give to what they log.
var apacheNames = []alias{{fArrivalID, 0, "unique_id"}}

// compileApache turns the LogFormat into a program.
func (p *Parser) compileApache() error {
	text, known := apacheFormats[cmp.Or(p.cfg.Pattern, "combined")]
	if !known {
		var err error
		if text, err = logFormat(p.cfg.Pattern); err != nil {
			return err
		}
	}
	tokens, err := apacheTokens(text)
	if err != nil {
		return err
	}
	columns, err := p.apacheColumns(tokens)
	if err != nil {
		return err
	}
	prog := &program{}
	for i := range columns {
		c := &columns[i]
		if c.how == apacheText {
			prog.code = append(prog.code, instr{op: opText, text: c.text})
			continue
		}
		next := ""
		if i+1 < len(columns) {
			if next = columns[i+1].text; columns[i+1].how != apacheText {
				if c.how != apacheFixed {
					return fmt.Errorf("LogFormat: nothing stands between %s and %s: where the one ends cannot be told", c.text, next)
				}
				next = ""
			}
		}
		if (c.how == apacheLoose || c.how == apacheWord && c.set == "") && i > 0 && strings.HasSuffix(columns[i-1].text, `"`) && strings.HasPrefix(next, `"`) {
			c.how = apacheQuoted
		}
		at := len(p.apache)
		prog.code = append(prog.code, instr{op: opOpen, x: at}, c.instr(), instr{op: opClose, x: at})
		p.columns = append(p.columns, c.member)
		p.apache = append(p.apache, *c)
		if c.how == apacheLoose {
			for _, t := range c.member.targets {
				p.looseKey = p.looseKey || slices.Contains(p.keys, t.f)
			}
		}
	}
	prog.code = append(prog.code, instr{op: opMatch})
	prog.groups = make([]int, 2*len(p.apache))
	prog.finish()
	p.program = prog
	return p.needsTime("LogFormat", "add %{begin:msec}t")
}

// instr is how the bytes of a column are found.
func (c *apacheColumn) instr() instr {
	set := new(byteSet)
	for b := range set {
		set[b] = true
	}
	switch c.how {
	case apacheFixed:
		return instr{op: opRun, set: set, least: c.size, most: c.size}
	case apacheQuoted:
		set['"'], set['\\'] = false, false
		return instr{op: opEscaped, set: set, most: -1}
	case apacheLoose:
		set['"'] = false // or it has a backslash before it
		return instr{op: opLazyRun, set: set, most: -1}
	case apacheSize:
		c.set = "0123456789-"
	}
	if set[' '] = false; c.set != "" {
		*set = byteSet{}
		for i := range len(c.set) {
			set[c.set[i]] = true
		}
	}
	return instr{op: opRun, set: set, least: 1, most: -1}
}

// logFormat takes the string out of a directive, and the escapes of httpd.conf
// out of the string.
func logFormat(text string) (string, error) {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "LogFormat"); ok && strings.HasPrefix(strings.TrimSpace(rest), `"`) {
		rest = strings.TrimSpace(rest)[1:]
		end := -1
		for i := 0; i < len(rest) && end < 0; i++ {
			switch rest[i] {
			case '\\':
				i++
			case '"':
				end = i
			}
		}
		if end < 0 {
			return "", fmt.Errorf("LogFormat: the string has no closing quote")
		}
		text = rest[:end]
	}
	text = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\t`, "\t", `\n`, "\n", `\r`, "\r").Replace(text)
	if strings.ContainsAny(text, "\r\n") {
		return "", fmt.Errorf("LogFormat: it has a line break, and a record is one line")
	}
	return text, nil
}

// apacheToken is text, or a directive.
type apacheToken struct {
	text string // as it stands
	arg  string // in braces
	kind string // the letter, or ^ and two
	mod  byte   // <, > or 0
}

func apacheTokens(format string) ([]apacheToken, error) {
	var out []apacheToken
	for i := 0; i < len(format); {
		if format[i] != '%' || strings.HasPrefix(format[i:], "%%") {
			if len(out) == 0 || out[len(out)-1].kind != "" {
				out = append(out, apacheToken{})
			}
			out[len(out)-1].text += format[i : i+1]
			if format[i] == '%' {
				i++
			}
			i++
			continue
		}
		t := apacheToken{}
		j := i + 1
		for j < len(format) && strings.IndexByte("0123456789,!<>", format[j]) >= 0 {
			if format[j] == '<' || format[j] == '>' {
				t.mod = format[j]
			}
			j++
		}
		if j < len(format) && format[j] == '{' {
			end := strings.IndexByte(format[j:], '}')
			if end < 0 {
				return nil, fmt.Errorf("LogFormat: %q at byte %d has no closing brace", format[i:], i+1)
			}
			t.arg = format[j+1 : j+end]
			j += end + 1
		}
		n := 1
		if j < len(format) && format[j] == '^' {
			n = 3
		}
		if j+n > len(format) {
			return nil, fmt.Errorf("LogFormat: %q at byte %d is cut short", format[i:], i+1)
		}
		t.kind, t.text = format[j:j+n], format[i:j+n]
		if !strings.Contains(" a A b B C D e f h H i I k l L m M n o O p P q r R s S t T u U v V x X ^FB ^ti ^to ^FU ", " "+t.kind+" ") {
			return nil, fmt.Errorf("LogFormat: %q at byte %d is no directive of httpd's", t.text, i+1)
		}
		out = append(out, t)
		i = j + n
	}
	return out, nil
}

// apacheColumns says what each directive is, and joins those that make one value.
func (p *Parser) apacheColumns(tokens []apacheToken) ([]apacheColumn, error) {
	var out []apacheColumn
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch {
		case t.kind == "":
			out = append(out, apacheColumn{how: apacheText, text: t.text})
			continue
		case t.kind == "t":
			columns, used, err := p.apacheTime(tokens[i:])
			if err != nil {
				return nil, err
			}
			out = append(out, columns...)
			i += used - 1
			continue
		case t.kind == "U" && i+1 < len(tokens) && tokens[i+1].kind == "q":
			t.text += tokens[i+1].text // the path and its query
			i++
		}
		c := apacheColumn{text: t.text}
		native, names := target{f: fieldCount}, []string{}
		switch t.kind {
		case "h":
			native = target{f: fPeer, rank: 203}
		case "a":
			native = target{f: fPeer, rank: 202}
			if t.arg == "c" {
				native.rank = 201
			}
		case "r":
			native, c.how = target{f: fRequest, rank: 201}, apacheLoose
		case "m":
			native = target{f: fMethod, rank: 201}
		case "U":
			native, c.how = target{f: fPath, rank: 201}, apacheLoose
		case "V":
			native = target{f: fAuthority, rank: 251}
		case "v":
			native = target{f: fAuthority, rank: 252}
		case "s":
			native, c.set = target{f: fStatus, rank: 202}, "0123456789-"
			if t.mod == '>' {
				native.rank = 201
			}
		case "b", "B":
			native, c.how = target{f: fBodyBytes, rank: 201}, apacheSize
		case "O":
			native, c.how = target{f: fBytesSent, rank: 201}, apacheSize
		case "D":
			native, c.set = target{f: fDuration, rank: 201, unit: unitMicros}, "0123456789-"
		case "T":
			native, c.set = target{f: fDuration, rank: 203, unit: unitSeconds}, "0123456789-."
			switch t.arg {
			case "us":
				native.rank, native.unit = 201, unitMicros
			case "ms":
				native.rank, native.unit = 202, unitMillis
			}
		case "H":
			c.how = apacheProtocol
		case "X":
			native, c.set = target{f: fTermination, rank: 201}, "X+-"
		case "i":
			names, c.how = []string{"http_" + t.arg}, apacheLoose
		case "o":
			names, c.how = []string{"sent_http_" + t.arg}, apacheLoose
		case "e", "n":
			names, c.how = []string{t.arg}, apacheLoose
		case "u", "q", "f", "C", "x", "l", "R", "^ti", "^to":
			c.how = apacheLoose
		}
		c.member = p.apacheMember(t, native, names)
		out = append(out, c)
	}
	return out, nil
}

// apacheMember finds who wants a directive. What it is called in explain is what
// stands in the LogFormat.
func (p *Parser) apacheMember(t apacheToken, native target, names []string) *member {
	m := &member{}
	bind := func(found *member) {
		if found == nil {
			return
		}
		for _, to := range found.targets {
			own := *to
			if own.rank != 0 {
				own.name = t.text
			}
			m.bind(&own)
		}
	}
	bind(p.root.exact[t.text])
	if t.arg != "" {
		bind(p.root.exact[t.arg])
	}
	for _, name := range names {
		bind(p.root.lookup([]byte(name)))
	}
	if native.f != fieldCount {
		native.name = t.text
		m.bind(&native)
	}
	return m
}

// apacheTime reads a stamp: one directive, or several that stand together and
// speak of the same moment, such as %{%FT%T}t.%{msec_frac}t%{%z}t.
func (p *Parser) apacheTime(tokens []apacheToken) (columns []apacheColumn, used int, err error) {
	moment, layout := apacheMoment(tokens[0].arg)
	to := target{f: fStart, name: tokens[0].text, rank: 203}
	if moment == "end" {
		to.f = fEnd
	}
	one := func(how apacheHow, size int, set string) apacheColumn {
		m := &member{}
		for _, name := range []string{to.name, tokens[0].arg} {
			if found := p.root.exact[name]; found != nil {
				for _, t := range found.targets {
					m.bind(t)
				}
			}
		}
		m.bind(&to)
		return apacheColumn{how: how, text: to.name, size: size, set: set, member: m}
	}
	switch layout {
	case "":
		const clf = "03/Mar/2026:10:15:42 +0000"
		return []apacheColumn{{how: apacheText, text: "["}, one(apacheFixed, len(clf), ""), {how: apacheText, text: "]"}}, 1, nil
	case "sec", "msec", "usec":
		to.rank = map[string]uint8{"sec": 203, "msec": 202, "usec": 201}[layout]
		return []apacheColumn{one(apacheWord, 0, "0123456789")}, 1, nil
	}
	// Two moments tell whether it is a time, and whether all of it stands there.
	samples := [...]time.Time{time.Date(2026, 3, 4, 10, 15, 42, 118042000, time.UTC), time.Date(2027, 11, 30, 23, 5, 9, 7003000, time.UTC)}
	var texts [len(samples)]string
	for used < len(tokens) {
		n := 1 // text goes in only with another directive behind it
		if tokens[used].kind == "" && used+1 < len(tokens) {
			n = 2
		}
		last := tokens[used+n-1]
		m, layout := apacheMoment(last.arg)
		if last.kind != "t" || m != moment || layout == "" || layout == "sec" || layout == "msec" || layout == "usec" {
			break
		}
		for i, at := range samples {
			if n == 2 {
				texts[i] += tokens[used].text
			}
			text, bad := strftime(layout, at)
			if bad != "" {
				return nil, 0, fmt.Errorf("LogFormat: %s: %s is not read here: log %%{begin:msec}t", last.text, bad)
			}
			texts[i] += text
		}
		if used += n; used > n {
			to.name += tokens[used-n].text
			if n == 2 {
				to.name += last.text
			}
		}
		if strings.HasSuffix(layout, "_frac") {
			to.rank = 202
		}
	}
	var q Parser
	for i, at := range samples {
		ns, uncertainty, ok := q.stamp([]byte(texts[i]))
		if want := at.UnixNano(); !ok || ns != want-want%max(uncertainty, 1) {
			return nil, 0, fmt.Errorf("LogFormat: %s gives a stamp like %q, which is not read as a time: log %%{begin:msec}t", to.name, texts[i])
		}
	}
	return []apacheColumn{one(apacheFixed, len(texts[0]), "")}, used, nil
}

// apacheMoment splits the argument of %{…}t.
func apacheMoment(arg string) (moment, layout string) {
	if rest, ok := strings.CutPrefix(arg, "end:"); ok {
		return "end", rest
	}
	rest, _ := strings.CutPrefix(arg, "begin:")
	return "begin", rest
}

// strftime writes a time as httpd would, or names what is not known here. All of
// it has the same length at any time.
func strftime(layout string, at time.Time) (text, bad string) {
	switch layout {
	case "msec_frac":
		return at.Format(".000")[1:], ""
	case "usec_frac":
		return at.Format(".000000")[1:], ""
	}
	var b strings.Builder
	for i := 0; i < len(layout); i++ {
		if layout[i] != '%' || i+1 == len(layout) {
			b.WriteByte(layout[i])
			continue
		}
		i++
		form, ok := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'b': "Jan", 'h': "Jan",
			'z': "-0700", 'F': "2006-01-02", 'T': "15:04:05"}[layout[i]]
		switch {
		case layout[i] == 's':
			fmt.Fprint(&b, at.Unix())
		case layout[i] == '%':
			b.WriteByte('%')
		case !ok:
			return "", layout[i-1 : i+1]
		default:
			b.WriteString(at.Format(form))
		}
	}
	return b.String(), ""
}
