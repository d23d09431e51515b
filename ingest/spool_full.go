package ingest

import (
	"fmt"
	"time"
)

// A spool lets go of what its reader released, and the reader may have to see newer
// records first: seconds close by the stamps of what is sent, never by the clock. Were
// nothing taken while the spool is full, a spool that is full of open seconds would stay
// so for ever. So then, and only then, it takes one write after the other above its
// largest size, each followed by a pause: it grows by its own size in about a minute,
// then in two, in four, and so on. That is enough for a log that is written at the pace
// of the clock to move on, and a log that does not move on cannot fill the disk soon.

const (
	// overdraftSpan is how long the first spool_max above the limit takes.
	overdraftSpan = 64 * time.Second
	// overdraftPause is the longest pause behind one write.
	overdraftPause = time.Minute
	// fullFor is how long after a refusal a spool is said to be full: senders that were
	// refused come back within that.
	fullFor = 2 * maxWait
	// fullAgain is for how long nothing may have been refused before it is logged anew.
	fullAgain = time.Minute
)

// fullness is what a spool knows of being full. The spool's lock guards it.
type fullness struct {
	parched bool      // all is read, and newer records alone make room
	due     time.Time // no write goes above the limit before
	since   time.Time // when the first write of the episode found no room
	latest  time.Time // and the latest
	said    bool      // of this episode it is logged
}

// lacking notes that a write finds no room.
func (f *fullness) lacking(now time.Time) {
	if now.Sub(f.latest) > fullFor {
		f.since = now
	}
	f.latest = now
}

// overdraw says whether a write may go above the limit all the same, which then comes
// to over bytes.
func (f *fullness) overdraw(now time.Time, size, over, limit int64) bool {
	if !f.parched || now.Before(f.due) {
		return false
	}
	pause := time.Duration(float64(overdraftSpan) * float64(size) / float64(limit))
	for ; over >= limit && pause < overdraftPause; over -= limit {
		pause *= 2
	}
	f.due = now.Add(min(pause, overdraftPause))
	return true
}

// why says why the spool has no room; nil while it has, or for as long as that is no
// more than a burst that is being read.
func (f *fullness) why(now time.Time, limit int64) error {
	switch {
	case now.Sub(f.latest) > fullFor:
		return nil
	case f.parched:
		return fmt.Errorf("the spool is full (%d bytes) of records whose seconds are open or may be needed again, and only newer ones make room: it takes one message at a time, and others wait or are refused. Raise spool_max: it has to hold what comes within time.lateness and two keys.horizon", limit)
	case now.Sub(f.since) > fullFor:
		return fmt.Errorf("the spool is full (%d bytes) of records that are not read or not stored yet: messages wait or are refused. See the lag, the store, and the other sources of the dependency", limit)
	}
	return nil
}

// full says why the spool has no room, nil while it has.
func (s *Spool) full() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lack.why(time.Now(), s.cfg.Max)
}

// newer implements limited. Being told each second, it logs that the spool is full, once
// until nothing was refused for a while.
func (r *spoolReader) newer(awaited bool) {
	s := r.s
	s.mu.Lock()
	f, now := &s.lack, time.Now()
	f.parched = awaited
	why, again := f.why(now, s.cfg.Max), f.said && now.Sub(f.latest) > fullAgain
	say := why != nil && !f.said
	f.said = (f.said || say) && !again
	held := s.used()
	s.mu.Unlock()
	switch {
	case say:
		s.log.Warn("messages find no room", "err", why, "bytes", held)
	case again:
		s.log.Info("messages find room again", "bytes", held)
	}
}
