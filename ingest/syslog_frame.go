package ingest

import "bytes"

// syslogFrames cuts a byte stream into messages as RFC 6587 has them: by a count of
// their bytes ("57 <134>1 …"), or by the line feed behind each. Which of the two it is
// is told for each message anew: a number, a blank and "<" are a count, anything else
// is not. What it gives does not depend on how the stream was cut into reads.
//
// A message that is longer than max is passed over and counted, and so is what a
// stream ends with in mid-message: nobody knows how it would have gone on.
type syslogFrames struct {
	max       int
	truncated int64

	buf    []byte
	at     int   // in buf, of the next byte
	looked int   // bytes behind at that hold no line feed
	skip   int64 // bytes of a counted message that are passed over; -1: to the line feed
}

// room is where the next bytes of the stream are read to.
func (f *syslogFrames) room() []byte {
	const least = 16 << 10
	if f.at > 0 {
		f.buf = f.buf[:copy(f.buf, f.buf[f.at:])]
		f.at = 0
	}
	if cap(f.buf)-len(f.buf) < least {
		f.buf = append(make([]byte, 0, max(4*least, 2*cap(f.buf))), f.buf...)
	}
	return f.buf[len(f.buf):cap(f.buf)]
}

// took says how much of room was read.
func (f *syslogFrames) took(n int) { f.buf = f.buf[:len(f.buf)+n] }

// next is the next message that is there whole; ok is false where more has to be
// read. It is valid until room is asked for.
func (f *syslogFrames) next() (message []byte, ok bool) {
	for {
		if !f.passOver() {
			return nil, false
		}
		b := f.buf[f.at:]
		if f.looked == 0 {
			blank := 0 // between frames some senders leave one
			for blank < len(b) && (b[blank] == '\n' || b[blank] == '\r' || b[blank] == 0) {
				blank++
			}
			f.at, b = f.at+blank, b[blank:]
			head, size, told := syslogCount(b)
			if !told {
				return nil, false
			}
			if head > 0 {
				if size > f.max {
					f.truncated++
					f.at, f.skip = f.at+head, int64(size)
					continue
				}
				if len(b) < head+size {
					return nil, false
				}
				f.at += head + size
				return b[head : head+size], true
			}
		}
		n := bytes.IndexByte(b[f.looked:], '\n')
		if n += f.looked; n < f.looked {
			if f.looked = len(b); len(b) > f.max {
				f.truncated++
				f.at, f.looked, f.skip = len(f.buf), 0, -1
			}
			return nil, false
		}
		f.at, f.looked = f.at+n+1, 0
		if n > f.max {
			f.truncated++
			continue
		}
		return b[:n], true
	}
}

// passOver leaves the rest of a message that is too long behind; false if more of it is
// to come.
func (f *syslogFrames) passOver() bool {
	rest := f.buf[f.at:]
	switch {
	case f.skip > 0:
		n := min(f.skip, int64(len(rest)))
		f.at, f.skip = f.at+int(n), f.skip-n
		return f.skip == 0
	case f.skip < 0:
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			f.at = len(f.buf)
			return false
		}
		f.at, f.skip = f.at+n+1, 0
	}
	return true
}

// end is what to call when the stream has ended.
func (f *syslogFrames) end() {
	if f.skip == 0 && len(bytes.Trim(f.buf[f.at:], "\r\n\x00")) > 0 {
		f.truncated++
	}
	*f = syslogFrames{max: f.max, truncated: f.truncated}
}

// syslogCount reads the count of bytes that b begins with, and how long that is with
// its blank; head is 0 if there is none. told is false where more of b is needed.
func syslogCount(b []byte) (head, size int, told bool) {
	const digits = 9
	for i, c := range b {
		switch {
		case c >= '1' && c <= '9' || c == '0' && i > 0:
			if i == digits {
				return 0, 0, true
			}
			size = 10*size + int(c-'0')
		case c == ' ' && i > 0:
			if i+1 == len(b) {
				return 0, 0, false
			}
			if b[i+1] != '<' {
				return 0, 0, true
			}
			return i + 1, size, true
		default:
			return 0, 0, true
		}
	}
	return 0, 0, false
}
