package config

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Source is one place that access logs come from. Exactly one of Kafka, File,
// HTTP, Syslog and ALS is set.
type Source struct {
	Kafka  *Kafka  `yaml:"kafka"`
	File   *File   `yaml:"file"`
	HTTP   *HTTP   `yaml:"http"`
	Syslog *Syslog `yaml:"syslog"`
	ALS    *ALS    `yaml:"als"`

	// Format is one of the formats in docs/configuration.md. Default auto: by the first lines.
	Format string `yaml:"format"`
	// Vantage is at_target (default) or in_front. In front, the tries listed
	// inside one record are arrivals. All sources of a named dependency have the
	// same: two logs that see the same requests would count them twice.
	Vantage string `yaml:"vantage"`
	// Zone is the zone of stamps that carry none: an IANA name or an offset such
	// as +02:00. Default UTC.
	Zone string `yaml:"zone"`
	// Pattern is the format string of formats that have one: Apache's LogFormat, IIS's
	// #Fields line, an expression. Default: the format's own.
	Pattern string `yaml:"pattern"`
	// AttemptScope says who counts the attempt numbers: hop or origin. Default:
	// as the format says.
	AttemptScope string `yaml:"attempt_scope"`
	// AttemptTrusted says that no sidecar rewrites them before they are logged.
	// Default false: hops that all read 1 are then not believed.
	AttemptTrusted bool `yaml:"attempt_trusted"`
	// Flush is how long whoever writes or ships the log may hold a record back: nginx's
	// access_log flush, a shipper's batch interval. 0 or more. Default 0, at once.
	// Nothing is counted differently; check warns where alerts come too late for it.
	Flush time.Duration `yaml:"flush" json:"-"`
	// DeadLetter is where quarantined records go. Kafka only. Default: nowhere.
	DeadLetter *DeadLetter `yaml:"dead_letter"`
	// Fields is from canonical name to the log's own field, over what the format
	// knows. Default: none.
	Fields map[string]string `yaml:"fields"`
}

func (s *Source) setDefaults() { s.Format, s.Vantage = "auto", "at_target" }

// Kind is the key that says where it reads: kafka, file, http, syslog or als. Empty is
// a source that says nothing of it.
func (s *Source) Kind() string {
	switch {
	case s.Kafka != nil:
		return "kafka"
	case s.File != nil:
		return "file"
	case s.HTTP != nil:
		return "http"
	case s.Syslog != nil:
		return "syslog"
	case s.ALS != nil:
		return "als"
	}
	return ""
}

// Location returns the zone of stamps that carry none.
func (s *Source) Location() (*time.Location, error) { return zone(s.Zone) }

// Kafka is a set of topics read as one consumer group.
type Kafka struct {
	// Brokers are host:port, at least one.
	Brokers []string `yaml:"brokers"`
	// Topics are read by this source alone, at least one.
	Topics []string `yaml:"topics"`
	// Group is the consumer group. Default auditor.
	Group string `yaml:"group"`
	// Start is where to begin without a committed offset: first (default), last, or
	// a time in RFC 3339, which is StartAt.
	Start string `yaml:"start"`
	// Keyed says that the topics are keyed by question key, so that each
	// partition is counted alone. Default false. Wrongly true, a question's
	// arrivals are split and amplification reads low.
	Keyed bool `yaml:"keyed"`
	// SessionTimeout is how long after an instance's last sign of life the others
	// take its partitions over. Default 30 s.
	SessionTimeout time.Duration `yaml:"session_timeout"`
	// Exchange is the topic through which instances share an un-keyed topic.
	// Default: none. Not with Keyed.
	Exchange *Exchange `yaml:"exchange"`
	// TLS turns TLS on. Default: none.
	TLS *ClientTLS `yaml:"tls"`
	// SASL is how to log in. Default: not at all.
	SASL *SASL `yaml:"sasl"`
}

func (k *Kafka) setDefaults() {
	k.Group, k.Start, k.SessionTimeout = "auditor", "first", 30*time.Second
}

// Divided says that instances divide the partitions, and the questions with them.
func (k *Kafka) Divided() bool { return k.Keyed || k.Exchange != nil }

// StartAt is the time that Start is, zero if it is none.
func (k *Kafka) StartAt() time.Time {
	at, _ := time.Parse(time.RFC3339, k.Start)
	return at
}

// Exchange is the topic in which arrivals are keyed by question.
type Exchange struct {
	Topic string `yaml:"topic"`
}

// DeadLetter is the topic of records that could not be read.
type DeadLetter struct {
	Topic string `yaml:"topic"`
}

// SASL is a login. At most one of Password and PasswordFile.
type SASL struct {
	// Mechanism is plain, scram-sha-256 or scram-sha-512 (default).
	Mechanism    string `yaml:"mechanism"`
	Username     string `yaml:"username"`
	Password     Secret `yaml:"password"`
	PasswordFile string `yaml:"password_file" kind:"path"`
}

func (s *SASL) setDefaults() { s.Mechanism = "scram-sha-512" }

// ClientTLS is TLS towards a server; an empty one uses the system's authorities.
type ClientTLS struct {
	// CAFile is the path of the authorities to trust in place of the system's.
	CAFile string `yaml:"ca_file" kind:"path"`
	// CertFile and KeyFile are our own certificate; both or neither.
	CertFile string `yaml:"cert_file" kind:"path"`
	KeyFile  string `yaml:"key_file" kind:"path"`
	// ServerName is the name to expect. Default: the address's.
	ServerName string `yaml:"server_name"`
}

// ServerTLS is the certificate of a listener; both files are needed.
type ServerTLS struct {
	CertFile string `yaml:"cert_file" kind:"path"`
	KeyFile  string `yaml:"key_file" kind:"path"`
	// ClientCAFile is the path of the authorities of client certificates; with
	// it, clients without one are refused. Default: none.
	ClientCAFile string `yaml:"client_ca_file" kind:"path"`
}

// File is a set of log files.
type File struct {
	// Paths are paths and globs, at least one. They are not expanded here: files
	// come and go.
	Paths []string `yaml:"paths" kind:"glob"`
	// Follow reads on as files grow and rotate. Default true.
	Follow bool `yaml:"follow"`
}

func (f *File) setDefaults() { f.Follow = true }

// HTTP is a listener to which shippers push lines.
type HTTP struct {
	// Listen is host:port. Default 127.0.0.1:9465. Another address than loopback
	// needs TLS and Tokens, or Insecure: whoever reaches it can add arrivals.
	Listen string `yaml:"listen"`
	// Insecure allows any address without TLS and Tokens. Default false.
	Insecure bool `yaml:"insecure"`
	// TLS is the listener's certificate. Default: none.
	TLS *ServerTLS `yaml:"tls"`
	// Tokens are the bearer tokens that are let in. Default: none, everybody.
	Tokens []Secret `yaml:"tokens"`
	// Spool is the directory that keeps lines until a restart needs them no more.
	// Default spool.
	Spool string `yaml:"spool" kind:"path"`
	// SpoolMax is about its largest size, at least 1MiB. Default 1GiB. When it is full
	// pushes are answered 429, so that no disk fills up.
	SpoolMax Size `yaml:"spool_max"`
}

func (h *HTTP) setDefaults() {
	h.Listen, h.Spool, h.SpoolMax = "127.0.0.1:9465", "spool", 1<<30
}

// Syslog is a listener to which loggers send records by syslog.
type Syslog struct {
	// Protocol is tcp (default) or udp. What goes by UDP may be lost, and by whom and
	// how much is known only in part.
	Protocol string `yaml:"protocol"`
	// Listen is host:port. Default 127.0.0.1:5514. Another address than loopback needs
	// TLS with a ClientCAFile, or Insecure: whoever reaches it can add arrivals.
	Listen string `yaml:"listen"`
	// Insecure allows any address without TLS. Default false.
	Insecure bool `yaml:"insecure"`
	// TLS is the listener's certificate, for tcp. Default: none.
	TLS *ServerTLS `yaml:"tls"`
	// Spool is the directory that keeps records until a restart needs them no
	// more. Default spool.
	Spool string `yaml:"spool" kind:"path"`
	// SpoolMax is about its largest size, at least 1MiB. Default 1GiB. When it is full,
	// senders by tcp are held back, and datagrams dropped.
	SpoolMax Size `yaml:"spool_max"`
}

func (s *Syslog) setDefaults() {
	s.Protocol, s.Listen, s.Spool, s.SpoolMax = "tcp", "127.0.0.1:5514", "spool", 1<<30
}

// ALS is a listener for Envoy's gRPC Access Log Service.
type ALS struct {
	// Listen is host:port. Default 127.0.0.1:9466. Another address than loopback needs
	// TLS and Tokens, or Insecure: whoever reaches it can add arrivals.
	Listen string `yaml:"listen"`
	// Insecure allows any address without TLS and Tokens. Default false.
	Insecure bool `yaml:"insecure"`
	// TLS is the listener's certificate. Default: none.
	TLS *ServerTLS `yaml:"tls"`
	// Tokens are the bearer tokens that are let in. Default: none, everybody.
	Tokens []Secret `yaml:"tokens"`
	// Spool is the directory that keeps records until a restart needs them no
	// more. Default spool.
	Spool string `yaml:"spool" kind:"path"`
	// SpoolMax is about its largest size, at least 1MiB. Default 1GiB. When it is full,
	// Envoy is held back, which drops what it cannot buffer, and counts it.
	SpoolMax Size `yaml:"spool_max"`
}

func (a *ALS) setDefaults() {
	a.Listen, a.Spool, a.SpoolMax = "127.0.0.1:9466", "spool", 1<<30
}

// SpoolLimit is the spool_max of a source that is sent to, 0 of one that is not.
func (s *Source) SpoolLimit() Size {
	switch {
	case s.HTTP != nil:
		return s.HTTP.SpoolMax
	case s.Syslog != nil:
		return s.Syslog.SpoolMax
	case s.ALS != nil:
		return s.ALS.SpoolMax
	}
	return 0
}

// Listener says where the source listens, over which protocol and with which spool. An
// empty Listen is a source that does not.
func (s *Source) Listener() (network, listen, spool string) {
	switch {
	case s.HTTP != nil:
		return "tcp", s.HTTP.Listen, s.HTTP.Spool
	case s.Syslog != nil:
		return s.Syslog.Protocol, s.Syslog.Listen, s.Syslog.Spool
	case s.ALS != nil:
		return "tcp", s.ALS.Listen, s.ALS.Spool
	}
	return "", "", ""
}

// formats are the log formats a source may name.
var formats = []string{
	"auto", "json", "logfmt", "envoy-json", "envoy-text", "istio-text", "istio-json",
	"nginx-json", "nginx-combined", "ingress-nginx", "apache", "haproxy", "iis", "pattern",
	"traefik-clf", "alb",
	"traefik-json", "caddy-json", "linkerd-json", "otlp-json", "otlp-proto", "envoy-als",
}

var vantages = []string{"at_target", "in_front"}

// schemes are the key schemes that keys.accept may name.
var schemes = []string{
	"qk1", "qk2", "idempotency-key", "amz-sdk-invocation-id", "gccl-invocation-id",
	"x-ms-client-request-id", "x-request-id", "traceparent",
}

// canonicalFields are the names on the left of a source's fields: those of a
// record, then those of headers and logger's fields that a record is read from.
var canonicalFields = []string{
	"time", "time_is", "dependency", "route", "method", "path", "authority", "status",
	"grpc_status", "duration", "duration_s", "duration_ms", "duration_us", "duration_ns",
	"bytes_sent", "peer", "user_agent", "question_key", "idempotency_key",
	"amz_sdk_invocation_id", "gccl_invocation_id", "x_ms_client_request_id", "x_request_id",
	"traceparent", "attempt", "attempt_scope", "attempts_left", "deadline", "retry_after",
	"client_gone", "departure", "arrival_id", "request_id",

	"start_time", "end_time", "request", "x_envoy_attempt_count", "amz_sdk_request",
	"x_goog_api_client", "grpc_previous_rpc_attempts", "x_retry_attempt",
	"x_stainless_retry_count", "grpc_timeout", "x_envoy_expected_rq_timeout_ms",
	"finagle_deadline", "request_completion", "body_bytes_sent", "upstream_addr",
	"upstream_status", "upstream_response_time", "response_flags", "response_code_details",
	"connection_termination_details", "upstream_host", "upstream_local_address",
	"upstream_cluster", "upstream_request_attempt_count", "access_log_type", "stream_id",
}

var offset = regexp.MustCompile(`^([+-])([0-9]{2}):?([0-9]{2})$`)

// zone reads an IANA name or an offset. "Local" is refused: the same log would
// read differently on another machine.
func zone(text string) (*time.Location, error) {
	if text == "" || text == "Z" {
		return time.UTC, nil
	}
	if m := offset.FindStringSubmatch(text); m != nil {
		hours, _ := strconv.Atoi(m[2])
		minutes, _ := strconv.Atoi(m[3])
		if hours > 14 || minutes > 59 {
			return nil, fmt.Errorf("no such offset")
		}
		seconds := hours*3600 + minutes*60
		if m[1] == "-" {
			seconds = -seconds
		}
		return time.FixedZone(text, seconds), nil
	}
	if text == "Local" {
		return nil, fmt.Errorf("the machine's own zone is not a fixed one")
	}
	return time.LoadLocation(text)
}
