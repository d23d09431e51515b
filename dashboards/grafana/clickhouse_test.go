package grafana_test

import (
	"maps"
	"slices"
	"strings"
)

// clickhouseKind is the plugin that ClickHouse and Grafana Labs keep; from its version 4
// on it runs in Grafana 11 and 12.
const clickhouseKind = "grafana-clickhouse-datasource"

func clickhouse() object { return object{"type": clickhouseKind, "uid": "${clickhouse}"} }

// dependenciesQuery offers the dependencies of the range.
const dependenciesQuery = `SELECT DISTINCT dependency FROM measures(resolution = '${resolution}', ` + between + `) ORDER BY dependency`

// offered is a variable whose values are those that a query finds.
func offered(name, label, query string, many bool) object {
	v := object{
		"name": name, "label": label, "type": "query", "datasource": clickhouse(), "definition": query,
		"query":   object{"rawSql": query, "editorType": "sql", "queryType": "table", "format": 1, "refId": "values"},
		"current": object{}, "refresh": 2, "sort": 1, "regex": "", "hide": 0, "includeAll": many, "multi": many, "options": []any{},
	}
	if many {
		v["current"] = object{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}}
	}
	return v
}

// resolutions is how long the rows are that are asked.
func resolutions() object {
	return chosen("resolution", "step", "minute", [2]string{"1 s", "tick"}, [2]string{"10 s", "ten_seconds"}, [2]string{"1 min", "minute"}, [2]string{"1 h", "hour"})
}

// grants is what share of originals may come again, which the store does not know.
func grants() object {
	return chosen("granted", "granted", "0.2", [2]string{"5 %", "0.05"}, [2]string{"10 %", "0.1"}, [2]string{"20 %", "0.2"}, [2]string{"50 %", "0.5"}, [2]string{"100 %", "1"})
}

// chosen is a variable with these values, each behind its text; one of them is chosen.
func chosen(name, label, value string, options ...[2]string) object {
	list, current, query := []object{}, object{}, []string{}
	for _, o := range options {
		option := object{"text": o[0], "value": o[1], "selected": o[1] == value}
		if o[1] == value {
			current = option
		}
		list, query = append(list, option), append(query, o[0]+" : "+o[1])
	}
	return object{"name": name, "label": label, "type": "custom", "query": strings.Join(query, ", "), "current": current, "options": list, "hide": 0, "includeAll": false, "multi": false}
}

func typed(name, label, about string) object {
	return object{"name": name, "label": label, "description": about, "type": "textbox", "query": "", "current": object{"selected": true, "text": "", "value": ""}, "options": []object{{"text": "", "value": "", "selected": true}}, "hide": 0}
}

var finalWords = []object{value("0", "final", "green"), value("1", "provisional", "orange")}

const (
	between = `from = '${__from:date:seconds}', to = '${__to:date:seconds}'`
	// measures are rows of that view, with short names: else those of lines would stand for
	// them. measured are those that count each arrival once, and routed those of the routes.
	measured = measures + ` AND family = 'originator'`
	routed   = measured + ` AND route IN (${route:sqlstring})`
	measures = ` FROM (SELECT time, dependency, route, family, name, arrivals AS a, verified AS v, claimed AS c, unattributable AS u, originals AS o, reopened AS ro, variance AS va, questions AS d, reasons AS why,` +
		` answers AS an, refused AS re, good AS go, dead AS de, before_response AS be, visible AS vi, dead_seconds AS ds, busy_seconds AS bs, repeat_seconds AS rs, untimed AS ut, untimed_dead AS ud, untimed_repeats AS ur, unjudged AS uj, disconnected AS dc, expired AS ex,` +
		` hop_numbered AS hn, hop_ones AS h1, hop_ones_known AS hk, hop_questions AS hd, hop_trusted AS ht, same_peer AS sp,` +
		` after_gone AS ag, after_5xx AS a5, after_429_503 AS a4, after_success AS ok, after_in_flight AS fl, retry_asked AS ra, retry_returned AS rr, retry_early AS ry, stale AS st, overspent AS os, ended AS en, provisional AS p` +
		` FROM measures(resolution = '${resolution}', ` + between + `)) WHERE dependency IN (${dependency:sqlstring})`

	// Estimates, where a part of the questions is followed, may pass what they are of.
	originals = `least(sum(o), ` + attributable + `)`
	questions = `least(sum(d), ` + attributable + `)`
	repeats   = `(` + attributable + ` - ` + originals + `)`

	loadFactor = `(` + attributable + `) / nullIf(` + originals + `, 0)`
	// Each arrival that could not be attributed is a question of its own, or a repeat, and
	// what was reopened too.
	loadLow  = `sum(a) / nullIf(` + originals + ` + sum(u), 0)`
	loadHigh = `sum(a) / nullIf(greatest(toInt64(` + originals + `) - toInt64(sum(ro)), 0), 0)`
	// The same of distinct questions, which may be formed over the whole range alone.
	amplification     = `(` + attributable + `) / nullIf(` + questions + `, 0)`
	amplificationLow  = `sum(a) / nullIf(` + questions + ` + sum(u), 0)`
	amplificationHigh = `sum(a) / nullIf(greatest(toInt64(` + questions + `) - toInt64(sum(ro)), 0), 0)`

	covered    = `(` + attributable + `) / nullIf(sum(a), 0)`
	visibility = `sum(vi) / nullIf(sum(a), 0)`
	ofGranted  = repeats + ` / nullIf(toFloat64(${granted:sqlstring}) * ` + originals + `, 0)`
	// Answers that are known to be dead are the least of those that are: more may be among
	// the records that show no departure, and those whose deadline nobody could judge. Where
	// that is all there is, none is not known to be none. With goodput it is the other way
	// round: what is known is the most.
	timeless     = `sum(uj) > 0 AND sum(ut) >= sum(a)`
	doubtful     = `(sum(uj) + sum(a) - sum(vi))`
	deadShare    = `if(sum(de) = 0 AND (sum(vi) = 0 OR ` + timeless + `), NULL, sum(de) / nullIf(sum(an), 0))`
	deadMost     = `least(sum(de) + ` + doubtful + `, sum(an)) / nullIf(sum(an), 0)`
	goodputMost  = `sum(go)`
	goodputLeast = `greatest(toInt64(sum(go)) - toInt64` + doubtful + `, 0)`
	// Seconds are not known where those of no arrival are that they are of, and a row
	// without any of these has 0 of them.
	deadTime   = `if(` + timeless + ` OR sum(ud) > 0 AND sum(ud) >= sum(dc) + sum(ex), NULL, sum(ds))`
	busyTime   = `if(sum(ut) > 0 AND sum(ut) >= sum(a), NULL, sum(bs))`
	repeatTime = `if(sum(ur) > 0 AND sum(ur) >= ` + repeats + `, NULL, sum(rs))`
	// known is what repeats are where nothing could be attributed: not 0.
	known = `if(` + attributable + ` = 0, NULL, `
	// sampled is the standard error of originals, as a share of them; 0 where all questions
	// were followed.
	sampled = `sqrt(sum(va)) / nullIf(` + originals + `, 0)`
)

// byTime is lines over time, byDependency as many for each dependency, with a row for each
// step of each.
func byTime(columns string) ask { return ask{expr: `SELECT time, ` + columns + routed + filled} }

func byDependency(columns string) ask {
	return ask{expr: `SELECT * FROM (SELECT time, dependency, ` + columns + measured + ` GROUP BY time, dependency ORDER BY dependency, time` + steps + `) ORDER BY time, dependency`}
}

// ofEach is a graph of lines by dependency.
func ofEach(p panel) panel { p.by = "dependency"; return p }

// ofRange is one number of the whole range.
func ofRange(columns string) ask { return ask{expr: `SELECT ` + columns + routed} }

// fromClickHouse is the panel as one that asks ClickHouse: its lines and columns are
// those of the query.
func (p panel) fromClickHouse() object {
	o := p.json("")
	kind, format := "table", 1
	if p.kind == "timeseries" {
		kind, format = "timeseries", 0
	}
	targets := []any{}
	for i, a := range p.asks {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": clickhouse(), "editorType": "sql", "rawSql": a.expr, "queryType": kind, "format": format, "pluginVersion": "4.0.0", "meta": object{"timezone": "UTC"},
		})
	}
	o["description"], o["datasource"], o["targets"] = p.about, clickhouse(), targets
	delete(o, "transformations")
	config := o["fieldConfig"].(object)
	overrides := []object{}
	by := func(matcher, options string, properties ...object) {
		overrides = append(overrides, object{"matcher": object{"id": matcher, "options": options}, "properties": properties})
	}
	switch p.kind {
	case "stat":
		if p.words != nil { // what is called state is told in words, beside its number
			config["defaults"].(object)["mappings"] = []object{}
			by("byName", "state", object{"id": "mappings", "value": indexed(p.words)})
		}
	case "timeseries":
		if p.by != "" { // each line is of a value of a label
			config["defaults"].(object)["displayName"] = "${__field.labels." + p.by + "} ${__field.name}"
		}
		by("byRegexp", ".*_provisional.*", object{"id": "custom.lineStyle", "value": object{"fill": "dash", "dash": []int{4, 6}}})
	case "table":
		for _, name := range slices.Sorted(maps.Keys(p.columns)) {
			c := p.columns[name]
			properties := []object{{"id": "unit", "value": c.unit}}
			if c.title != "" {
				properties = append(properties, object{"id": "displayName", "value": c.title})
			}
			if c.words != nil {
				properties = append(properties, object{"id": "mappings", "value": indexed(c.words)}, object{"id": "custom.cellOptions", "value": object{"type": "color-text"}})
			}
			by("byName", name, properties...)
		}
		if p.first == "dependency" {
			by("byName", "dependency", object{"id": "links", "value": []object{{
				"title": "${__value.text}: one dependency", "url": "/d/auditor-clickhouse-dependency?${clickhouse:queryparam}&${resolution:queryparam}&${granted:queryparam}&var-dependency=${__value.raw:percentencode}&${__url_time_range}",
			}}})
		}
		if p.first == "key_hash" {
			by("byName", "key_hash", object{"id": "links", "value": []object{{
				"title": "Questions of this key", "url": "/d/auditor-ledger?${clickhouse:queryparam}&${dependency:queryparam}&${resolution:queryparam}&var-key=${__value.raw:percentencode}&${__url_time_range}",
			}}})
		}
	case "barchart":
		o["options"] = object{
			"orientation": "auto", "xField": p.first, "showValue": "auto", "stacking": "none", "groupWidth": 0.7, "barWidth": 0.9, "xTickLabelRotation": 0,
			"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": false, "calcs": []string{}}, "tooltip": object{"mode": "single", "sort": "none"},
		}
	}
	config["overrides"] = overrides
	return o
}
