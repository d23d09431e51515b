package grafana_test

import (
	"maps"
	"slices"
	"strings"
)

// The dashboards are written in Go, in overview_test.go, dependency_test.go and
// pipeline_test.go for Prometheus, in ledger_test.go and the files stored_*_test.go for
// ClickHouse, and kept as JSON, which is what Grafana takes:
//
//	go test ./dashboards/grafana -run Written -write

type object = map[string]any

const operations = "https://github.com/targetside/auditor/blob/main/docs/operations/"

// A board is one dashboard. In its expressions @ stands for the selector.
type board struct {
	uid, title, about string
	selector          string
	variables         []object
	sections          []section
	stored            bool // asks the store in ClickHouse, and not Prometheus
}

// A section has a heading, and panels that fill lines of 24 columns.
type section struct {
	title  string
	panels []panel
}

type panel struct {
	kind, title, about, unit string
	w, h                     int
	asks                     []ask
	runbooks                 []string
	words                    []object // what values mean, in words
	limit                    float64  // drawn as a line where it is above 0
	most                     float64  // the upper end of the axis, where above 0
	stacked                  bool
	columns                  map[string]column // of a table, by the letter of what is asked
	first                    string            // of a table, the label that its lines are joined by
	by                       string            // of a graph on ClickHouse, the label that lines are told apart by
}

// An ask is PromQL or, on a board of ClickHouse, SQL, whose columns are the lines or the
// columns of a table.
type ask struct{ expr, legend string }

// A column of a table.
type column struct {
	title, unit string
	words       []object
}

func graph(title, unit, about string, w int, asks ...ask) panel {
	return panel{kind: "timeseries", title: title, unit: unit, about: about, w: w, h: 8, asks: asks}
}

func number(title, unit, about string, w int, asks ...ask) panel {
	return panel{kind: "stat", title: title, unit: unit, about: about, w: w, h: 5, asks: asks}
}

func (p panel) with(f func(*panel)) panel { f(&p); return p }

func runbooks(names ...string) func(*panel) { return func(p *panel) { p.runbooks = names } }

// value and from are meanings of a value and of all from one on; the first that fits
// holds. Grafana takes a bound of null for 0, so that both ends are numbers.
func value(v, text, color string) object {
	return object{"type": "value", "options": object{v: object{"text": text, "color": color, "index": 0}}}
}

func from(v float64, text, color string) object {
	return object{"type": "range", "options": object{"from": v, "to": 1e12, "result": object{"text": text, "color": color, "index": 0}}}
}

func otherwise(text, color string) object {
	return object{"type": "range", "options": object{"from": -1e12, "to": 1e12, "result": object{"text": text, "color": color, "index": 0}}}
}

var (
	budgetWords   = []object{from(1, "EXHAUSTED", "red"), from(0.5, "low", "orange"), from(0, "ok", "green"), otherwise("BLIND: at least that", "red")}
	coverageWords = []object{from(0.85, "enough", "green"), otherwise("BLIND: too few keys", "red")}
	splitWords    = []object{value("0", "whole", "green"), value("1", "SPLIT: repeats are missing", "red")}
	upWords       = []object{value("1", "up", "green"), value("0", "DOWN", "red")}
	sourceWords   = []object{value("1", "reading", "green"), value("0", "FAILED", "red")}
	reloadWords   = []object{value("1", "taken", "green"), value("0", "REFUSED: the one before is in force", "red")}
)

// budgetState is what budgetWords are of: consumption, and far below 0 where so few
// arrivals carry a verified key that it says nothing, as in the daemon.
func budgetState(by string) string {
	return `max ` + by + `(auditor_retry_budget_consumed_ratio{@,bound="low"}) - 1e9 * (min ` + by + `(auditor_key_coverage_ratio{@,class="verified"}) < bool 0.85)`
}

// indexed numbers meanings in their order.
func indexed(words []object) []object {
	out := []object{}
	for i, w := range words {
		o := maps.Clone(w["options"].(object))
		for k, v := range o {
			if r, ok := v.(object); ok {
				r = maps.Clone(r)
				r["index"] = i
				o[k] = r
			}
		}
		out = append(out, object{"type": w["type"], "options": o})
	}
	return out
}

func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

func (b board) sourceVariable() object {
	name, label, kind := "datasource", "Prometheus", "prometheus"
	if b.stored {
		name, label, kind = "clickhouse", "ClickHouse", clickhouseKind // so that links do not hand one for the other
	}
	return object{"name": name, "label": label, "type": "datasource", "query": kind, "current": object{}, "refresh": 1, "regex": "", "hide": 0, "includeAll": false, "multi": false, "options": []any{}}
}

// choice is a variable whose values are those of a label.
func choice(name, label, query string, many bool) object {
	v := object{
		"name": name, "label": label, "type": "query", "datasource": source(), "definition": query, "query": object{"qryType": 1, "query": query, "refId": "values"},
		"current": object{}, "refresh": 2, "sort": 1, "regex": "", "hide": 0, "includeAll": many, "multi": many, "options": []any{},
	}
	if many {
		v["current"] = object{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}}
	}
	return v
}

func jobVariable() object {
	return choice("job", "job", `label_values(auditor_build_info, job)`, true)
}

// trails is said of every panel that is made of counters of closed seconds.
const trails = "Made of counters, which trail by time.lateness (60 s unless configured otherwise): the end of the line is that long ago."

func closed(expr string) bool {
	for _, live := range []string{"auditor_records_", "auditor_quarantined_", "auditor_duplicate_", "auditor_late_", "auditor_offset_", "auditor_source_", "auditor_store_", "auditor_http_", "auditor_questions_left"} {
		if strings.Contains(expr, live) {
			return false
		}
	}
	for _, part := range []string{"_total", "_bucket", "_count", "_sum"} {
		if strings.Contains(expr, part) {
			return true
		}
	}
	return false
}

func (b board) json() object {
	panels, id, y := []any{}, 0, 0
	for _, s := range b.sections {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": s.title, "collapsed": false, "panels": []any{}, "gridPos": object{"h": 1, "w": 24, "x": 0, "y": y}})
		y++
		x, h := 0, 0
		for _, p := range s.panels {
			if x+p.w > 24 {
				x, y, h = 0, y+h, 0
			}
			id++
			o := p.json(b.selector)
			if b.stored {
				o = p.fromClickHouse()
			}
			o["id"], o["gridPos"] = id, object{"h": p.h, "w": p.w, "x": x, "y": y}
			panels = append(panels, o)
			x, h = x+p.w, max(h, p.h)
		}
		y += h
	}
	return object{
		"uid": b.uid, "title": b.title, "description": b.about, "tags": []string{"auditor"}, "schemaVersion": 41, "version": 1, "editable": true, "fiscalYearStartMonth": 0,
		"graphTooltip": 1, "time": object{"from": "now-1h", "to": "now"}, "timepicker": object{}, "timezone": "browser", "refresh": "10s", "preload": false, "weekStart": "",
		"links": []object{
			{"type": "dashboards", "title": "auditor", "tags": []string{"auditor"}, "includeVars": true, "keepTime": true, "asDropdown": false, "targetBlank": false, "icon": "external link", "tooltip": "", "url": ""},
			runbook("Runbooks", "README"),
		},
		"annotations": object{"list": b.annotations()},
		"templating":  object{"list": append([]object{b.sourceVariable()}, b.variables...)},
		"panels":      panels,
	}
}

func (b board) annotations() []object {
	if b.stored {
		return []object{}
	}
	return []object{{
		"name": "Alerts that fire", "datasource": source(), "enable": true, "hide": false, "iconColor": "red", "step": "15s",
		"expr":        `ALERTS{alertstate="firing",alertname=~"` + strings.Join(alerts, "|") + `"}`,
		"titleFormat": "{{alertname}}", "textFormat": "{{dependency}}{{source}} {{reason}}", "useValueForTime": false,
	}}
}

// runbook is a link to a page of docs/operations.
func runbook(title, page string) object {
	return object{
		"type": "link", "title": title, "url": operations + page + ".md", "tags": []string{}, "includeVars": false, "keepTime": false, "asDropdown": false,
		"targetBlank": true, "icon": "doc", "tooltip": "",
	}
}

// alerts are those of dashboards/rules.
var alerts = []string{
	"RetryBudgetLow", "RetryBudgetExhausted", "RetryBudgetExhaustsSoon", "AmplificationAboveDeclared", "DeadAnswers",
	"CoverageTooLow", "RetryAfterIgnored", "AuditorBlind", "AuditorDown",
}

func (p panel) json(selector string) object {
	instant := p.kind == "stat" || p.kind == "table"
	targets, about, late := []any{}, p.about, false
	for i, a := range p.asks {
		expr := strings.ReplaceAll(a.expr, "@", selector)
		format := "time_series"
		switch p.kind {
		case "table":
			format = "table"
		case "heatmap":
			format = "heatmap"
		}
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source(), "editorMode": "code", "expr": expr, "legendFormat": a.legend,
			"instant": instant, "range": !instant, "format": format,
		})
		late = late || closed(expr)
	}
	if late {
		about += "\n\n" + trails
	}
	links := []object{}
	for _, name := range p.runbooks {
		links = append(links, runbook(name, name))
	}
	steps := []object{{"color": "text", "value": nil}} // a number without a limit is neither good nor bad
	if p.limit > 0 {
		steps = append(steps, object{"color": "red", "value": p.limit})
	}
	defaults := object{"unit": p.unit, "noValue": "no data", "mappings": indexed(p.words), "thresholds": object{"mode": "absolute", "steps": steps}, "color": object{"mode": "palette-classic"}}
	if p.most > 0 {
		defaults["min"], defaults["max"] = 0, p.most
	}
	overrides := []object{}
	o := object{"type": p.kind, "title": p.title, "description": about, "datasource": source(), "targets": targets, "links": links, "pluginVersion": "11.0.0", "transparent": false}
	switch p.kind {
	case "timeseries":
		stack := "none"
		if p.stacked {
			stack = "normal"
		}
		style := "off"
		if p.limit > 0 {
			style = "dashed"
		}
		if p.most == 0 {
			defaults["min"] = 0
		}
		defaults["custom"] = object{
			"drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 1, "fillOpacity": map[bool]int{false: 0, true: 30}[p.stacked], "showPoints": "auto", "spanNulls": false, "insertNulls": false,
			"stacking": object{"group": "A", "mode": stack}, "thresholdsStyle": object{"mode": style},
		}
		o["options"] = object{
			"legend":  object{"displayMode": "table", "placement": "bottom", "showLegend": true, "calcs": []string{"lastNotNull", "max"}},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		}
	case "stat":
		defaults["color"] = object{"mode": "thresholds"}
		o["options"] = object{
			"reduceOptions": object{"values": false, "calcs": []string{"lastNotNull"}, "fields": ""}, "orientation": "auto", "textMode": "value_and_name", "colorMode": "value", "graphMode": "none",
			"justifyMode": "auto", "wideLayout": true, "showPercentChange": false, "percentChangeColorMode": "standard",
		}
		// What is called "state" is told in words, beside its number.
		for _, a := range p.asks {
			if a.legend == "state" {
				overrides = append(overrides, object{"matcher": object{"id": "byName", "options": "state"}, "properties": []object{{"id": "mappings", "value": indexed(p.words)}}})
				defaults["mappings"] = []object{}
			}
		}
	case "state-timeline":
		defaults["custom"] = object{"fillOpacity": 70, "lineWidth": 0, "spanNulls": false, "insertNulls": false}
		o["options"] = object{
			"showValue": "auto", "rowHeight": 0.9, "mergeValues": true, "alignValue": "left",
			"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}}, "tooltip": object{"mode": "single", "sort": "none"},
		}
	case "heatmap":
		defaults["custom"] = object{}
		o["options"] = object{
			"calculate": false, "cellGap": 1, "showValue": "never", "rowsFrame": object{"layout": "auto"}, "filterValues": object{"le": 1e-9},
			"color":  object{"mode": "scheme", "scheme": "Oranges", "steps": 64, "reverse": false, "exponent": 0.5, "fill": "dark-orange"},
			"yAxis":  object{"axisPlacement": "left", "reverse": false, "unit": p.unit},
			"legend": object{"show": true}, "tooltip": object{"mode": "single", "yHistogram": false, "showColorScale": true}, "exemplars": object{"color": "rgba(255,0,255,0.7)"},
			"cellValues": object{"unit": "none"},
		}
	case "table":
		defaults["custom"] = object{"align": "auto", "cellOptions": object{"type": "auto"}, "inspect": false}
		defaults["color"] = object{"mode": "thresholds"}
		names, order, hidden := object{}, object{p.first: 0}, object{"Time": true}
		for i, letter := range slices.Sorted(maps.Keys(p.columns)) {
			c := p.columns[letter]
			field := "Value #" + letter
			if len(p.asks) == 1 {
				field = "Value"
			}
			names[field], order[field] = c.title, i+1
			properties := []object{{"id": "unit", "value": c.unit}}
			if c.words != nil {
				properties = append(properties, object{"id": "mappings", "value": indexed(c.words)}, object{"id": "custom.cellOptions", "value": object{"type": "color-text"}})
			}
			overrides = append(overrides, object{"matcher": object{"id": "byName", "options": c.title}, "properties": properties})
		}
		if p.first == "dependency" {
			overrides = append(overrides, object{"matcher": object{"id": "byName", "options": "dependency"}, "properties": []object{{"id": "links", "value": []object{{
				"title": "${__value.text}: one dependency", "url": "/d/auditor-dependency?${datasource:queryparam}&${job:queryparam}&var-dependency=${__value.raw:percentencode}&${__url_time_range}",
			}}}}})
		}
		o["options"] = object{"showHeader": true, "cellHeight": "sm", "frameIndex": 0}
		o["transformations"] = []object{{"id": "merge", "options": object{}}, {"id": "organize", "options": object{"excludeByName": hidden, "indexByName": order, "renameByName": names}}}
	}
	o["fieldConfig"] = object{"defaults": defaults, "overrides": overrides}
	return o
}
