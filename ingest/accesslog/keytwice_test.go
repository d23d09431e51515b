package accesslog

import "testing"

// Of a key that a record holds twice nobody knows which it is, unless both are the same. What
// else stands there twice does no harm to it, nor does a key that does not decide.
func TestKeyTwice(t *testing.T) {
	for _, c := range []struct {
		format, line, key string
		suspect           bool
	}{
		{"json", `{"time":"2026-03-03T10:15:42Z","path":"/","question_key":"a","question_key":"b"}`, "a", true},
		{"json", `{"time":"2026-03-03T10:15:42Z","path":"/","question_key":"a","question_key":"a"}`, "a", false},
		{"json", `{"time":"2026-03-03T10:15:42Z","path":"/","question_key":"a","path":"/b"}`, "a", false},
		{"json", `{"time":"2026-03-03T10:15:42Z","path":"/","question_key":"a","idempotency_key":"b","idempotency_key":"c"}`, "a", false},
		{"json", `{"time":"2026-03-03T10:15:42Z","path":"/","question_key":"","idempotency_key":"b","idempotency_key":"c"}`, "", true},
		{"json", `{"time":"2026-03-03T10:15:42Z","path":"/","question_key":["a","a"]}`, "a, a", false},
		{"json", `{"time":"2026-03-03T10:15:42Z","path":"/","question_key":["a",null,"b"]}`, "", false},
		{"json", `{"time":"2026-03-03T10:15:42Z","path":"/","question_key":["a",{"b":"c"}]}`, "", false},
		{"json", `{"time":"2026-03-03T10:15:42Z","path":"/","question_key":["a",]}`, "a", false},
		{"nginx-json", `{"msec":"1772532942.118","status":"200","http_question_key":"a","http_user_agent":"x","http_question_key":"b"}`, "a", true},
		{"nginx-json", `{"msec":"1772532942.118","status":"200","request_method":"GET","http_question_key":"a","request_method":"PUT"}`, "a", false},
		{"caddy-json", `{"ts":1772532942.25,"request":{"method":"GET","uri":"/","headers":{"Question-Key":["a"],"Question-Key":["b"]}},"duration":0.25,"size":0,"status":200}`, "a", true},
		{"logfmt", `time=2026-03-03T10:15:42Z path=/ question_key=a question_key=b`, "a", true},
	} {
		p := mustNew(t, Config{Format: c.format, Keys: []string{"question_key", "idempotency_key"}})
		var e Entry
		if _, err := p.Parse([]byte(c.line), &e); err != nil {
			t.Errorf("%s: %v", c.line, err)
		} else if string(e.Keys[0]) != c.key || e.KeySuspect != c.suspect {
			t.Errorf("%s: key %q, suspect %v; want %q, %v", c.line, e.Keys[0], e.KeySuspect, c.key, c.suspect)
		}
		if c.format != "json" {
			continue
		}
		// It does no harm to the next.
		if _, err := p.Parse([]byte(`{"time":"2026-03-03T10:15:42Z","path":"/","question_key":"a"}`), &e); err != nil || e.KeySuspect {
			t.Errorf("behind %s: %v, suspect %v", c.line, err, e.KeySuspect)
		}
	}
}
