package main

import (
	"bufio"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

type params struct {
	lines int
	span  time.Duration
	seed  uint64
}

// The shape of the traffic; shares are of lines.
const (
	keylessPercent    = 8 // exact, rounded down
	disconnectedShare = 0.03
	maxArrivals       = 27 // three layers of three attempts
	minGap            = 50 * time.Millisecond
	maxGap            = 30 * time.Second // below the horizon of 2 min, so a question stays one
)

// epoch is where event time begins.
var epoch = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// originatorDeadline is what originators.yaml declares for each of them.
const originatorDeadline = 20 * time.Second

var dependencyNames = []string{"inventory", "payments", "pricing", "search"}

type route struct{ method, before, after string }

// name is the route's name: its path with the id folded away.
func (r route) name() string { return r.method + " " + r.before + "{id}" + r.after }

var routes = []route{
	{"GET", "/v1/seats/", ""}, {"PUT", "/v1/seats/", "/hold"}, {"DELETE", "/v1/seats/", "/hold"},
	{"GET", "/v1/flights/", ""}, {"GET", "/v1/flights/", "/seatmap"}, {"GET", "/v1/fares/", ""},
	{"POST", "/v1/fares/", "/quote"}, {"GET", "/v1/carts/", ""}, {"PUT", "/v1/carts/", "/items"},
	{"POST", "/v1/carts/", "/checkout"}, {"GET", "/v1/orders/", ""}, {"POST", "/v1/orders/", "/refund"},
	{"GET", "/v1/bags/", ""}, {"POST", "/v1/bags/", "/tags"}, {"GET", "/v1/guests/", ""},
	{"PATCH", "/v1/guests/", "/meal"}, {"GET", "/v1/vouchers/", ""}, {"POST", "/v1/vouchers/", "/redeem"},
	{"GET", "/v1/gates/", ""}, {"GET", "/v1/offers/", "/similar"},
}

// Two originators have two live secrets: they are in the middle of a rotation.
var originators = []struct {
	id   string
	kids []string
}{
	{"web", []string{"a", "b"}}, {"ios", []string{"a"}}, {"android", []string{"a", "b"}},
	{"kiosk", []string{"k1"}}, {"partner", []string{"c"}},
}

var peers = []struct{ name, agent string }{
	{"bff", "bff/4.18.2 Go-http-client/2.0"}, {"gateway", "edge-gateway/2.31.0"},
	{"checkout", "okhttp/4.12.0 checkout"}, {"planner", "python-httpx/0.27.2"},
	{"mobile-api", "node-fetch/3.3.2 mapi"}, {"kiosk-api", "Apache-HttpClient/5.4"},
	{"loyalty", "Java-http-client/21.0.4"}, {"batch", "go-resty/2.16.2 batch"},
}

// ask is one question, or what would be one had its caller sent a key.
type ask struct {
	keyed                   bool
	dependency, route, peer uint8
	originator, kid         uint8
	id                      uint32 // in the path, the same in every retry
	minted                  int64  // Unix ms
	nonce                   [12]byte
	tag                     [16]byte
}

type departure uint8

const (
	stayed departure = iota
	undeliveredAnswer
	duringResponse
	beforeResponse
	unknownPoint
)

// arrival is one line to be.
type arrival struct {
	end       int64 // Unix ms
	ask       int32
	duration  int32 // ms
	bytes     int32
	status    int16
	ordinal   uint8 // 1 for the first of its ask
	last      bool
	departure departure
}

// attempt is the number the adjacent caller puts on it: each layer above makes
// three attempts and starts again at 1.
func (v *arrival) attempt() int { return (int(v.ordinal)-1)%3 + 1 }

func (v *arrival) refused() bool { return v.status == 429 || v.status == 503 }

// generate writes the four files into dir and returns the truth.
//
// The log is in the order in which requests ended, as a server writes it, so
// starts are out of order by up to the longest duration (20 s). Half the
// questions arrive once, the others 2 to 27 times, 2.9 on average. Successive
// arrivals of a question start 50 ms to 30 s apart (log-uniform; at most a 30th
// of the span, so that a short span holds 27 of them), have the same key and
// path and come by the same peer. An arrival that a retry follows has mostly
// failed. Callers without a key retry like the others, though nobody can tell.
func generate(p params, dir string) (*truth, error) {
	if p.lines < 1 {
		return nil, errors.New("lines must be at least 1")
	}
	if p.span < time.Minute {
		return nil, errors.New("span must be at least 1m")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	secrets := newSecrets(p.seed)
	asks, arrivals := plan(p, secrets)
	t := newTruth(p)
	for i := range arrivals {
		t.add(&asks[arrivals[i].ask], &arrivals[i])
	}
	var err error
	if t.Bytes, err = writeLog(filepath.Join(dir, "access.json.log"), p.seed, asks, arrivals); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		"truth.json":       append(text, '\n'),
		"originators.yaml": secrets.yaml(),
		"auditor.yaml":     []byte(auditorYAML),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return nil, err
		}
	}
	return t, nil
}

const auditorYAML = `dependency: {field: dependency}
sources:
  - file: {paths: ["access.json.log"]}
    format: json
keys: {originators: originators.yaml, horizon: 2m}
`

// plan decides everything: who asks what, and the arrivals in order of end.
func plan(p params, secrets secrets) ([]ask, []arrival) {
	rng := rand.New(rand.NewPCG(p.seed, 0x61756469746f72))
	keyless := p.lines * keylessPercent / 100
	asks := make([]ask, 0, p.lines*2/5)
	arrivals := make([]arrival, 0, p.lines)
	spanMs := float64(p.span.Milliseconds())
	widest := math.Min(float64(maxGap.Milliseconds()), spanMs/30)
	narrowest := float64(minGap.Milliseconds())
	var gaps [maxArrivals]int64

	for len(arrivals) < p.lines {
		keyed := len(arrivals) < p.lines-keyless
		room := p.lines - len(arrivals)
		if keyed {
			room -= keyless
		}
		n := min(arrivalsOf(rng), room)
		length := int64(0)
		for i := range n - 1 {
			gaps[i] = int64(narrowest * math.Pow(widest/narrowest, rng.Float64()))
			length += gaps[i]
		}
		start := epoch.UnixMilli() + rng.Int64N(int64(spanMs)-length)

		a := newAsk(rng, keyed, start)
		if keyed {
			secrets.sign(&a)
		}
		asks = append(asks, a)
		for i := range n {
			v := arrival{ask: int32(len(asks) - 1), ordinal: uint8(i + 1), last: i == n-1}
			v.answer(rng, gaps[i])
			v.end = start + int64(v.duration)
			arrivals = append(arrivals, v)
			start += gaps[i]
		}
	}
	slices.SortFunc(arrivals, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.ask, b.ask), cmp.Compare(a.ordinal, b.ordinal))
	})
	return asks, arrivals
}

func newAsk(rng *rand.Rand, keyed bool, start int64) ask {
	a := ask{
		keyed:      keyed,
		dependency: uint8(rng.IntN(len(dependencyNames))),
		route:      uint8(rng.IntN(len(routes))),
		peer:       uint8(rng.IntN(len(peers))),
		originator: uint8(rng.IntN(len(originators))),
		id:         10_000 + rng.Uint32N(90_000_000),
		minted:     start - 1 - rng.Int64N(200),
	}
	a.kid = uint8(rng.IntN(len(originators[a.originator].kids)))
	binary.LittleEndian.PutUint64(a.nonce[:], rng.Uint64())
	binary.LittleEndian.PutUint32(a.nonce[8:], rng.Uint32())
	return a
}

// arrivalsOf draws how often a question is asked: once in half the cases, else
// 2 and a geometric tail, cut at 27. The mean is 2.9.
func arrivalsOf(rng *rand.Rand) int {
	n := 1
	if rng.IntN(2) == 0 {
		for n = 2; n < maxArrivals && rng.Float64() < 0.738; n++ {
		}
	}
	return n
}

// answer draws duration, status, bytes and departure. gap is the time to the
// next arrival of the same question: nine in ten retries come after the answer.
func (v *arrival) answer(rng *rand.Rand, gap int64) {
	between := func(lo, hi float64) int32 { return int32(lo * math.Pow(hi/lo, rng.Float64())) }
	switch u := rng.Float64(); {
	case u < 0.85:
		v.duration = between(2, 200)
	case u < 0.98:
		v.duration = between(200, 5_000)
	default:
		v.duration = between(5_000, 20_000)
	}
	v.bytes = between(40, 60_000)
	if rng.Float64() < disconnectedShare {
		v.leave(rng)
	} else {
		v.status = pick(rng, v.last)
	}
	if v.status >= 400 && v.departure == stayed {
		v.bytes = 40 + v.bytes%300 // an error page is short
	}
	if !v.last && rng.IntN(10) > 0 {
		v.duration = min(v.duration, int32(gap)-1)
	}
}

func (v *arrival) leave(rng *rand.Rand) {
	v.status = 200
	switch u := rng.Float64(); {
	case u < 0.25:
		v.departure, v.status, v.bytes = beforeResponse, 499, 0
	case u < 0.5:
		v.departure, v.status, v.bytes = beforeResponse, 0, 0
	case u < 0.7:
		v.departure = duringResponse
	case u < 0.9:
		v.departure, v.bytes = undeliveredAnswer, 0
	default:
		v.departure = unknownPoint
	}
}

func pick(rng *rand.Rand, last bool) int16 {
	u := rng.Float64()
	if last {
		switch {
		case u < 0.88:
			return 200
		case u < 0.92:
			return 201
		case u < 0.96:
			return 404
		case u < 0.99:
			return 503
		}
		return 500
	}
	switch {
	case u < 0.55:
		return 503
	case u < 0.75:
		return 504
	case u < 0.85:
		return 500
	case u < 0.90:
		return 429
	}
	return 200
}

// secrets are by originator and kid, as text: the bytes of the text are the
// key of the HMAC.
type secrets [][]string

func newSecrets(seed uint64) secrets {
	s := make(secrets, len(originators))
	for i, o := range originators {
		for _, kid := range o.kids {
			sum := sha256.Sum256(fmt.Appendf(nil, "bench secret of %s, %s, seed %d", o.id, kid, seed))
			s[i] = append(s[i], hex.EncodeToString(sum[:]))
		}
	}
	return s
}

func (s secrets) yaml() []byte {
	b := []byte("originators:\n")
	for i, o := range originators {
		b = fmt.Appendf(b, "  - id: %s\n    deadline: %s\n    keys:\n", o.id, originatorDeadline)
		for j, kid := range o.kids {
			b = fmt.Appendf(b, "      - {kid: %s, secret: %q}\n", kid, s[i][j])
		}
	}
	return b
}

func (s secrets) sign(a *ask) {
	mac := hmac.New(sha256.New, []byte(s[a.originator][a.kid]))
	mac.Write(a.signed(nil))
	copy(a.tag[:], mac.Sum(nil))
}

// signed appends the part of the key that its tag covers.
func (a *ask) signed(b []byte) []byte {
	o := originators[a.originator]
	b = append(append(b, "qk1."...), o.id...)
	b = append(append(append(b, '.'), o.kids[a.kid]...), '.')
	b = append(strconv.AppendInt(b, a.minted, 36), '.')
	return base64.RawURLEncoding.AppendEncode(b, a.nonce[:])
}

func (a *ask) key(b []byte) []byte {
	return base64.RawURLEncoding.AppendEncode(append(a.signed(b), '.'), a.tag[:])
}

func writeLog(path string, seed uint64, asks []ask, arrivals []arrival) (written int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	line := make([]byte, 0, 512)
	for i := range arrivals {
		v := &arrivals[i]
		line = v.appendLine(line[:0], &asks[v.ask], seed, i)
		written += int64(len(line))
		if _, err := w.Write(line); err != nil {
			return written, err
		}
	}
	if err := w.Flush(); err != nil {
		return written, err
	}
	return written, f.Sync() // or writing back would run beside the first measurement
}

// appendLine appends the record and its newline. arrival_id is the logger's own
// and unlike any other; nothing in a line needs an escape.
func (v *arrival) appendLine(b []byte, a *ask, seed uint64, serial int) []byte {
	r, p := routes[a.route], peers[a.peer]
	b = append(b, `{"time":"`...)
	b = time.UnixMilli(v.end).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, `","time_is":"end","dependency":"`...)
	b = append(b, dependencyNames[a.dependency]...)
	b = append(b, `","route":"`...)
	b = append(b, r.name()...)
	b = append(b, `","method":"`...)
	b = append(b, r.method...)
	b = append(b, `","path":"`...)
	b = append(b, r.before...)
	b = strconv.AppendUint(b, uint64(a.id), 10)
	b = append(b, r.after...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(v.status), 10)
	b = append(b, `,"duration_ms":`...)
	b = strconv.AppendInt(b, int64(v.duration), 10)
	if v.departure != unknownPoint {
		b = append(b, `,"bytes_sent":`...)
		b = strconv.AppendInt(b, int64(v.bytes), 10)
	}
	b = append(b, `,"peer":"`...)
	b = append(b, p.name...)
	b = append(b, `","user_agent":"`...)
	b = append(b, p.agent...)
	if a.keyed {
		b = append(b, `","question_key":"`...)
		b = a.key(b)
	} else {
		b = append(b, ` (compatible; no key; see https://wiki.example/keys)`...)
	}
	b = append(b, `","attempt":`...)
	b = strconv.AppendInt(b, int64(v.attempt()), 10)
	b = append(b, `,"attempt_scope":"hop","client_gone":`...)
	b = strconv.AppendBool(b, v.departure != stayed)
	b = append(b, `,"arrival_id":"`...)
	b = fmt.Appendf(b, "%04x%012x", uint16(seed), serial)
	return append(b, "\"}\n"...)
}
