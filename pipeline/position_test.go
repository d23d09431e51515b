package pipeline

import (
	"math"
	"testing"

	"github.com/targetside/auditor/ingest"
)

func TestMetadataFits(t *testing.T) {
	l := left{EmitFrom: math.MaxInt64, Mark: math.MinInt64, Rules: math.MaxUint32, Warm: math.MaxInt64, Done: math.MaxInt64, Config: "0123456789abcdef", Lateness: math.MaxInt64}
	for range maxRaised + 1 {
		l.Raised = append(l.Raised, markAt{Offset: math.MaxInt64, Mark: math.MinInt64})
	}
	for range maxSettled {
		l.Old = append(l.Old, settled{math.MaxInt64, math.MaxInt64})
	}
	for range keptAbsences {
		l.Away = append(l.Away, absence{math.MaxInt64, math.MaxInt64, math.MaxInt64})
	}
	text := l.String()
	if len(text) > ingest.MaxMetadata {
		t.Errorf("metadata has %d bytes, at most %d are kept", len(text), ingest.MaxMetadata)
	}
	got, known, err := parseLeft(text)
	if err != nil || !known || got.EmitFrom != l.EmitFrom || got.Mark != l.Mark || got.Rules != l.Rules || len(got.Raised) != len(l.Raised) {
		t.Errorf("read back it is %+v %v %v", got, known, err)
	}
	for _, text := range []string{"{", `{"v":2}`, "somebody else's", `{"v":1,"emit":"x"}`} {
		if _, _, err := parseLeft(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
