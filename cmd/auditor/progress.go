package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/targetside/auditor/pipeline"
)

// progress is a bar on standard error, drawn only on a terminal.
type progress struct {
	p     *program
	total int64 // 0 if it is not known
	begun time.Time
	drawn time.Time
}

const (
	barWidth = 30
	barEvery = 100 * time.Millisecond
)

func newProgress(p *program, in []pipeline.Input) *progress {
	b := &progress{p: p, begun: time.Now()}
	for _, x := range in {
		n := fileSize(x.File)
		if n == 0 {
			b.total = 0
			return b
		}
		b.total += n
	}
	return b
}

func (b *progress) show(read int64) {
	if !b.p.terminal || time.Since(b.drawn) < barEvery {
		return
	}
	b.drawn = time.Now()
	const mib = 1 << 20
	rate := float64(read) / mib / max(time.Since(b.begun).Seconds(), 0.001)
	if b.total == 0 {
		fmt.Fprintf(b.p.stderr, "\r\x1b[K%d MiB, %.0f MiB/s", read/mib, rate)
		return
	}
	share := min(float64(read)/float64(b.total), 1)
	done := int(share * barWidth)
	fmt.Fprintf(b.p.stderr, "\r\x1b[K[%s%s] %3.0f %%  %.0f MiB/s", strings.Repeat("#", done), strings.Repeat(".", barWidth-done), 100*share, rate)
}

func (b *progress) clear() {
	if b.p.terminal && !b.drawn.IsZero() {
		fmt.Fprint(b.p.stderr, "\r\x1b[K")
	}
}

// fileSize is the bytes of a file, 0 if it cannot be known before it is read.
func fileSize(name string) int64 {
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() {
		return 0
	}
	return st.Size()
}
