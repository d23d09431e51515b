package keys

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A claimReader takes the identity text out of a trimmed, non-empty value of at most maxValueSize bytes. It returns a slice
// of the value or writes into scratch, whose capacity is maxValueSize. false means malformed; nil and true, that the value
// is well-formed and holds no key, which is as good as an empty field.
type claimReader func(scratch, value []byte) ([]byte, bool)

// claimedSchemes are the schemes that cannot prove their author, with the canonical field each is read from.
var claimedSchemes = map[string]struct {
	field string
	read  claimReader
}{
	"idempotency-key":        {"idempotency_key", idempotencyKey},
	"amz-sdk-invocation-id":  {"amz_sdk_invocation_id", onlyUUID},
	"gccl-invocation-id":     {"gccl_invocation_id", invocationID},
	"x-ms-client-request-id": {"x_ms_client_request_id", onlyUUID},
	"x-request-id":           {"x_request_id", requestID},
	"traceparent":            {"traceparent", traceID},
}

// maxFreeSize is the longest key of free form, in bytes.
const maxFreeSize = 255

// freeText reads a named field: any printable text that is one value.
func freeText(_, value []byte) ([]byte, bool) {
	one, ok := collapse(value)
	return one, ok && plausible(one)
}

// idempotencyKey reads both forms on the wire: raw text, and a Structured Field string, whose quotes and escapes belong to
// the syntax. Quotes that do not enclose the whole value are part of the key.
func idempotencyKey(scratch, value []byte) ([]byte, bool) {
	if value[0] != '"' {
		return freeText(scratch, value)
	}
	end, escaped := 1, false
	for ; ; end++ {
		if end >= len(value) {
			return nil, false // never closed: cut off
		}
		if value[end] == '"' {
			break
		}
		if value[end] == '\\' {
			end, escaped = end+1, true
		}
	}
	item, rest := value[:end+1], trimBlanks(value[end+1:])
	if len(rest) > 0 && rest[0] != ',' {
		return freeText(scratch, value)
	}
	for len(rest) > 0 { // "K", "K": a comma between quotes is not a separator
		next := rest
		if next[0] != ',' {
			return nil, false
		}
		if next = trimBlanks(next[1:]); !bytes.HasPrefix(next, item) {
			return nil, false
		}
		rest = trimBlanks(next[len(item):])
	}
	key := item[1:end]
	if escaped {
		out := scratch
		for i := 0; i < len(key); i++ {
			if key[i] == '\\' {
				if i++; key[i] != '"' && key[i] != '\\' {
					return nil, false
				}
			}
			out = append(out, key[i])
		}
		key = out
	}
	return key, plausible(key)
}

// onlyUUID reads a scheme whose ids are UUIDs. Composites, such as the Hadoop client's colon-separated ids, hold the number
// of the try and differ with every one: as a whole they are no key.
func onlyUUID(scratch, value []byte) ([]byte, bool) {
	one, ok := collapse(value)
	if !ok {
		return nil, false
	}
	id, _ := readUUID(scratch, one)
	return id, id != nil
}

const invocationPrefix = "gccl-invocation-id/"

// invocationID reads a bare UUID, or the gccl-invocation-id part of an x-goog-api-client header, which has none where the
// client is not the storage client. If there are several such parts they must agree.
func invocationID(scratch, value []byte) ([]byte, bool) {
	if bytes.IndexByte(value, '/') < 0 {
		return onlyUUID(scratch, value)
	}
	var id []byte
	for rest := value; len(rest) > 0; {
		part := rest
		if end := bytes.IndexAny(rest, " ,\t"); end >= 0 {
			part, rest = rest[:end], rest[end+1:]
		} else {
			rest = nil
		}
		found, ok := bytes.CutPrefix(part, []byte(invocationPrefix))
		if !ok {
			continue
		}
		if id != nil && !bytes.Equal(id, found) {
			return nil, false
		}
		id = found
	}
	if id == nil {
		return nil, true
	}
	id, _ = readUUID(scratch, id)
	return id, id != nil
}

// maskedAt is the character of a UUID into which Envoy packs its trace decision, maskedBy what stands there in the identity.
const (
	maskedAt = 14
	maskedBy = '_'
)

// requestID reads free text; in a UUID the character that Envoy rewrites is masked.
func requestID(scratch, value []byte) ([]byte, bool) {
	one, ok := collapse(value)
	if !ok {
		return nil, false
	}
	id, ok := readUUID(scratch, one)
	if !ok {
		return one, plausible(one)
	}
	if id != nil {
		id[maskedAt] = maskedBy
	}
	return id, id != nil
}

// traceID reads the trace id of a W3C traceparent: version-traceid-parentid-flags in lower-case hex.
func traceID(_, value []byte) ([]byte, bool) {
	v, ok := collapse(value)
	if !ok || len(v) < 55 || v[2] != '-' || v[35] != '-' || v[52] != '-' {
		return nil, false
	}
	version, trace, parent, flags := v[:2], v[3:35], v[36:52], v[53:55]
	if !isLowerHex(version) || !isLowerHex(trace) || !isLowerHex(parent) || !isLowerHex(flags) {
		return nil, false
	}
	switch {
	case string(version) == "ff",
		string(version) == "00" && len(v) != 55,
		len(v) > 55 && v[55] != '-',
		isRepeated(trace, '0'), isRepeated(parent, '0'):
		return nil, false
	}
	return trace, true
}

// placeholders are texts that stand for a missing value. Each would make one question of everybody's.
var placeholders = []string{"redacted", "null", "nil", "none", "undefined", "n/a", "nan", "[object object]"}

// plausible reports whether a free text can be an originator's key as it was sent: neither damaged nor cut off on its way
// through a logger, nor a placeholder.
func plausible(key []byte) bool {
	if len(key) == 0 || len(key) > maxFreeSize {
		return false
	}
	ascii := true
	for _, c := range key {
		if c < ' ' || c == 0x7f {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	if !ascii && (bytes.Contains(key, []byte("\uFFFD")) || bytes.HasSuffix(key, []byte("…"))) {
		return false
	}
	if bytes.HasSuffix(key, []byte("...")) || isRepeated(key, '*') || isRepeated(key, '-') {
		return false
	}
	// The longest placeholder has 15 bytes, and two more with brackets around it: ordinary keys skip the comparisons.
	if len(key) > 17 {
		return true
	}
	bare := bytes.TrimSpace(key)
	if len(bare) > 2 && strings.IndexByte("([<{", bare[0]) >= 0 && strings.IndexByte(")]>}", bare[len(bare)-1]) >= 0 {
		bare = bare[1 : len(bare)-1]
	}
	for _, p := range placeholders {
		if equalFold(bare, p) || equalFold(key, p) {
			return false
		}
	}
	return len(bare) > 0
}

// equalFold compares with a lower-case ASCII text.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func isRepeated(v []byte, c byte) bool {
	for _, b := range v {
		if b != c {
			return false
		}
	}
	return true
}

func isLowerHex(v []byte) bool {
	for _, c := range v {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// readUUID writes a UUID in lower case into scratch: the two cases are one id. ok reports the 36-character form; the id is nil
// without it, and for the nil and the max UUID (all 0, all f), which are placeholders.
func readUUID(scratch, v []byte) (id []byte, ok bool) {
	if len(v) != 36 || v[8] != '-' || v[13] != '-' || v[18] != '-' || v[23] != '-' {
		return nil, false
	}
	id = scratch[:36]
	dashes := 0
	for i, c := range v {
		d := lowerHex[c]
		if d == 0 {
			return nil, false
		}
		if d == '-' {
			dashes++
		}
		id[i] = d
	}
	if dashes != 4 {
		return nil, false
	}
	if (id[0] == '0' || id[0] == 'f') && bytes.Count(id, id[:1]) == 32 {
		return nil, true
	}
	return id, true
}

// lowerHex maps the characters of a UUID to lower case, and everything else to 0.
var lowerHex = func() (table [256]byte) {
	for _, c := range []byte("-0123456789abcdef") {
		table[c] = c
	}
	for _, c := range []byte("ABCDEF") {
		table[c] = c + 'a' - 'A'
	}
	return table
}()
