package accesslog

// Sight is how far the records of a format show something.
type Sight uint8

// SightPartly means that some records show it and an ordinary one proves nothing.
const (
	SightNever Sight = iota
	SightPartly
	SightIfLogged
	SightAlways
)

func (s Sight) String() string {
	return [...]string{"never", "partly", "if logged", "as it comes"}[s]
}

// A View is how far a format shows one thing, and what to write into the logger's
// configuration to make it show; where nothing helps, what to use instead.
type View struct {
	Sight Sight
	How   string
}

// Views are what an audit needs of a format's records.
type Views struct {
	Key       View // the question key
	Attempt   View // the number of the attempt that this request is
	Departure View // that the caller had left
	Deadline  View // until when the caller waits
	Duration  View // the time in system
	Stamp     View // a time that is finer than a second
}

// Shows says what the records of a format can show; ok is false for a format that
// New does not know.
func Shows(format string) (v Views, ok bool) {
	v, ok = views[format]
	return v, ok
}

const (
	elsewhere  = "the format has no place for it: take it from the log of what stands behind"
	flagsAreIn = "%RESPONSE_FLAGS% and %BYTES_SENT% are in it"
)

func logged(how string) View { return View{SightIfLogged, how} }

var nginxAppended = Views{
	Key:       logged(`append to log_format: key="$http_question_key"`),
	Attempt:   logged(`append to log_format: x_envoy_attempt_count="$http_x_envoy_attempt_count"`),
	Departure: View{SightPartly, `499 alone; append to log_format: rt=$request_time completion="$request_completion" bytes_sent=$bytes_sent upstream_status="$upstream_status"`},
	Deadline:  logged(`append to log_format: rt=$request_time grpc_timeout="$http_grpc_timeout"`),
	Duration:  logged(`append to log_format: rt=$request_time`),
	Stamp:     logged(`append to log_format: msec=$msec`),
}

var ingressAppended = func() Views {
	v := nginxAppended
	v.Duration = View{SightAlways, "$request_time is in it"}
	return v
}()

var envoyAppended = Views{
	Key:       logged(`use JSON, question_key: "%REQ(QUESTION-KEY)%" (a text line escapes nothing; appended to it: question_key="%REQ(QUESTION-KEY)%")`),
	Attempt:   logged(`use JSON, x_envoy_attempt_count: "%REQ(X-ENVOY-ATTEMPT-COUNT)%"`),
	Departure: View{SightAlways, flagsAreIn},
	Deadline:  logged(`use JSON, grpc_timeout: "%REQ(GRPC-TIMEOUT)%"`),
	Duration:  View{SightAlways, "%DURATION% is in it"},
	Stamp:     View{SightAlways, "%START_TIME% has milliseconds"},
}

var otlpViews = Views{
	Key:       logged("capture the request header question-key as an attribute (http.request.header.question-key)"),
	Attempt:   logged("capture the request header x-envoy-attempt-count as an attribute"),
	Departure: View{SightPartly, "gRPC's Canceled and a few errors' names; set the attribute client_gone where the application knows"},
	Deadline:  logged("capture the request header grpc-timeout as an attribute"),
	Duration:  View{SightPartly, "spans have a start and an end; a log record needs the attribute duration_ms"},
	Stamp:     View{SightAlways, "nanoseconds are in it"},
}

var jsonViews = Views{
	Key:       logged("write the header Question-Key as question_key"),
	Attempt:   logged("write the attempt's number as attempt, and who counts it as attempt_scope: hop or origin"),
	Departure: logged("write whether the caller had gone as client_gone, with bytes_sent and status"),
	Deadline:  logged("write the caller's deadline as deadline: a date, or milliseconds from the start"),
	Duration:  logged(`write the time in system as duration_ms or duration_s`),
	Stamp:     logged(`write the time with a fraction of a second`),
}

// views has a line for each format; those of one logger share what they can.
var views = map[string]Views{
	"json": jsonViews, "logfmt": jsonViews,
	"nginx-json": {
		Key:       logged(`log_format … escape=json: "http_question_key":"$http_question_key"`),
		Attempt:   logged(`log_format: "http_x_envoy_attempt_count":"$http_x_envoy_attempt_count"`),
		Departure: logged(`log_format: "request_completion":"$request_completion","bytes_sent":"$bytes_sent","upstream_status":"$upstream_status"; without them 499 alone`),
		Deadline:  logged(`log_format: "http_grpc_timeout":"$http_grpc_timeout"`),
		Duration:  logged(`log_format: "request_time":"$request_time"`),
		Stamp:     logged(`log_format: "msec":"$msec"`),
	},
	"nginx-combined": nginxAppended, "ingress-nginx": ingressAppended,
	"envoy-json": {
		Key:       logged(`json_format: question_key: "%REQ(QUESTION-KEY)%"`),
		Attempt:   logged(`json_format: x_envoy_attempt_count: "%REQ(X-ENVOY-ATTEMPT-COUNT)%"`),
		Departure: logged(`json_format: response_flags: "%RESPONSE_FLAGS%", bytes_sent: "%BYTES_SENT%"`),
		Deadline:  logged(`json_format: grpc_timeout: "%REQ(GRPC-TIMEOUT)%"`),
		Duration:  logged(`json_format: duration: "%DURATION%"`),
		Stamp:     logged(`json_format: start_time: "%START_TIME%"`),
	},
	"istio-json": {
		Key:       logged(`meshConfig.accessLogFormat: "question_key": "%REQ(QUESTION-KEY)%"`),
		Attempt:   logged(`meshConfig.accessLogFormat: "x_envoy_attempt_count": "%REQ(X-ENVOY-ATTEMPT-COUNT)%"`),
		Departure: View{SightAlways, flagsAreIn},
		Deadline:  logged(`meshConfig.accessLogFormat: "grpc_timeout": "%REQ(GRPC-TIMEOUT)%"`),
		Duration:  View{SightAlways, "%DURATION% is in it"},
		Stamp:     View{SightAlways, "%START_TIME% has milliseconds"},
	},
	"envoy-als": {
		Key:       logged("additional_request_headers_to_log: [question-key]"),
		Attempt:   logged("additional_request_headers_to_log: [x-envoy-attempt-count]"),
		Departure: View{SightAlways, "the flags, the status and the bytes sent are in it"},
		Deadline:  logged("additional_request_headers_to_log: [grpc-timeout]"),
		Duration:  View{SightAlways, "time_to_last_downstream_tx_byte is in it"},
		Stamp:     View{SightAlways, "nanoseconds are in it"},
	},
	"envoy-text": envoyAppended, "istio-text": envoyAppended,
	"caddy-json": {
		Key:       View{SightAlways, "all request headers are in it: keep them out of filters"},
		Attempt:   View{SightAlways, "all request headers are in it"},
		Departure: View{SightPartly, "always before the answer; during it for answers with a Content-Length, else as a duration of 0"},
		Deadline:  View{SightAlways, "all request headers are in it"},
		Duration:  View{SightAlways, "duration is in it"},
		Stamp:     View{SightAlways, "ts has a fraction"},
	},
	"traefik-json": {
		Key:       logged("accessLog.fields.headers.names: {Question-Key: keep}"),
		Attempt:   logged("accessLog.fields.headers.names: {X-Envoy-Attempt-Count: keep}"),
		Departure: View{SightPartly, "499 alone; accessLog.fields.headers.names: {Content-Length: keep} shows answers that were cut off"},
		Deadline:  logged("accessLog.fields.headers.names: {Grpc-Timeout: keep}"),
		Duration:  View{SightAlways, "Duration is in it"},
		Stamp:     View{SightAlways, "StartUTC has nanoseconds"},
	},
	"linkerd-json": {
		Key: View{How: elsewhere}, Attempt: View{How: elsewhere}, Departure: View{How: elsewhere}, Deadline: View{How: elsewhere},
		Duration: View{SightAlways, "total_ns is in it"},
		Stamp:    View{SightAlways, "timestamp has nanoseconds"},
	},
	"alb": {
		Key: View{How: elsewhere}, Attempt: View{How: elsewhere},
		Departure: View{SightPartly, "460 alone: " + elsewhere},
		Deadline:  View{How: elsewhere},
		Duration:  View{SightAlways, "the three processing times are in it"},
		Stamp:     View{SightAlways, "microseconds are in it"},
	},
	"otlp-json": otlpViews, "otlp-proto": otlpViews,
	"haproxy": {
		Key:       logged("http-request set-var(txn.question_key) req.hdr(Question-Key), and in log-format question_key=%{+Q,+E}[var(txn.question_key)]"),
		Attempt:   logged("http-request set-var(txn.attempt) req.hdr(X-Envoy-Attempt-Count), and in log-format x_envoy_attempt_count=%{+Q,+E}[var(txn.attempt)]"),
		Departure: View{SightPartly, "some termination states alone; set option abortonclose, and say so in log-format: abortonclose=on"},
		Deadline:  logged("http-request set-var(txn.timeout) req.hdr(Grpc-Timeout), and in log-format grpc_timeout=%{+Q,+E}[var(txn.timeout)]"),
		Duration:  View{SightAlways, "the timers are in it"},
		Stamp:     View{SightAlways, "accept_date has milliseconds"},
	},
	"apache": {
		Key:       logged(`LogFormat: question_key=\"%{Question-Key}i\"`),
		Attempt:   logged(`LogFormat: attempt=\"%{X-Envoy-Attempt-Count}i\"`),
		Departure: View{SightPartly, "%X, %O, %B and %H, which show resets and large answers that were cut off, and not a caller that closes before the answer"},
		Deadline:  logged(`LogFormat: timeout=\"%{Grpc-Timeout}i\"`),
		Duration:  logged(`LogFormat: %D`),
		Stamp:     logged(`LogFormat: %{begin:msec}t in place of %t`),
	},
	"iis": {
		Key:       logged("a custom field of the request header Question-Key"),
		Attempt:   logged("a custom field of the request header X-Envoy-Attempt-Count"),
		Departure: View{SightPartly, "sc-win32-status 64 alone, which leaves open what reached the caller"},
		Deadline:  logged("a custom field of the request header Grpc-Timeout"),
		Duration:  logged(`the field time-taken`),
		Stamp:     View{How: "its times are whole seconds, whatever is logged"},
	},
	"traefik-clf": {
		Key: View{How: useTraefikJSON}, Attempt: View{How: useTraefikJSON},
		Departure: View{SightPartly, "499 alone: " + useTraefikJSON},
		Deadline:  View{How: useTraefikJSON},
		Duration:  View{SightAlways, "the last of the line is its milliseconds"},
		Stamp:     View{How: "its times are whole seconds: use format: json in Traefik, and traefik-json here"},
	},
	"pattern": {
		Key:       logged("log the header Question-Key and name its group: (?P<question_key>…)"),
		Attempt:   logged("(?P<attempt>…)"),
		Departure: logged("(?P<client_gone>…), with (?P<bytes_sent>…) and (?P<status>…)"),
		Deadline:  logged("(?P<deadline>…) or (?P<grpc_timeout>…)"),
		Duration:  logged("(?P<duration_ms>…) or (?P<duration_s>…)"),
		Stamp:     logged("(?P<time>…), with a fraction of a second"),
	},
}

const useTraefikJSON = "the line has no place for it: use format: json in Traefik, and traefik-json here"
