package alerts

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// What one instance tells another of its alerts is shown there as it is here.
func TestListsAreToldWhole(t *testing.T) {
	for _, value := range []float64{0.612, math.Inf(1), math.NaN()} {
		a := Alert{
			Name: RetryBudgetExhausted, Labels: map[string]string{"dependency": "sø\"k", "severity": critical}, State: Resolved, Told: true, Inhibited: true, Value: value,
			Summary: "a", Description: "b", Since: nine, Fired: nine.Add(time.Second), Ended: nine.Add(time.Minute),
		}
		b := Alert{Name: DeadAnswers, Labels: map[string]string{}, State: Pending, Since: nine}
		got, err := ReadList(AppendList(nil, []Alert{a, b}))
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", []Alert{a, b}) {
			t.Errorf("told is %+v, %v; want %+v", got, err, a)
		}
	}
	if got, err := ReadList(AppendList(nil, nil)); err != nil || len(got) != 0 {
		t.Errorf("of none there are %v, %v", got, err)
	}
	for _, text := range []string{"", "[", `[{"value":"much"}]`} {
		if _, err := ReadList([]byte(text)); err == nil || !strings.Contains(err.Error(), "another instance's alerts") {
			t.Errorf("%q is a list: %v", text, err)
		}
	}
}

// While partitions are counted by nobody, what fires stays, a storm that shows fires all
// the same, and half a minute of it is said.
func TestWhatIsMissingResolvesNothing(t *testing.T) {
	b := newBench(t)
	b.consume(1.5)
	b.pass(2)
	b.wants("+1 RetryBudgetExhausted firing")
	b.consume(0)
	b.in.Missing = []string{"kafka access/1", "kafka access/2"}
	b.pass(150)
	b.wants("+1 RetryBudgetExhausted firing", "+33 AuditorBlind firing")
	for _, a := range b.e.Alerts() {
		if a.Name == AuditorBlind && (!reflect.DeepEqual(a.Labels, map[string]string{"severity": warning, "reason": "scopes"}) || a.Value != 2 || !strings.Contains(a.Summary, "kafka access/1, kafka access/2")) {
			t.Errorf("said is %+v", a)
		}
	}
	b.dep().Ten.DeadAnswers = 900
	b.pass(5)
	b.wants("+1 RetryBudgetExhausted firing", "+33 AuditorBlind firing", "+155 DeadAnswers firing")
	b.dep().Ten.DeadAnswers, b.in.Missing = 0, nil
	b.pass(70)
	b.wants("+1 RetryBudgetExhausted firing", "+33 AuditorBlind firing", "+155 DeadAnswers firing",
		"+218 RetryBudgetExhausted resolved", "+218 DeadAnswers resolved", "+218 AuditorBlind resolved")
}
