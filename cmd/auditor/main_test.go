package main

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestOutputThatIsLostIsSaid(t *testing.T) {
	for _, args := range [][]string{{"lab", "list"}, {"lab", "--help"}, {"key", "--help"}, {"version"}} {
		said := new(bytes.Buffer)
		p := &program{stdout: full{}, stderr: said, getenv: os.LookupEnv, now: time.Now}
		status := run(t.Context(), p, args)
		if status != exitFailed || !strings.Contains(said.String(), syscall.ENOSPC.Error()) {
			t.Errorf("%q on a full disk: status %d, says %q", args, status, said)
		}
	}
}
