package lab

import "testing"

func TestNineForOne(t *testing.T) {
	f := scenario(t, "nine-for-one")
	arms := map[string]*Truth{}
	for _, a := range f.Arms {
		r := played(t, f, a.Name)
		arms[a.Name] = r
		if r.Asked != 1000 || r.Reached != 1000 {
			t.Errorf("%s: %d asked, %d reached the target, want 1,000", a.Name, r.Asked, r.Reached)
		}
	}
	for _, name := range []string{"forwarded", "claimed"} {
		c := arms[name].Total
		if c.Questions != 1000 || c.Arrivals != 9000 || c.PerQuestion.Histogram["9"] != 1000 || c.Attributable != 9000 {
			t.Errorf("%s: %+v, want nine arrivals of each", name, c)
		}
		// The adjacent layer makes one attempt; nine calls come from above it.
		if *c.Hops.Adjacent != 1 || *c.Hops.Above != 9 {
			t.Errorf("%s: adjacent %v, above %v, want 1 and 9", name, *c.Hops.Adjacent, *c.Hops.Above)
		}
	}
	// Signed, what the middle layer mints is forged, and counts as nothing.
	if c := arms["re-minted"].Total; c.Unattributable["forged"] != 9000 || c.Questions != 0 {
		t.Errorf("re-minted: %+v, want all forged", c)
	}
	// Claimed, each is a question like others: 9 looks like 1.
	if c := arms["re-minted-claimed"].Total; c.Questions != 9000 || c.Repeats != 0 || c.Unattributable["total"] != 0 {
		t.Errorf("re-minted, claimed: %+v, want 9,000 questions of one arrival", c)
	}
	if x := arms["re-minted-claimed"].PerQuestion(); x != 9 {
		t.Errorf("re-minted, claimed: %v arrivals per question are true, want 9", x)
	}
	if c := arms["dropped"].Total; c.Unattributable["absent"] != 9000 {
		t.Errorf("dropped: %+v, want all absent", c)
	}

	// A budget of 4, counted down by everybody: the middle layer makes 3 of the
	// first, 3 of the second and 2 of the third, for what it spends does not come
	// back up. 8 for a budget of 4: four too many.
	c := arms["budget"].Total
	if c.Arrivals != 8000 || c.AttemptBudget.Overspent != 4000 || c.AttemptBudget.NotDecremented != 0 {
		t.Errorf("budget: %d arrivals, %+v", c.Arrivals, c.AttemptBudget)
	}
	// One layer passes it on as it came: nine, each value three times.
	c = arms["budget-not-decremented"].Total
	if c.Arrivals != 9000 || c.AttemptBudget.Overspent != 5000 || c.AttemptBudget.NotDecremented != 6000 || c.AttemptBudget.Increased != 0 {
		t.Errorf("budget, not decremented: %d arrivals, %+v", c.Arrivals, c.AttemptBudget)
	}
}
