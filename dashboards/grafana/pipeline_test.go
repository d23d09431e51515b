package grafana_test

// pipeline is what the figures of the other dashboards stand on: is everything read,
// how late, what is missing, and is it kept.
var pipeline = board{
	uid: "auditor-pipeline", title: "auditor / Pipeline health",
	about:    "What is read, how late, what is missing, what is remembered and kept. Where something is wrong here the figures of the other dashboards are lower bounds, or old.",
	selector: `job=~"$job",source=~"$source"`,
	variables: []object{
		jobVariable(),
		choice("source", "source", `label_values(auditor_records_total{job=~"$job"}, source)`, true),
	},
	sections: []section{
		{"Now", []panel{
			{kind: "table", title: "Sources", unit: "none", w: 16, h: 9, first: "source",
				about: "One line a source, of the instance where it is worst. Missing are offsets that were never read. Sources that are not keyed share a line of what is found over all of them, late arrivals and duplicates, which has no state of its own.",
				asks: []ask{
					{`min by (source) (auditor_source_up{@})`, ""},
					{`max by (source) (auditor_ingest_lag_seconds{@})`, ""},
					{`time() - min by (source) (auditor_watermark_timestamp_seconds{@})`, ""},
					{`sum by (source) (rate(auditor_records_total{@}[5m]))`, ""},
					{`sum by (source) (rate(auditor_records_total{@,outcome="quarantined"}[5m])) / (sum by (source) (rate(auditor_records_total{@}[5m])) > 0)`, ""},
					{`sum by (source) (increase(auditor_late_arrivals_total{@}[1h]))`, ""},
					{`sum by (source) (increase(auditor_offset_gap_records_total{@}[1h]))`, ""},
				},
				columns: map[string]column{
					"A": {"is", "none", sourceWords}, "B": {title: "lag", unit: "s"}, "C": {title: "newest record, ago", unit: "s"}, "D": {title: "records, 5 min", unit: "recps"},
					"E": {title: "quarantined, 5 min", unit: "percentunit"}, "F": {title: "late, 1 h", unit: "short"}, "G": {title: "missing, 1 h", unit: "short"},
				},
				runbooks: []string{"AuditorBlind"}},
			number("Auditors", "none", "Can each auditor be scraped? While none can, every other panel has no data.", 8, ask{`up{job=~"$job"}`, "{{instance}}"}).
				with(runbooks("AuditorDown")).with(func(p *panel) { p.words, p.h = upWords, 9 }),
		}},
		{"Reading", []panel{
			graph("Lag", "s", "How far the slowest partition of each source is behind, live. Live figures are as old; from 30 s on AuditorBlind fires.", 8,
				ask{`max by (source) (auditor_ingest_lag_seconds{@})`, "{{source}}"}).with(runbooks("AuditorBlind")).with(func(p *panel) { p.limit = 30 }),
			graph("Age of the watermark", "s", "How long ago the newest log time is up to which the slowest partition of each source is read. It also grows while nobody calls; with lag it is the reading that stands.", 8,
				ask{`time() - min by (source) (auditor_watermark_timestamp_seconds{@})`, "{{source}}"}).with(runbooks("AuditorBlind")),
			graph("Records by outcome", "recps", "Counted, ignored (health checks and such), duplicate (copies of the shipper) and quarantined (not readable).", 8,
				ask{`sum by (outcome) (rate(auditor_records_total{@}[$__rate_interval]))`, "{{outcome}}"}).with(func(p *panel) { p.stacked = true }),
			graph("Records by source", "recps", "All that is read.", 24, ask{`sum by (source) (rate(auditor_records_total{@}[$__rate_interval]))`, "{{source}}"}),
		}},
		{"What is missing", []panel{
			graph("Quarantined by reason", "recps", "Records that could not be read. auditor explain on such a line says why. No data while there was never one.", 8,
				ask{`sum by (source, reason) (rate(auditor_quarantined_records_total{@}[$__rate_interval]))`, "{{source}} {{reason}}"}).
				with(func(p *panel) { p.stacked = true }).with(runbooks("AuditorBlind")),
			graph("Late, duplicate, missing", "recps", "Late: after their second was closed, counted as unattributable. Duplicate: copies that count once. Missing: offsets that were never read; what was counted before it was deleted is none.", 8,
				ask{`sum by (source) (rate(auditor_late_arrivals_total{@}[$__rate_interval]))`, "{{source}} late"},
				ask{`sum by (source) (rate(auditor_duplicate_records_total{@}[$__rate_interval]))`, "{{source}} duplicate"},
				ask{`sum by (source) (rate(auditor_offset_gap_records_total{@}[$__rate_interval]))`, "{{source}} missing"}).with(runbooks("AuditorBlind")),
			graph("Records read, by dependency", "percentunit", "The share of records that could be read. Below 99 % AuditorBlind fires.", 8,
				ask{`min by (dependency) (auditor_read_share_ratio{job=~"$job"})`, "{{dependency}}"}).
				with(runbooks("AuditorBlind")).with(func(p *panel) { p.limit, p.most = 0.99, 1 }),
			graph("Messages without an answer", "recps", "Sent by syslog, or to Envoy's access log service: kept, or lost as dropped (no room) or truncated. What is lost is in no figure. No data without such a source.", 12,
				ask{`sum by (source, outcome) (rate(auditor_intake_messages_total{@}[$__rate_interval]))`, "{{source}} {{outcome}}"}).with(runbooks("AuditorBlind")),
			graph("Senders held back", "short", "How often within five minutes such a source stopped reading because its spool was full or could not be written to, and the connections that are open to it.", 12,
				ask{`sum by (source) (increase(auditor_intake_waits_total{@}[5m]))`, "{{source}} waits"},
				ask{`sum by (source) (auditor_intake_connections{@})`, "{{source}} connections"}).with(runbooks("AuditorBlind")),
		}},
		{"Sources and configuration", []panel{
			{kind: "state-timeline", title: "Sources", unit: "none", w: 8, h: 8, words: sourceWords, runbooks: []string{"AuditorBlind"},
				about: "A source that has failed is begun anew by itself, after growing pauses; its error stands in /api/v1/sources.",
				asks:  []ask{{`min by (source) (auditor_source_up{@})`, "{{source}}"}}},
			graph("Restarts of sources", "short", "How often a source was begun anew within five minutes, after it had failed as a whole.", 8,
				ask{`sum by (source) (increase(auditor_source_restarts_total{@}[5m]))`, "{{source}}"}).with(runbooks("AuditorBlind")),
			number("Configuration in force, since", "s", "How long ago the configuration in force was read, by instance.", 8,
				ask{`time() - auditor_config_last_reload_success_timestamp_seconds{job=~"$job"}`, "{{instance}}"}).with(func(p *panel) { p.h = 8 }),
			{kind: "state-timeline", title: "Configuration, when it was last asked for", unit: "none", w: 12, h: 6, words: reloadWords,
				about: "Refused: the one before is still in force. The log of the daemon names file, line and key.",
				asks:  []ask{{`auditor_config_last_reload_successful{job=~"$job"}`, "{{instance}}"}}},
			{kind: "table", title: "Versions", unit: "none", w: 12, h: 6, first: "version", about: "What runs, and on how many instances.",
				asks:    []ask{{`count by (version, revision, goversion) (auditor_build_info{job=~"$job"})`, ""}},
				columns: map[string]column{"A": {title: "instances", unit: "short"}}},
		}},
		{"Memory", []panel{
			graph("Questions that are remembered", "short", "Of each instance; each takes up to 116 bytes, and from ledger.max_live_questions on a part is followed. Arrivals in open seconds take memory beside it.", 12,
				ask{`auditor_live_questions{job=~"$job"}`, "{{instance}}"}),
			graph("Questions followed", "percentunit", "Below 100 % a part of the questions is followed, chosen by hash, and sums are weighted. Arrivals, classes and responses stay exact.", 12,
				ask{`min by (dependency) (auditor_sampling_ratio{job=~"$job"})`, "{{dependency}}"}).with(func(p *panel) { p.most = 1 }),
		}},
		{"Store", []panel{
			{kind: "heatmap", title: "Time of writes", unit: "s", w: 8, h: 8, about: "How many writes to the store took how long.",
				asks: []ask{{`sum by (le) (increase(auditor_store_write_seconds_bucket{job=~"$job"}[$__rate_interval]))`, "{{le}}"}}},
			graph("Mean time of a write", "s", "No data while nothing is written: with sources that are read, that is a fault, and /readyz names it.", 8,
				ask{`sum by (instance) (rate(auditor_store_write_seconds_sum{job=~"$job"}[$__rate_interval])) / (sum by (instance) (rate(auditor_store_write_seconds_count{job=~"$job"}[$__rate_interval])) > 0)`, "{{instance}}"}),
			graph("Writes, and questions left out", "cps", "Writes a second, and questions that are over and were not stored one by one, being too many of one second. Figures have those, too.", 8,
				ask{`sum by (instance) (rate(auditor_store_write_seconds_count{job=~"$job"}[$__rate_interval]))`, "{{instance}} writes"},
				ask{`sum by (instance) (rate(auditor_questions_left_out_total{job=~"$job"}[$__rate_interval]))`, "{{instance}} left out"}),
		}},
		{"API", []panel{
			graph("Requests by status", "reqps", "Requests to the API of the auditor itself.", 8,
				ask{`sum by (code) (rate(auditor_http_requests_total{job=~"$job"}[$__rate_interval]))`, "{{code}}"}).with(func(p *panel) { p.stacked = true }),
			graph("Mean time to answer", "s", "By route, streams left out. No data while nobody asks.", 8,
				ask{`sum by (route) (rate(auditor_http_request_duration_seconds_sum{job=~"$job"}[$__rate_interval])) / (sum by (route) (rate(auditor_http_request_duration_seconds_count{job=~"$job"}[$__rate_interval])) > 0)`, "{{route}}"}),
			graph("Clients of the stream", "short", "Open streams: pages that somebody looks at. At most 100 an instance.", 8,
				ask{`auditor_http_streams{job=~"$job"}`, "{{instance}}"}),
		}},
	},
}
