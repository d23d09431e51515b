package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The records of one request meet in one shard, also where nothing but the request
// tells them apart from others.
func TestRecordsOfARequestWithoutAKey(t *testing.T) {
	var b strings.Builder
	for i := range 40 {
		for _, kind := range []string{"DownstreamStart", "DownstreamEnd"} {
			fmt.Fprintf(&b, `{"start_time":%q,"access_log_type":%q,"stream_id":"s-%d","method":"GET","path":"/seats/7","response_code":200,"response_flags":"-","bytes_sent":1,"duration":5,"question_key":"-"}`+"\n",
				noon.Add(time.Duration(i)*time.Millisecond).Format("2006-01-02T15:04:05.000Z"), kind, i)
		}
	}
	cfg := testConfig(t)
	cfg.Sources[0].Parser.Format = "envoy-json"
	if got := countsOf(everyCut(t, cfg, b.String())); got.arrivals != 40 || got.unattributed != 40 {
		t.Errorf("%+v, want 40 arrivals without a key", got)
	}
}
