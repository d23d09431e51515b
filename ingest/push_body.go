package ingest

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// bodyReader reads the bodies of pushes within limits.
type bodyReader struct {
	maxBody     int64 // as sent
	maxUnpacked int64
	maxLine     int
	maxMemory   int64 // of all bodies at a time
	inUse       atomic.Int64
}

// maxWindow bounds what a zstd frame can ask for before it has sent anything.
const maxWindow = 8 << 20

// acceptable says why the content type is not one of lines; nil if it is.
func acceptable(contentType string) *problem {
	if contentType == "" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err == nil {
		switch kind {
		case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines",
			"application/json", "application/octet-stream", "application/x-www-form-urlencoded":
			return nil // the last is what curl --data-binary says of any body
		}
		if strings.HasPrefix(kind, "text/") {
			return nil
		}
	}
	return problemf(http.StatusUnsupportedMediaType, "the content type is not one of lines; send application/x-ndjson, or text/plain, with one record a line")
}

// read is the lines of a request's body, and how many there are; the last has its
// newline. release gives the memory back that is counted against all bodies.
func (b *bodyReader) read(r *http.Request) (lines []byte, n int64, release func(), err error) {
	if p := acceptable(r.Header.Get("Content-Type")); p != nil {
		return nil, 0, nil, p
	}
	buf, giveBack, err := b.unpack(r)
	if err != nil {
		return nil, 0, nil, err
	}
	defer func() {
		if err != nil {
			giveBack()
		}
	}()
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/json" && bytes.HasPrefix(bytes.TrimLeft(buf, " \t\r\n"), []byte("[")) {
		return nil, 0, nil, problemf(http.StatusBadRequest, "the body is one JSON array; send one JSON object a line (Fluent Bit: Format json_lines; Vector: framing.method newline_delimited)")
	}
	if len(buf) > 0 && buf[len(buf)-1] != '\n' {
		buf = append(buf, '\n')
	}
	for line := range bytes.Lines(buf) {
		n++
		if len(line) > b.maxLine {
			return nil, 0, nil, problemf(http.StatusRequestEntityTooLarge, "line %d has %d bytes, more than %d; send one record a line", n, len(line), b.maxLine)
		}
	}
	return buf, n, giveBack, nil
}

// unpack is the body of a request, decompressed. release gives the memory back that is
// counted against all bodies.
func (b *bodyReader) unpack(r *http.Request) (buf []byte, release func(), err error) {
	if r.ContentLength > b.maxBody {
		return nil, nil, b.tooLarge()
	}
	sent := &limitedReader{r: r.Body, left: b.maxBody}
	var body io.Reader
	switch encoding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ","))); encoding {
	case "", "identity":
		body = sent
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(sent)
		if err != nil {
			return nil, nil, b.unreadable(encoding, err)
		}
		defer z.Close()
		body = z
	case "zstd":
		z, err := zstd.NewReader(sent, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, b.unreadable(encoding, err)
		}
		defer z.Close()
		body = z
	default:
		p := problemf(http.StatusUnsupportedMediaType, "the content encoding is not known; send gzip, zstd or identity")
		p.header = http.Header{"Accept-Encoding": {"gzip, zstd, identity"}}
		return nil, nil, p
	}

	var held int64
	release = func() { b.inUse.Add(-held) }
	grow := func(n int64) bool {
		held += n
		return b.inUse.Add(n) <= b.maxMemory
	}
	defer func() {
		if err != nil {
			b.inUse.Add(-held)
		}
	}()
	const first = 16 << 10
	for {
		if len(buf) == cap(buf) {
			more := min(max(first, int64(cap(buf))), b.maxUnpacked+1-int64(cap(buf)))
			if more <= 0 {
				return nil, nil, problemf(http.StatusRequestEntityTooLarge, "the body holds more than %d bytes of lines; send fewer lines at a time", b.maxUnpacked)
			}
			if !grow(more) {
				return nil, nil, problemf(http.StatusTooManyRequests, "too many pushes are under way; send this again later").retryAfter(time.Second)
			}
			buf = append(make([]byte, 0, int64(cap(buf))+more), buf...)
		}
		m, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+m]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, b.unreadable(r.Header.Get("Content-Encoding"), err)
		}
	}
	if int64(len(buf)) > b.maxUnpacked {
		return nil, nil, problemf(http.StatusRequestEntityTooLarge, "the body holds more than %d bytes of lines; send fewer lines at a time", b.maxUnpacked)
	}
	return buf, release, nil
}

func (b *bodyReader) tooLarge() *problem {
	return problemf(http.StatusRequestEntityTooLarge, "the body has more than %d bytes; send fewer lines at a time, or compress them", b.maxBody)
}

// unreadable is the answer to a body that could not be read.
func (b *bodyReader) unreadable(encoding string, err error) *problem {
	switch {
	case errors.Is(err, errLimit):
		return b.tooLarge()
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return problemf(http.StatusRequestEntityTooLarge, "the body asks for a window of more than %d MiB; compress it at a lower level", maxWindow>>20)
	case encoding == "" || strings.EqualFold(encoding, "identity"):
		return problemf(http.StatusBadRequest, "the body ended too early; send it again whole")
	}
	return problemf(http.StatusBadRequest, "the body is not what its content encoding %q says, or is cut short; send it again whole", encoding)
}

// limitedReader is an error behind so many bytes, in place of an early end.
type limitedReader struct {
	r    io.Reader
	left int64
}

var errLimit = errors.New("the body is too large")

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, errLimit
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n + int(l.left), errLimit
	}
	return n, err
}
