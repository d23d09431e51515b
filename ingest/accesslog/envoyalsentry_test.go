package accesslog

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// alsField is a message with these fields, each of which has a length.
func alsField(number int, parts ...protoMessage) (m protoMessage) {
	for _, part := range parts {
		m.bytes(number, part)
	}
	return m
}

// alsWithout is a message without its fields of one number.
func alsWithout(t testing.TB, m protoMessage, number int) (out protoMessage) {
	t.Helper()
	var f protoField
	for i, next := 0, 0; i < len(m); i = next {
		if next = f.read(m, i); next <= 0 {
			t.Fatal("no message")
		}
		if f.number != number {
			out = append(out, m[i:next]...)
		}
	}
	return out
}

// split is a message whose fields are in two of the same number, cut between any two of
// them, as two parts of one message are that were written one behind the other.
func split(t testing.TB, random *rand.Rand, b []byte, numbers ...int) (out protoMessage) {
	t.Helper()
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			t.Fatal("no message")
		}
		if f.wire != wireBytes || !slices.Contains(numbers, f.number) {
			out = append(out, b[i:next]...)
			continue
		}
		places := []int{0}
		var of protoField
		for j := 0; j < len(f.bytes); {
			if j = of.read(f.bytes, j); j <= 0 {
				t.Fatal("no message")
			}
			places = append(places, j)
		}
		cut := places[random.IntN(len(places))]
		number, first, second := f.number, slices.Clone(f.bytes[:cut]), slices.Clone(f.bytes[cut:])
		out.bytes(number, first)
		out.bytes(number, second)
	}
	return out
}

// A message in two parts says what it says in one. In particular a part without a status
// is no answer without one, which would be a caller who left.
func TestALSInParts(t *testing.T) {
	p := mustNew(t, Config{Format: "envoy-als", Keys: []string{"question_key"}, Extra: []string{"custom_tags.zone"}})
	show := func(e *Entry) string {
		o := *e
		o.Text = nil
		return fmt.Sprintf("%q %q %q %+v", o.Keys, o.Extra, o.StatusRaw, o)
	}
	random := rand.New(rand.NewPCG(7, 8))
	for _, more := range []string{`{}`, `{"response_code":0,"response_flags":"DC,URX","bytes_sent":0}`, `{"response_trailers.grpc-status":"4","original_path":"/old"}`} {
		whole := alsEntryOf(alsValues(t, more))
		want := readOTLP(t, p, alsLineOf(whole), show)
		for range 200 {
			wantAll(t, readOTLP(t, p, alsLineOf(split(t, random, whole, 1, 3, 4)), show), want...)
		}
	}
}

// Of what an entry says nothing is taken for something else.
func TestALSEntry(t *testing.T) {
	p := mustNew(t, Config{Format: "envoy-als", Keys: []string{"question_key"}})
	show := func(e *Entry) string {
		return fmt.Sprintf("%d %s %d kind %d suspect %v", e.Status, e.Departure, e.GRPCStatus, e.Kind, e.KeySuspect)
	}
	unanswered := alsWithout(t, alsEntryOf(alsValues(t)), 4)
	code := func(wrapped ...byte) protoMessage {
		return append(slices.Clone(unanswered), alsField(4, alsField(1, wrapped))...)
	}
	flags := func(build func(m *protoMessage)) protoMessage {
		var m protoMessage
		build(&m)
		return append(code(8, 200, 1), alsField(1, alsField(16, m))...)
	}
	kind := func(n uint64) protoMessage {
		var m protoMessage
		m.varint(33, n)
		return append(code(8, 200, 1), alsField(1, m)...)
	}
	for name, c := range map[string]struct {
		entry protoMessage
		want  string
	}{
		"no answer":                   {code(), "0 before_response -1 kind 0 suspect false"},
		"status":                      {code(8, 200, 1), "200 not_recorded -1 kind 0 suspect false"},
		"status behind another field": {code(16, 1, 8, 200, 1), "200 not_recorded -1 kind 0 suspect false"},
		"status of another wire type": {code(13, 200, 1, 0, 0), "!syntax"},
		"status cut":                  {code(8, 200), "!cut_short"},
		"status in no field":          {code(15), "!cut_short"},
		"all flags": {flags(func(m *protoMessage) {
			for n := 1; n < len(alsFlagNames); n++ {
				m.varint(n, 1)
			}
		}), "200 during_response -1 kind 0 suspect false"},
		"a flag many times, then another": {flags(func(m *protoMessage) {
			for range 100 {
				m.varint(16, 1)
			}
			m.varint(28, 1)
		}), "200 during_response -1 kind 0 suspect false"},
		"a flag taken back":       {flags(func(m *protoMessage) { m.varint(15, 1); m.varint(15, 0) }), "200 not_recorded -1 kind 0 suspect false"},
		"an end":                  {kind(6), "200 not_recorded -1 kind 0 suspect false"},
		"a kind of a later day":   {kind(15), "200 not_recorded -1 kind 2 suspect false"},
		"and one of large number": {kind(1<<64 - 1), "200 not_recorded -1 kind 2 suspect false"},
		"gRPC's status in both": {alsEntryOf(alsValues(t, `{"response_trailers.grpc-status":"4","response_headers.grpc-status":"0"}`)),
			"200 not_recorded 4 kind 0 suspect false"},
	} {
		if name == "all flags" || name == "a flag many times, then another" {
			c.entry = append(c.entry, alsField(4, protoMessage("\x18\x05"))...) // five bytes
		}
		t.Run(name, func(t *testing.T) { wantAll(t, readOTLP(t, p, alsLineOf(c.entry), show), c.want) })
	}
	// The same with the trailers first.
	both := alsEntryOf(alsValues(t, `{"response_trailers.grpc-status":"4","response_headers.grpc-status":"0"}`))
	line := base64.StdEncoding.EncodeToString(reversed(t, unbase64(t, alsLineOf(both)), "2.1.4"))
	wantAll(t, readOTLP(t, p, line, show), "200 not_recorded 4 kind 0 suspect false")
}
