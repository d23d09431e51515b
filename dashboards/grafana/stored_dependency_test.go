package grafana_test

// hopsKnown is whether attempt numbers say anything: where there are repeats and all read 1,
// a proxy may have written them anew.
const hopsKnown = `sum(hn) > 0 AND NOT (` + repeats + ` > 0 AND sum(hn) = sum(h1) AND sum(ht) < sum(hn))`

const measuredRoutes = `SELECT DISTINCT route FROM measures(resolution = '${resolution}', ` + between + `) WHERE dependency = ${dependency:sqlstring} ORDER BY route`

// partly is a table of parts by a family, with the coverage of each.
func partly(name, as, family string) ask {
	return ask{expr: `SELECT ` + name + ` AS ` + as + `, sum(a) AS arrivals, ` + known + originals + `) AS firsts, ` + known + repeats + `) AS again, ` + loadFactor + ` AS load_factor, ` + amplification + ` AS per_question, ` +
		covered + ` AS coverage, sum(v) / sum(a) AS verified_share, ` + deadShare + ` AS dead_share, ` + deadMost + ` AS dead_most, ` + visibility + ` AS visible_share, ` + repeatTime + ` AS repeated, ` + deadTime + ` AS for_nobody, max(p) AS is_provisional` +
		measures + ` AND route IN (${route:sqlstring}) AND family = '` + family + `' GROUP BY ` + as + ` HAVING arrivals > 0 ORDER BY again DESC NULLS LAST, arrivals DESC LIMIT 100`}
}

// partlyColumns are those of partly.
func partlyColumns() map[string]column {
	return map[string]column{
		"arrivals": {unit: "short"}, "firsts": {title: "originals", unit: "short"}, "again": {title: "repeats", unit: "short"}, "load_factor": {title: "load factor", unit: "suffix:×"},
		"per_question": {title: "amplification", unit: "suffix:×"}, "coverage": {unit: "percentunit"}, "verified_share": {title: "verified", unit: "percentunit"},
		"dead_share": {title: "dead share, at least", unit: "percentunit"}, "dead_most": {title: "dead share, at most", unit: "percentunit"}, "visible_share": {title: "departures visible", unit: "percentunit"},
		"repeated": {title: "repeats took", unit: "s"}, "for_nobody": {title: "for nobody", unit: "s"}, "is_provisional": {title: "is", unit: "none", words: finalWords},
	}
}

// storedDependency is one dependency, down to its routes, originators and peers.
var storedDependency = board{
	uid: "auditor-clickhouse-dependency", title: "auditor / Dependency, stored", stored: true,
	about:     "One dependency as it is stored in ClickHouse, of all instances: arrivals per question within their bounds, work for nobody, who multiplies, and routes, originators and peers with the coverage of each.",
	variables: []object{offered("dependency", "dependency", dependenciesQuery, false), resolutions(), offered("route", "route", measuredRoutes, true), grants()},
	sections: []section{
		{"The range", []panel{
			number("Amplification", "suffix:×", "Attributable arrivals for each distinct question of the whole range, and the bounds of that for all traffic: each arrival that could not be attributed a question of its own, or a repeat. It reads low in a range that is shorter than callers repeat. An upper bound without an end is left out.", 6,
				ofRange(amplification+` AS measured, `+amplificationLow+` AS at_least, `+amplificationHigh+` AS at_most`)).with(runbooks("AmplificationAboveDeclared")),
			number("Load factor", "suffix:×", "Attributable arrivals for each original in the range. No data while nothing original came.", 3, ofRange(loadFactor+` AS load_factor`)),
			number("Coverage", "percentunit", "The share of the range's arrivals whose question is known by proof. Below 85 % the figures beside are called blind: repeats are a lower bound.", 3,
				ofRange(`sum(v) / nullIf(sum(a), 0) AS share, share AS state`)).with(runbooks("CoverageTooLow", "AuditorBlind")).with(func(p *panel) { p.words = coverageWords }),
			number("Of what is granted", "percentunit", "Repeats as a share of those that the variable granted allows for the originals of the range. No reading of a budget, which is of log time and is not stored.", 3,
				ofRange(ofGranted+` AS of_granted`)).with(runbooks("RetryBudgetExhausted")),
			number("Dead share", "percentunit", "The share of answers that nobody was there to read: at least, as far as records show it, and at most, if of all others nobody was there either; and the share of records that could have shown a departure.", 3,
				ofRange(deadShare+` AS at_least, `+deadMost+` AS at_most, `+visibility+` AS visible_share`)).with(runbooks("DeadAnswers")),
			number("For nobody", "s", "Time in system, queue included, of arrivals whose caller had left or given up: a lower bound where departures or durations are not logged.", 3, ofRange(`if(sum(a) = 0, NULL, `+deadTime+`) AS for_nobody`)),
			number("Error of originals", "percentunit", "The standard error of originals as a share of them, where the daemon followed a part of the questions. 0: all were followed, and nothing is estimated.", 3, ofRange(sampled+` AS error`)),
		}},
		{"Originals and arrivals", []panel{
			graph("Originals and arrivals", "reqps", "In a storm arrivals rise and originals stay flat; with more demand both rise. What is provisional is dashed; a gap is a step of which nothing is stored.", 12,
				byTime(perSecond("sum(a)", "arrivals")+`, `+perSecond(originals, "originals"))),
			graph("Coverage by class", "percentunit", "The share of arrivals of each class; together they are all.", 12,
				byTime(shareOf("sum(v)", "verified")+`, `+shareOf("sum(c)", "claimed")+`, `+shareOf("sum(u)", "unattributable"))).
				with(func(p *panel) { p.stacked, p.most = true, 1 }).with(runbooks("CoverageTooLow")),
			graph("Load factor within its bounds", "suffix:×", "Attributable arrivals for each original of the step, and the bounds of that for all traffic: each arrival that could not be attributed an original, or a repeat. A gap where there is none, or no upper end.", 12,
				byTime(loadFactor+` AS measured, `+loadLow+` AS at_least, `+loadHigh+` AS at_most`)).with(runbooks("AmplificationAboveDeclared")),
			graph("Arrivals without attribution, by reason", "reqps", "What could not be attributed, and why: its growth while originals stay flat may be repeats that nobody can count. Late: the record came after its second had closed, and none of the other reasons held.", 12,
				byTime(reasonColumns())).with(func(p *panel) { p.stacked = true }).with(runbooks("CoverageTooLow")),
		}},
		{"Work for nobody", []panel{
			graph("Goodput and answers", "reqps", "Answers that the dependency wrote, and those of them that were successes for somebody who was still there: at most, as far as the log shows who was not, and at least, if of all records that do not nobody was there. The lines lie on one another where all can be judged.", 8,
				byTime(perSecond("sum(an)", "answers")+`, `+perSecond(goodputMost, "goodput_at_most")+`, `+perSecond(goodputLeast, "goodput_at_least"))),
			graph("Dead share", "percentunit", "The share of answers that nobody was there to read: at least, as far as the log shows departures and gives the times to judge deadlines by, and at most, if of all other records nobody was there either. The lines lie on one another where all can be judged.", 8,
				byTime(deadShare+` AS at_least, `+deadMost+` AS at_most`)).with(runbooks("DeadAnswers")).with(func(p *panel) { p.most = 1 }),
			graph("Departures visible", "percentunit", "The share of the step's records that could have shown that the caller left. Dead answers among the others are not known.", 8,
				byTime(visibility+` AS visible_share`)).with(runbooks("AuditorBlind")).with(func(p *panel) { p.limit, p.most = 0.5, 1 }),
			graph("Arrivals by outcome", "reqps", "Answered as far as can be seen; dead: answered, and nobody was there; refused; abandoned: the caller left before any answer. What is in none of them shows no answer.", 12,
				byTime(lines("sum(an) - sum(de)", "answered")+`, `+lines("sum(de)", "dead")+`, `+lines("sum(re)", "refused")+`, `+lines("sum(be)", "abandoned"))),
			graph("Time in system", "suffix:s/s", "Seconds of work (queue included) for each second: of all arrivals, of repeats, and of those whose caller had left or given up. The last two overlap. It is at least so much where the log does not give each time, and for nobody also where it does not show each departure.", 12,
				byTime(lines(busyTime, "all_arrivals")+`, `+lines(repeatTime, "repeats")+`, `+lines(deadTime, "for_nobody"))),
		}},
		{"Who multiplies", []panel{
			number("Hops", "suffix:×", "From attempt numbers that each hop sets anew: tries of the adjacent caller per call, and calls per question by all that lies further out. No data without such numbers, or where there are repeats and every number is 1, as a proxy may have written them anew.", 8,
				ofRange(`if(`+hopsKnown+`, sum(hn) / nullIf(sum(h1), 0), NULL) AS adjacent, if(`+hopsKnown+`, sum(hk) / nullIf(sum(hd), 0), NULL) AS above`)),
			number("By the same peer", "percentunit", "The share of repeats that came by the same peer as the arrival before.", 4, ofRange(`sum(sp) / nullIf(`+repeats+`, 0) AS same_peer`)),
			number("Coverage", "percentunit", "Hops and repeats are only known of arrivals that could be attributed: this share, by proof or by claim.", 4, ofRange(covered+` AS coverage`)).with(runbooks("CoverageTooLow")),
			number("Early, of those asked to wait", "percentunit", "The share of returns after Retry-After that came too early. No data where nobody who was asked to wait returned, or no record has the header.", 4, ofRange(`sum(ry) / nullIf(sum(rr), 0) AS early_share`)).with(runbooks("RetryAfterIgnored")),
			number("Asked to wait", "short", "Answers with Retry-After, and repeats whose arrival before had one. 0 also where the log has no field for the header.", 4, ofRange(`if(sum(a) = 0, NULL, sum(ra)) AS asked, if(sum(a) = 0, NULL, sum(rr)) AS came_back`)),
			graph("What repeats followed", "reqps", "By what the arrival before got. Mostly success is polling, or one key for several questions, and no storm. Other answers are in none of them.", 12,
				byTime(lines("sum(ag)", "gone")+`, `+lines("sum(a5)", "failed_5xx")+`, `+lines("sum(a4)", "refused_429_503")+`, `+lines("sum(ok)", "success")+`, `+lines("sum(fl)", "in_flight"))),
			graph("Against what was agreed", "reqps", "Arrivals after their question's deadline (stale), beyond the attempt budget that they carry (overspent), and repeats before the time that was asked for (early).", 12,
				byTime(lines("sum(st)", "stale")+`, `+lines("sum(os)", "overspent")+`, `+lines("sum(ry)", "early"))),
		}},
		{"Arrivals per question", []panel{
			{kind: "barchart", title: "Questions that ended, by their arrivals", unit: "short", w: 18, h: 8, first: "each", about: "How many questions took how many arrivals, those that came once included. Above 32 a bar is up to the power of two that it names. A question ends a horizon (keys.horizon, 2 min) after its last arrival.",
				asks: []ask{{expr: `SELECT toString(upper) AS each, sum(n) AS ended_questions FROM (SELECT en` + routed + `) ARRAY JOIN mapKeys(en) AS upper, mapValues(en) AS n GROUP BY upper ORDER BY upper`}}},
			number("Coverage", "percentunit", "Questions are only known of arrivals that could be attributed: this share of the range's, by proof or by claim.", 6,
				ofRange(covered+` AS coverage`)).with(runbooks("CoverageTooLow")).with(func(p *panel) { p.h = 8 }),
		}},
		{"Routes, originators, peers", []panel{
			{kind: "table", title: "Routes", unit: "none", w: 24, h: 9, first: "route_name", about: "Of the whole range, most repeats first. What has no value is not known.",
				asks: []ask{partly("route", "route_name", "originator")}, columns: partlyColumns()},
			{kind: "table", title: "Originators", unit: "none", w: 24, h: 9, first: "originator", about: "By proof; claimed: and the scheme for keys that prove nothing, and (not attributed) for the rest.",
				asks: []ask{partly("if(name = '', '(not attributed)', name)", "originator", "originator")}, columns: partlyColumns()},
			{kind: "table", title: "Peers", unit: "none", w: 24, h: 9, first: "peer", about: "By the adjacent caller. A question's original counts at the peer by which it came first; amplification is of the questions that came by the peer.",
				asks: []ask{partly("if(name = '', '(no name)', name)", "peer", "peer")}, columns: partlyColumns(), runbooks: []string{"RetryBudgetExhausted"}},
		}},
	},
}

// lines is a sum as a rate.
func lines(sum, name string) string { return `toNullable((` + sum + `) / ` + step + `) AS ` + name }

func reasonColumns() string {
	out := ""
	for i, r := range []string{"absent", "malformed", "unknown_originator", "forged", "expired", "not_yet_valid", "unsigned", "unchecked", "late"} {
		if i > 0 {
			out += ", "
		}
		out += lines(`sumMap(why)['`+r+`']`, r)
	}
	return out
}
