package main

import (
	"bytes"
	"math"
	"time"

	"github.com/targetside/auditor/ingest/accesslog"
	"github.com/targetside/auditor/keys"
)

// explained is one record as explain prints it. What the record does not say is
// null; an empty list of tries says nothing about whether there were any, work
// does.
type explained struct {
	File   string `json:"file"`
	Line   int64  `json:"line"`   // 1-based; of the first part, where a line was split
	Offset int64  `json:"offset"` // of that line, in bytes of the uncompressed log

	Format   string  `json:"format"`
	Envelope *string `json:"envelope"` // cri, docker, or the member that held the record
	Parts    int     `json:"parts"`    // lines that the record was split into
	Kind     string  `json:"kind"`     // end, start, periodic
	Outbound bool    `json:"outbound"` // the caller's side of a mesh hop: no arrival at the target

	Start       *string  `json:"ts_start"`
	End         *string  `json:"ts_end"`
	Uncertainty *float64 `json:"ts_uncertainty_ms"`
	StampIs     *string  `json:"ts_logged"` // start or end: the one that the record holds
	Duration    *float64 `json:"duration_ms"`

	Dependency *string `json:"dependency"`
	Route      *string `json:"route"` // as logged; replay folds the path otherwise
	Method     *string `json:"method"`
	Path       *string `json:"path"`
	Authority  *string `json:"authority"`
	Peer       *string `json:"peer"`
	UserAgent  *string `json:"user_agent"`

	Status    *int64  `json:"status"`
	StatusRaw *string `json:"status_raw"`
	GRPCCode  *int64  `json:"grpc_code"`
	BytesSent *int64  `json:"bytes_sent"`

	Tries []explainedTry `json:"tries"`

	Attempt      *int64   `json:"attempt"`
	AttemptScope *string  `json:"attempt_scope"`
	AttemptsLeft *int64   `json:"attempts_left"`
	RetryAfter   *float64 `json:"retry_after_ms"`

	Key             *explainedKey `json:"key"`
	RequestID       *string       `json:"request_id"`
	RequestIDMasked *string       `json:"request_id_masked,omitempty"`
	ArrivalID       *string       `json:"arrival_id"`

	Deadline     *string  `json:"deadline"`
	PastDeadline *string  `json:"past_deadline"` // no, likely (by less than the stamp's resolution), yes, unknown (without a duration)
	PastBy       *float64 `json:"past_deadline_by_ms"`

	Gone      string `json:"gone"`
	Delivered string `json:"delivered"`
	Work      string `json:"work"`
	Class     string `json:"class"`
	Visible   bool   `json:"visible"` // a departure would show in this record
	Local     bool   `json:"local"`   // the logger answered itself

	Notes       []string          `json:"notes"`
	Attribution attribution       `json:"attribution"`
	Source      map[string]string `json:"source"` // canonical field: log field
}

type explainedTry struct {
	Addr   *string  `json:"addr"`
	Status *int64   `json:"status"`
	TimeMS *float64 `json:"time_ms"`
	Group  int      `json:"group"`
	Sent   bool     `json:"sent"` // it reached an upstream, as far as the record shows
}

type explainedKey struct {
	Value    string `json:"value"`
	Source   string `json:"source"`
	AsLogged string `json:"as_logged,omitempty"` // where the syntax around the value was removed
}

type attribution struct {
	Class      string   `json:"class"`
	Reason     *string  `json:"reason"`
	Scheme     *string  `json:"scheme"`
	Originator *string  `json:"originator"`
	AgeMS      *float64 `json:"age_ms"` // start − minted, of keys that are proven
}

// unreadable stands for a line that is no record. It never holds any of it.
type unreadable struct {
	File   string `json:"file"`
	Line   int64  `json:"line"`
	Offset int64  `json:"offset"`
	Error  string `json:"error,omitempty"`
	Other  string `json:"ignored,omitempty"` // a line that was never meant to be a record
}

// optional is v where it is known, else null.
func optional[T any](v T, known bool) *T {
	if !known {
		return nil
	}
	return &v
}

func optionalText(b []byte) *string { return optional(string(b), len(b) != 0) }

func optionalWord(s string) *string { return optional(s, s != "") }

func optionalNumber(n int64) *int64 { return optional(n, n != accesslog.Unknown) }

func optionalMillis(ns int64) *float64 { return optional(float64(ns)/1e6, ns != accesslog.Unknown) }

// utcMillis writes Unix nanoseconds to the millisecond, cut and not rounded.
func utcMillis(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z")
}

// explainRecord writes e in the words of the result. The strings are copies: e
// lives until the next record only.
func explainRecord(e *accesslog.Entry, format string) *explained {
	x := &explained{
		Format: format, Parts: 1, Outbound: e.Outbound,
		Kind:     [...]string{"end", "start", "periodic"}[e.Kind],
		Start:    optional(utcMillis(e.Start), e.HasTime),
		End:      optional(utcMillis(e.End), e.HasTime),
		Duration: optionalMillis(e.Duration),

		Dependency: optionalText(e.Dependency), Route: optionalText(e.Route),
		Method: optionalText(e.Method), Path: optionalText(e.Path), Authority: optionalText(e.Authority),
		Peer: optionalText(e.Peer), UserAgent: optionalText(e.UserAgent),

		Status: optional(int64(e.Status), e.Status != 0), StatusRaw: optionalText(e.StatusRaw),
		GRPCCode: optionalNumber(int64(e.GRPCStatus)), BytesSent: optionalNumber(e.BytesSent),

		Attempt:      optional(int64(e.Attempt), e.Attempt != 0),
		AttemptsLeft: optionalNumber(int64(e.AttemptsLeft)),
		RetryAfter:   optionalMillis(e.RetryAfter),

		RequestID: optionalText(e.RequestID), ArrivalID: optionalText(e.ArrivalID),

		Gone: e.Gone.String(), Delivered: e.Delivered.String(), Work: e.Work.String(),
		Class: e.Departure.String(), Visible: e.Visible, Local: e.Local,

		Tries: []explainedTry{}, Notes: append([]string{}, e.Notes.Strings()...), Source: e.Sources,
	}
	if e.HasTime {
		x.Uncertainty = optionalMillis(e.Uncertainty)
		x.StampIs = optionalWord("start")
		if e.StampIsEnd {
			x.StampIs = optionalWord("end")
		}
	} else {
		x.Notes = append(x.Notes, "no_time")
	}
	switch {
	case e.Attempt == 0:
	case e.AttemptScope == accesslog.ScopeHop:
		x.AttemptScope = optionalWord("hop")
	case e.AttemptScope == accesslog.ScopeOrigin:
		x.AttemptScope = optionalWord("origin")
	}
	for _, t := range e.Tries {
		x.Tries = append(x.Tries, explainedTry{
			Addr: optionalText(t.Addr), Status: optional(int64(t.Status), t.Status != 0), TimeMS: optionalMillis(t.Time),
			Group: t.Group, Sent: t.Sent,
		})
	}
	if masked, ok := maskRequestID(e.RequestID); ok {
		x.RequestIDMasked = &masked
	}
	if e.Deadline != 0 {
		late := e.End - e.Deadline
		x.Deadline, x.PastBy = optionalWord(utcMillis(e.Deadline)), optional(float64(late)/1e6, e.Duration >= 0)
		switch {
		case e.Duration < 0:
			x.PastDeadline = optionalWord("unknown")
		case late <= 0:
			x.PastDeadline = optionalWord("no")
		case late <= e.Uncertainty:
			x.PastDeadline = optionalWord("likely")
		default:
			x.PastDeadline = optionalWord("yes")
		}
	}
	if x.Source == nil {
		x.Source = map[string]string{}
	}
	return x
}

// maskRequestID hides the character of a UUID into which Envoy packs its trace
// decision, so that the ids of one request compare equal.
func maskRequestID(id []byte) (string, bool) {
	if len(id) != 36 {
		return "", false
	}
	masked := bytes.Clone(id)
	for i, c := range masked {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if dash != (c == '-') || !dash && !hex {
			return "", false
		}
	}
	masked[14] = '_'
	return string(masked), true
}

// keyReader finds a record's key. It looks at every field in which an
// originator's key can stand, so that explain shows a key that the configuration
// does not accept; what is accepted comes first, and attribution goes by it.
type keyReader struct {
	attribute *keys.Checker // by the configuration
	accepted  int           // how many of fields attribute wants
	fields    []string      // for accesslog.Config.Keys
	places    []keyPlace    // in the order in which they are looked at
	shape     *keys.Ring    // qk1 and qk2 without any originator
}

// keyPlace is one field with the reader of its syntax.
type keyPlace struct {
	at   int // in keyReader.fields
	read *keys.Checker
}

// keySyntax is from a field to the scheme whose syntax it has. A question key of
// another author than qk1 and qk2 is written as an idempotency key is: plain, or
// a Structured Field string. x-request-id is not here, since proxies mint it:
// it is a key only where the configuration accepts it.
var keySyntax = []struct{ field, scheme string }{
	{"question_key", "idempotency-key"},
	{"idempotency_key", "idempotency-key"},
	{"traceparent", "traceparent"},
	{"amz_sdk_invocation_id", "amz-sdk-invocation-id"},
	{"gccl_invocation_id", "gccl-invocation-id"},
	{"x_ms_client_request_id", "x-ms-client-request-id"},
}

func newKeyReader(ring *keys.Ring) (*keyReader, error) {
	r := &keyReader{attribute: ring.NewChecker(), fields: append([]string{}, ring.Fields()...)}
	r.accepted = len(r.fields)
	var err error
	if r.shape, err = keys.NewRing(keys.Config{}); err != nil {
		return nil, err
	}
	add := func(field string, a keys.Accept) error {
		at := -1
		for i, f := range r.fields {
			if f == field {
				at = i
			}
		}
		for _, p := range r.places {
			if p.at == at && at >= 0 {
				return nil // qk1 and qk2 share a field
			}
		}
		if at < 0 {
			at = len(r.fields)
			r.fields = append(r.fields, field)
		}
		one, err := keys.NewRing(keys.Config{Accept: []keys.Accept{a}})
		if err != nil {
			return err
		}
		r.places = append(r.places, keyPlace{at: at, read: one.NewChecker()})
		return nil
	}
	for _, a := range ring.Accepted() {
		field := a.FieldName()
		if a.Scheme == "qk1" || a.Scheme == "qk2" {
			a = keys.Accept{Scheme: "idempotency-key"}
		}
		if err := add(field, a); err != nil {
			return nil, err
		}
	}
	for _, s := range keySyntax {
		if err := add(s.field, keys.Accept{Scheme: s.scheme}); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// explain fills what e's key fields say.
func (r *keyReader) explain(e *accesslog.Entry, x *explained) {
	x.Key = r.key(e)
	uncertainty := e.Uncertainty
	if !e.HasTime {
		uncertainty = math.MaxInt64 // a record without a time fails no test of time
	}
	r.attribute.LogTime(e.End)
	a := r.attribute.Attribute(e.Keys[:r.accepted], e.KeySuspect, e.Start, uncertainty)
	x.Attribution = attribution{
		Class: a.Class.String(), Reason: optionalWord(a.Reason.String()), Scheme: optionalWord(a.Scheme),
		Originator: optionalWord(a.Originator),
	}
	if a.OriginatorIndex >= 0 && e.HasTime {
		age := (float64(e.Start) - float64(a.Minted)*1e6) / 1e6
		x.Attribution.AgeMS = optional(math.Round(age*1e3)/1e3, true)
	}
}

// key is the first key that the record holds: the first field with something in
// it decides, and where that is no key there is none.
func (r *keyReader) key(e *accesslog.Entry) *explainedKey {
	if e.KeySuspect {
		return nil
	}
	for _, p := range r.places {
		logged := e.Keys[p.at]
		a := p.read.Attribute([][]byte{logged}, false, 0, 0)
		if a.Reason == keys.Absent {
			continue
		}
		if a.Class != keys.Claimed || r.cutSigned(a.Key) {
			return nil
		}
		field := r.fields[p.at]
		if name := e.Sources[field]; name != "" {
			field = name
		}
		k := &explainedKey{Value: string(a.Key), Source: "field " + field}
		if as := string(logged); as != k.Value {
			k.AsLogged = as
		}
		return k
	}
	return nil
}

// cutSigned says that a text begins like a qk1 or qk2 key and is not a whole one.
func (r *keyReader) cutSigned(key []byte) bool {
	if !bytes.HasPrefix(key, []byte("qk1.")) && !bytes.HasPrefix(key, []byte("qk2.")) {
		return false
	}
	return r.shape.Verify(string(key), time.Unix(0, 0)).Reason == keys.Malformed
}
