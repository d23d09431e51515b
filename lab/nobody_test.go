package lab

import "testing"

// whole sums an arm's one route over everything, what came after the end of asking
// included.
func whole(t *Truth) (s Second) {
	for i := range t.Routes[0].Seconds {
		s.add(&t.Routes[0].Seconds[i])
	}
	return s
}

// The published rates are over 6.6 s: six of asking, and what was under way then.
const nobodySeconds = 6.6

func TestWorkForNobody(t *testing.T) {
	f := scenario(t, "work-for-nobody")
	useful := func(s Second) float64 { return float64(s.Useful) / nobodySeconds }

	about(t, "useful at 1,000/s", useful(whole(played(t, f, "at-1000"))), 909, 0.05)
	for _, arm := range []string{"at-800", "at-1000", "at-800-retries", "at-1000-retries"} {
		if s := whole(played(t, f, arm)); s.ForNobody != 0 || s.Refused != 0 || s.Arrivals != s.Asked {
			t.Errorf("%s: %d for nobody, %d refused, %d arrivals of %d asked: want nothing lost", arm, s.ForNobody, s.Refused, s.Arrivals, s.Asked)
		}
	}

	without := whole(played(t, f, "at-1200"))
	about(t, "attempts", float64(without.Arrivals), 7200, 0.05)
	about(t, "completions", float64(without.Completed), 6067, 0.05)
	about(t, "of them for nobody", float64(without.ForNobody), 5627, 0.05)
	about(t, "share for nobody", float64(without.ForNobody)/float64(without.Completed), 0.93, 0.05)
	about(t, "503s", float64(without.Refused), 1133, 0.05)
	about(t, "useful a second", useful(without), 65, 0.25)

	with := whole(played(t, f, "at-1200-retries"))
	about(t, "attempts with retries", float64(with.Arrivals), 20_701, 0.05)
	about(t, "attempts per question with retries", float64(with.Arrivals)/float64(with.Asked), 2.88, 0.05)
	about(t, "503s with retries", float64(with.Refused), 14_521, 0.05)
	about(t, "useful a second with retries", useful(with), 76, 0.25)

	more := whole(played(t, f, "at-1500-retries"))
	about(t, "attempts per question at 1,500/s", float64(more.Arrivals)/float64(more.Asked), 2.95, 0.05)

	// An independent model said 6,100, 5,620, 20,640, 14,398, 72.7 and 81.5.
	about(t, "completions, other model", float64(without.Completed), 6100, 0.001)
	about(t, "for nobody, other model", float64(without.ForNobody), 5620, 0.001)
	about(t, "attempts with retries, other model", float64(with.Arrivals), 20_640, 0.001)
	about(t, "503s with retries, other model", float64(with.Refused), 14_398, 0.005)
	about(t, "useful, other model", useful(without), 72.7, 0.005)
}

// That 10 % of jitter cut 909 to 237 is right if it only ever adds: 21 ms on average
// are a capacity of 952/s. Jitter both ways cuts nothing.
func TestWorkForNobodyJitter(t *testing.T) {
	f := scenario(t, "work-for-nobody")
	about(t, "service 20 to 22 ms", float64(whole(played(t, f, "jitter-upwards")).Useful)/nobodySeconds, 237, 0.1)
	about(t, "service 18 to 22 ms", float64(whole(played(t, f, "jitter-both-ways")).Useful)/nobodySeconds, 909, 0.01)
}

// The arms that were left open.
func TestWorkForNobodyOpenArms(t *testing.T) {
	f := scenario(t, "work-for-nobody")
	at := func(arm string) Second { return whole(played(t, f, arm)) }
	plain, retries := at("at-1200"), at("at-1200-retries")

	backoff := at("backoff")
	if backoff.Arrivals != retries.Arrivals {
		t.Errorf("backoff makes %d attempts, without it there are %d: want as many", backoff.Arrivals, retries.Arrivals)
	}
	atMost(t, "backoff: useful, of those without", float64(backoff.Useful)/float64(retries.Useful), 1.25)

	budget := at("budget")
	about(t, "budget: attempts per question", float64(budget.Arrivals)/float64(budget.Asked), 1.2, 0.005)
	about(t, "budget: useful, as without retries", float64(budget.Useful), float64(plain.Useful), 0.05)

	if s := at("closed"); s.ForNobody != 0 {
		t.Errorf("144 people wait for each other: %d answers for nobody, want none", s.ForNobody)
	}
	atLeast(t, "300 people: share for nobody", float64(at("closed-more").ForNobody)/float64(at("closed-more").Completed), 0.95)

	// A costly refusal takes from the work: retries then cost completions, too.
	cheap, costly := at("at-1200-retries"), at("costly-retries")
	atMost(t, "costly refusals: completions, of those with cheap ones", float64(costly.Completed)/float64(cheap.Completed), 0.8)
	atLeast(t, "costly refusals without retries: completions, the same", float64(at("costly").Completed)/float64(plain.Completed), 0.95)

	// A queue without a bound: all work is for nobody after the first 0.4 s.
	about(t, "queue without a bound: useful", float64(at("network-queue").Useful), float64(plain.Useful), 0.05)

	// To drop who has left does not help: all are served just too late, and leave
	// during the service. A queue shorter than their patience does.
	atMost(t, "cancels: useful, of those without", float64(at("cancels").Useful)/float64(plain.Useful), 1.05)
	for _, arm := range []string{"short-queue", "short-queue-retries"} {
		s := at(arm)
		if s.ForNobody != 0 {
			t.Errorf("%s: %d for nobody, want none", arm, s.ForNobody)
		}
		atLeast(t, arm+": useful a second", float64(s.Useful)/nobodySeconds, 909)
	}
}
