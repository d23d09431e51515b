package budget

// Ratio is the budget of Linkerd's ServiceProfile, Finagle's RetryBudget and the
// Gateway API's retry constraint (GEP-3388): repeats may be a share of originals,
// plus a floor. Their authors' defaults are a share of 0.2 over 10 seconds. The
// floor of 10 a second that Linkerd and Finagle add is per client, so at the
// target it is 0 unless the number of clients is declared.
type Ratio struct {
	Ratio          float64 // repeats allowed per original
	FloorPerSecond float64 // repeats allowed besides, per second and client
	Clients        int     // what the floor is multiplied by
}

// DefaultRatio is a fifth of the originals, without a floor.
func DefaultRatio() Ratio { return Ratio{Ratio: 0.2, Clients: 1} }

// Name is "ratio".
func (Ratio) Name() string { return "ratio" }

func (g Ratio) allowance(c Counts, seconds int) float64 {
	return g.Ratio*float64(c.Originals) + g.FloorPerSecond*float64(seconds)*float64(g.Clients)
}

func (Ratio) spent(c Counts, _ int) float64    { return float64(c.Repeats) }
func (Ratio) high(c Counts, _ int) float64     { return float64(c.Repeats + c.Unattributable) }
func (Ratio) variance(c Counts, _ int) float64 { return float64(c.Repeats) }
func (Ratio) bucket() float64                  { return 0 }
