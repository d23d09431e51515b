package store_test

import (
	"testing"
	"time"

	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
)

// The server's clock was fast, and is set back: what is told from then on is heard, though
// it is older than what was told before.
func TestClickHouseSharesAfterAClockIsSetBack(t *testing.T) {
	server := clickhousetest.Start(t)
	s := openClickHouse(t, server).(store.Sharer)
	server.Exec(t, "INSERT INTO shares (fleet, member, kind, name, at, seq, state, written) VALUES ('f', 'fast', 1, 'p/0', 7, 1, 'told', now64(3) + INTERVAL 1 HOUR)")
	heard, since, err := s.Exchange(t.Context(), "f", "a", 1, nil, store.Since{})
	if err != nil || len(heard) != 1 {
		t.Fatalf("heard is %v, %v", heard, err)
	}
	for seq := range uint64(2) {
		told := []store.Share{{Kind: 1, Name: "p/1", At: int64(seq), State: []byte(time.Now().String())}}
		if _, _, err := s.Exchange(t.Context(), "f", "b", seq+1, told, store.Since{}); err != nil {
			t.Fatal(err)
		}
		if heard, since, err = s.Exchange(t.Context(), "f", "a", seq+2, nil, since); err != nil || len(heard) != int(seq)+2 || heard[seq].Member != "b" || heard[seq].At != int64(seq) {
			t.Errorf("heard is %v, %v", heard, err)
		}
	}
}
