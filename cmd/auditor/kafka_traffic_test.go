//go:build unix

package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"
)

// Traffic for tests with a real broker, and the truth about it. Everything is
// decided when a request is made up, before anything is sent.

// kafkaTruth is what the rows at rest have to add up to.
type kafkaTruth struct {
	arrivals, verified, claimed uint64
	originals, repeats          uint64
	success, gone               uint64
	absent, malformed, forged   uint64
	unknown, expired, notYet    uint64
	late                        uint64
	copies, sent                uint64
	byTick                      map[int64]*[4]uint64 // arrivals, originals, repeats, late
	firstTick, lastTick         int64
}

// kafkaTraffic makes up requests. Times are Unix microseconds.
type kafkaTraffic struct {
	r       *rand.Rand
	keyed   bool
	parts   int32
	truth   kafkaTruth
	now     int64
	begun   int64
	live    []*asked        // questions that may come again at any moment
	asleep  []*asked        // those that come again after about a horizon
	waiting map[int64][]due // by millisecond of the delivery
	rest    func(part int32) bool
}

// asked is a question.
type asked struct {
	key, path string
	claimed   bool
	last      int64
	wake      int64
}

// due is a line on its way to the log.
type due struct {
	part int32 // -1: any
	key  []byte
	line []byte
}

const (
	kafkaHorizon  = 6 * time.Second
	kafkaLateness = 5 * time.Second
	shipperDelay  = 1500 // ms; two thirds of what the lateness leaves after 1 s of a tick
)

func newKafkaTraffic(seed uint64, keyed bool, parts int32) *kafkaTraffic {
	return &kafkaTraffic{
		r: rand.New(rand.NewPCG(seed, 3)), keyed: keyed, parts: parts, waiting: map[int64][]due{},
		truth: kafkaTruth{byTick: map[int64]*[4]uint64{}}, rest: func(int32) bool { return false },
	}
}

// request makes up one request that starts now, or a microsecond after the last.
func (k *kafkaTraffic) request(now time.Time) {
	k.now = max(k.now+1, now.UnixMicro())
	if k.begun == 0 {
		k.begun = k.now
	}
	r := k.r
	for len(k.asleep) > 0 && k.asleep[0].wake <= k.now {
		q := k.asleep[0]
		k.asleep = k.asleep[1:]
		k.ask(q)
		return
	}
	switch n := r.IntN(1000); {
	case n < 60:
		k.unattributable(n)
	case n < 62 && k.now-k.begun > 3e6:
		k.late()
	case n < 500 && len(k.live) > 0:
		i := r.IntN(len(k.live))
		k.ask(k.live[i])
		if r.IntN(4) == 0 {
			k.live[i] = k.live[len(k.live)-1]
			k.live = k.live[:len(k.live)-1]
		}
	default:
		q := &asked{path: "/seats/" + strconv.Itoa(r.IntN(5000)), claimed: r.IntN(5) == 0}
		if q.claimed {
			q.key = "claim-" + randomText(r, 12)
		} else {
			q.key = k.mint("web", secretA, k.now)
		}
		k.ask(q)
		if r.IntN(50) == 0 {
			q.wake = k.now + kafkaHorizon.Microseconds() - 500_000 + r.Int64N(3_000_000)
			if n := len(k.asleep); n > 0 {
				q.wake = max(q.wake, k.asleep[n-1].wake)
			}
			k.asleep = append(k.asleep, q)
		} else if len(k.live) < 3000 {
			k.live = append(k.live, q)
		} else {
			k.live[r.IntN(len(k.live))] = q
		}
	}
}

func (k *kafkaTraffic) mint(originator, secret string, at int64) string {
	return mintKey(k.r, originator, "a", secret, at/1000)
}

func (k *kafkaTraffic) ask(q *asked) {
	t := &k.truth
	if q.claimed {
		t.claimed++
	} else {
		t.verified++
	}
	tick := k.tick(k.now)
	if q.last != 0 && k.now-q.last <= kafkaHorizon.Microseconds() {
		t.repeats++
		tick[2]++
	} else {
		t.originals++
		tick[1]++
	}
	q.last = k.now
	k.send(k.now, q.key, q.claimed, q.path, k.r.IntN(300) == 0)
}

func (k *kafkaTraffic) unattributable(n int) {
	t, path := &k.truth, "/seats/"+strconv.Itoa(n)
	key := ""
	switch n % 6 {
	case 0:
		t.absent++
	case 1:
		key = "qk1.web.nonsense"
		t.malformed++
	case 2:
		key = k.mint("web", secretB, k.now)
		t.forged++
	case 3:
		key = k.mint("nobody", secretA, k.now)
		t.unknown++
	case 4:
		key = k.mint("web", secretA, k.now-48*3600e6)
		t.expired++
	case 5:
		key = k.mint("web", secretA, k.now+3600e6)
		t.notYet++
	}
	k.tick(k.now)
	k.send(k.now, key, false, path, false)
}

// late makes up a request of long ago whose record comes only now.
func (k *kafkaTraffic) late() {
	at := k.now - 20_000_000 - k.r.Int64N(3_000_000)
	k.truth.late++
	k.tick(at)[3]++
	k.send(at, k.mint("web", secretA, at), false, "/seats/1", false)
}

func (k *kafkaTraffic) tick(at int64) *[4]uint64 {
	t, s := &k.truth, at/1e6
	x := t.byTick[s]
	if x == nil {
		x = new([4]uint64)
		t.byTick[s] = x
	}
	t.arrivals++
	x[0]++
	if t.firstTick == 0 || s < t.firstTick {
		t.firstTick = s
	}
	t.lastTick = max(t.lastTick, s)
	return x
}

// send writes the record of a request down and lets it come a little later, sometimes
// twice.
func (k *kafkaTraffic) send(start int64, key string, claimed bool, path string, twice bool) {
	r := k.r
	status := [...]int{200, 200, 200, 204, 503, 500, 404}[r.IntN(7)]
	b := make([]byte, 0, 320)
	b = append(b, `{"time":"`...)
	b = time.UnixMicro(start).UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	b = append(b, `","time_is":"start","method":"GET","path":"`...)
	b = append(b, path...)
	b = fmt.Appendf(b, `","status":%d,"duration_ms":%d,"peer":"10.0.0.%d:%d"`, status, r.IntN(200), r.IntN(6), 1024+r.IntN(60000))
	if r.IntN(40) == 0 {
		k.truth.gone++
		b = append(b, `,"client_gone":true,"bytes_sent":17`...)
	} else {
		b = append(b, `,"client_gone":false,"bytes_sent":512`...)
	}
	if status < 400 {
		k.truth.success++
	}
	field := `,"question_key":"`
	if claimed {
		field = `,"my_id":"`
	}
	if key != "" {
		b = append(append(append(b, field...), key...), '"')
	}
	b = append(b, '}')
	d := due{part: -1, line: b}
	if k.keyed {
		d.part = r.Int32N(k.parts)
		if key != "" {
			h := fnv.New32a()
			h.Write([]byte(key))
			d.part, d.key = int32(h.Sum32()%uint32(k.parts)), []byte(key)
		}
	}
	at := k.now/1000 + 200
	when := at + r.Int64N(shipperDelay)
	k.waiting[when] = append(k.waiting[when], d)
	if twice {
		k.truth.copies++
		when = at + r.Int64N(shipperDelay)
		k.waiting[when] = append(k.waiting[when], d)
	}
}

// deliver gives the lines of a millisecond to send, with their partitions.
func (k *kafkaTraffic) deliver(ms int64, send func(part int32, key, line []byte)) {
	for _, d := range k.waiting[ms] {
		part := d.part
		for part < 0 || !k.keyed && k.rest(part) {
			part = k.r.Int32N(k.parts)
		}
		k.truth.sent++
		send(part, d.key, d.line)
	}
	delete(k.waiting, ms)
}
