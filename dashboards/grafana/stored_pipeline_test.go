package grafana_test

// storedPipeline is what the figures of ClickHouse stand on, as far as the store knows it.
var storedPipeline = board{
	uid: "auditor-clickhouse-pipeline", title: "auditor / Pipeline health, stored", stored: true,
	about:     "What was counted, what is missing, up to where it is final, and what is kept, as far as ClickHouse knows it. What is quarantined, how far reading lags, and which alerts fire is not stored as rows: the dashboards of Prometheus and the live page have it.",
	variables: []object{offered("dependency", "dependency", dependenciesQuery, true), resolutions()},
	sections: []section{
		{"Now", []panel{
			number("Final until, ago", "s", "How long ago the scope that is furthest behind was final. It grows while a scope is read no more, or cannot be stored; one that nobody reads any longer stays behind for good.", 6,
				ask{expr: `SELECT if(count() = 0, NULL, toUnixTimestamp(now()) - min(closed)) AS ago FROM scopes WHERE closed > 0`}).with(runbooks("AuditorBlind")),
			number("Never read", "short", "Between the ranges of offsets that were counted, of all partitions: deleted before they were read. Records of Kafka, and bytes of files and of what is sent. 0: nothing is missing.", 6,
				ask{expr: `SELECT if(count() = 0, NULL, sumIf(missing, startsWith(partition, 'kafka '))) AS records, if(count() = 0, NULL, sumIf(missing, NOT startsWith(partition, 'kafka '))) AS bytes FROM counted`}).with(runbooks("AuditorBlind")),
			number("Provisional", "percentunit", "The share of the range's arrivals in rows that are not final: late records may still add to them.", 6,
				ask{expr: `SELECT sumIf(a, p = 1) / nullIf(sum(a), 0) AS provisional_share` + measured}),
			number("Schema", "none", "The step up to which the tables were made, and when. auditor migrate status says which the program wants.", 6,
				ask{expr: `SELECT if(count() = 0, NULL, max(number)) AS step_number FROM steps`}),
		}},
		{"Reading", []panel{
			{kind: "table", title: "Scopes", unit: "none", w: 12, h: 8, first: "scope", about: "Up to where each scope is final. One that stands still is read no more, or cannot be stored.", runbooks: []string{"AuditorBlind"},
				asks:    []ask{{expr: `SELECT scope, if(closed < 0, NULL, fromUnixTimestamp(closed, 'UTC')) AS final_until, if(closed < 0, NULL, toUnixTimestamp(now()) - closed) AS ago FROM scopes ORDER BY closed`}},
				columns: map[string]column{"final_until": {title: "final until", unit: "none"}, "ago": {unit: "s"}}},
			{kind: "table", title: "Partitions", unit: "none", w: 12, h: 8, first: "partition_name", about: "What was counted of each partition: how many offsets, in how many gaps how many were never read, and which comes next. Offsets of files and of what is sent are bytes, those of Kafka are records.", runbooks: []string{"AuditorBlind"},
				asks: []ask{{expr: `SELECT partition AS partition_name, max(next) - min(first) - sum(missing) AS counted_offsets, countIf(missing > 0) AS gaps, sum(missing) AS missing_offsets, max(next) AS next_offset FROM counted GROUP BY partition ORDER BY missing_offsets DESC, partition_name LIMIT 1000`}},
				columns: map[string]column{
					"counted_offsets": {title: "counted", unit: "short"}, "gaps": {unit: "short"}, "missing_offsets": {title: "never read", unit: "short"}, "next_offset": {title: "next", unit: "none"},
				}},
			ofEach(graph("Arrivals that are stored", "reqps", "A gap is a step of which nothing is stored: nobody called, or nothing was read.", 12, byDependency(perSecond("sum(a)", "arrivals")))),
			ofEach(graph("Late arrivals", "reqps", "Their record came after their second had closed: they are unattributable for that reason alone.", 12, byDependency(lines(`sumMap(why)['late']`, "late")))).with(runbooks("AuditorBlind")),
		}},
		{"Can it be believed", []panel{
			ofEach(coverageStored(8)),
			ofEach(graph("Error of originals", "percentunit", "The standard error of originals as a share of them, where the daemon followed a part of the questions. 0: all were followed.", 8, byDependency(sampled+` AS error`))),
			{kind: "table", title: "Questions that were not seen whole", unit: "none", w: 8, h: 8, first: "dependency", about: "Minutes in which one question of a dependency was seen in two scopes: a topic that is said to be keyed by question is not, repeats are missing and amplification reads low. No data is good.", runbooks: []string{"AuditorBlind"},
				asks:    []ask{{expr: `SELECT dependency, count() AS split_minutes, max(time) AS newest FROM splits WHERE dependency IN (${dependency:sqlstring}) AND time >= toDateTime(${__from:date:seconds}) AND time < toDateTime(${__to:date:seconds}) GROUP BY dependency ORDER BY split_minutes DESC`}},
				columns: map[string]column{"split_minutes": {title: "minutes", unit: "short"}, "newest": {unit: "none"}}},
		}},
		{"What is kept", []panel{
			{kind: "table", title: "Rows by kind", unit: "none", w: 12, h: 8, first: "what", about: "How many rows of each kind there are, those included that others replace at the next merge, and from when to when. Rows older than store.retention go within hours.",
				asks:    []ask{{expr: `SELECT what, rows AS stored_rows, oldest AS oldest_row, newest AS newest_row FROM kept ORDER BY stored_rows DESC`}},
				columns: map[string]column{"stored_rows": {title: "rows", unit: "short"}, "oldest_row": {title: "oldest", unit: "none"}, "newest_row": {title: "newest", unit: "none"}}},
			{kind: "table", title: "Parts by table", unit: "none", w: 12, h: 8, first: "table_name", about: "Of this server. Each scope inserts about once a second; parts that grow by hundreds say that merges do not keep up. The user needs SELECT on system.parts.",
				asks: []ask{{expr: `SELECT table AS table_name, count() AS active_parts, sum(rows) AS stored_rows, sum(bytes_on_disk) AS on_disk FROM system.parts WHERE database = currentDatabase() AND active GROUP BY table_name ORDER BY on_disk DESC`}},
				columns: map[string]column{
					"active_parts": {title: "parts", unit: "short"}, "stored_rows": {title: "rows", unit: "short"}, "on_disk": {title: "on disk", unit: "bytes"},
				}},
			{kind: "table", title: "Steps of the schema", unit: "none", w: 24, h: 7, first: "step_name", about: "Which steps of auditor migrate up were run, and when.",
				asks:    []ask{{expr: `SELECT name AS step_name, number AS step_number, at AS run_at FROM steps ORDER BY number DESC`}},
				columns: map[string]column{"step_number": {title: "number", unit: "none"}, "run_at": {title: "run", unit: "none"}}},
		}},
	},
}
