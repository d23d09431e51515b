package alerts

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// What one instance tells another of its alerts is shown there as it is here.
func TestListsAreToldWhole(t *testing.T) {
	lists := []List{{}}
	for _, value := range []float64{0.612, math.Inf(1), math.NaN()} {
		lists = append(lists, List{{
			Name: RetryBudgetExhausted, Labels: map[string]string{"dependency": "sø\"k", "severity": critical}, State: Resolved, Told: true, Inhibited: true, Value: value,
			Summary: "a", Description: "b", Since: nine, Fired: nine.Add(time.Second), Ended: nine.Add(time.Minute),
		}, {Name: DeadAnswers, Labels: map[string]string{}, State: Pending, Since: nine}})
	}
	for _, want := range lists {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got List
		if err := json.Unmarshal(text, &got); err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("told is %+v, %v; want %+v", got, err, want)
		}
	}
	for _, text := range []string{`[{"value":"much"}]`, `[{"value":""}]`, `[{"labels":7}]`, `{}`} {
		var got List
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is a list: %+v", text, got)
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
