package alerts

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// docs/operations says of each alert for how long its condition holds, and has a page
// for it.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/operations/README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]time.Duration{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\w+) \| [^|]+ \| (\d+) s \|`).FindAllStringSubmatch(string(text), -1) {
		seconds, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		found[m[1]] = time.Duration(seconds) * time.Second
	}
	if len(found) != len(Names) || len(timings) != len(Names) {
		t.Errorf("%d are documented, %d are timed, %d are there", len(found), len(timings), len(Names))
	}
	for _, name := range Names {
		if hold, ok := found[name]; !ok || hold != timings[name].hold || timings[name].keep != time.Minute {
			t.Errorf("%s holds for %v, documented is %v", name, timings[name], hold)
		}
		if _, err := os.Stat("../docs/operations/" + name + ".md"); err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{
		WebhookSchema, SignatureHeader, TimestampHeader, NoticeHeader,
		fmt.Sprintf("every %d s", tellEvery/time.Second), fmt.Sprintf("`endsAt` %d minutes ahead", tellFor/time.Minute), fmt.Sprintf("After %d minutes a notice is dropped", noticeFor/time.Minute),
		fmt.Sprintf("(%d at once, one a minute, a fifth of one for each delivery)", retriesAtOnce),
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
