package pipeline

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/keys"
)

// sentArrival is what a parcel says of an arrival, by names.
type sentArrival struct {
	at               place
	arrival          aggregate.Arrival
	late             bool
	route            routeName
	peer, originator string
	keyHash          string
}

var testPrint = [8]byte{1, 2, 3, 4, 5, 6, 7, 8}

// parcels are those of some arrivals, whose names are of the decoder made here.
func parcels(t testing.TB, r *rand.Rand, n, size int, head parcelHead) (out [][]byte, want []sentArrival) {
	t.Helper()
	cfg := liveConfig(t, newRowStore())
	cfg.Exchanged = [][]string{{"kafka a"}}
	x := NewLive(cfg).exchange
	d := <-x.decoders
	for i := range 40 {
		d.names.newRoute(routeName{[]string{"seats", ""}[i%2], strings.Repeat("/r", i)})
		d.names.newPeer(fmt.Appendf(nil, "peer-%d", i))
	}
	w := newParcelWriter(head.from.offset, size)
	offset, last := head.from.offset, place{-1, 0}
	for range n {
		offset += r.Int64N(3)
		d.at = ingest.Ref{Line: 1, Offset: offset}
		start := noon.UnixNano() + r.Int64N(1e12) - 5e11
		a := aggregate.Arrival{
			Start: start, Log: start + r.Int64N(1e10) - 1e9, Duration: r.Int64N(1e10) - 1, RetryAfter: (r.Int64N(100) - 1) * 1e9,
			Text: uint64(r.Uint32()), Route: uint16(r.IntN(40)), Flags: aggregate.Flags(r.Uint32()) & allFlags,
			Outcome: aggregate.Outcome(r.IntN(5)), Departure: aggregate.Departure(r.IntN(5)), Kind: aggregate.Kind(r.IntN(3)),
			Attempt: uint8(r.Uint32()), AttemptsLeft: uint8(r.Uint32()), Class: keys.Class(r.IntN(3)),
		}
		if a.Duration < 0 {
			a.Duration = -1
		}
		a.RetryAfter = aggregate.UnpackRetry(aggregate.PackRetry(a.RetryAfter))
		s := sentArrival{at: place{offset, 0}, late: r.IntN(5) == 0}
		if offset == last.offset {
			s.at.nth = last.nth + 1
		}
		last = s.at
		d.peer = uint16(r.IntN(40))
		d.exchange.keyHash = [16]byte{}
		if a.Class == keys.Unattributable {
			a.Reason = keys.Reason(1 + r.IntN(keys.NumReasons-1))
		} else {
			a.Question, a.Lot = aggregate.ID{Key: r.Uint64(), Rest: r.Uint64()}, aggregate.Lot(r.Uint32())
			a.Originator = uint16(r.IntN(len(d.exchange.originators)))
			d.exchange.keyHash[3] = byte(r.Uint32())
			s.originator, s.keyHash = d.exchange.originators[a.Originator], string(d.exchange.keyHash[:])
		}
		d.arrival = a
		s.route, s.peer = d.names.routeList[a.Route], d.names.peers[d.peer]
		a.Route, a.Originator = 0, 0
		s.arrival = a
		want = append(want, s)
		w.add(d, s.late)
	}
	return w.take(head, testPrint, offset+5, head.mark-1), want
}

// unpacked is what a parcel holds.
func unpacked(b []byte) (parcelHead, []sentArrival, error) { return openParcel(testPrint, b) }

func openParcel(print [8]byte, b []byte) (h parcelHead, got []sentArrival, err error) {
	var r parcelReader
	if err := r.open(b, print); err != nil {
		return h, nil, err
	}
	h = r.parcelHead
	for {
		ok, err := r.next()
		if !ok {
			return h, got, err
		}
		s := sentArrival{at: r.at, arrival: r.arrival, late: r.late, route: r.routes[r.route], peer: r.peers[r.peer], keyHash: string(r.keyHash)}
		if r.arrival.Class != keys.Unattributable {
			s.originator = r.originators[r.originator]
		}
		got = append(got, s)
	}
}

func TestParcels(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		head := parcelHead{of: 1 + r.IntN(9), source: "kafka a/7", siblings: 8, from: place{r.Int64N(1 << 40), 0}, mark: noon.UnixMilli()}
		if r.IntN(2) == 0 {
			head.idle = noon.UnixMilli() + r.Int64N(1000)
		}
		size := []int{1, 300, parcelSize}[r.IntN(3)]
		all, want := parcels(t, r, r.IntN(60), size, head)
		var got []sentArrival
		at := head.from
		for i, b := range all {
			h, some, err := unpacked(b)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if last := i == len(all)-1; h.from != at || h.of != head.of || h.source != head.source || h.siblings != head.siblings ||
				last && (h.mark != head.mark || h.idle != head.idle) || !last && (h.mark != head.mark-1 || h.idle != 0) {
				t.Errorf("seed %d: parcel %d of %d says %+v after %+v, of %+v", seed, i, len(all), h, at, head)
			}
			for _, s := range some {
				if s.at.before(h.from) || !s.at.before(h.to) {
					t.Errorf("seed %d: an arrival at %v in a parcel from %v to %v", seed, s.at, h.from, h.to)
				}
			}
			at = h.to
			got = append(got, some...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: %d arrivals came of %d, or other ones", seed, len(got), len(want))
		}
	}
}

func TestParcelsOfOthers(t *testing.T) {
	all, _ := parcels(t, rand.New(rand.NewPCG(1, 1)), 10, parcelSize, parcelHead{of: 2, source: "kafka a/1", siblings: 2, mark: 5})
	change := func(at int, to byte) []byte {
		b := slices.Clone(all[0])
		b[at] = to
		return b
	}
	for name, c := range map[string]struct {
		parcel []byte
		want   error
		says   string
	}{
		"nothing":         {nil, errNoParcel, ""},
		"a log line":      {[]byte(`{"time":"2026-03-03T12:00:00Z"}`), errNoParcel, ""},
		"a later version": {change(3, 9), ErrExchange, "version 9"},
		"another salt":    {change(4, 99), ErrExchange, "keys.salt_file"},
		"cut short":       {all[0][:len(all[0])-1], errParcelDamaged, ""},
		"too long":        {append(slices.Clone(all[0]), 0), errParcelDamaged, ""},
	} {
		if _, _, err := unpacked(c.parcel); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a record of the exchange's topic holds, it is read or refused.
func FuzzParcel(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{0, 1, 12} {
		all, _ := parcels(f, r, n, 400, parcelHead{of: 3, source: "kafka a/1", siblings: 2, from: place{77, 0}, mark: noon.UnixMilli(), idle: 9})
		for _, b := range all {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, got, err := unpacked(b)
		if err != nil {
			return
		}
		if h.to.before(h.from) || h.of < 1 || h.siblings < 1 {
			t.Errorf("read %+v", h)
		}
		last := h.from
		for i, s := range got {
			if s.at.before(last) || !s.at.before(h.to) || i > 0 && s.at == last {
				t.Errorf("an arrival at %v after %v, in a parcel up to %v", s.at, last, h.to)
			}
			last = s.at
		}
	})
}
