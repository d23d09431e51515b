package grafana_test

// overview is of all dependencies: which of them has a storm, how bad, and whether
// that can be believed.
var overview = board{
	uid: "auditor-overview", title: "auditor / Overview",
	about:    "All dependencies: arrivals per question, retry budgets, work for nobody, and how far that can be believed.",
	selector: `job=~"$job",dependency=~"$dependency"`,
	variables: []object{
		jobVariable(),
		choice("dependency", "dependency", `label_values(auditor_sampling_ratio{job=~"$job"}, dependency)`, true),
	},
	sections: []section{
		{"Now", []panel{
			{
				kind: "table", title: "Dependencies", unit: "none", w: 18, h: 9, first: "dependency",
				about: "One line a dependency, of the instance where it is worst, live but for the dead share, which is of five minutes of closed seconds. An empty field is not known, and never 0; a column is missing where nobody knows it.\n\n" +
					"Blind means that fewer than 85 % of arrivals carry a verified key: load factor and budget are lower bounds then, and no budget is called ok. The daemon's own verdict is on its page and in its API.",
				asks: []ask{
					{`max by (dependency) (auditor_load_factor_ratio{@,window="1m"})`, ""},
					{`min by (dependency) (auditor_key_coverage_ratio{@,class="verified"})`, ""},
					{`min by (dependency) (auditor_key_coverage_ratio{@,class="verified"})`, ""},
					{`max by (dependency) (auditor_retry_budget_consumed_ratio{@,bound="low"})`, ""},
					{budgetState("by (dependency) "), ""},
					{`min by (dependency) (auditor_retry_budget_exhausts_in_seconds{@})`, ""},
					{`sum by (dependency) (rate(auditor_responses_total{@,outcome="dead"}[5m])) / (sum by (dependency) (rate(auditor_responses_total{@,outcome=~"answered|dead"}[5m])) > 0)`, ""},
					{`min by (dependency) (auditor_response_visibility_ratio{@})`, ""},
					{`min by (dependency) (auditor_read_share_ratio{@})`, ""},
					{`max by (dependency) (auditor_scope_split{@})`, ""},
				},
				columns: map[string]column{
					"A": {title: "load factor, 1 min", unit: "suffix:×"}, "B": {title: "verified", unit: "percentunit"}, "C": {"coverage is", "none", coverageWords},
					"D": {title: "budget spent", unit: "percentunit"}, "E": {"budget is", "none", budgetWords}, "F": {title: "exhausted in", unit: "s"},
					"G": {title: "dead share at least, 5 min", unit: "percentunit"}, "H": {title: "departures visible", unit: "percentunit"},
					"I": {title: "records read", unit: "percentunit"}, "J": {"questions are", "none", splitWords},
				},
				runbooks: []string{"AuditorBlind", "RetryBudgetExhausted"},
			},
			number("Auditors", "none", "Can each auditor be scraped? While none can, nobody counts, and every other panel has no data.", 6, ask{`up{job=~"$job"}`, "{{instance}}"}).
				with(runbooks("AuditorDown")).with(func(p *panel) { p.words, p.h = upWords, 9 }),
		}},
		{"Repeats", []panel{
			graph("Load factor, 1 min", "suffix:×", "Attributable arrivals for each original, live: 1 while nobody repeats. It speaks for the covered share beside it only.", 12,
				ask{`max by (dependency) (auditor_load_factor_ratio{@,window="1m"})`, "{{dependency}}"}),
			coverageOf("dependency", 12),
			graph("Originals and arrivals", "reqps", "In a storm arrivals rise and originals stay flat; with more demand both rise.", 12,
				ask{`sum by (dependency) (rate(auditor_arrivals_total{@}[$__rate_interval]))`, "{{dependency}} arrivals"},
				ask{`sum by (dependency) (rate(auditor_originals_total{@}[$__rate_interval]))`, "{{dependency}} originals"}),
			graph("Amplification, 5 min, and what is declared", "suffix:×", "Arrivals for each distinct question among closed seconds, which end time.lateness (60 s) ago, beside the most that the declared policy can make. More than that is a layer that retries and is not on the drawing.", 12,
				ask{`max by (dependency) (auditor_amplification_ratio{@,window="5m",bound="measured"})`, "{{dependency}} measured"},
				ask{`max by (dependency) (auditor_declared_amplification_ratio{@})`, "{{dependency}} declared"}).with(runbooks("AmplificationAboveDeclared")),
		}},
		{"Retry budget", []panel{
			graph("Budget spent", "percentunit", "Repeats as a share of those that are allowed, live, of the instance where it is worst; from 100 % on it is exhausted. High takes every arrival without attribution for a repeat.", 8,
				ask{`max by (dependency, model) (auditor_retry_budget_consumed_ratio{@,bound="low"})`, "{{dependency}} {{model}}"},
				ask{`max by (dependency, model) (auditor_retry_budget_consumed_ratio{@,bound="high"})`, "{{dependency}} {{model}} high"}).
				with(func(p *panel) { p.limit = 1 }).with(runbooks("RetryBudgetLow", "RetryBudgetExhausted")),
			graph("Exhausted in", "s", "Time until the budget is spent at the present slope. No data while consumption does not rise.", 8,
				ask{`min by (dependency, model) (auditor_retry_budget_exhausts_in_seconds{@})`, "{{dependency}} {{model}}"}).with(runbooks("RetryBudgetExhaustsSoon")),
			coverageOf("dependency", 8),
		}},
		{"Work for nobody", []panel{
			graph("Goodput and answers", "reqps", "Answers that the dependency wrote, and those of them that were successes for somebody who was still there, at most: "+asShown+" What lies between is work for nobody, or failure.", 8,
				ask{`sum by (dependency) (rate(auditor_responses_total{@,outcome=~"answered|dead"}[$__rate_interval]))`, "{{dependency}} answers"},
				ask{`sum by (dependency) (rate(auditor_good_responses_total{@}[$__rate_interval]))`, "{{dependency}} goodput, at most"}),
			graph("Dead share", "percentunit", "The share of answers that nobody was there to read, at least: "+asShown, 8,
				ask{`sum by (dependency) (rate(auditor_responses_total{@,outcome="dead"}[$__rate_interval])) / (sum by (dependency) (rate(auditor_responses_total{@,outcome=~"answered|dead"}[$__rate_interval])) > 0)`, "{{dependency}} at least"}).
				with(runbooks("DeadAnswers")).with(func(p *panel) { p.most = 1 }),
			visibilityOf("dependency", 8),
		}},
		{"Can it be believed", []panel{
			graph("Records read", "percentunit", "The share of records that could be read: the others are quarantined, or were deleted before they were read.", 8,
				ask{`min by (dependency) (auditor_read_share_ratio{@})`, "{{dependency}}"}).with(runbooks("AuditorBlind")).with(func(p *panel) { p.most = 1 }),
			graph("Questions followed", "percentunit", "Below 100 % there are more questions than max_live_questions: a part is followed, chosen by hash, and sums are weighted.", 8,
				ask{`min by (dependency) (auditor_sampling_ratio{@})`, "{{dependency}}"}).with(func(p *panel) { p.most = 1 }),
			panel{kind: "state-timeline", title: "Are questions seen whole", unit: "none", w: 8, h: 8, words: splitWords,
				about: "Split: one question was seen in two scopes. A topic that is said to be keyed by question is not, repeats are missing and amplification reads low.",
				asks:  []ask{{`max by (dependency) (auditor_scope_split{@})`, "{{dependency}}"}}}.with(runbooks("AuditorBlind")),
		}},
	},
}

// asShown is why figures of departures are bounds, and where it stands how far.
const asShown = "as far as the log shows departures (see beside) and gives the times to judge deadlines by. How many deadlines could not be judged no metric tells: it is responses.unjudged in the API, and marked on the live page."

// coverageOf stands beside every figure of questions.
func coverageOf(by string, w int) panel {
	return graph("Coverage", "percentunit", "The share of the last minute's arrivals whose question is known: by proof (verified) and by claim. Only the verified share lets figures be trusted; below the line they are lower bounds.", w,
		ask{`min by (` + by + `) (auditor_key_coverage_ratio{@,class="verified"})`, "{{" + by + "}} verified"},
		ask{`min by (` + by + `) (auditor_key_coverage_ratio{@,class="claimed"})`, "{{" + by + "}} claimed"}).
		with(runbooks("CoverageTooLow", "AuditorBlind")).with(func(p *panel) { p.limit, p.most = 0.85, 1 })
}

// visibilityOf stands beside every figure of departures.
func visibilityOf(by string, w int) panel {
	return graph("Departures visible", "percentunit", "The share of the last minute's records that could have shown that the caller left. Dead answers among the others are not known; below the line the dead share says little.", w,
		ask{`min by (` + by + `) (auditor_response_visibility_ratio{@})`, "{{" + by + "}}"}).
		with(runbooks("AuditorBlind")).with(func(p *panel) { p.limit, p.most = 0.5, 1 })
}
