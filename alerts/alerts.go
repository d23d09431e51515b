// Package alerts decides of what somebody is told, and tells them.
//
// An Evaluator is told what is known of each dependency and source, several times a
// second, and keeps for each alert and set of labels whether it is pending, firing or
// resolved. It is pure: time and figures are arguments. Durations are of log time, so
// that a log that is read late is judged as it would have been when it was written.
//
// Promises:
//   - What is a lower bound, or old, fires where it is high enough, and never resolves:
//     while a source lags or has failed, while some of its partitions are counted by
//     nobody, while questions from before the start are not known, while keys or
//     departures are too few to be believed, an alert that fires stays. AuditorBlind
//     fires beside it and never in its place.
//   - Nothing is resolved that this evaluator does not know to have fired, and nothing
//     by a share: an instance that sees a part of a dependency's questions, and not the
//     sum of all, ends its own word and leaves the rest to those that see the others.
//   - The labels of an alert are the same wherever the same is seen.
//   - What is told does not hold up what is judged: a sink that is slow or dead costs
//     itself alone.
//
// Names, labels and severities are those of dashboards/rules, and so are thresholds
// where they mean the same; docs/operations says where the two differ and why. How
// figures come about is not known here, nor who serves them.
package alerts

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// The alerts. AuditorDown is of Prometheus alone: who is down says nothing.
const (
	RetryBudgetLow             = "RetryBudgetLow"
	RetryBudgetExhausted       = "RetryBudgetExhausted"
	RetryBudgetExhaustsSoon    = "RetryBudgetExhaustsSoon"
	AmplificationAboveDeclared = "AmplificationAboveDeclared"
	DeadAnswers                = "DeadAnswers"
	CoverageTooLow             = "CoverageTooLow"
	RetryAfterIgnored          = "RetryAfterIgnored"
	AuditorBlind               = "AuditorBlind"
)

// Names are all of them, in the order in which docs/operations has them.
var Names = []string{
	RetryBudgetLow, RetryBudgetExhaustsSoon, RetryBudgetExhausted, AmplificationAboveDeclared, DeadAnswers, CoverageTooLow, RetryAfterIgnored, AuditorBlind,
}

// The severities, the label severity of every alert.
const (
	warning  = "warning"
	critical = "critical"
)

// State is where an alert stands. One that is not at all has none.
type State string

// The states, in the order of an episode.
const (
	Pending  State = "pending"  // its condition holds, but not for long enough yet
	Firing   State = "firing"   // it does, or did lately
	Resolved State = "resolved" // it has not for a while; kept for resolvedFor
)

// resolvedFor is how long a resolved alert is still shown, and told to Alertmanagers
// that may not have heard.
const resolvedFor = 5 * time.Minute

// runbooks is where the page of each alert is: its name and ".md" behind it.
const runbooks = "https://github.com/targetside/auditor/blob/main/docs/operations/"

// Alert is one alert of one set of labels.
type Alert struct {
	Name string `json:"name"`
	// Labels name it, severity among them; what is empty is left out. Nobody changes
	// them.
	Labels map[string]string `json:"labels"`
	State  State             `json:"state"`
	// Inhibited says that a worse alert of the same labels says enough: nobody is
	// told of this one while that fires.
	Inhibited bool `json:"inhibited,omitempty"`
	// Told says that sinks were told that it fires.
	Told bool `json:"told,omitempty"`
	// Value is what the condition compares; +Inf where nothing is allowed, and no number
	// where that is not known.
	Value float64 `json:"-"` // see written
	// Summary and Description are for people, and change while it fires.
	Summary     string `json:"summary"`
	Description string `json:"description"`
	// Since is when the condition began to hold, and Fired when the alert did, in log
	// time, but never later than the wall clock said then; Ended is when it was resolved,
	// by the wall clock.
	Since time.Time `json:"since"`
	Fired time.Time `json:"fired,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
}

// Runbook is the page that says what to do.
func (a *Alert) Runbook() string { return runbooks + a.Name + ".md" }

// key names an alert among all: equal labels, equal key.
func (a *Alert) key() string { return keyOf(a.Name, a.Labels) }

// inhibits are the keys of alerts that say nothing more while this one fires.
func (a *Alert) inhibits() []string {
	with := func(name, severity string) string {
		labels := maps.Clone(a.Labels)
		labels["severity"] = severity
		return keyOf(name, labels)
	}
	switch {
	case a.Name == RetryBudgetExhausted:
		return []string{with(RetryBudgetLow, warning), with(RetryBudgetExhaustsSoon, critical)}
	case a.Name == AmplificationAboveDeclared && a.Labels["severity"] == critical:
		return []string{with(AmplificationAboveDeclared, warning)}
	}
	return nil
}

func keyOf(name string, labels map[string]string) string {
	var b strings.Builder
	b.WriteString(name)
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		b.WriteByte(0)
		b.WriteString(k)
		b.WriteByte(0)
		b.WriteString(labels[k])
	}
	return b.String()
}
