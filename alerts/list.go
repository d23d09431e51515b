package alerts

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// listed is an alert as instances tell each other of it. The value is a text, for there
// are some that are no number.
type listed struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	State       State             `json:"state"`
	Inhibited   bool              `json:"inhibited,omitempty"`
	Told        bool              `json:"told,omitempty"`
	Value       string            `json:"value"`
	Summary     string            `json:"summary"`
	Description string            `json:"description"`
	Since       time.Time         `json:"since"`
	Fired       time.Time         `json:"fired,omitzero"`
	Ended       time.Time         `json:"ended,omitzero"`
}

// AppendList appends a list of alerts, for other instances to show it.
func AppendList(dst []byte, list []Alert) []byte {
	out := make([]listed, 0, len(list))
	for i := range list {
		a := &list[i]
		out = append(out, listed{a.Name, a.Labels, a.State, a.Inhibited, a.Told, strconv.FormatFloat(a.Value, 'g', -1, 64), a.Summary, a.Description, a.Since, a.Fired, a.Ended})
	}
	text, err := json.Marshal(out)
	if err != nil {
		panic(err) // of texts and times alone
	}
	return append(dst, text...)
}

// ReadList reads what AppendList wrote.
func ReadList(text []byte) ([]Alert, error) {
	var in []listed
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("another instance's alerts: %w", err)
	}
	var out []Alert
	for _, x := range in {
		value, err := strconv.ParseFloat(x.Value, 64)
		if err != nil {
			return nil, fmt.Errorf("another instance's alerts: the value %q is none", x.Value)
		}
		out = append(out, Alert{
			Name: x.Name, Labels: x.Labels, State: x.State, Inhibited: x.Inhibited, Told: x.Told, Value: value,
			Summary: x.Summary, Description: x.Description, Since: x.Since, Fired: x.Fired, Ended: x.Ended,
		})
	}
	return out, nil
}
