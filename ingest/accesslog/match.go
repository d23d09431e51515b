package accesslog

import "bytes"

// A program says how a line is cut into values: what a LogFormat or an
// expression was compiled to. It matches a whole line or none of it, as Go's
// regexp does with leftmost-first choices, but byte by byte, in memory of its
// own, and with a bound on the ways it tries.
type program struct {
	code   []instr
	groups []int // the last match: start and end of each group, -1 where it took no part

	trail        []written // what is to be undone if a way fails
	steps, depth int       // left
	cut          bool
}

type written struct{ slot, before int }

// Bounds on the ways to read one line: steps beyond some for each byte, and how
// deep choices lie in one another.
const (
	stepsPerByte = 16
	moreSteps    = 1 << 15
	maxChoices   = 1 << 12
)

type opcode uint8

const (
	opText    opcode = iota // the bytes of text
	opRun                   // from least to most bytes of set, as many as can be
	opLazyRun               // as few as can be
	opEscaped               // bytes of set, and any byte behind a backslash, as many as can be
	opOpen                  // group begins
	opClose                 // group ends
	opEither                // x, else y
	opGo                    // on at x
	opNotHere               // on, unless nothing was read since group slot x
	opBegin                 // of the line
	opEnd                   // of the line
	opMatch                 // the end of the line, and all is read
)

type instr struct {
	op          opcode
	whole       bool // no byte can be given back: what follows begins otherwise; of opOpen: that is all of the group
	nextEnd     bool // what follows may be the end
	text        string
	set         *byteSet
	least, most int // -1: any number
	stop        int // the one byte that set lacks, beside the backslash of opEscaped; -1 if there are more
	next        *byteSet
	x, y        int
}

type byteSet [256]bool

// finish works out what can follow each run, and begin each choice.
func (p *program) finish() {
	for at := range p.code {
		in := &p.code[at]
		switch in.op {
		case opEither:
			in.next = new(byteSet)
			in.nextEnd = p.first(in.x, in.next, make([]bool, len(p.code)))
			continue
		case opRun, opLazyRun, opEscaped:
		default:
			continue
		}
		in.next = new(byteSet)
		in.nextEnd = p.first(at+1, in.next, make([]bool, len(p.code)))
		in.whole = in.op != opLazyRun
		in.stop = -1
		lacks := 0
		for c := range in.set {
			in.whole = in.whole && !(in.set[c] && in.next[c])
			if !in.set[c] && (in.op != opEscaped || c != '\\') {
				in.stop = c
				lacks++
			}
		}
		if lacks != 1 {
			in.stop = -1
		}
		if in.op == opEscaped && in.next['\\'] {
			in.whole = false
		}
	}
	for at := 0; at+2 < len(p.code); at++ {
		if p.code[at].op == opOpen && p.code[at+2].op == opClose {
			p.code[at].whole = p.code[at+1].whole
		}
	}
}

// first adds the bytes with which a match can go on at an instruction, and says
// whether it can end there.
func (p *program) first(at int, set *byteSet, seen []bool) (end bool) {
	for !seen[at] {
		seen[at] = true
		in := &p.code[at]
		switch in.op {
		case opText:
			set[in.text[0]] = true
			return end
		case opRun, opLazyRun, opEscaped:
			for c, ok := range in.set {
				set[c] = set[c] || ok
			}
			if in.op == opEscaped {
				set['\\'] = true
			}
			if in.least > 0 {
				return end
			}
			at++
		case opEither:
			end = p.first(in.y, set, seen) || end
			at = in.x
		case opGo:
			at = in.x
		case opEnd, opMatch:
			return true
		default:
			at++
		}
	}
	return end
}

// match reads a whole line into the groups.
func (p *program) match(line []byte) bool {
	for i := range p.groups {
		p.groups[i] = -1
	}
	p.trail = p.trail[:0]
	p.steps, p.depth, p.cut = moreSteps+stepsPerByte*len(line), maxChoices, false
	return p.run(line, 0, 0)
}

// run goes on at an instruction and a place of the line. At a choice it calls
// itself.
func (p *program) run(s []byte, at, i int) bool {
	for {
		in := &p.code[at]
		switch in.op {
		case opText:
			n := len(in.text)
			if len(s)-i < n || string(s[i:i+n]) != in.text {
				p.cut = p.cut || len(s)-i < n && string(s[i:]) == in.text[:len(s)-i]
				return false
			}
			i += n
		case opRun, opEscaped:
			n := in.length(s[i:])
			if n < in.least {
				p.cut = p.cut || i+n == len(s)
				return false
			}
			if !in.whole {
				return p.fewer(s, at, i, n)
			}
			i += n
		case opLazyRun:
			return p.more(s, at, i)
		case opOpen, opClose:
			if in.whole && p.depth == maxChoices {
				run := &p.code[at+1]
				n := run.length(s[i:])
				if n < run.least {
					p.cut = p.cut || i+n == len(s)
					return false
				}
				p.groups[2*in.x] = i
				i += n
				p.groups[2*in.x+1] = i
				at += 3
				continue
			}
			slot := 2 * in.x
			if in.op == opClose {
				slot++
			}
			if p.depth != maxChoices {
				p.trail = append(p.trail, written{slot, p.groups[slot]})
			}
			p.groups[slot] = i
		case opEither:
			if (i < len(s) && in.next[s[i]] || i == len(s) && in.nextEnd) && p.chooses(s, in.x, i) {
				return true
			}
			if p.steps < 0 {
				return false
			}
			at = in.y
			continue
		case opGo:
			at = in.x
			continue
		case opNotHere:
			if p.groups[in.x] == i {
				return false
			}
		case opBegin:
			if i != 0 {
				return false
			}
		case opEnd:
			if i != len(s) {
				return false
			}
		case opMatch:
			return i == len(s)
		}
		at++
	}
}

// chooses is run for one of several ways. What a failed one wrote is undone.
func (p *program) chooses(s []byte, at, i int) bool {
	p.steps--
	if p.depth--; p.steps < 0 || p.depth < 0 {
		p.steps = -1
		p.depth++
		return false
	}
	mark := len(p.trail)
	ok := p.run(s, at, i)
	if p.depth++; ok {
		return true
	}
	for n := len(p.trail) - 1; n >= mark; n-- {
		p.groups[p.trail[n].slot] = p.trail[n].before
	}
	p.trail = p.trail[:mark]
	return false
}

// fewer tries n bytes of a run, then less and less.
func (p *program) fewer(s []byte, at, i, n int) bool {
	in := &p.code[at]
	for ; n >= in.least && p.steps >= 0; n-- {
		if i+n < len(s) && !in.next[s[i+n]] || i+n == len(s) && !in.nextEnd || in.op == opEscaped && splits(s[i:i+n]) {
			p.steps--
			continue
		}
		if p.chooses(s, at+1, i+n) {
			return true
		}
	}
	return false
}

// splits says that s, which begins where a pair may, ends within one.
func splits(s []byte) bool {
	n := len(s)
	for n > 0 && s[n-1] == '\\' {
		n--
	}
	return (len(s)-n)%2 == 1
}

// more tries the least bytes of a run, then more and more.
func (p *program) more(s []byte, at, i int) bool {
	in := &p.code[at]
	for n := 0; p.steps >= 0; n++ {
		end := i+n == len(s)
		if n >= in.least && (end && in.nextEnd || !end && in.next[s[i+n]]) && p.chooses(s, at+1, i+n) {
			return true
		}
		if end || n == in.most || !in.set[s[i+n]] {
			p.cut = p.cut || end
			return false
		}
		p.steps--
	}
	return false
}

// length is how many bytes a run takes of s, if it takes all that it can.
func (in *instr) length(s []byte) int {
	if in.op == opEscaped {
		return in.escaped(s)
	}
	return in.count(s)
}

// count is how many bytes of the set s begins with.
func (in *instr) count(s []byte) int {
	if in.most >= 0 && in.most < len(s) {
		s = s[:in.most]
	}
	if in.stop >= 0 {
		if n := bytes.IndexByte(s, byte(in.stop)); n >= 0 {
			return n
		}
		return len(s)
	}
	set := in.set
	for i, c := range s {
		if !set[c] {
			return i
		}
	}
	return len(s)
}

// escaped is count with pairs of a backslash and any byte besides.
func (in *instr) escaped(s []byte) int {
	if in.stop >= 0 {
		n := bytes.IndexByte(s, byte(in.stop))
		if n < 0 {
			n = len(s)
		}
		if bytes.IndexByte(s[:n], '\\') < 0 {
			return n
		}
	}
	set := in.set
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case set[c]:
		case c == '\\' && i+1 < len(s):
			i++
		default:
			return i
		}
	}
	return len(s)
}

// reason is why a line did not match.
func (p *program) reason() error {
	if p.cut {
		return RejectCut
	}
	return RejectSyntax
}
