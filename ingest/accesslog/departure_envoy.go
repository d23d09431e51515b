package accesslog

import "bytes"

// envoyDeparture reads from an Envoy or Istio record whether the caller left,
// what it got and whether the dependency did the work. It sets Gone, Delivered,
// Work, Departure, Visible and Local from Status, StatusRaw and BytesSent.
//
// flags is %RESPONSE_FLAGS% in its short or long spelling; haveFlags says that
// the record has that field at all. details is %RESPONSE_CODE_DETAILS%, or nil.
//
// A status is no proof that even the headers left, since the upstream's is
// copied early; and code 0, with no flag beside it, is how older releases wrote
// a departure. Any other code that is no status is not known, and shows nothing.
// That Envoy sent every byte it does not say, so nothing here is ever delivered in
// full.
func envoyDeparture(e *Entry, flags, details []byte, haveFlags bool) {
	f, d := envoyFlags(flags), envoyDetails(details)
	answered := e.Status >= 200
	zero := e.zeroStatus()
	noAnswer := zero || e.Status == 100 || isDash(e.StatusRaw)

	e.Gone, e.Delivered, e.Departure = GoneNoRecord, DeliveredUnknown, NotRecorded
	e.Work, e.Local = envoyWork(e.Status, f, d, hasPrefix(details, "via_upstream"))
	switch {
	case hasPrefix(details, "downstream_local_disconnect"):
		e.Gone = GoneNo // Envoy closed the connection, and flags it like the caller's closing
	case (f|d)&flagGone != 0:
		envoyGone(e, answered, noAnswer)
	case (f|d)&flagEnded != 0, f&flagAsked != 0 && e.Work == WorkYes:
		e.Gone = GoneNo // Envoy ended it, or the upstream broke off
	case f&flagProtocol != 0:
		// Bad framing, or a reset that some releases took for it.
		e.Gone, e.Departure, e.Work = GoneLikely, UnknownPoint, WorkUnknown
		e.Notes |= NoteLowConfidence
	case zero && f&^flagSeen == 0 && d&^flagSeen == 0:
		e.Gone, e.Delivered, e.Departure = GoneLikely, DeliveredNone, BeforeResponse
		if haveFlags && f == 0 {
			e.Gone = GoneYes
		}
	}
	e.Visible = haveFlags || len(details) != 0 || e.Gone >= GoneLikely
}

// envoyGone places a departure that a flag shows.
func envoyGone(e *Entry, answered, noAnswer bool) {
	e.Gone = GoneYes
	switch {
	case noAnswer:
		e.Delivered, e.Departure = DeliveredNone, BeforeResponse
	case e.BytesSent > 0:
		e.Delivered, e.Departure = DeliveredPartial, DuringResponse
	case answered && e.BytesSent == 0 && e.Work == WorkYes:
		// The body reached nobody; the headers may have.
		e.Departure = UndeliveredAnswer
		e.Notes |= NoteLowConfidence
	default:
		e.Departure = UnknownPoint
	}
}

// envoyWork says what the dependency did, and whether Envoy answered without
// asking it. Flags add up over the tries of one request, so one that names an
// asked upstream outweighs one that names a refusal.
func envoyWork(status int, f, d envoyFlag, viaUpstream bool) (work Work, local bool) {
	all := f | d
	switch {
	case viaUpstream:
		return WorkYes, false
	case all&flagLocal != 0 && all&flagAsked == 0:
		return WorkNo, true
	case all&(flagCached|flagNoConn) != 0 && all&flagAsked == 0:
		return WorkNo, false
	case status < 200:
		return WorkUnknown, false
	case all&(flagAsked|flagEnded) != 0:
		switch status {
		case 408, 502, 503, 504: // Envoy's own words for no answer
			return WorkUnknown, false
		}
	}
	return WorkYes, false
}

// What a response flag means for the two questions: who ended the request, and
// was the dependency asked.
type envoyFlag uint8

const (
	flagGone     envoyFlag = 1 << iota // the caller closed or reset
	flagEnded                          // Envoy ended it: no departure
	flagProtocol                       // the caller broke the protocol
	flagLocal                          // Envoy answered by itself
	flagAsked                          // an upstream was asked and gave no whole answer
	flagNoConn                         // no connection to an upstream
	flagCached                         // answered from a cache
	flagSeen                           // there is a flag, perhaps one unknown here
)

// envoyFlagOf reads one token of %RESPONSE_FLAGS% or %RESPONSE_FLAGS_LONG%.
// Extensions register flags of their own: an unknown one means nothing here.
func envoyFlagOf(token []byte) envoyFlag {
	switch string(token) {
	case "", "-":
		return 0
	case "DC", "DownstreamConnectionTermination", "DR", "DownstreamRemoteReset":
		return flagGone | flagSeen
	case "DT", "DurationTimeout", "SI", "StreamIdleTimeout":
		return flagEnded | flagSeen
	case "UT", "UpstreamRequestTimeout", "UMSDR", "UpstreamMaxStreamDurationReached":
		return flagEnded | flagAsked | flagSeen
	case "DO", "DropOverload", "UDO", "UnconditionalDropOverload", "OM", "OverloadManagerTerminated":
		return flagEnded | flagLocal | flagSeen
	case "DPE", "DownstreamProtocolError":
		return flagProtocol | flagSeen
	case "UO", "UpstreamOverflow", "UH", "NoHealthyUpstream", "NR", "NoRouteFound",
		"NC", "NoClusterFound", "NFCF", "NoFilterConfigFound",
		"RL", "RateLimited", "RLSE", "RateLimitServiceError",
		"UAEX", "UnauthorizedExternalService", "FI", "FaultInjected",
		"IH", "InvalidEnvoyRequestHeaders", "DF", "DnsResolutionFailed",
		"LH", "FailedLocalHealthCheck":
		return flagLocal | flagSeen
	case "RFCF", "ResponseFromCacheFilter":
		return flagCached | flagSeen
	case "UF", "UpstreamConnectionFailure":
		return flagNoConn | flagSeen
	case "UR", "UpstreamRemoteReset", "UC", "UpstreamConnectionTermination",
		"LR", "LocalReset", "UPE", "UpstreamProtocolError", "URX", "UpstreamRetryLimitExceeded":
		return flagAsked | flagSeen
	}
	return flagSeen // also DI, a delay: the request went on to the dependency
}

// envoyFlags reads a comma list of flags.
func envoyFlags(list []byte) envoyFlag {
	var f envoyFlag
	for len(list) > 0 {
		token := list
		if i := bytes.IndexByte(list, ','); i >= 0 {
			token, list = list[:i], list[i+1:]
		} else {
			list = nil
		}
		f |= envoyFlagOf(bytes.TrimSpace(token))
	}
	return f
}

// The beginnings of %RESPONSE_CODE_DETAILS% of answers that Envoy made without
// asking an upstream. The list is Envoy's to change: what is not here counts as
// an answer of the dependency's.
var envoyLocalDetails = [...]string{
	"absolute_path_rejected", "cluster_not_found", "direct_response", "drop_overload", "ext_authz_",
	"fault_filter_abort", "filter_chain_not_found", "filter_config_not_found", "jwt_authn_access_denied",
	"local_rate_limited", "low_version", "maintenance_mode", "missing_host_header", "missing_path_rejected",
	"no_healthy_upstream", "overload", "path_normalization_failed", "rate_limiter_error", "rbac_access_denied",
	"request_headers_failed_strict_check", "request_rate_limited", "route_configuration_not_found",
	"route_not_found", "unconditional_drop_overload", "upgrade_failed",
}

// envoyDetails reads the code details in the same terms.
func envoyDetails(d []byte) envoyFlag {
	switch {
	case len(d) == 0, isDash(d), hasPrefix(d, "via_upstream"):
		return 0
	case hasPrefix(d, "downstream_remote_disconnect"), hasPrefix(d, "http2.remote_reset"),
		hasPrefix(d, "http2.remote_refuse"), hasPrefix(d, "http3.remote_reset"):
		return flagGone
	case hasPrefix(d, "downstream_local_disconnect"), hasPrefix(d, "duration_timeout"),
		hasPrefix(d, "max_duration_timeout"), hasPrefix(d, "stream_idle_timeout"),
		hasPrefix(d, "request_overall_timeout"):
		return flagEnded
	case hasPrefix(d, "upstream_reset_after_response_started"), hasPrefix(d, "upstream_response_timeout"),
		hasPrefix(d, "response_timeout"), hasPrefix(d, "upstream_per_try_timeout"),
		hasPrefix(d, "upstream_max_stream_duration_reached"):
		return flagEnded | flagAsked
	case hasPrefix(d, "upstream_reset_before_response_started"):
		return flagAsked
	}
	for _, p := range envoyLocalDetails {
		if hasPrefix(d, p) {
			return flagLocal
		}
	}
	return 0
}

// hasPrefix compares words of the details; text formats have been seen with
// blanks and with underscores between them.
func hasPrefix(d []byte, p string) bool {
	if len(d) < len(p) {
		return false
	}
	for i := range len(p) {
		if c := d[i]; c != p[i] && !(c == ' ' && p[i] == '_') {
			return false
		}
	}
	return true
}
