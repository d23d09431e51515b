package accesslog

import "bytes"

// cri is one line of a Kubernetes container log, taken apart.
type cri struct {
	head    []byte // stamp and blank
	content []byte
	stderr  bool
	partial bool
}

// cutCRI takes apart "STAMP stdout F content". ok is false for any other line.
func cutCRI(line []byte) (c cri, ok bool) {
	i := bytes.IndexByte(line[:min(len(line), 40)], ' ')
	if i < 19 || line[4] != '-' || line[10] != 'T' || len(line) < i+10 {
		return c, false
	}
	switch string(line[i+1 : i+8]) {
	case "stdout ":
	case "stderr ":
		c.stderr = true
	default:
		return c, false
	}
	tag, rest := line[i+8:], []byte(nil)
	if j := bytes.IndexByte(tag, ' '); j >= 0 {
		tag, rest = tag[:j], tag[j+1:]
	}
	if j := bytes.IndexByte(tag, ':'); j >= 0 {
		tag = tag[:j] // tags may follow
	}
	switch string(tag) {
	case "F":
	case "P":
		c.partial = true
	default:
		return c, false
	}
	c.head, c.content = line[:i+1], rest
	return c, true
}

// dockerHead is how every line of Docker's json-file driver begins.
const dockerHead = `{"log":"`

// docker is one line of Docker's json-file driver, taken apart. The content
// still has its escapes.
type docker struct {
	content []byte
	tail    []byte // from the content's closing quote on
	stderr  bool
	partial bool // no newline at the end of the content
}

func cutDocker(line []byte) (d docker, ok bool) {
	if len(line) < len(dockerHead) || string(line[:len(dockerHead)]) != dockerHead {
		return d, false
	}
	end, _ := closing(line, len(dockerHead), false)
	if end < 0 {
		return d, false
	}
	d.content, d.tail = line[len(dockerHead):end], line[end:]
	if bytes.Contains(d.tail, []byte(`"stream":"stderr"`)) {
		d.stderr = true
	} else if !bytes.Contains(d.tail, []byte(`"stream":"stdout"`)) {
		return d, false
	}
	d.partial = true
	if n := len(d.content); n >= 2 && d.content[n-1] == 'n' {
		slashes := 0
		for i := n - 2; i >= 0 && d.content[i] == '\\'; i-- {
			slashes++
		}
		d.partial = slashes%2 == 0
	}
	return d, true
}

// Joiner puts together the parts into which container runtimes split long lines,
// per stream: Kubernetes CRI parts tagged P up to the one tagged F, and Docker
// json-file lines up to the one whose text ends with a newline. All other lines
// pass as they are. The joined line is still in its envelope.
//
// It holds at most MaxLine bytes per stream; a longer line is dropped whole and
// counted. The zero Joiner is ready for use, for one source.
type Joiner struct {
	streams [4]pending // cri and docker, stdout and stderr
	dropped int
}

type pending struct {
	buf     []byte
	from    Place
	parts   int
	tooLong bool
}

// Needed says whether a source that begins with sample can hold split lines, so
// that others need not be passed through a Joiner.
func (j *Joiner) Needed(sample []byte) bool {
	sample = bytes.TrimPrefix(sample, []byte("\xEF\xBB\xBF"))
	for n := 0; n < 32 && len(sample) > 0; n++ {
		line := sample
		if i := bytes.IndexByte(sample, '\n'); i >= 0 {
			line, sample = sample[:i], sample[i+1:]
		} else {
			sample = nil
		}
		line = bytes.TrimLeft(line, "\x00 \t")
		if len(line) == 0 {
			continue
		}
		if _, ok := cutCRI(line); ok {
			return true
		}
		if bytes.HasPrefix(line, []byte(dockerHead)) {
			return true
		}
	}
	return false
}

// Place is where a line begins in its source.
type Place struct {
	Line   int64 // 1-based
	Offset int64 // in bytes
}

// Line takes the next line of the source. complete is false while parts are
// missing; full is valid until the next call.
func (j *Joiner) Line(line []byte) (full []byte, complete bool) {
	full, _, _, complete = j.LineAt(line, Place{})
	return full, complete
}

// LineAt is Line for who wants to know where a line of parts begins: from is the
// place of its first part, parts how many there are so far.
func (j *Joiner) LineAt(line []byte, at Place) (full []byte, from Place, parts int, complete bool) {
	switch {
	case len(line) > 0 && line[0] == '{':
		d, ok := cutDocker(line)
		if !ok {
			break
		}
		s := &j.streams[2]
		if d.stderr {
			s = &j.streams[3]
		}
		if !d.partial && s.parts == 0 {
			break
		}
		if s.parts == 0 {
			s.begin(at, []byte(dockerHead))
		}
		s.part(d.content)
		if d.partial {
			return nil, s.from, s.parts, false
		}
		s.add(bytes.TrimRight(d.tail, "\r\n"))
		return j.take(s)
	case len(line) > 0 && line[0] >= '0' && line[0] <= '9':
		c, ok := cutCRI(line)
		if !ok {
			break
		}
		s, name := &j.streams[0], "stdout F "
		if c.stderr {
			s, name = &j.streams[1], "stderr F "
		}
		if !c.partial && s.parts == 0 {
			break
		}
		if s.parts == 0 {
			s.begin(at, c.head)
			s.add([]byte(name))
		}
		s.part(bytes.TrimRight(c.content, "\r\n"))
		if c.partial {
			return nil, s.from, s.parts, false
		}
		return j.take(s)
	}
	return line, at, 1, true
}

func (s *pending) begin(at Place, head []byte) {
	s.from = at
	s.add(head)
}

func (s *pending) part(b []byte) {
	s.parts++
	s.add(b)
}

func (s *pending) add(b []byte) {
	if s.tooLong || len(s.buf)+len(b) > MaxLine {
		s.tooLong = true
		return
	}
	s.buf = append(s.buf, b...)
}

// take ends a line of parts.
func (j *Joiner) take(s *pending) (full []byte, from Place, parts int, complete bool) {
	full, from, parts, complete = s.buf, s.from, s.parts, !s.tooLong
	s.buf, s.parts, s.tooLong = s.buf[:0], 0, false
	if !complete {
		j.dropped++
		return nil, from, parts, false
	}
	return full, from, parts, true
}

// Pending is where the lines begin of which the last part has not come: what is
// left at the end of a source is cut short.
func (j *Joiner) Pending() (from []Place) {
	for i := range j.streams {
		if s := &j.streams[i]; s.parts != 0 {
			from = append(from, s.from)
		}
	}
	return from
}

// Dropped counts the lines that were longer than MaxLine.
func (j *Joiner) Dropped() int { return j.dropped }

// Clone is a joiner that goes on from here and leaves this one as it is.
func (j *Joiner) Clone() *Joiner {
	c := *j
	for i := range c.streams {
		c.streams[i].buf = bytes.Clone(c.streams[i].buf)
	}
	return &c
}

// IsPart says that a line is a part of one, which others follow. A Joiner that
// waits for nothing passes all that are not.
func IsPart(line []byte) bool {
	switch {
	case len(line) > 0 && line[0] == '{':
		d, ok := cutDocker(line)
		return ok && d.partial
	case len(line) > 0 && line[0] >= '0' && line[0] <= '9':
		c, ok := cutCRI(line)
		return ok && c.partial
	}
	return false
}
