package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sort"
	"sync"
	"time"
)

// FollowConfig says which files to read on as they grow.
type FollowConfig struct {
	// Source is the index of the source in the configuration, given on in Partition.
	Source int
	// Paths are paths and globs, at least one. A path that comes to exist later, or
	// to match later, is read from then on.
	Paths []string
	// Positions keeps how far each path was read; needed.
	Positions Positions
	// Declares is how a line begins that says what the lines behind it hold. Unless it
	// is empty each batch bears what was declared before it in its file. Default: empty.
	Declares string
	// Logger is told what happens to files, never what stands in them. Default: nobody.
	Logger *slog.Logger
	// Poll is how often files are looked at. Default 200 ms.
	Poll time.Duration
	// CloseTimeout is how long a session may take to close, and then its position
	// to be kept. Default 10 s.
	CloseTimeout time.Duration
}

// Follow reads a set of log files on as they grow, and through rotation.
type Follow struct {
	cfg    FollowConfig
	tuning tuning

	mu      sync.Mutex
	tails   map[string]*following // by path
	skipped map[string]string     // what is not read, and why; to say it once
}

// following is a path that is read.
type following struct {
	*tail
	*feed
	ended   chan struct{} // closed when it is not read any more
	leaving bool
	there   time.Time // when it was last there
}

// tuning is what tests make smaller.
type tuning struct {
	chunk   int           // bytes read at once
	maxLine int64         // bytes of a line; longer ones are skipped
	linger  time.Duration // how long a quiet file that was left is still looked at
}

const (
	globEvery   = time.Second      // how often globs are expanded
	retireAfter = time.Minute      // how long a path found by a glob may be away
	missAfter   = 10 * time.Second // how long one that is named itself may be: rotation may make it late
)

// NewFollow checks the configuration; nothing is opened before Run.
func NewFollow(cfg FollowConfig) (*Follow, error) {
	if len(cfg.Paths) == 0 {
		return nil, errors.New("follow: no paths")
	}
	for _, p := range cfg.Paths {
		if _, err := filepath.Match(p, ""); err != nil || p == "" {
			return nil, fmt.Errorf("follow %q: is neither a path nor a glob", p)
		}
	}
	if cfg.Positions == nil {
		return nil, errors.New("follow: nowhere to keep positions")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Poll <= 0 {
		cfg.Poll = 200 * time.Millisecond
	}
	if cfg.CloseTimeout <= 0 {
		cfg.CloseTimeout = 10 * time.Second
	}
	return &Follow{
		cfg: cfg, tuning: tuning{chunk: 256 << 10, maxLine: maxLine, linger: time.Minute},
		tails: map[string]*following{}, skipped: map[string]string{},
	}, nil
}

// Run reads until ctx is done, and then closes every session and keeps its
// position. It returns nil.
func (f *Follow) Run(ctx context.Context, h Handler) error {
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(f.cfg.Poll)
	defer tick.Stop()
	var globbed time.Time
	for {
		if now := time.Now(); now.Sub(globbed) >= globEvery {
			globbed = now
			for _, t := range f.discover(now) {
				running.Go(func() {
					defer close(t.ended)
					t.feed.run(ctx, h)
				})
			}
		}
		f.mu.Lock()
		tails := make([]*following, 0, len(f.tails))
		for _, t := range f.tails {
			tails = append(tails, t)
		}
		f.mu.Unlock()
		for _, t := range tails {
			if t.tail.scan() {
				t.poke()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// discover expands the globs. It returns the paths that are new, and lets those
// go that were found by a glob, are gone and are done with.
func (f *Follow) discover(now time.Time) (fresh []*following) {
	found := map[string]bool{} // whether it is named itself
	for _, p := range f.cfg.Paths {
		if !isGlob(p) {
			found[filepath.Clean(p)] = true
			continue
		}
		names, _ := filepath.Glob(p) // the pattern was checked
		for _, n := range names {
			if n = filepath.Clean(n); !found[n] {
				found[n] = false
			}
		}
	}
	paths := make([]string, 0, len(found))
	for p := range found {
		paths = append(paths, p)
	}
	sort.Strings(paths)

	f.mu.Lock()
	defer f.mu.Unlock()
	for i := 0; i < len(paths); i++ {
		p := paths[i]
		if base := f.family(p, found); base != "" {
			f.skip(p, "is taken for a rotated "+base+" and read as its earlier part")
			if _, ok := found[base]; !ok { // the glob finds it only once it is there
				found[base] = false
				paths = append(paths, base)
			}
			continue
		}
		t := f.tails[p]
		if t == nil {
			literal := found[p]
			if why := unfit(p); why != "" && !literal {
				f.skip(p, why)
				continue
			}
			t = f.start(p, literal)
			fresh = append(fresh, t)
		}
		t.there = now
	}
	for p, t := range f.tails {
		if t.leaving {
			select {
			case <-t.ended:
				delete(f.tails, p)
			default:
			}
			continue
		}
		if t.literal || now.Sub(t.there) < retireAfter || !t.tail.settled() {
			continue
		}
		f.cfg.Logger.Info("the file is gone and read to its end", "path", p)
		close(t.retire)
		t.leaving = true
	}
	for p := range f.skipped {
		if _, ok := found[p]; !ok {
			delete(f.skipped, p)
		}
	}
	return fresh
}

// family is the path of which p is a rotated earlier part, if that is followed;
// empty if p stands for itself.
func (f *Follow) family(p string, found map[string]bool) string {
	for _, base := range rotatedFrom(p) {
		if _, ok := found[base]; ok || f.tails[base] != nil {
			return base
		}
		if filepath.Ext(base) == filepath.Ext(p) {
			continue // access-20261129.log: a log of its own unless access.log is there
		}
		for _, pattern := range f.cfg.Paths {
			if ok, _ := filepath.Match(filepath.Clean(pattern), base); ok {
				return base
			}
		}
	}
	return ""
}

func (f *Follow) skip(p, why string) {
	if f.skipped[p] != why {
		f.skipped[p] = why
		f.cfg.Logger.Info("a file is not followed on its own", "path", p, "why", why)
	}
}

func (f *Follow) start(p string, literal bool) *following {
	t := newTail(p, f.cfg.Paths, f.cfg.Positions, f.cfg.Logger, f.tuning)
	t.declares, t.literal = f.cfg.Declares, literal
	fd := newFeed(Partition{Source: f.cfg.Source, Name: t.name}, t, f.cfg.Logger, f.cfg.CloseTimeout)
	fo := &following{tail: t, feed: fd, ended: make(chan struct{})}
	f.tails[p] = fo
	return fo
}

// Partitions is how far each path is, by name.
func (f *Follow) Partitions() []PartitionState {
	f.mu.Lock()
	tails := make([]*following, 0, len(f.tails))
	for _, t := range f.tails {
		tails = append(tails, t)
	}
	f.mu.Unlock()
	all := make([]PartitionState, 0, len(tails))
	for _, t := range tails {
		s := t.feed.state()
		if s.Err == nil {
			s.Err = t.tail.missing()
		}
		all = append(all, s)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Partition.Name < all[j].Partition.Name })
	return all
}
