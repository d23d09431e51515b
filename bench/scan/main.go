// Command scan is the floor of the comparison: the least that a Go program can
// do and still say how many arrivals each second, dependency and route saw. It
// finds the members it needs by looking for quotes, and groups.
//
// It validates nothing, unescapes nothing, checks no key and keeps no question
// apart from another; on a log other than the generated one it may be wrong
// without a word. What the auditor costs above it is the price of a true answer.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	chunkSize  = 4 << 20
	longestOne = 64 << 10 // a longer line is an error
)

func main() {
	threads := flag.Int("threads", 2, "threads that may run Go code")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: scan [-threads N] FILE")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || *threads < 1 {
		flag.Usage()
		os.Exit(2)
	}
	runtime.GOMAXPROCS(*threads)
	a, err := scanFile(flag.Arg(0), *threads)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(a)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scan:", err)
		os.Exit(1)
	}
}

// answer sums the cells up, as the DuckDB program does.
type answer struct {
	Cells    int64 `json:"cells"`
	Arrivals int64 `json:"arrivals"`
	Keyed    int64 `json:"keyed"`
	Failed   int64 `json:"failed"` // status 500 and above
}

// cell is one (second, dependency, route).
type cell struct{ arrivals, keyed, failed uint32 }

// rows are the cells of one worker: by second, then by pair. A pair is a
// dependency and a route, numbered in the order of appearance.
type rows struct {
	pairs   map[string]int
	seconds map[string]*[]cell
	second  []byte  // of the line before: logs are nearly in order
	latest  *[]cell // its cells
	pair    []byte  // buffer
}

func scanFile(path string, workers int) (answer, error) {
	f, err := os.Open(path)
	if err != nil {
		return answer{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return answer{}, err
	}
	return scan(f, info.Size(), workers, chunkSize)
}

// scan reads size bytes of r. Workers take the next chunk, wherever they are; a
// chunk owns the lines that begin in it.
func scan(r io.ReaderAt, size int64, workers, chunk int) (answer, error) {
	var (
		next  atomic.Int64
		wg    sync.WaitGroup
		parts = make([]rows, workers)
		errs  = make([]error, workers)
	)
	for i := range workers {
		wg.Go(func() {
			parts[i] = rows{pairs: map[string]int{}, seconds: map[string]*[]cell{}}
			buf := make([]byte, 1+chunk+longestOne)
			for errs[i] == nil {
				from := (next.Add(1) - 1) * int64(chunk)
				if from >= size {
					return
				}
				errs[i] = parts[i].chunk(r, buf, from, size, chunk)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return answer{}, err
	}
	return sum(parts), nil
}

// chunk reads one byte early, to know whether a line begins at from, and far
// enough behind to end the last line.
func (w *rows) chunk(r io.ReaderAt, buf []byte, from, size int64, chunk int) error {
	at := max(from-1, 0)
	n, err := r.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
	if err != nil && err != io.EOF {
		return fmt.Errorf("read at %d: %w", at, err)
	}
	b, pos := buf[:n], 0
	end := min(int(from-at)+chunk, n)
	if from > 0 {
		nl := bytes.IndexByte(b, '\n')
		if nl < 0 && at+int64(n) < size {
			return fmt.Errorf("line at %d: longer than %d bytes", at, longestOne)
		}
		if nl < 0 {
			return nil // the last line began before this chunk
		}
		pos = nl + 1
	}
	for pos < end {
		nl := bytes.IndexByte(b[pos:], '\n')
		if nl < 0 {
			if at+int64(n) < size {
				return fmt.Errorf("line at %d: longer than %d bytes", at+int64(pos), longestOne)
			}
			nl = n - pos
		}
		if err := w.line(b[pos : pos+nl]); err != nil {
			return fmt.Errorf("line at %d: %w", at+int64(pos), err)
		}
		pos += nl + 1
	}
	return nil
}

var errNotFound = errors.New("time, dependency and route not found")

// line walks over the members: a name in quotes, a colon, then a value in quotes
// or up to the next comma.
func (w *rows) line(b []byte) error {
	var second, dependency, route, status []byte
	keyed := false
	for {
		open := bytes.IndexByte(b, '"')
		if open < 0 {
			break
		}
		b = b[open+1:]
		shut := bytes.IndexByte(b, '"')
		if shut < 0 || shut+2 >= len(b) {
			break
		}
		name, value := b[:shut], b[shut+2:]
		if value[0] == '"' {
			shut = bytes.IndexByte(value[1:], '"')
			if shut < 0 {
				break
			}
			value, b = value[1:1+shut], value[shut+2:]
		} else {
			shut = bytes.IndexByte(value, ',')
			if shut < 0 {
				shut = len(value) - 1
			}
			value, b = value[:shut], value[shut:]
		}
		switch string(name) {
		case "time":
			if len(value) >= len("2006-01-02T15:04:05") {
				second = value[:len("2006-01-02T15:04:05")]
			}
		case "dependency":
			dependency = value
		case "route":
			route = value
		case "question_key":
			keyed = len(value) > 0
		case "status":
			status = value
		}
	}
	if second == nil || dependency == nil || route == nil {
		return errNotFound
	}
	c := w.cell(second, dependency, route)
	c.arrivals++
	if keyed {
		c.keyed++
	}
	if len(status) == 3 && status[0] >= '5' {
		c.failed++
	}
	return nil
}

func (w *rows) cell(second, dependency, route []byte) *cell {
	if !bytes.Equal(second, w.second) {
		w.second = append(w.second[:0], second...)
		w.latest = w.seconds[string(second)]
		if w.latest == nil {
			w.latest = new([]cell)
			w.seconds[string(second)] = w.latest
		}
	}
	w.pair = append(append(append(w.pair[:0], dependency...), 0), route...)
	pair, ok := w.pairs[string(w.pair)]
	if !ok {
		pair = len(w.pairs)
		w.pairs[string(w.pair)] = pair
	}
	cells := *w.latest
	if pair >= len(cells) {
		cells = append(cells, make([]cell, max(pair+1, len(w.pairs))-len(cells))...)
		*w.latest = cells
	}
	return &cells[pair]
}

// sum merges the workers' cells, since neighbours in the log may have gone to
// different workers, and adds the cells up.
func sum(parts []rows) (a answer) {
	all := &parts[0]
	for i := range parts[1:] {
		all.merge(&parts[1+i])
	}
	for _, cells := range all.seconds {
		for _, c := range *cells {
			if c.arrivals > 0 {
				a.Cells++
			}
			a.Arrivals += int64(c.arrivals)
			a.Keyed += int64(c.keyed)
			a.Failed += int64(c.failed)
		}
	}
	return a
}

// merge adds o's cells to w's; o numbers the pairs in an order of its own.
func (w *rows) merge(o *rows) {
	type names struct{ dependency, route []byte }
	pairs := make([]names, len(o.pairs))
	for name, pair := range o.pairs {
		dependency, route, _ := bytes.Cut([]byte(name), []byte{0})
		pairs[pair] = names{dependency, route}
	}
	for second, cells := range o.seconds {
		for pair, c := range *cells {
			if c.arrivals == 0 {
				continue
			}
			into := w.cell([]byte(second), pairs[pair].dependency, pairs[pair].route)
			into.arrivals += c.arrivals
			into.keyed += c.keyed
			into.failed += c.failed
		}
	}
}
