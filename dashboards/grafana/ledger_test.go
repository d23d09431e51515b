package grafana_test

// Queries ask views alone: these are kept as they are (docs/clickhouse.md). Bounds are seconds since 1970 in quotes, which a view takes for a
// time whatever the zone of the server.
const (
	bounds = `from = '${__from:date:seconds}', to = '${__to:date:seconds}', dependency = ${dependency:sqlstring}`
	// rows are of figures, with short names: else those of lines would stand for them.
	rows = ` FROM (SELECT time, route, family, name, arrivals AS a, verified AS v, claimed AS c, unattributable AS u, originals AS o, provisional AS p` +
		` FROM figures(resolution = '${resolution}', ` + bounds + `)) WHERE route IN (${route:sqlstring}) AND family = `
	single = ` FROM questions(` + bounds + `) WHERE route IN (${route:sqlstring})`

	// step is the length of a row in seconds.
	step = `multiIf('${resolution}' = 'tick', 1, '${resolution}' = 'ten_seconds', 10, '${resolution}' = 'minute', 60, 3600)`
	// filled orders lines by time, and has a row of NULL for each step that has none: a
	// gap, where a line would else be drawn through what is not known.
	filled = ` GROUP BY time ORDER BY time` + steps
	steps  = ` WITH FILL FROM toDateTime(intDiv(toUInt32(${__from:date:seconds}) + ` + step + ` - 1, ` + step + `) * ` + step + `, 'UTC') TO toDateTime(toUInt32(${__to:date:seconds}), 'UTC') STEP ` + step

	attributable = `sum(v) + sum(c)`
)

// perSecond is a sum as a rate, final and provisional apart.
func perSecond(sum, name string) string {
	rate := `toNullable(` + sum + ` / ` + step + `)`
	return `if(max(p) = 0, ` + rate + `, NULL) AS ` + name + `, if(max(p) = 1, ` + rate + `, NULL) AS ` + name + `_provisional`
}

// shareOf is a class's share of the arrivals.
func shareOf(sum, name string) string {
	return `toNullable(` + sum + ` / nullIf(sum(a), 0)) AS ` + name
}

// whole is one number of all rows of the range, counted by the originators' family.
func whole(expr string) ask { return ask{expr: `SELECT ` + expr + rows + `'originator'`} }

// over is lines over time.
func over(columns string) ask {
	return ask{expr: `SELECT time, ` + columns + rows + `'originator'` + filled}
}

// parts is a table of parts, by what they repeat.
func parts(name, as, family string) ask {
	return ask{expr: `SELECT ` + name + ` AS ` + as + `, sum(a) AS arrivals, ` + known + originals + `) AS originals, ` + known + repeats + `) AS repeats, ` +
		loadFactor + ` AS load_factor, ` + covered + ` AS coverage, sum(v) / sum(a) AS verified_share, max(p) AS is_provisional` +
		rows + `'` + family + `' GROUP BY ` + as + ` ORDER BY repeats DESC NULLS LAST, arrivals DESC LIMIT 100`}
}

// partColumns are those of parts.
func partColumns() map[string]column {
	return map[string]column{
		"arrivals": {unit: "short"}, "originals": {unit: "short"}, "repeats": {unit: "short"}, "load_factor": {title: "load factor", unit: "suffix:×"},
		"coverage": {unit: "percentunit"}, "verified_share": {title: "verified", unit: "percentunit"}, "is_provisional": {title: "is", unit: "none", words: finalWords},
	}
}

// routesQuery offers the routes of the range.
const routesQuery = `SELECT DISTINCT route FROM figures(resolution = '${resolution}', ` + bounds + `) ORDER BY route`

// ledger is what is stored, of all instances: counts by part, and single questions.
var ledger = board{
	uid: "auditor-ledger", title: "auditor / Question ledger", stored: true,
	about: "What is stored in ClickHouse, of all instances: counts by route, originator and peer, and the questions that came again, one by one.",
	variables: []object{
		offered("dependency", "dependency", dependenciesQuery, false),
		resolutions(),
		offered("route", "route", routesQuery, true),
		typed("key", "question", "The hash of a question's key, whole. A click in the table of the worst questions fills it in."),
	},
	sections: []section{
		{"The range", []panel{
			number("Coverage", "percentunit", "The share of the range's arrivals whose question is known by proof. Below 85 % the figures below are called blind: repeats are a lower bound.", 4,
				whole(`sum(v) / nullIf(sum(a), 0) AS share, share AS state`)).with(runbooks("CoverageTooLow", "AuditorBlind")).with(func(p *panel) { p.words = coverageWords }),
			number("Claimed", "percentunit", "The share of arrivals whose key says who asked, and proves nothing.", 4, whole(`sum(c) / nullIf(sum(a), 0) AS claimed`)),
			number("Load factor", "suffix:×", "Attributable arrivals for each original in the range. No data while nothing original came.", 4,
				whole(loadFactor+` AS load_factor`)).with(runbooks("AmplificationAboveDeclared")),
			number("Arrivals", "short", "Requests that were counted in the range.", 4, whole(`nullIf(sum(a), 0) AS arrivals`)),
			number("Repeats", "short", "Arrivals of a question that had come before: at least so many. No data where nothing could be attributed.", 4,
				whole(known+repeats+`) AS repeats`)),
			number("Provisional", "percentunit", "The share of arrivals in rows that are not final: late records may still add to them.", 4,
				whole(`sumIf(a, p = 1) / nullIf(sum(a), 0) AS provisional_share`)),
		}},
		{"Originals and arrivals", []panel{
			graph("Originals and arrivals", "reqps", "In a storm arrivals rise and originals stay flat. What is provisional is dashed; a gap is a step of which nothing is stored.", 12,
				over(perSecond("sum(a)", "arrivals")+`, `+perSecond(originals, "originals"))),
			graph("Coverage by class", "percentunit", "The share of arrivals of each class; together they are all.", 12,
				over(shareOf("sum(v)", "verified")+`, `+shareOf("sum(c)", "claimed")+`, `+shareOf("sum(u)", "unattributable"))).
				with(func(p *panel) { p.stacked, p.most = true, 1 }).with(runbooks("CoverageTooLow")),
			graph("Load factor", "suffix:×", "Attributable arrivals for each original of the step. A gap where none is original.", 12,
				over(loadFactor+` AS load_factor`)).with(runbooks("AmplificationAboveDeclared")),
			graph("Repeats and what could not be attributed", "reqps", "What is unattributable may be either: if it rises while originals stay flat, it may be repeats that nobody can count.", 12,
				over(perSecond(repeats, "repeats")+`, `+perSecond("sum(u)", "unattributable"))),
		}},
		{"Who", []panel{
			{kind: "table", title: "Routes", unit: "none", w: 24, h: 8, first: "route_name", about: "The whole range, most repeats first. What has no value is not known.",
				asks: []ask{parts("route", "route_name", "originator")}, columns: partColumns()},
			{kind: "table", title: "Originators", unit: "none", w: 12, h: 9, first: "originator", about: "By proof; claimed: and the scheme for keys that prove nothing, and (not attributed) for the rest.",
				asks: []ask{parts("if(name = '', '(not attributed)', name)", "originator", "originator")}, columns: partColumns()},
			{kind: "table", title: "Peers", unit: "none", w: 12, h: 9, first: "peer", about: "By the adjacent caller. A question's original counts at the peer by which it came first.",
				asks: []ask{parts("if(name = '', '(no name)', name)", "peer", "peer")}, columns: partColumns(), runbooks: []string{"RetryBudgetExhausted"}},
		}},
		{"Questions one by one", []panel{
			number("Stored questions", "short", "Questions that are over and stored by themselves: those that came again, unless store.questions says otherwise, and at most 100 that ended in one second. They are no sample of all questions.", 4,
				ask{expr: `SELECT nullIf(count(), 0) AS questions` + single}),
			number("Arrivals of the worst", "short", "The most arrivals that one of them cost.", 4, ask{expr: `SELECT if(count() = 0, NULL, max(arrivals)) AS most` + single}),
			number("Coverage", "percentunit", "Questions are only known of arrivals that could be attributed: this share of the range's, by proof or by claim.", 4,
				whole(covered+` AS coverage`)).with(runbooks("CoverageTooLow")),
			graph("Questions that ended", "short", "Stored questions by the step of their last arrival, and their arrivals beyond the first. A question is stored a horizon (keys.horizon, 2 min) after its last arrival, so that the newest are missing.", 12,
				ask{expr: `SELECT toStartOfInterval(toDateTime(last_arrival), toIntervalSecond(` + step + `)) AS time, toNullable(count()) AS questions, toNullable(sum(arrivals - 1)) AS repeats` + single + filled}),
			{kind: "barchart", title: "Arrivals per stored question", unit: "short", w: 12, h: 8, first: "each", about: "How many of them took how many arrivals. Questions that came once are not stored unless store.questions is all.",
				asks: []ask{{expr: `SELECT multiIf(arrivals <= 8, toString(arrivals), arrivals <= 16, '9–16', arrivals <= 32, '17–32', arrivals <= 64, '33–64', 'more') AS each, count() AS questions` + single + ` GROUP BY each ORDER BY min(arrivals)`}}},
			{kind: "table", title: "By originator", unit: "none", w: 12, h: 8, first: "originator_name", about: "Stored questions by who asked.",
				asks:    []ask{{expr: `SELECT if(originator = '', '(claimed)', originator) AS originator_name, count() AS questions, sum(arrivals) AS arrivals_of_all, max(arrivals) AS most, quantileExact(0.5)(arrivals) AS half` + single + ` GROUP BY originator_name ORDER BY arrivals_of_all DESC LIMIT 100`}},
				columns: map[string]column{"questions": {unit: "short"}, "arrivals_of_all": {title: "arrivals", unit: "short"}, "most": {title: "of the worst", unit: "short"}, "half": {title: "median", unit: "short"}}},
			{kind: "table", title: "Worst questions", unit: "none", w: 24, h: 10, first: "key_hash", about: "Those with the most arrivals. A click on a hash shows that key's questions below.",
				asks: []ask{{expr: `SELECT key_hash, arrivals, route, originator, arrayStringConcat(peers, ', ') AS by_peers, toDateTime64(first_arrival, 3) AS first_came, toDateTime64(last_arrival, 3) AS last_came, dateDiff('millisecond', first_arrival, last_arrival) / 1000 AS lasted` +
					single + ` ORDER BY arrivals DESC, key_hash LIMIT 100`}},
				columns: map[string]column{"arrivals": {unit: "short"}, "by_peers": {title: "peers", unit: "none"}, "first_came": {title: "first", unit: "none"}, "last_came": {title: "last", unit: "none"}, "lasted": {title: "for", unit: "s"}}},
			{kind: "table", title: "One key", unit: "none", w: 24, h: 6, first: "asked", about: "All stored questions of the key in the field above, by when they began: the same key on several routes or ids is fan-out, not amplification. No data until there is one.",
				asks:    []ask{{expr: `SELECT toDateTime64(first_arrival, 3) AS asked, toDateTime64(last_arrival, 3) AS last_came, arrivals, route, originator, arrayStringConcat(peers, ', ') AS by_peers, scope` + single + ` AND key_hash = upper(${key:sqlstring}) ORDER BY asked LIMIT 1000`}},
				columns: map[string]column{"arrivals": {unit: "short"}, "by_peers": {title: "peers", unit: "none"}, "last_came": {title: "last", unit: "none"}}},
		}},
		{"Scopes", []panel{
			{kind: "table", title: "Final until", unit: "none", w: 24, h: 7, first: "scope", about: "Up to where each scope is final, of all dependencies. One that stands still is read no more, or cannot be stored.",
				asks:    []ask{{expr: `SELECT scope, if(closed < 0, NULL, fromUnixTimestamp(closed, 'UTC')) AS final_until, if(closed < 0, NULL, toUnixTimestamp(now()) - closed) AS ago FROM scopes ORDER BY closed`}},
				columns: map[string]column{"final_until": {title: "final until", unit: "none"}, "ago": {unit: "s"}}, runbooks: []string{"AuditorBlind"}},
		}},
	},
}
