package aggregate

// Plain is the few sums of Counts that are useful without the rest. All but
// Questions add over rows.
type Plain struct {
	Arrivals       uint64
	Verified       uint64 // arrivals whose key proved its author
	Claimed        uint64 // arrivals with an accepted key that proves nothing
	Unattributable uint64 // all other arrivals
	Originals      uint64 // attributable arrivals that were no repeats
	// Questions are the distinct questions of the row, or of the range that the
	// rows were settled for (see Settle). Those of two ranges do not add.
	Questions uint64
}

// Plain returns the plain sums. Like Append it may tidy c, so c must not be used
// by anybody else meanwhile.
func (c *Counts) Plain() Plain {
	c.tally.empty(&c.n)
	p := Plain{Arrivals: c.n[nArrivals], Verified: c.n[nVerified], Claimed: c.n[nClaimed], Originals: c.n[nOriginals]}
	for _, n := range c.n[nUnattributable:nFirsts] {
		p.Unattributable += n
	}
	p.Questions, _ = c.distinct(theQuestions)
	return p
}
