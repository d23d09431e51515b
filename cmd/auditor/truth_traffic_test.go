package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Random traffic: who asks what, what goes wrong, how the shipper delivers it, and
// the configuration under which it is audited.

// scenario is one random log and the configuration that it is read with.
type scenario struct {
	seed                     uint64
	format                   string
	horizon, lateness        int64 // ms
	lifetime, skew           int64
	claimField               string // "", idempotency_key or any other
	claimFirst               bool
	requireVerified          bool
	scope                    string
	trusted                  bool
	deadlines, callerTimeout map[string]int64
	dependency               string
	budget                   budgetRules
	garbage, files           int // lines that cannot be read; files
	jitter                   int64
	asks                     bool // responses may carry Retry-After
	base, span               int64
	order                    []int // of the file arguments
	zipped                   bool
	refused                  []int
	item                     bool // a field tells the calls of POST /holds/{id} apart
}

type budgetRules struct {
	ratio, coverageFloor        float64
	floor, clients, minArrivals int
	window                      int64 // seconds
	low                         float64
	routes                      map[string]float64
}

func (s *scenario) claimName() string {
	if s.claimField == "idempotency_key" {
		return "idempotency-key"
	}
	return s.claimField
}

const (
	secretA = "truth-web-a-0123456789-0123456789-not-real"
	secretB = "truth-web-b-0123456789-0123456789-not-real"
	secretJ = "truth-job-a-0123456789-0123456789-not-real"
)

func newScenario(seed uint64) (*scenario, *rand.Rand) {
	r := rand.New(rand.NewPCG(seed, 7))
	s := &scenario{seed: seed, lateness: 60_000, skew: 5_000, lifetime: 24 * 3_600_000, scope: "hop", dependency: "inventory"}
	s.format = []string{"json", "envoy-json", "nginx-json"}[seed%3]
	s.horizon = []int64{30_000, 60_000, 90_000, 120_000}[r.IntN(4)]
	s.deadlines = map[string]int64{"web": []int64{2_000, 5_000, s.horizon / 3}[r.IntN(3)]}
	if r.IntN(2) == 0 {
		s.callerTimeout = map[string]int64{"bff": 1_000 + r.Int64N(s.horizon/3-1_000)}
	}
	if r.IntN(3) == 0 {
		s.lifetime = 60_000 + r.Int64N(120_000)
	}
	if r.IntN(4) == 0 {
		s.skew = 1_000
	}
	if r.IntN(2) == 0 {
		s.claimField = []string{"idempotency_key", "my_id"}[r.IntN(2)]
		s.claimFirst = r.IntN(2) == 0
		s.requireVerified = r.IntN(4) == 0
	}
	if s.format != "envoy-json" && r.IntN(3) == 0 {
		s.scope = "origin"
	}
	s.trusted = s.format == "envoy-json" && r.IntN(3) == 0
	s.budget = budgetRules{ratio: []float64{.1, .2, .5}[r.IntN(3)], coverageFloor: []float64{.85, .5, .2}[r.IntN(3)],
		floor: r.IntN(2), clients: 1 + r.IntN(2), minArrivals: []int{3, 10, 20}[r.IntN(3)]}
	if r.IntN(3) == 0 {
		s.budget.routes = map[string]float64{"GET /seats/{id}": .3}
	}
	s.budget.window = []int64{10, 10, 5, 20}[r.IntN(4)]
	s.budget.low = []float64{.5, .3}[r.IntN(2)]
	s.lateness = []int64{60_000, 60_000, 150_000}[r.IntN(3)]
	s.refused = [][]int{{429, 503}, {429, 503}, {503}, {429, 503, 504}}[r.IntN(4)]
	s.item = r.IntN(3) == 0
	s.zipped = r.IntN(4) == 0
	s.files = 1
	if r.IntN(2) == 0 {
		s.files = 2 + r.IntN(3)
	}
	s.order = r.Perm(s.files)
	if r.IntN(2) == 0 {
		s.jitter = 1 + r.Int64N(55_000)
	}
	s.asks = r.IntN(5) > 0
	if r.IntN(3) == 0 {
		s.garbage = 1 + r.IntN(4)
	}
	s.base = 1_772_359_200_000 + r.Int64N(3_600_000)
	s.span = 60_000 + r.Int64N(300_000)
	if r.IntN(5) == 0 {
		s.span += 400_000
	}
	return s, r
}

// operations are what the target can be asked for. %s is the id.
var operations = []struct{ method, path, route string }{
	{"GET", "/seats/%d", "GET /seats/{id}"},
	{"POST", "/holds/%d", "POST /holds/{id}"},
	{"PATCH", "/holds/%d", "PATCH /holds/{id}"},
	{"PUT", "/seats/%d/name", "PUT /seats/{id}/name"},
	{"DELETE", "/drafts/0f8fad5b-d9cb-469f-a165-70867728%04d", "DELETE /drafts/{id}"},
	{"GET", "/blobs/cafe%04d/part", "GET /blobs/{id}/part"},
	{"GET", "/list", "GET /list"},
}

func (s *scenario) traffic(r *rand.Rand) []wanted {
	var out []wanted
	ends := map[int64]bool{}
	peers := []string{"bff", "gateway", "batch", "mesh"}
	deps := []string{"inventory", "inventory", "inventory", "prices"}
	troubled := s.base + r.Int64N(s.span) // an incident: everything fails for a while
	questions := 60 + r.IntN(200)
	spread := r.IntN(3) // 0: one peer each, else mixed
	for range questions {
		at := s.base + r.Int64N(s.span)
		population := r.IntN(100)
		op := operations[r.IntN(len(operations))]
		path := op.path
		if strings.Contains(path, "%") {
			path = fmt.Sprintf(path, r.IntN(50))
		}
		dep := deps[r.IntN(len(deps))]
		peer := peers[r.IntN(len(peers))]
		originator, kid, secret := "web", "a", secretA
		switch r.IntN(3) {
		case 0:
			kid, secret = "b", secretB
		case 1:
			originator, kid, secret = "jobs", "a", secretJ
		}
		minted0 := at - r.Int64N(3_000)
		if r.IntN(12) == 0 {
			minted0 = at - r.Int64N(2*s.horizon) // waited long before it came here
		}
		good := minted{"good", originator, minted0}
		key := mintKey(r, originator, kid, secret, minted0)
		claim := ""
		n := 1
		if r.IntN(3) == 0 {
			n += r.IntN(7)
		}
		tight := false
		if r.IntN(60) == 0 {
			n, tight = 30+r.IntN(50), r.IntN(2) == 0
		}
		start := at
		left := -1
		if r.IntN(3) == 0 {
			left = r.IntN(5)
		}
		numbers := r.IntN(4) // 0: none are written
		polling := r.IntN(15) == 0
		for i := range n {
			if i > 0 {
				if start += s.pause(r); tight {
					start = out[len(out)-1].start + r.Int64N(400)
				}
			}
			w := wanted{start: start, dep: dep, method: op.method, path: path, route: op.route, peer: peer,
				grpc: -1, attempt: -1, left: -1, timeout: -1, retryAfter: -1, key: key, minted: good, bytes: r.IntN(100_000)}
			if spread > 0 && r.IntN(3) == 0 {
				w.peer = peers[r.IntN(len(peers))]
			}
			if numbers > 0 {
				w.attempt = 1
				if numbers > 1 {
					w.attempt = i + 1
				}
				if numbers == 3 && r.IntN(3) == 0 {
					w.attempt = 1 + r.IntN(3)
				}
			}
			if left >= 0 && r.IntN(4) > 0 {
				w.left = left
				left = max(left+[]int{-1, -1, -1, 0, 1}[r.IntN(5)], 0)
			}
			switch {
			case population < 50: // honest
			case population < 58: // a layer that keys every attempt anew
				w.minted.at = start - r.Int64N(200)
				w.key = mintKey(r, originator, kid, secret, w.minted.at)
				w.attempt = i + 1
			case population < 62:
				w.key = strings.TrimSuffix(key, key[len(key)-22:]) + randomText(r, 16)
				w.minted.verdict = "forged"
			case population < 65:
				w.minted.at = start - s.lifetime + []int64{-5, 5, -90_000}[r.IntN(3)]
				w.key = mintKey(r, originator, kid, secret, w.minted.at)
			case population < 68:
				w.minted.at = start + s.skew + []int64{-5, 5, 90_000}[r.IntN(3)]
				w.key = mintKey(r, originator, kid, secret, w.minted.at)
			case population < 71:
				w.key = mintKey(r, "ghost", "a", secret, minted0)
				if r.IntN(2) == 0 {
					w.key = mintKey(r, originator, "zz", secret, minted0)
				}
				w.minted = minted{"unknown_originator", "", 0}
			case population < 74:
				w.key = []string{"hello", "qk1.", key + "=", key + ".x", "qk1.Web" + key[7:], key[:len(key)-1], strings.Replace(key, "."+kid+".", ".KID.", 1), "qk9" + key[3:]}[r.IntN(8)]
				w.minted = minted{"malformed", "", 0}
			case population < 80:
				w.key, w.minted = "", minted{}
			case population < 90: // claimed, alone or beside a good or bad signed key
				if s.claimField != "" {
					claim = "c-" + key[len(key)-12:]
					w.claim = claim
					switch r.IntN(4) {
					case 0:
					case 1:
						w.key, w.minted = "broken", minted{"malformed", "", 0}
					default:
						w.key, w.minted = "", minted{}
					}
				}
			default: // fan-out: several ids and operations under one key
				o := operations[r.IntN(3)]
				w.method, w.route, w.path = o.method, o.route, fmt.Sprintf(o.path, r.IntN(3))
				if r.IntN(6) == 0 {
					w.dep = deps[r.IntN(len(deps))]
				}
			}
			if r.IntN(10) == 0 {
				w.path += "?page=" + strconv.Itoa(r.IntN(9))
			}
			if s.item && w.route == "POST /holds/{id}" {
				w.item = strconv.Itoa(r.IntN(2))
			}
			s.fate(r, &w, start >= troubled && start < troubled+30_000, polling)
			for ends[w.start+w.dur] { // equal starts and ends: see TestTruthOfEquals
				w.dur++
			}
			ends[w.start+w.dur] = true
			out = append(out, w)
		}
	}
	for range r.IntN(6) {
		h := wanted{start: s.base + r.Int64N(s.span), dur: 1, dep: "inventory", method: "GET", path: "/healthz", route: "GET /healthz", peer: "bff",
			status: 200, grpc: -1, attempt: -1, left: -1, timeout: -1, retryAfter: -1, healthcheck: true, bytes: r.IntN(1000)}
		if r.IntN(2) == 0 {
			h.path, h.agent = "/list", "kube-probe"
		}
		out = append(out, h)
	}
	return out
}

func (s *scenario) pause(r *rand.Rand) int64 {
	switch r.IntN(20) {
	case 0:
		return s.horizon // the last moment at which it is still a repeat
	case 1:
		return s.horizon + 1
	case 2:
		return s.horizon - 1
	case 3:
		return s.horizon + r.Int64N(20_000)
	case 4:
		return 0
	case 5, 6:
		return r.Int64N(20_000)
	}
	return r.Int64N(2_000)
}

// fate draws what becomes of a request.
func (s *scenario) fate(r *rand.Rand, w *wanted, trouble, polling bool) {
	w.dur = r.Int64N(300)
	switch r.IntN(40) {
	case 0, 1, 2:
		w.dur = r.Int64N(12_000)
	case 3:
		w.dur = 40_000 + r.Int64N(200_000) // hangs; some longer than a tick stays open
	}
	w.status = []int{200, 200, 200, 200, 201, 302, 404, 500, 502, 503, 429, 504}[r.IntN(12)]
	if trouble {
		w.status = []int{200, 500, 503, 503, 504, 429}[r.IntN(6)]
	}
	if polling {
		w.status = 200
	}
	if w.status == 200 && r.IntN(12) == 0 {
		w.grpc = []int{0, 0, 5, 8, 13, 14}[r.IntN(6)]
	}
	if r.IntN(6) == 0 {
		w.gone = []string{goneUndelivered, goneDuring, goneBefore, goneUnknown}[r.IntN(4)]
	}
	w.mute = r.IntN(12) == 0
	if r.IntN(4) == 0 {
		w.timeout = 50 + r.Int64N(2_000)
	}
	if s.asks && (w.status == 503 || w.status == 429) && r.IntN(2) == 0 {
		w.retryAfter = r.IntN(8)
	}
	w.timeEnd = r.IntN(2) == 0
}

// lines writes the traffic into files, as a shipper delivers it.
func (s *scenario) lines(r *rand.Rand, traffic []wanted) []seen {
	var l formatWriter
	switch s.format {
	case "json":
		l = jsonLog{s}
	case "envoy-json":
		l = envoyLog{s}
	default:
		l = nginxLog{s}
	}
	type placed struct {
		seen
		at int64
	}
	var all []placed
	for _, w := range traffic {
		x := l.write(r, w)
		all = append(all, placed{x, x.end() + r.Int64N(s.jitter+1)})
		if r.IntN(40) == 0 { // at least once
			all = append(all, placed{x, x.end() + r.Int64N(s.jitter+1)})
		}
	}
	for i := range s.garbage {
		at := s.base + r.Int64N(s.span)
		all = append(all, placed{seen{line: []string{"no record", `{"status": 200}`, `{"method"`, "\x00\x01"}[i], garbage: true}, at})
	}
	slices.SortStableFunc(all, func(a, b placed) int { return int(a.at - b.at) })
	out := make([]seen, 0, len(all))
	for i, p := range all {
		p.file, p.pos = i*s.files/len(all), i
		out = append(out, p.seen)
	}
	return out
}

func (s *scenario) config() string {
	var b strings.Builder
	var l formatWriter = nginxLog{s}
	dep := s.dependency
	switch s.format {
	case "json":
		l, dep = jsonLog{s}, "{field: service}"
	case "envoy-json":
		l, dep = envoyLog{s}, "{field: upstream_cluster}"
	}
	fmt.Fprintf(&b, "dependency: %s\nsources:\n  - file: {paths: [\"*.log\"], follow: false}\n%s", dep, l.source())
	b.WriteString("routes: {templates: [\"GET /seats/{id}\", \"/holds/{id}\"]}\n")
	b.WriteString("peers:\n  map: {")
	for i, p := range slices.Sorted(maps.Keys(peerAddr)) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q: %s", peerAddr[p], p)
	}
	b.WriteString("}\n")
	if len(s.callerTimeout) > 0 {
		fmt.Fprintf(&b, "  caller_timeout: {bff: %dms}\n", s.callerTimeout["bff"])
	}
	fmt.Fprintf(&b, "responses: {refused: %s}\n", strings.ReplaceAll(fmt.Sprint(s.refused), " ", ", "))
	b.WriteString("ignore: {paths: [/healthz], user_agents: [kube-probe]}\n")
	fmt.Fprintf(&b, "time: {lateness: %dms, skew: %dms}\n", s.lateness, s.skew)
	accept := []string{"qk1"}
	if s.claimField != "" {
		name := "idempotency-key"
		if s.claimField != "idempotency_key" {
			name = "{field: " + s.claimField + "}"
		}
		accept = append(accept, name)
		if s.claimFirst {
			slices.Reverse(accept)
		}
	}
	fmt.Fprintf(&b, "keys: {accept: [%s], require_verified: %v, originators: originators.yaml, horizon: %dms, lifetime: %dms",
		strings.Join(accept, ", "), s.requireVerified, s.horizon, s.lifetime)
	if s.item {
		b.WriteString(`, discriminator: {"POST /holds/{id}": {field: item}}`)
	}
	b.WriteString("}\n")
	fmt.Fprintf(&b, "budget: {ratio: %v, floor_per_second: %d, clients: %d, min_arrivals: %d, coverage_floor: %v, window: %ds, low: %v", s.budget.ratio, s.budget.floor, s.budget.clients, s.budget.minArrivals, s.budget.coverageFloor, s.budget.window, s.budget.low)
	if s.budget.routes != nil {
		b.WriteString(", routes: {")
		for k, v := range s.budget.routes {
			fmt.Fprintf(&b, "%q: {ratio: %v, floor_per_second: 0}", k, v)
		}
		b.WriteString("}")
	}
	b.WriteString("}\n")
	return b.String()
}

func (s *scenario) originators() string {
	return fmt.Sprintf(`originators:
  - id: web
    deadline: %dms
    keys:
      - {kid: a, secret: %q}
      - {kid: b, secret: %q}
  - id: jobs
    keys:
      - {kid: a, secret: %q}
`, s.deadlines["web"], secretA, secretB, secretJ)
}
