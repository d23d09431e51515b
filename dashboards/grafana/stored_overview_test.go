package grafana_test

// storedOverview is of all dependencies, from what is stored.
var storedOverview = board{
	uid: "auditor-clickhouse-overview", title: "auditor / Overview, stored", stored: true,
	about:     "All dependencies as they are stored in ClickHouse, of all instances and as far back as rows are kept: arrivals per question, work for nobody, and how far that can be believed.",
	variables: []object{offered("dependency", "dependency", dependenciesQuery, true), resolutions(), grants()},
	sections: []section{
		{"The range", []panel{
			{kind: "table", title: "Dependencies", unit: "none", w: 24, h: 9, first: "dependency", runbooks: []string{"AmplificationAboveDeclared", "CoverageTooLow"},
				about: "One line a dependency, over the whole range. Load factor and amplification speak of the attributable part; at least and at most of all traffic, with each arrival that could not be attributed a question of its own, or a repeat. " +
					"An empty field is not known, or a bound without an upper end. Blind: fewer than 85 % of arrivals are verified, and repeats are a lower bound. Of what is granted: repeats as a share of what the variable granted allows, which is no reading of a budget.",
				asks: []ask{{expr: `SELECT dependency, sum(a) AS arrivals, ` + known + originals + `) AS firsts, ` + known + repeats + `) AS again, ` + loadFactor + ` AS load_factor, ` + amplification + ` AS per_question, ` +
					amplificationLow + ` AS at_least, ` + amplificationHigh + ` AS at_most, ` + covered + ` AS coverage, sum(v) / sum(a) AS verified_share, verified_share AS trust, ` + ofGranted + ` AS of_granted, ` +
					deadShare + ` AS dead_share, ` + deadMost + ` AS dead_most, ` + visibility + ` AS visible_share, ` + deadTime + ` AS for_nobody, ` + sampled + ` AS error, max(p) AS is_provisional` + measured + ` GROUP BY dependency ORDER BY again DESC NULLS LAST, arrivals DESC LIMIT 1000`}},
				columns: map[string]column{
					"arrivals": {unit: "short"}, "firsts": {title: "originals", unit: "short"}, "again": {title: "repeats", unit: "short"}, "load_factor": {title: "load factor", unit: "suffix:×"},
					"per_question": {title: "amplification", unit: "suffix:×"}, "at_least": {title: "at least", unit: "suffix:×"}, "at_most": {title: "at most", unit: "suffix:×"},
					"coverage": {unit: "percentunit"}, "verified_share": {title: "verified", unit: "percentunit"}, "trust": {title: "coverage is", unit: "none", words: coverageWords},
					"of_granted": {title: "of what is granted", unit: "percentunit"}, "dead_share": {title: "dead share, at least", unit: "percentunit"}, "dead_most": {title: "dead share, at most", unit: "percentunit"}, "visible_share": {title: "departures visible", unit: "percentunit"},
					"for_nobody": {title: "for nobody", unit: "s"}, "error": {title: "error of originals", unit: "percentunit"}, "is_provisional": {title: "is", unit: "none", words: finalWords},
				}},
		}},
		{"Repeats", []panel{
			ofEach(graph("Originals and arrivals", "reqps", "In a storm arrivals rise and originals stay flat; with more demand both rise. What is provisional is dashed; a gap is a step of which nothing is stored.", 12,
				byDependency(perSecond("sum(a)", "arrivals")+`, `+perSecond(originals, "originals")))),
			ofEach(coverageStored(12)),
			ofEach(graph("Load factor", "suffix:×", "Attributable arrivals for each original of the step. A gap where none is original.", 12,
				byDependency(loadFactor+` AS load_factor`))).with(runbooks("AmplificationAboveDeclared")),
			ofEach(graph("Load factor of all traffic, within its bounds", "suffix:×", "With each arrival that could not be attributed an original, and with each a repeat. A gap where there is no upper end.", 12,
				byDependency(loadLow+` AS at_least, `+loadHigh+` AS at_most`))).with(runbooks("AmplificationAboveDeclared")),
		}},
		{"What is granted", []panel{
			ofEach(graph("Repeats, of what is granted", "percentunit", "Repeats of the step as a share of those that the variable granted allows for its originals; from 100 % on it is more. A budget's own reading is of log time, over its window and by its model: it is not stored, and stands on the live page and on the dashboards of Prometheus.", 12,
				byDependency(ofGranted+` AS of_granted`))).with(func(p *panel) { p.limit = 1 }).with(runbooks("RetryBudgetLow", "RetryBudgetExhausted")),
			ofEach(coverageStored(12)),
		}},
		{"Work for nobody", []panel{
			ofEach(graph("Goodput and answers", "reqps", "Answers that the dependency wrote, and those of them that were successes for somebody who was still there: at most, as far as the log shows who was not, and at least, if of all records that do not nobody was there. The lines lie on one another where all can be judged.", 8,
				byDependency(perSecond("sum(an)", "answers")+`, `+perSecond(goodputMost, "goodput_at_most")+`, `+perSecond(goodputLeast, "goodput_at_least")))),
			ofEach(graph("Dead share", "percentunit", "The share of answers that nobody was there to read: at least, as far as the log shows departures and gives the times to judge deadlines by, and at most, if of all other records nobody was there either. The lines lie on one another where all can be judged.", 8,
				byDependency(deadShare+` AS at_least, `+deadMost+` AS at_most`))).with(runbooks("DeadAnswers")).with(func(p *panel) { p.most = 1 }),
			ofEach(visibilityStored(8)),
		}},
	},
}

// coverageStored stands beside every figure of questions.
func coverageStored(w int) panel {
	return graph("Coverage", "percentunit", "The share of the step's arrivals whose question is known: by proof (verified), and at all. Below the line figures of questions are called blind: repeats are a lower bound.", w,
		byDependency(shareOf("sum(v)", "verified")+`, `+shareOf("("+attributable+")", "attributable"))).
		with(runbooks("CoverageTooLow", "AuditorBlind")).with(func(p *panel) { p.limit, p.most = 0.85, 1 })
}

// visibilityStored stands beside every figure of departures.
func visibilityStored(w int) panel {
	return graph("Departures visible", "percentunit", "The share of the step's records that could have shown that the caller left. Dead answers among the others are not known.", w,
		byDependency(visibility+` AS visible_share`)).
		with(runbooks("AuditorBlind")).with(func(p *panel) { p.limit, p.most = 0.5, 1 })
}
