package budget

// Rate is the retry budget of the SRE book (chapter 22, "Addressing Cascading
// Failures"): so many retries a minute in a process, its example 60, whatever the
// traffic. Each process of the callers has a budget of its own.
type Rate struct {
	PerMinute float64 // repeats allowed, per process
	Processes int     // what it is multiplied by
}

// DefaultRate is one process's.
func DefaultRate() Rate { return Rate{PerMinute: 60, Processes: 1} }

// Name is "rate".
func (Rate) Name() string { return "rate" }

func (g Rate) allowance(_ Counts, seconds int) float64 {
	return g.PerMinute * float64(g.Processes) * float64(seconds) / 60
}

func (Rate) spent(c Counts, _ int) float64    { return float64(c.Repeats) }
func (Rate) high(c Counts, _ int) float64     { return float64(c.Repeats + c.Unattributable) }
func (Rate) variance(c Counts, _ int) float64 { return float64(c.Repeats) }
func (Rate) bucket() float64                  { return 0 }
