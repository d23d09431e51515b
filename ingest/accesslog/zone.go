package accesslog

import "time"

// localCache holds the offset of the local half hour that was read last: no zone
// changes its clock in mid of one.
type localCache struct {
	from   int64 // local seconds
	offset int64 // seconds east of UTC
	again  int64
	ok     bool
}

const halfHour = 1800

// unix turns the seconds that a local clock shows, counted as if it were UTC, into
// Unix time. again is how much later the same clock shows the same once more,
// where it was set back then; the first time is the one returned. What the clock
// passed over in spring is read as if it had not yet been set.
func (c *localCache) unix(zone *time.Location, local int64) (second, again int64) {
	from := local - local%halfHour
	if !c.ok || c.from != from {
		*c = localCache{from: from, ok: true}
		early, late := offsetAt(zone, from-86400), offsetAt(zone, from+86400)
		c.offset = early
		switch {
		case offsetAt(zone, from-early) == early:
			// The offset of yesterday is right; perhaps tomorrow's is, too.
			if late < early && offsetAt(zone, from-late) == late {
				c.again = early - late
			}
		case offsetAt(zone, from-late) == late:
			c.offset = late
		}
	}
	return local - c.offset, c.again
}

func offsetAt(zone *time.Location, unix int64) int64 {
	_, offset := time.Unix(unix, 0).In(zone).Zone()
	return int64(offset)
}
