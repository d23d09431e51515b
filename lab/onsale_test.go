package lab

import "testing"

// The figures that were published of the sale, each where it holds. docs/lab.md says
// which of them exclude one another.
func TestOnSaleMultiplies(t *testing.T) {
	f := scenario(t, "on-sale")

	// 1 % of calls time out in all three layers at once, and each makes one more:
	// 1 + 3 × 0.01, and little besides.
	one := played(t, f, "one-percent")
	about(t, "1 % time out", one.on("slow", "seats").PerQuestion, 1.03, 0.005)

	all := played(t, f, "all-slow")
	slow := all.on("slow", "seats")
	about(t, "all calls take longer", slow.PerQuestion, 27, 0.005)
	about(t, "arrivals per second at full size", slow.Load, 4.86e6, 0.005)
	about(t, "asked per second at full size", slow.Asking, 180_000, 0.01)
	if most := *all.Total.PerQuestion.Max; most != 27 {
		t.Errorf("the most arrivals of a question: %d, want 27", most)
	}
	if slow.Answered != 0 {
		t.Errorf("%d questions were answered while no call could be", slow.Answered)
	}
	if slow.ForNobody != slow.Completed {
		t.Errorf("%d of %d answers were for nobody, want all", slow.ForNobody, slow.Completed)
	}
}

func TestOnSaleFillsTheGateway(t *testing.T) {
	f := scenario(t, "on-sale")
	r := played(t, f, "refusing")
	gateway := r.Workers[1]
	for second := 15; second < 40; second++ {
		if seats := gateway.Busy["seats"][second]; seats < gateway.Workers*9/10 {
			t.Errorf("second %d: seats hold %d of %d workers, want nearly all", second, seats, gateway.Workers)
		}
	}
	// The healthy route's people get 503s: few are answered, and the catalogue, which
	// answers in 5 ms, sees next to nobody.
	events := r.on("slow", "events")
	atMost(t, "healthy questions answered", events.Success, 0.05)
	atLeast(t, "healthy questions that failed", float64(events.Failed)/float64(events.Asked), 0.95)
	atMost(t, "load of the healthy target", events.Load, 0.05*20_000)
	// 4,000 workers for 3 × 400 ms let no more through than 4,000 / 1.2 s × 9: where
	// the gateway is full, 4.86 M/s do not arrive.
	about(t, "load of the slow target", r.on("slow", "seats").Load, 4000/1.2*9, 0.02)
	// Who refuses has nothing to catch up with.
	about(t, "answered afterwards", r.on("after", "seats").Success, 1, 0.001)
	about(t, "healthy ones answered afterwards", r.on("after", "events").Success, 1, 0.001)
}

func TestOnSaleDoesNotRecover(t *testing.T) {
	f := scenario(t, "on-sale")
	r := played(t, f, "as-it-was")
	about(t, "answered before", r.on("calm", "seats").Success, 1, 0.002)
	for _, route := range []string{"seats", "events"} {
		after := r.on("after", route) // ninety seconds and more after the inventory is as fast as before
		if after.Answered != 0 || after.Asked == 0 {
			t.Errorf("%s: %d of %d answered ninety seconds later, want none", route, after.Answered, after.Asked)
		}
		if after.ForNobody != after.Completed || after.Completed == 0 {
			t.Errorf("%s: %d of %d answers were for nobody, want all", route, after.ForNobody, after.Completed)
		}
		atLeast(t, route+": seconds since the caller left", after.Oldest, 60)
	}
	// The inventory works at its full 200,000/s, for nobody.
	about(t, "completed a second", float64(r.on("after", "seats").Completed)*r.Scale/20, 200_000, 0.01)
}

func TestOnSaleArms(t *testing.T) {
	f := scenario(t, "on-sale")

	// Three times a fifth: 1.2³.
	budgets := played(t, f, "slow-budgets").on("slow", "seats")
	atMost(t, "per-cluster budgets", budgets.PerQuestion, 1.73*1.01)
	about(t, "per-cluster budgets", budgets.PerQuestion, 1.2*1.2*1.2, 0.02)

	// One budget for all routes: the slow one spends it, and the healthy one's
	// timeouts are refused their repeat. With one for each cluster none is.
	one, own := played(t, f, "slow-one-budget").on("slow", "events"), played(t, f, "slow-gateway-budget").on("slow", "events")
	atLeast(t, "healthy repeats refused by one budget for all", float64(one.Denied), 20)
	if own.Denied != 0 {
		t.Errorf("healthy repeats refused by a budget of their own: %d, want 0", own.Denied)
	}
	about(t, "1 % of healthy calls, all but a few refused", float64(one.Denied), 0.01*float64(one.Asked), 0.4)

	// The gateway allows 1.2, and knows nothing of 3 above and 3 below.
	about(t, "a budget at the gateway alone", played(t, f, "slow-gateway-budget").on("slow", "seats").PerQuestion, 3*1.2*3, 0.02)

	// What has 400 ms for everything makes one attempt: 3 × 1 × 1.
	about(t, "deadlines", played(t, f, "slow-deadlines").on("slow", "seats").PerQuestion, 3, 0.005)

	for _, arm := range []string{"budgets", "deadlines"} { // one alone does not heal
		atMost(t, arm+": answered ninety seconds later", played(t, f, arm).on("after", "seats").Success, 0.05)
	}
	shed := played(t, f, "shedding")
	atLeast(t, "shedding: healthy ones answered in the meantime", shed.on("slow", "events").Success, 0.999)

	three := played(t, f, "all-three")
	atLeast(t, "all three: healthy ones answered in the meantime", three.on("slow", "events").Success, 0.999)
	atLeast(t, "all three: answered afterwards", three.on("after", "seats").Success, 0.998)
	atMost(t, "all three: the load of the slow target", three.on("slow", "seats").Load, 10_000)
	// It heals within five seconds. The model's inventory has 10 slots, 9 of them
	// taken: its bursts are larger than those of 1,000.
	for s := 45; s < 150; s++ {
		if x := three.Routes[0].Seconds[s]; float64(x.Answered) < 0.97*float64(x.Asked) {
			t.Errorf("all three, second %d: %d of %d answered", s, x.Answered, x.Asked)
			break
		}
	}
}

// People who press refresh mint new questions: no budget sees them.
func TestOnSaleRefresh(t *testing.T) {
	f := scenario(t, "on-sale")
	with, without := played(t, f, "refresh"), played(t, f, "all-three")
	about(t, "asked without refresh", without.on("slow", "seats").Asking, 180_000, 0.02)
	atLeast(t, "asked with refresh", with.on("slow", "seats").Asking, 4*180_000)
	// To the target they are questions like others.
	atMost(t, "arrivals per question", float64(with.Total.Attributable)/float64(with.Total.Questions), 1.01)
}

func TestOnSaleRetryAfter(t *testing.T) {
	f := scenario(t, "on-sale")
	ignored, honoured := played(t, f, "retry-after-ignored"), played(t, f, "retry-after-honoured")
	a, b := ignored.Total.RetryAfter, honoured.Total.RetryAfter
	if a.Early != a.Returned || a.Returned == 0 {
		t.Errorf("ignored: %d of %d came back early, want all", a.Early, a.Returned)
	}
	if b.Early != 0 || b.Returned == 0 {
		t.Errorf("honoured: %d of %d came back early, want none", b.Early, b.Returned)
	}
	x, y := ignored.on("slow", "seats"), honoured.on("slow", "seats")
	atLeast(t, "load, ignored against honoured", x.Load/y.Load, 2)
	atLeast(t, "answered, honoured against ignored", y.Success/x.Success, 5)
}

// Twice the capacity at twice the load is the same curve, and at the same load it
// does not recover either.
func TestOnSaleMoreCapacity(t *testing.T) {
	f := scenario(t, "on-sale")
	base, twice, more := played(t, f, "as-it-was"), played(t, f, "twice-of-all"), played(t, f, "more-capacity")
	for _, phase := range []string{"calm", "slow", "after"} {
		x, y := base.on(phase, "seats"), twice.on(phase, "seats")
		about(t, phase+": asked", y.Asking, 2*x.Asking, 0.04)
		about(t, phase+": arrivals per question", y.PerQuestion, x.PerQuestion, 0.03)
		about(t, phase+": answered", y.Success, x.Success, 0.001)
	}
	atMost(t, "answered ninety seconds later with twice the capacity", more.on("after", "seats").Success, 0)
	about(t, "work for nobody, a second", float64(more.on("after", "seats").ForNobody)*more.Scale/20, 400_000, 0.01)
}

// What fails fast, one hop away, takes nobody's time: three attempts, no budget.
func TestOnSaleFastFailure(t *testing.T) {
	r := played(t, scenario(t, "on-sale"), "fast-failure")
	about(t, "arrivals per question", r.on("slow", "seats").PerQuestion, 3, 0.005)
	atLeast(t, "healthy ones answered in the meantime", r.on("slow", "events").Success, 0.999)
	atLeast(t, "answered afterwards", r.on("after", "seats").Success, 0.999)
	w, sum := r.Workers[1], 0
	for second := 10; second < 40; second++ {
		sum += w.Busy["seats"][second] + w.Busy["events"][second]
	}
	atMost(t, "workers taken, of all", float64(sum)/30/float64(w.Workers), 0.85)
}
