package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// detectLines bounds how many lines of a sample are looked at.
const detectLines = 64

// markers are what only the JSON of one format has. The first that a record holds
// decides.
var markers = []struct {
	format string
	texts  []string
}{
	{"caddy-json", []string{`"logger":"http.log.access`}},
	{"traefik-json", []string{`"DownstreamStatus"`, `"OriginDuration"`, `"StartUTC"`}},
	{"linkerd-json", []string{`"processing_ns"`, `"total_ns"`}},
	{"istio-json", []string{`"upstream_cluster":"inbound|`, `"upstream_cluster":"outbound|`}},
	{"envoy-json", []string{`"response_flags"`, `"response_flags_long"`, `"response_code"`, `"response_code_details"`,
		`"upstream_service_time"`, `"upstream_cluster"`, `"downstream_remote_address"`, `"access_log_type"`}},
	{"nginx-json", []string{`"upstream_response_time"`, `"upstream_status"`, `"upstream_addr"`, `"request_time"`,
		`"request_completion"`, `"time_iso8601"`, `"time_local"`, `"msec"`, `"body_bytes_sent"`, `"urt"`}},
}

// Detect names the format of a source that begins with sample, envelopes
// included: the one that reads most of its lines, and at least half of those
// that are records at all. Formats of the same shape are told apart by their
// fields' names and by their columns. Of lines that begin with a virtual host the
// error says what to set.
func Detect(sample []byte) (string, error) {
	lines, err := sampleLines(sample)
	if err != nil {
		return "", err
	}
	if len(lines) == 0 {
		return "", errors.New("detect format: the source has no line yet, name the format")
	}
	best, most, others := "", 0, map[string]int{}
	for _, name := range detectOrder {
		n, other, vote := readable(name, HeadPattern(name, sample), lines)
		if name == "json" {
			name = vote
		}
		if n > most {
			best, most = name, n
		}
		others[name] = max(others[name], other)
	}
	if most == 0 || 2*most < len(lines)-others[best] {
		if n, _, _ := readable("apache", "vhost_combined", lines); 2*n >= len(lines) {
			return "", fmt.Errorf("detect format: %d of %d lines begin with a virtual host, as Apache's do: set format: apache and pattern: vhost_combined",
				n, len(lines))
		}
		return "", fmt.Errorf("detect format: %d of %d lines read as the likeliest one, tried %s, and not apache, pattern or envoy-als: name the format",
			most, len(lines), strings.Join(detectOrder, ", "))
	}
	return best, nil
}

// detectOrder has the formats with the stricter shape first: they win a draw.
var detectOrder = []string{"json", "caddy-json", "otlp-json", "otlp-proto", "alb", "haproxy", "traefik-clf", "iis", "istio-text", "envoy-text",
	"ingress-nginx", "nginx-combined", "logfmt"}

// sampleLines cuts the sample into whole lines, parts joined.
func sampleLines(sample []byte) ([][]byte, error) {
	switch {
	case bytes.HasPrefix(sample, []byte("\xFF\xFE")), bytes.HasPrefix(sample, []byte("\xFE\xFF")),
		len(sample) >= 4 && sample[0] >= ' ' && sample[1] == 0 && sample[2] >= ' ' && sample[3] == 0:
		return nil, errors.New("detect format: the source is UTF-16, convert it to UTF-8")
	case bytes.HasPrefix(sample, []byte("\x1F\x8B")), bytes.HasPrefix(sample, []byte("\x28\xB5\x2F\xFD")):
		return nil, errors.New("detect format: the source is compressed")
	}
	var j Joiner
	var lines [][]byte
	for len(sample) > 0 && len(lines) < detectLines {
		line := sample
		if i := bytes.IndexByte(sample, '\n'); i >= 0 {
			line, sample = sample[:i], sample[i+1:]
		} else {
			sample = nil
			if len(lines) > 0 {
				break // probably cut by the sample's size
			}
		}
		if len(bytes.Trim(line, " \t\r\n\x00")) == 0 {
			continue
		}
		if full, ok := j.Line(line); ok {
			lines = append(lines, bytes.Clone(full))
		}
	}
	return lines, nil
}

// readable counts the lines that read as records of the format, and those that
// are known to be something else. vote is the format whose JSON most are, if
// they are anybody's.
func readable(format, pattern string, lines [][]byte) (n, others int, vote string) {
	p, err := New(Config{Format: format, Pattern: pattern})
	if err != nil {
		return 0, 0, ""
	}
	votes := map[string]int{}
	for _, line := range lines {
		var e Entry
		rest, err := p.Parse(line, &e)
		for err == RejectOther && len(rest) != 0 {
			rest, err = p.Parse(rest, &e) // spans of other kinds
		}
		if err != nil {
			if err == RejectOther {
				others++
			}
			continue
		}
		if binary := len(e.Text) == 0 || e.Text[0] != '{'; format == "otlp-json" && binary || format == "otlp-proto" && !binary {
			continue // both read both
		}
		v := jsonFormat(&e, line)
		// The vendors' own names for the stamp are not known to format json.
		if !e.HasTime && (!p.format.json || v == "") || len(e.StatusRaw) == 0 && e.Method == nil && e.Path == nil && e.Duration == Unknown {
			continue
		}
		n++
		votes[v]++
	}
	for v, count := range votes {
		if v != "" && 2*count > n {
			return n, others, v
		}
	}
	return n, others, format
}

// jsonFormat tells whose JSON a record is. Escapes and dashes that JSON does not
// allow are nginx's.
func jsonFormat(e *Entry, line []byte) string {
	if e.Notes&NoteBareDash != 0 || e.Notes&NoteEscapeRepaired != 0 && bytes.Contains(line, []byte(`\x`)) {
		return "nginx-json"
	}
	for _, m := range markers {
		for _, text := range m.texts {
			if bytes.Contains(e.Text, []byte(text)) {
				return m.format
			}
		}
	}
	return ""
}
