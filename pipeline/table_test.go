package pipeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/targetside/auditor/ingest"
)

func TestTablesFitMetadata(t *testing.T) {
	mark := noon.UnixMilli()
	// Numbers as large as they get: partitions a day apart, the longest names of topics.
	l := left{EmitFrom: noon.Unix(), Mark: ns(mark), Rules: math.MaxUint32, Warm: noon.Unix(), Done: 1 << 40, table: &table{of: 100}}
	topics := []string{"kafka " + fmt.Sprintf("%0249d", 1), "kafka short"}
	for i := range maxOrigins {
		o, _ := l.table.origin(topics[i%2], i)
		o.of, o.next, o.mark, o.idle = maxOrigins, place{1<<41 + int64(i), 0}, mark+86_400_000+int64(i), mark+86_400_000
	}
	text := l.String()
	if len(text) > ingest.MaxMetadata {
		t.Errorf("metadata has %d bytes, at most %d are kept", len(text), ingest.MaxMetadata)
	}
	got, known, err := parseLeft(text)
	if err != nil || !known || got.table.of != 100 || !slices.Equal(got.table.origins, l.table.origins) {
		t.Errorf("read back it is %+v %v %v", got.table, known, err)
	}
}

func TestTablesAreReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		base := r.Int64N(1 << 40)
		a := &table{of: 1 + r.IntN(100)}
		for range r.IntN(20) {
			o, _ := a.origin(fmt.Sprint("kafka t", r.IntN(3)), r.IntN(50))
			o.next = place{r.Int64N(1 << 40), r.Int64N(2) * r.Int64N(9)}
			if o.mark = noTick; r.IntN(4) > 0 {
				o.mark = r.Int64N(1 << 40)
			}
			o.idle = r.Int64N(2) * r.Int64N(1<<40)
		}
		for i := range a.origins {
			a.origins[i].of = 77
		}
		b, err := parseTable(a.text(base), base)
		if err != nil || b.of != a.of || !slices.Equal(a.origins, b.origins) {
			t.Fatalf("%+v is read back as %+v, %v", a, b, err)
		}
	}
	for _, text := range []string{"!", "AA", "BQEBYQE", (&table{of: 1}).text(0) + "AAAA"} {
		if _, err := parseTable(text, 0); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestWatermarkOfATable(t *testing.T) {
	const a, b = "kafka a", "kafka b"
	from := func(topic string, number, of int, mark, idle int64) origin {
		return origin{topic: topic, number: number, of: of, mark: mark, idle: idle}
	}
	for name, c := range map[string]struct {
		origins []origin
		want    int64 // ms
	}{
		"nothing came":                         {nil, noTick},
		"the smallest":                         {[]origin{from(a, 0, 2, 50, 0), from(a, 1, 2, 40, 0)}, 40},
		"one was never heard of":               {[]origin{from(a, 0, 2, 50, 0)}, noTick},
		"there are more by now":                {[]origin{from(a, 0, 3, 50, 0), from(a, 1, 2, 40, 0)}, noTick},
		"one has no record":                    {[]origin{from(a, 0, 2, 50, 0), from(a, 1, 2, noTick, 0)}, noTick},
		"and is idle":                          {[]origin{from(a, 0, 2, 50, 0), from(a, 1, 2, noTick, 90)}, 50},
		"an idle one does not hold back":       {[]origin{from(a, 0, 2, 50, 0), from(a, 1, 2, 20, 90)}, 50},
		"but beyond when that was seen":        {[]origin{from(a, 0, 2, 50, 0), from(a, 1, 2, 20, 30)}, 30},
		"one that came further is not lowered": {[]origin{from(a, 0, 2, 50, 0), from(a, 1, 2, 60, 30)}, 50},
		"the smallest of those not idle":       {[]origin{from(a, 0, 3, 50, 0), from(a, 1, 3, 20, 90), from(a, 2, 3, 45, 0)}, 45},
		"all are idle":                         {[]origin{from(a, 0, 2, 50, 90), from(a, 1, 2, 20, 90)}, 20},
		"a topic that is not read any more":    {[]origin{from(a, 0, 1, 50, 0), from(b, 0, 1, 20, 0)}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&table{of: 1, origins: c.origins}).watermark([]string{a}); got != ns(c.want) {
				t.Errorf("%d, want %d", got, ns(c.want))
			}
		})
	}
	both := &table{of: 1, origins: []origin{from(a, 0, 1, 50, 0), from(b, 0, 1, 20, 0)}}
	if got := both.watermark([]string{a, b}); got != ns(20) {
		t.Errorf("of two topics: %d", got)
	}
	if got := both.watermark([]string{a, b, "kafka c"}); got != noTick {
		t.Errorf("with a topic of which nothing came: %d", got)
	}
}

// What is said of a place that is not the latest changes nothing.
func TestOldNewsOfASourcePartition(t *testing.T) {
	o := origin{mark: noTick}
	for _, c := range []struct {
		to         place
		mark, idle int64
		want       origin
	}{
		{place{10, 0}, 5, 0, origin{next: place{10, 0}, mark: 5}},
		{place{10, 0}, 5, 77, origin{next: place{10, 0}, mark: 5, idle: 77}},
		{place{10, 0}, 5, 66, origin{next: place{10, 0}, mark: 5, idle: 77}},
		{place{10, 0}, 5, 0, origin{next: place{10, 0}, mark: 5, idle: 77}},
		{place{10, 1}, 5, 0, origin{next: place{10, 1}, mark: 5}},
		{place{20, 0}, 9, 0, origin{next: place{20, 0}, mark: 9}},
		{place{10, 0}, 5, 88, origin{next: place{20, 0}, mark: 9}},
		{place{20, 0}, 9, 99, origin{next: place{20, 0}, mark: 9, idle: 99}},
	} {
		o.heard(&parcelHead{to: c.to, mark: c.mark, idle: c.idle})
		if o != c.want {
			t.Errorf("after %+v it is %+v, want %+v", c, o, c.want)
		}
	}
}
