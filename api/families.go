package api

import (
	"github.com/prometheus/client_golang/prometheus"
)

// A family is one metric of the daemon: its name, meaning and labels. The names
// are a contract: rules and dashboards are written to them.
type family struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	name   string
	labels []string
}

func counter(name, help string, labels ...string) *family {
	return &family{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue, name, labels}
}

func gauge(name, help string, labels ...string) *family {
	return &family{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, name, labels}
}

// families are all metrics of the daemon. Counters are of closed ticks and trail
// by the lateness; gauges are live.
type families struct {
	arrivals, unattributable, originals, repeats *family
	responses, good, deadAnswers, unjudged       *family
	deadSeconds, busySeconds, repeatSeconds      *family
	retryAsked, retryEarly, stale, violations    *family
	perQuestion                                  *family
	loadFactor, amplification, declaredWorst     *family
	coverage, readShare, visibility              *family
	consumed, exhaustsIn                         *family
	live, leftOut, sampling, split               *family
	records, quarantined, duplicates, late, gaps *family
	lag, watermark                               *family
	storeWrite, storeErrors, build               *family
	sourceUp, sourceRestarts                     *family
	intake, intakeWaits, intakeConnections       *family
	reloadGood, reloadAt                         *family
	alertsOf, notifications                      *family
}

func newFamilies() *families {
	return &families{
		arrivals:       counter("auditor_arrivals_total", "Arrivals by what is known of their key: verified, claimed or unattributable.", "dependency", "route", "class"),
		unattributable: counter("auditor_unattributable_arrivals_total", "Arrivals that could not be attributed, by reason.", "dependency", "reason"),
		originals:      counter("auditor_originals_total", "Arrivals that opened a question.", "dependency", "route"),
		repeats:        counter("auditor_repeats_total", "Arrivals whose question had arrived before.", "dependency", "route"),
		responses:      counter("auditor_responses_total", "Arrivals by what became of them: answered, dead, refused or abandoned.", "dependency", "route", "outcome"),
		good:           counter("auditor_good_responses_total", "Successes whose caller had neither left nor given up: goodput.", "dependency", "route"),
		deadAnswers:    counter("auditor_dead_answers_total", "Answers that nobody was there to read, by how that is known; expired has no sample if the log gives no times to judge deadlines by.", "dependency", "route", "kind"),
		unjudged:       counter("auditor_unjudged_responses_total", "Arrivals that had a deadline, of which the log gives no time to judge it by: they may have expired.", "dependency", "route"),
		deadSeconds:    counter("auditor_dead_seconds_total", "Time in system of arrivals whose caller had left or given up; no sample if the log gives the time of none of them.", "dependency", "route"),
		busySeconds:    counter("auditor_busy_seconds_total", "Time in system of all arrivals; no sample if the log gives the time of none.", "dependency", "route"),
		repeatSeconds:  counter("auditor_repeat_seconds_total", "Time in system of repeats; no sample if the log gives the time of none.", "dependency", "route"),
		retryAsked:     counter("auditor_retry_after_asked_total", "Answers that carried Retry-After.", "dependency"),
		retryEarly:     counter("auditor_retry_after_early_total", "Repeats that came before the time asked for; no sample if the log gives no times.", "dependency"),
		stale:          counter("auditor_stale_arrivals_total", "Arrivals that started after their question's deadline.", "dependency"),
		violations:     counter("auditor_attempt_budget_violations_total", "Arrivals that break a carried attempt budget.", "dependency", "kind"),
		perQuestion:    counter("auditor_arrivals_per_question", "Arrivals per question, of questions that are over.", "dependency"),

		loadFactor:    gauge("auditor_load_factor_ratio", "Attributable arrivals per original in the window.", "dependency", "window"),
		amplification: gauge("auditor_amplification_ratio", "Arrivals per distinct question in the window of closed seconds, which trails by time.lateness, as measured and within bounds for all traffic.", "dependency", "window", "bound"),
		declaredWorst: gauge("auditor_declared_amplification_ratio", "The most arrivals that one question can cost by the declared policy.", "dependency"),
		coverage:      gauge("auditor_key_coverage_ratio", "Share of the last minute's arrivals whose key is verified or claimed.", "dependency", "class"),
		readShare:     gauge("auditor_read_share_ratio", "Share of records that could be read.", "dependency"),
		visibility:    gauge("auditor_response_visibility_ratio", "Share of the last minute's records that can show a departure.", "dependency"),
		consumed:      gauge("auditor_retry_budget_consumed_ratio", "Repeats as a share of those allowed; high takes all unattributable arrivals for repeats.", "dependency", "model", "bound"),
		exhaustsIn:    gauge("auditor_retry_budget_exhausts_in_seconds", "Time until the retry budget is spent at the present slope.", "dependency", "model"),
		live:          gauge("auditor_live_questions", "Questions that are remembered."),
		leftOut:       counter("auditor_questions_left_out_total", "Questions that are over and were not stored, being too many of one second."),
		sampling:      gauge("auditor_sampling_ratio", "Share of questions that is followed.", "dependency"),
		split:         gauge("auditor_scope_split", "1 if one question was seen in two scopes, so that repeats are missing.", "dependency"),

		records:           counter("auditor_records_total", "Records read, by outcome: counted, ignored, duplicate or quarantined.", "source", "outcome"),
		quarantined:       counter("auditor_quarantined_records_total", "Records that could not be read, by reason.", "source", "reason"),
		duplicates:        counter("auditor_duplicate_records_total", "Copies that the shipper sent again.", "source"),
		late:              counter("auditor_late_arrivals_total", "Arrivals that came after their tick was closed.", "source"),
		gaps:              counter("auditor_offset_gap_records_total", "Offsets that were never read.", "source"),
		lag:               gauge("auditor_ingest_lag_seconds", "How far the source's slowest partition is behind.", "source"),
		watermark:         gauge("auditor_watermark_timestamp_seconds", "Log time up to which the source's slowest partition is read.", "source"),
		storeWrite:        counter("auditor_store_write_seconds", "Time that writes to the store took."),
		storeErrors:       counter("auditor_store_errors_total", "Calls that the store answered with an error, by what was wrong.", "kind"),
		sourceUp:          gauge("auditor_source_up", "1 while the source can be read, 0 while it has failed.", "source"),
		sourceRestarts:    counter("auditor_source_restarts_total", "How often the source was begun anew after it had failed as a whole.", "source"),
		intake:            counter("auditor_intake_messages_total", "Messages sent to a source: kept, refused with an answer, or lost as dropped or truncated.", "source", "outcome"),
		intakeWaits:       counter("auditor_intake_waits_total", "How often a source without answers stopped reading because nothing could be kept.", "source"),
		intakeConnections: gauge("auditor_intake_connections", "Connections or streams that are open to a source, or pushes under way.", "source"),
		reloadGood:        gauge("auditor_config_last_reload_successful", "1 if the configuration was read whole when it was last asked for, else 0."),
		reloadAt:          gauge("auditor_config_last_reload_success_timestamp_seconds", "When the configuration in force was last read."),
		alertsOf:          gauge("auditor_alerts", "Alerts of this instance by name that are pending or firing.", "alert", "state"),
		notifications:     counter("auditor_notifications_total", "Notifications by sink: taken, tries that failed, and dropped.", "sink", "outcome"),
		build:             gauge("auditor_build_info", "1, with what program this is.", "version", "revision", "goversion"),
	}
}

func (f *families) all() []*family {
	return []*family{
		f.arrivals, f.unattributable, f.originals, f.repeats, f.responses, f.good, f.deadAnswers, f.unjudged, f.deadSeconds, f.busySeconds,
		f.repeatSeconds, f.retryAsked, f.retryEarly, f.stale, f.violations, f.perQuestion, f.loadFactor, f.amplification,
		f.declaredWorst, f.coverage, f.readShare, f.visibility, f.consumed, f.exhaustsIn, f.live, f.leftOut, f.sampling, f.split, f.records,
		f.quarantined, f.duplicates, f.late, f.gaps, f.lag, f.watermark, f.storeWrite, f.storeErrors, f.build, f.sourceUp, f.sourceRestarts, f.intake, f.intakeWaits, f.intakeConnections, f.reloadGood, f.reloadAt,
		f.alertsOf, f.notifications,
	}
}
