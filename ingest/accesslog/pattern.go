package accesslog

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Format pattern reads any text line by an expression of the operator's, in the
// syntax of Go's regexp:
//
//	(?P<time>\S+) (?P<method>\S+) (?P<path>\S+) (?P<status>\d+) key=(?P<question_key>\S*)
//
// A named group is a field: by the canonical name, a usual one, or the one that
// Config maps. A lone dash in it is no value, and what it holds is taken as it
// stands. The expression must match the whole line; what nobody needs is .* in
// it. Letters outside ASCII may stand for themselves and in negated classes, but
// are several bytes long to a count such as {3}. A line that can be read in very
// many ways is refused.
func (p *Parser) tokenizePattern(line []byte) error {
	if !p.program.match(line) {
		return p.program.reason()
	}
	for i := range p.columns {
		if from := p.program.groups[2*i]; from >= 0 {
			p.putColumn(i, line[from:p.program.groups[2*i+1]])
		}
	}
	return nil
}

// maxProgram bounds how much an expression may become.
const maxProgram = 10_000

func (p *Parser) compilePattern() error {
	if p.cfg.Pattern == "" {
		return errors.New("format pattern needs a pattern: an expression whose named groups are fields, such as (?P<time>\\S+) (?P<status>\\d+)")
	}
	re, err := syntax.Parse(p.cfg.Pattern, syntax.Perl)
	if err != nil {
		var bad *syntax.Error
		if errors.As(err, &bad) {
			return fmt.Errorf("pattern: %s at %q", bad.Code, bad.Expr)
		}
		return fmt.Errorf("pattern: %w", err)
	}
	c := compiler{names: re.CapNames()}
	for _, name := range c.names {
		if slices.Contains(c.named, name) {
			return fmt.Errorf("pattern: group %q is there twice", name)
		}
		if name != "" {
			c.named = append(c.named, name)
		}
	}
	c.slots = len(c.named)
	c.node(re)
	c.add(instr{op: opMatch})
	if c.err != nil {
		return fmt.Errorf("pattern: %w", c.err)
	}
	prog := &program{code: c.code, groups: make([]int, 2*c.slots)}
	prog.finish()
	for _, name := range c.named {
		m := p.root.lookup([]byte(name))
		if len(m.targets) == 0 {
			return fmt.Errorf("pattern: group %q is no field, did you mean %q? name it under fields, or write (?:…) for a group without a name",
				name, nearest(name, p.knownNames()))
		}
		p.columns = append(p.columns, m)
	}
	p.program = prog
	return p.needsTime("pattern", "call a group time, start_time or end_time")
}

// knownNames lists what a field can be called.
func (p *Parser) knownNames() []string {
	return append(slices.Clone(fieldNames[:fMessage]), p.configured()...)
}

// needsTime refuses a pattern that gives no record a time, and configured names
// that it does not give.
func (p *Parser) needsTime(what, hint string) error {
	for name, log := range p.cfg.Fields {
		if !slices.ContainsFunc(p.columns, func(m *member) bool {
			return slices.ContainsFunc(m.targets, func(t *target) bool { return t.rank == 0 && t.name == log })
		}) {
			return fmt.Errorf("%s: nothing in it is called %q, which fields.%s names", what, log, name)
		}
	}
	if !p.gives(fTime) && !p.gives(fStart) && !p.gives(fEnd) {
		return fmt.Errorf("%s: no time: %s", what, hint)
	}
	return nil
}

// gives says that one of the columns can hold the field.
func (p *Parser) gives(f field) bool {
	return slices.ContainsFunc(p.columns, func(m *member) bool {
		return slices.ContainsFunc(m.targets, func(t *target) bool { return t.f == f })
	})
}

// compiler turns an expression into a program.
type compiler struct {
	code  []instr
	names []string // of regexp's groups
	named []string // those that have one, in order
	slots int
	err   error
}

func (c *compiler) add(in instr) int {
	if len(c.code) >= maxProgram {
		c.refuse("it is too large")
		return 0
	}
	c.code = append(c.code, in)
	return len(c.code) - 1
}

func (c *compiler) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *compiler) node(re *syntax.Regexp) {
	if c.err != nil {
		return
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
	case syntax.OpLiteral:
		c.literal(re)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		c.loop(re, 1, 1, false)
	case syntax.OpBeginText, syntax.OpBeginLine:
		c.add(instr{op: opBegin})
	case syntax.OpEndText, syntax.OpEndLine:
		c.add(instr{op: opEnd})
	case syntax.OpCapture:
		at := slices.Index(c.named, re.Name)
		if re.Name != "" {
			c.add(instr{op: opOpen, x: at})
		}
		c.node(re.Sub[0])
		if re.Name != "" {
			c.add(instr{op: opClose, x: at})
		}
	case syntax.OpStar:
		c.loop(re.Sub[0], 0, -1, re.Flags&syntax.NonGreedy != 0)
	case syntax.OpPlus:
		c.loop(re.Sub[0], 1, -1, re.Flags&syntax.NonGreedy != 0)
	case syntax.OpQuest:
		c.loop(re.Sub[0], 0, 1, re.Flags&syntax.NonGreedy != 0)
	case syntax.OpRepeat:
		c.loop(re.Sub[0], re.Min, re.Max, re.Flags&syntax.NonGreedy != 0)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			c.node(sub)
		}
	case syntax.OpAlternate:
		c.alternate(re.Sub)
	case syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		c.refuse("\\b and \\B are not known here: write what stands there")
	default:
		c.refuse("%q is not known here", re)
	}
}

// literal adds text. Where case does not matter each letter is a set.
func (c *compiler) literal(re *syntax.Regexp) {
	if re.Flags&syntax.FoldCase == 0 {
		c.add(instr{op: opText, text: string(re.Rune)})
		return
	}
	for _, r := range re.Rune {
		upper, lower := unicode.ToUpper(r), unicode.ToLower(r)
		if r >= utf8.RuneSelf || upper == lower {
			c.add(instr{op: opText, text: string(r)})
			continue
		}
		set := new(byteSet)
		set[byte(upper)], set[byte(lower)] = true, true
		c.add(instr{op: opRun, set: set, least: 1, most: 1})
	}
}

// alternate tries one after the other.
func (c *compiler) alternate(subs []*syntax.Regexp) {
	var ends []int
	for i, sub := range subs {
		if i == len(subs)-1 {
			c.node(sub)
			break
		}
		choice := c.add(instr{op: opEither})
		c.node(sub)
		ends = append(ends, c.add(instr{op: opGo}))
		if c.err != nil {
			return
		}
		c.code[choice].x, c.code[choice].y = choice+1, len(c.code)
	}
	for _, at := range ends {
		c.code[at].x = len(c.code)
	}
}

// loop repeats an expression: one byte of a set in one instruction, all else by
// choices.
func (c *compiler) loop(re *syntax.Regexp, least, most int, lazy bool) {
	if set := c.bytes(re); set != nil {
		op := opRun
		if lazy {
			op = opLazyRun
		}
		c.add(instr{op: op, set: set, least: least, most: most})
		return
	}
	if set := c.escapedBytes(re); set != nil && least == 0 && most < 0 && !lazy {
		c.add(instr{op: opEscaped, set: set, most: -1})
		return
	}
	for range least {
		if c.node(re); c.err != nil {
			return
		}
	}
	if most < 0 {
		slot := c.slots
		c.slots++
		c.optional(lazy, func(choice int) {
			c.add(instr{op: opOpen, x: slot})
			c.node(re)
			c.add(instr{op: opNotHere, x: 2 * slot})
			c.add(instr{op: opGo, x: choice})
		})
		return
	}
	c.atMost(re, most-least, lazy)
}

func (c *compiler) atMost(re *syntax.Regexp, n int, lazy bool) {
	if n <= 0 || c.err != nil {
		return
	}
	c.optional(lazy, func(int) {
		c.node(re)
		c.atMost(re, n-1, lazy)
	})
}

// optional adds a choice between what body adds and going on behind it.
func (c *compiler) optional(lazy bool, body func(choice int)) {
	choice := c.add(instr{op: opEither})
	body(choice)
	if c.err != nil {
		return
	}
	in := &c.code[choice]
	if in.x, in.y = choice+1, len(c.code); lazy {
		in.x, in.y = in.y, in.x
	}
}

// bytes is the set of an expression that is one byte, or nil.
func (c *compiler) bytes(re *syntax.Regexp) *byteSet {
	set := new(byteSet)
	switch re.Op {
	case syntax.OpCapture:
		if re.Name == "" {
			return c.bytes(re.Sub[0])
		}
		return nil
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		for i := range set {
			set[i] = true
		}
		set['\n'] = re.Op == syntax.OpAnyChar
		return set
	case syntax.OpLiteral:
		if len(re.Rune) != 1 || re.Rune[0] >= utf8.RuneSelf || re.Flags&syntax.FoldCase != 0 {
			return nil
		}
		set[re.Rune[0]] = true
		return set
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			lo, hi := re.Rune[i], re.Rune[i+1]
			for r := lo; r <= min(hi, utf8.RuneSelf-1); r++ {
				set[r] = true
			}
			switch {
			case hi < utf8.RuneSelf, lo == hi && (lo == 'ſ' || lo == 'K'): // these fold to s and k
			case lo <= utf8.RuneSelf && hi == unicode.MaxRune:
				for b := utf8.RuneSelf; b < len(set); b++ {
					set[b] = true
				}
			default:
				c.refuse("class %s has some of the letters outside ASCII: it can have all of them or none", re)
			}
		}
		return set
	}
	return nil
}

// escapedBytes is the set of (?:[^"\\]|\\.), in either order, or nil.
func (c *compiler) escapedBytes(re *syntax.Regexp) *byteSet {
	for re.Op == syntax.OpCapture && re.Name == "" {
		re = re.Sub[0]
	}
	if re.Op != syntax.OpAlternate || len(re.Sub) != 2 {
		return nil
	}
	for i, pair := range re.Sub {
		other := re.Sub[1-i]
		if other.Op == syntax.OpPlus {
			other = other.Sub[0]
		}
		if pair.Op != syntax.OpConcat || len(pair.Sub) != 2 || pair.Sub[0].Op != syntax.OpLiteral || string(pair.Sub[0].Rune) != `\` ||
			pair.Sub[1].Op != syntax.OpAnyCharNotNL && pair.Sub[1].Op != syntax.OpAnyChar || other.Op != syntax.OpCharClass {
			continue
		}
		if set := c.bytes(other); set != nil && !set['\\'] {
			return set
		}
	}
	return nil
}

// Gives says whether a record of the parser's format can hold a field, by its
// canonical name: false only where the format has a pattern, and that does not
// have the field.
func (p *Parser) Gives(name string) bool {
	if !p.format.pattern {
		return true
	}
	f, ok := canonicalField(normal(name))
	if !ok {
		for i := int(fieldCount); i < maxFields; i++ {
			if p.positional[i].name == name {
				f, ok = field(i), true
			}
		}
	}
	return ok && p.gives(f)
}

// GivesDuration says whether a record of the parser's format could show how long it took,
// in the sense of Gives.
func (p *Parser) GivesDuration() bool {
	return !p.format.pattern || slices.ContainsFunc([]field{fDuration, fEnd}, p.gives)
}

// GivesDeparture says whether a record of the parser's format could show that the
// caller left, in the sense of Gives.
func (p *Parser) GivesDeparture() bool {
	return !p.format.pattern || slices.ContainsFunc([]field{fClientGone, fDeparture, fTermination, fCompletion, fContext, fWriteError}, p.gives)
}
