package grafana_test

// dependency is one dependency, down to its routes, in the order of the live page.
var dependency = board{
	uid: "auditor-dependency", title: "auditor / Dependency",
	about:    "One dependency: arrivals per question, the retry budget, work for nobody, and its routes, with the coverage of each.",
	selector: `job=~"$job",dependency="$dependency"`,
	variables: []object{
		jobVariable(),
		choice("dependency", "dependency", `label_values(auditor_sampling_ratio{job=~"$job"}, dependency)`, false),
		choice("route", "route", `label_values(auditor_originals_total{job=~"$job",dependency="$dependency"}, route)`, true),
	},
	sections: []section{
		{"Now", []panel{
			number("Load factor, 1 min", "suffix:×", "Attributable arrivals for each original, live. 1 while nobody repeats; no data while nobody asks.", 4,
				ask{`max(auditor_load_factor_ratio{@,window="1m"})`, "load factor"}),
			number("Coverage", "percentunit", "The share of the last minute's arrivals whose question is known by proof. Blind: below 85 %, so that load factor and budget are lower bounds.", 4,
				ask{`min(auditor_key_coverage_ratio{@,class="verified"})`, "verified"},
				ask{`min(auditor_key_coverage_ratio{@,class="verified"})`, "state"}).
				with(runbooks("CoverageTooLow", "AuditorBlind")).with(func(p *panel) { p.words = coverageWords }),
			number("Retry budget", "percentunit", "Repeats as a share of those that are allowed, live. Low from 50 %, exhausted from 100 % on; blind while less than 85 % of arrivals carry a verified key: then at least as much is spent.", 4,
				ask{`max(auditor_retry_budget_consumed_ratio{@,bound="low"})`, "spent"},
				ask{budgetState(""), "state"}).
				with(runbooks("RetryBudgetLow", "RetryBudgetExhausted")).with(func(p *panel) { p.words = budgetWords }),
			number("Exhausted in", "s", "Time until the budget is spent at the present slope. No data while consumption does not rise.", 4,
				ask{`min(auditor_retry_budget_exhausts_in_seconds{@})`, "exhausted in"}).with(runbooks("RetryBudgetExhaustsSoon")),
			number("Dead share, 5 min", "percentunit", "The share of answers that nobody was there to read, and of records that could have shown it.", 4,
				ask{`sum(rate(auditor_responses_total{@,outcome="dead"}[5m])) / (sum(rate(auditor_responses_total{@,outcome=~"answered|dead"}[5m])) > 0)`, "dead"},
				ask{`min(auditor_response_visibility_ratio{@})`, "visible"}).with(runbooks("DeadAnswers")),
			number("Questions are seen", "none", "Split: one question was seen in two scopes; repeats are missing and amplification reads low.", 4,
				ask{`max(auditor_scope_split{@})`, "state"}).with(runbooks("AuditorBlind")).with(func(p *panel) { p.words = splitWords }),
		}},
		{"Originals and arrivals", []panel{
			graph("Originals and arrivals", "reqps", "In a storm arrivals rise and originals stay flat; with more demand both rise. What cannot be attributed may be either.", 12,
				ask{`sum(rate(auditor_arrivals_total{@}[$__rate_interval]))`, "arrivals"},
				ask{`sum(rate(auditor_originals_total{@}[$__rate_interval]))`, "originals"},
				ask{`sum(rate(auditor_repeats_total{@}[$__rate_interval]))`, "repeats"},
				ask{`sum(rate(auditor_arrivals_total{@,class="unattributable"}[$__rate_interval]))`, "unattributable"}),
			coverageOf("dependency", 12),
		}},
		{"Amplification", []panel{
			graph("Load factor", "suffix:×", "Attributable arrivals for each original, live, over three windows.", 8,
				ask{`max by (window) (auditor_load_factor_ratio{@})`, "{{window}}"}),
			graph("Amplification within its bounds, 5 min", "suffix:×", "Arrivals for each distinct question among closed seconds, which end time.lateness (60 s) ago. Measured speaks of the attributable part; low and high of all traffic, with every arrival without attribution a question of its own, or a repeat. Strict takes claimed keys for none. ∞: there is no upper end.", 8,
				ask{`max by (bound) (auditor_amplification_ratio{@,window="5m"})`, "{{bound}}"},
				ask{`max(auditor_declared_amplification_ratio{@})`, "declared"}).with(runbooks("AmplificationAboveDeclared")),
			graph("Arrivals without attribution, by reason", "reqps", "What could not be attributed, and why: its growth while originals stay flat may be repeats that nobody can count.", 8,
				ask{`sum by (reason) (rate(auditor_unattributable_arrivals_total{@}[$__rate_interval]))`, "{{reason}}"}).
				with(func(p *panel) { p.stacked = true }).with(runbooks("CoverageTooLow")),
			graph("Coverage by class", "percentunit", "The share of arrivals of each class; together they are all.", 24,
				ask{`sum by (class) (rate(auditor_arrivals_total{@}[$__rate_interval])) / on () group_left () (sum(rate(auditor_arrivals_total{@}[$__rate_interval])) > 0)`, "{{class}}"}).
				with(func(p *panel) { p.stacked, p.most = true, 1 }).with(runbooks("CoverageTooLow")),
		}},
		{"Retry budget", []panel{
			graph("Budget spent", "percentunit", "Repeats as a share of those that are allowed, live; from 100 % on it is exhausted. High takes every arrival without attribution for a repeat.", 8,
				ask{`max by (model, bound) (auditor_retry_budget_consumed_ratio{@})`, "{{model}} {{bound}}"}).
				with(func(p *panel) { p.limit = 1 }).with(runbooks("RetryBudgetLow", "RetryBudgetExhausted")),
			graph("Exhausted in", "s", "Time until the budget is spent at the present slope. No data while consumption does not rise.", 8,
				ask{`min by (model) (auditor_retry_budget_exhausts_in_seconds{@})`, "{{model}}"}).with(runbooks("RetryBudgetExhaustsSoon")),
			coverageOf("dependency", 8),
		}},
		{"Work for nobody", []panel{
			graph("Goodput and answers", "reqps", "Answers that the dependency wrote, and those of them that were successes for somebody who was still there, at most: "+asShown+"", 8,
				ask{`sum(rate(auditor_responses_total{@,outcome=~"answered|dead"}[$__rate_interval]))`, "answers"},
				ask{`sum(rate(auditor_good_responses_total{@}[$__rate_interval]))`, "goodput, at most"}),
			graph("Dead share", "percentunit", "The share of answers that nobody was there to read, at least: "+asShown, 8,
				ask{`sum(rate(auditor_responses_total{@,outcome="dead"}[$__rate_interval])) / (sum(rate(auditor_responses_total{@,outcome=~"answered|dead"}[$__rate_interval])) > 0)`, "at least"}).
				with(runbooks("DeadAnswers")).with(func(p *panel) { p.most = 1 }),
			visibilityOf("dependency", 8),
			graph("Arrivals by outcome", "reqps", "Answered as far as can be seen; dead: answered, and nobody was there; refused; abandoned: the caller left before any answer. Together they are all arrivals.", 8,
				ask{`sum by (outcome) (rate(auditor_responses_total{@}[$__rate_interval]))`, "{{outcome}}"}).with(func(p *panel) { p.stacked = true }),
			graph("Dead answers, by how it is known", "reqps", "Departures that were logged, and expired: past the caller's deadline, inferred. Refused arrivals are among them, unlike in the dead share. Not judged are those beside them that had a deadline and no time to judge it by: they may have expired.", 8,
				ask{`sum by (kind) (rate(auditor_dead_answers_total{@}[$__rate_interval]))`, "{{kind}}"},
				ask{`sum(rate(auditor_unjudged_responses_total{@}[$__rate_interval]))`, "not judged"}).
				with(func(p *panel) { p.stacked = true }).with(runbooks("DeadAnswers")),
			graph("Time in system", "suffix:s/s", "Seconds of work (queue included) for each second: of all arrivals, of repeats, and of those whose caller had left or given up. The last two overlap. It is at least so much where the log does not give each time, and for nobody also where it does not show each departure.", 8,
				ask{`sum(rate(auditor_busy_seconds_total{@}[$__rate_interval]))`, "all"},
				ask{`sum(rate(auditor_repeat_seconds_total{@}[$__rate_interval]))`, "repeats"},
				ask{`sum(rate(auditor_dead_seconds_total{@}[$__rate_interval]))`, "for nobody"}),
		}},
		{"Questions", []panel{
			{kind: "heatmap", title: "Arrivals per question", unit: "short", w: 12, h: 8,
				about: "How many questions that ended took how many arrivals. A question ends a horizon (keys.horizon, 2 min) after its last arrival, so that this is the latest panel of all.",
				asks:  []ask{{`sum by (le) (increase(auditor_arrivals_per_question_bucket{@}[$__rate_interval]))`, "{{le}}"}}},
			graph("Questions that took more than so many arrivals", "percentunit", "The share of questions that ended. Bounds are those of the histogram, so that the shares are exact. A question ends a horizon (keys.horizon, 2 min) after its last arrival.", 12,
				moreThan("1"), moreThan("3"), moreThan("9"), moreThan("27")).with(func(p *panel) { p.most = 1 }),
			graph("Retry-After", "reqps", "Answers that asked to wait, and repeats that came before then. 0 also where the log has no field for the header: then nobody can be charged.", 6,
				ask{`sum(rate(auditor_retry_after_asked_total{@}[$__rate_interval]))`, "asked"},
				ask{`sum(rate(auditor_retry_after_early_total{@}[$__rate_interval]))`, "came early"}).with(runbooks("RetryAfterIgnored")),
			graph("Early share", "percentunit", "Of those asked to wait, the share that came back too early. No data while nobody is asked.", 6,
				ask{`sum(rate(auditor_retry_after_early_total{@}[$__rate_interval])) / (sum(rate(auditor_retry_after_asked_total{@}[$__rate_interval])) > 0)`, "early share"}).
				with(runbooks("RetryAfterIgnored")),
			graph("Against what was agreed", "reqps", "Arrivals after their question's deadline (stale), and arrivals that break the attempt budget that they carry.", 6,
				ask{`sum(rate(auditor_stale_arrivals_total{@}[$__rate_interval]))`, "stale"},
				ask{`sum by (kind) (rate(auditor_attempt_budget_violations_total{@}[$__rate_interval]))`, "{{kind}}"}),
			coverageOf("dependency", 6),
		}},
		{"Routes", []panel{
			{kind: "table", title: "Routes, over the range shown", unit: "none", w: 24, h: 9, first: "route",
				about: "Rates and shares over the whole range. Load factor speaks for the attributable part of the route, whose share is beside it. What has no value is not known.",
				asks: []ask{
					{`sum by (route) (rate(auditor_arrivals_total{@,route=~"$route"}[$__range]))`, ""},
					{`sum by (route) (rate(auditor_originals_total{@,route=~"$route"}[$__range]))`, ""},
					{`sum by (route) (rate(auditor_arrivals_total{@,route=~"$route",class!="unattributable"}[$__range])) / (sum by (route) (rate(auditor_originals_total{@,route=~"$route"}[$__range])) > 0)`, ""},
					{`sum by (route) (rate(auditor_arrivals_total{@,route=~"$route",class="verified"}[$__range])) / (sum by (route) (rate(auditor_arrivals_total{@,route=~"$route"}[$__range])) > 0)`, ""},
					{`sum by (route) (rate(auditor_arrivals_total{@,route=~"$route",class="claimed"}[$__range])) / (sum by (route) (rate(auditor_arrivals_total{@,route=~"$route"}[$__range])) > 0)`, ""},
					{`sum by (route) (rate(auditor_good_responses_total{@,route=~"$route"}[$__range]))`, ""},
					{`sum by (route) (rate(auditor_responses_total{@,route=~"$route",outcome="dead"}[$__range])) / (sum by (route) (rate(auditor_responses_total{@,route=~"$route",outcome=~"answered|dead"}[$__range])) > 0)`, ""},
					{`sum by (route) (rate(auditor_repeat_seconds_total{@,route=~"$route"}[$__range]))`, ""},
					{`sum by (route) (rate(auditor_dead_seconds_total{@,route=~"$route"}[$__range]))`, ""},
				},
				columns: map[string]column{
					"A": {title: "arrivals", unit: "reqps"}, "B": {title: "originals", unit: "reqps"}, "C": {title: "load factor", unit: "suffix:×"},
					"D": {title: "verified", unit: "percentunit"}, "E": {title: "claimed", unit: "percentunit"}, "F": {title: "goodput, at most", unit: "reqps"},
					"G": {title: "dead share, at least", unit: "percentunit"}, "H": {title: "repeats", unit: "suffix:s/s"}, "I": {title: "for nobody", unit: "suffix:s/s"},
				}},
			graph("Arrivals by route", "reqps", "Which route the load is on.", 8,
				ask{`sum by (route) (rate(auditor_arrivals_total{@,route=~"$route"}[$__rate_interval]))`, "{{route}}"}),
			graph("Load factor by route", "suffix:×", "Attributable arrivals for each original. No data while nothing original comes.", 8,
				ask{`sum by (route) (rate(auditor_arrivals_total{@,route=~"$route",class!="unattributable"}[$__rate_interval])) / (sum by (route) (rate(auditor_originals_total{@,route=~"$route"}[$__rate_interval])) > 0)`, "{{route}}"}),
			graph("Coverage by route, verified", "percentunit", "The share of the route's arrivals whose question is known by proof.", 8,
				ask{`sum by (route) (rate(auditor_arrivals_total{@,route=~"$route",class="verified"}[$__rate_interval])) / (sum by (route) (rate(auditor_arrivals_total{@,route=~"$route"}[$__rate_interval])) > 0)`, "{{route}}"}).
				with(func(p *panel) { p.limit, p.most = 0.85, 1 }).with(runbooks("CoverageTooLow")),
		}},
	},
}

// moreThan is the share of questions with more arrivals than a bound. Newer versions
// of Prometheus write the bound 3 as 3.0.
func moreThan(bound string) ask {
	return ask{`1 - sum(rate(auditor_arrivals_per_question_bucket{@,le=~"` + bound + `|` + bound + `[.]0"}[$__rate_interval])) / (sum(rate(auditor_arrivals_per_question_count{@}[$__rate_interval])) > 0)`, "> " + bound}
}
