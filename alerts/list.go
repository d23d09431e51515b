package alerts

import (
	"encoding/json"
	"strconv"
)

// written is an alert outside of a process: as it is kept, and as instances tell each
// other of it.
type written struct {
	Alert
	Value number `json:"value"`
}

func write(a *Alert) written { return written{*a, number(a.Value)} }

func (w *written) alert() Alert {
	a := w.Alert
	a.Value = float64(w.Value)
	return a
}

// number is a text in JSON, for there are values that are no number there.
type number float64

func (n number) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

func (n *number) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	*n = number(v)
	return err
}

// List is alerts that one instance tells others of, whole, in JSON.
type List []Alert

// MarshalJSON writes them.
func (l List) MarshalJSON() ([]byte, error) {
	out := make([]written, len(l))
	for i := range l {
		out[i] = write(&l[i])
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *List) UnmarshalJSON(text []byte) error {
	var in []written
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*l = make(List, len(in))
	for i := range in {
		(*l)[i] = in[i].alert()
	}
	return nil
}
