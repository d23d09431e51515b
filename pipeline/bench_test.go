package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/keys"
)

// BenchmarkReplay audits a log of signed keys, three arrivals a question at 2,000
// a second, from a file to its report.
func BenchmarkReplay(b *testing.B) {
	const lines = 60_000
	minter := keys.Minter{Originator: "web", KID: "a", Secret: []byte(secret)}
	var text strings.Builder
	window := make([]string, 300)
	for i := range lines {
		at := noon.Add(time.Duration(i) * time.Millisecond / 2)
		if i%3 == 0 {
			k, err := minter.Mint(at)
			if err != nil {
				b.Fatal(err)
			}
			window[i/3%len(window)] = k
		}
		key := window[(i/3-i%3*90+len(window)*2)%len(window)]
		if key == "" {
			key = window[0]
		}
		fmt.Fprintf(&text, `{"time":%q,"method":"GET","path":"/seats/%d","status":%d,"duration_ms":%d,"bytes_sent":512,"peer":"10.1.%d.%d","user_agent":"okhttp/4.12","attempt":%d,"attempt_scope":"hop","question_key":%q}`+"\n",
			at.Format("2006-01-02T15:04:05.000000Z"), 7, []int{200, 200, 503}[i%3], i%250, i%4, i%200, 1+i%3, key)
	}
	name := filepath.Join(b.TempDir(), "access.log")
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, parallel := range []int{1, runtime.GOMAXPROCS(0)} {
		b.Run(fmt.Sprintf("parallel=%d", parallel), func(b *testing.B) {
			cfg := testConfig(b)
			cfg.Parallel = parallel
			b.ReportAllocs()
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				a, err := Replay(context.Background(), cfg, []Input{{File: name}}, nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				if a.Report.Input.Arrivals != lines || a.Report.Total.Verified != lines {
					b.Fatalf("%d arrivals, %d verified, of %d", a.Report.Input.Arrivals, a.Report.Total.Verified, lines)
				}
			}
			b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
