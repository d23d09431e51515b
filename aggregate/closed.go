package aggregate

// ClosedSums are the sums of one closed tick, and what tells how many distinct
// questions there are in a range of such ticks.
type ClosedSums struct {
	Sums
	again []Carry // of theQuestions
	ones  []Carry // of withHopOne
}

// AddCounts adds a row of the tick.
func (s *ClosedSums) AddCounts(c *Counts) {
	s.Sums.AddCounts(c)
	for _, x := range c.carried[theQuestions] {
		s.again = addCarry(s.again, x)
	}
	for _, x := range c.carried[withHopOne] {
		s.ones = addCarry(s.ones, x)
	}
}

// RangeSums are the sums of a range of closed ticks.
type RangeSums struct {
	Sums
	under Carry  // questions that were under way when the range began
	ones  uint64 // and had had an arrival of hop number 1
}

// Add adds a tick that lies some ticks behind the first of the range.
func (r *RangeSums) Add(s *ClosedSums, back int64) {
	r.Sums.Merge(&s.Sums)
	b := beyond(s.again, back)
	r.under.N += b.N
	r.under.Claimed += b.Claimed
	r.ones += beyond(s.ones, back).N
}

// Merge adds the same range of another scope.
func (r *RangeSums) Merge(o *RangeSums) {
	r.Sums.Merge(&o.Sums)
	r.under.N += o.under.N
	r.under.Claimed += o.under.Claimed
	r.ones += o.ones
}

// Hops says where arrivals multiply, of what the adjacent hop's numbers tell.
func (r *RangeSums) Hops() Hops {
	r.tally.empty(&r.n)
	repeats := less(r.n[nVerified]+r.n[nClaimed], r.n[nOriginals])
	return hopsOf(&r.n, repeats, r.n[nFirsts+counter(withHopOne)]+r.ones)
}

// Questions is how many distinct questions there are in the range, and how many of
// them have a verified key.
func (r *RangeSums) Questions() (n, verified uint64) {
	r.tally.empty(&r.n)
	n = r.n[nFirsts+counter(theQuestions)] + r.under.N
	claimed := r.n[nFirstsClaimed] + r.under.Claimed
	if r.n[nVariance] > 0 { // an estimate may pass what it is of
		n = min(n, r.n[nVerified]+r.n[nClaimed])
		claimed = min(claimed, n, r.n[nClaimed])
	}
	return n, n - claimed
}
