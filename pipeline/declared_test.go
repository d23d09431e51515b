package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/targetside/auditor/ingest/accesslog"
)

// The columns of an IIS log change within the file, and their number and shape do not:
// path and key change places. Every record is read by the line that holds for it, however
// the file is cut into blocks and whoever decodes them. A line that cannot be used costs
// the records up to the next.
func TestColumnsThatChangeWithinAFile(t *testing.T) {
	heads := []string{
		"#Fields: date time cs-method cs-uri-stem my_id sc-status time-taken c-ip",
		"#Fields: date time cs-method my_id cs-uri-stem sc-status time-taken c-ip",
	}
	var log strings.Builder
	second := 0
	records := func(head int, keys ...string) {
		for _, key := range keys {
			a, b := "/seats/7", key
			if head == 1 {
				a, b = b, a
			}
			fmt.Fprintf(&log, "2026-03-03 10:15:%02d GET %s %s 200 7 192.0.2.%d\r\n", second%60, a, b, second)
			second++
		}
	}
	log.WriteString("#Software: Microsoft Internet Information Services 10.0\r\n#Version: 1.0\r\n")
	for i, head := range []int{0, 1, 0, 1, 1} {
		log.WriteString(heads[head] + "\r\n")
		records(head, "k-1", "k-2", "k-3", fmt.Sprint("own-", i))
	}
	log.WriteString("#Fields: date cs-method\r\n")
	records(0, "lost-1", "lost-2")
	log.WriteString(heads[0] + "\r\n")
	records(0, "k-1")

	cfg := testConfig(t)
	cfg.Sources[0].Parser = accesslog.Config{Format: "iis"}
	for _, block := range []int{1 << 20, 700, 150, 40} {
		for _, parallel := range []int{1, 3} {
			cfg.block, cfg.Parallel = block, parallel
			r := audit(t, cfg, log.String()).Report
			in := r.Input
			if r.Total.Arrivals != 21 || r.Total.Questions != 8 || r.Total.Unattributable.Total != 0 || in.Quarantined["syntax"] != 3 || len(in.Quarantined) != 1 {
				t.Errorf("blocks of %d, %d decoders: %d arrivals of %d questions, %d unattributable, quarantined %v; want 21, 8, 0 and 3",
					block, parallel, r.Total.Arrivals, r.Total.Questions, r.Total.Unattributable.Total, in.Quarantined)
			}
		}
	}
}
