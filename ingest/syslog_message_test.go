package ingest

import "testing"

// The headers are as the senders named write them.
func TestSyslogText(t *testing.T) {
	const record = `10.0.0.1 - - [03/Mar/2026:10:15:42 +0000] "GET / HTTP/1.1" 200 5`
	for name, c := range map[string][2]string{
		"nginx":                                {"<190>Mar  3 10:15:42 web-1 nginx: " + record, record},
		"nginx, nohostname":                    {"<190>Mar  3 10:15:42 nginx: " + record, record},
		"nginx, JSON":                          {`<190>Mar  3 10:15:42 web-1 nginx: {"status": 200, "uri":"/a: b"}`, `{"status": 200, "uri":"/a: b"}`},
		"HAProxy, rfc3164":                     {"<134>Mar 13 10:15:42 haproxy[811]: 10.0.0.1:5 [03/Mar/2026:10:15:42.118] f b/s", "10.0.0.1:5 [03/Mar/2026:10:15:42.118] f b/s"},
		"HAProxy, rfc5424":                     {"<134>1 2026-03-03T10:15:42+01:00 - haproxy 811 - - 10.0.0.1:5 [03/Mar/2026:10:15:42.118] f b/s", "10.0.0.1:5 [03/Mar/2026:10:15:42.118] f b/s"},
		"HAProxy, short":                       {"<134>10.0.0.1:5 [03/Mar/2026:10:15:42.118] f b/s", "10.0.0.1:5 [03/Mar/2026:10:15:42.118] f b/s"},
		"logger":                               {"<13>Mar  3 10:15:42 op: a line", "a line"},
		"logger -n, with structured data":      {`<13>1 2026-03-03T10:15:42.123456+01:00 host op - - [timeQuality tzKnown="1" isSynced="1" syncAccuracy="500"] a line`, "a line"},
		"logger -i -t":                         {"<13>Mar  3 10:15:42 host my.app/x[99]: a line", "a line"},
		"rsyslog, RSYSLOG_ForwardFormat":       {"<190>2026-03-03T10:15:42.123456+01:00 host nginx: a line", "a line"},
		"rsyslog, SyslogProtocol23Format":      {"<190>1 2026-03-03T10:15:42.123456+01:00 host nginx - - - a line\n", "a line"},
		"rsyslog, the blank before the text":   {"<190>Mar  3 10:15:42 host nginx:  a line", "a line"},
		"syslog-ng, an address as the host":    {"<190>Mar  3 10:15:42 2001:db8::1 nginx: a line", "a line"},
		"Cisco's year":                         {"<190>Mar  3 10:15:42 2026 host nginx: a line", "a line"},
		"5424, escapes in structured data":     {`<13>1 - h a - - [x@1 a="]\"\\" b="c"][y] a line`, "a line"},
		"5424, a byte order mark":              {"<13>1 - h a - - - \xEF\xBB\xBFa line", "a line"},
		"5424, empty":                          {"<13>1 2026-03-03T10:15:42Z h a - - -", ""},
		"5424 that is none":                    {"<13>1 apple a day keeps it - away", "1 apple a day keeps it - away"},
		"no header":                            {record + "\r\n", record},
		"no header, JSON":                      {` {"a":1}` + "\x00", `{"a":1}`},
		"no tag: the host is left":             {"<13>Mar  3 10:15:42 host a line", "host a line"},
		"no tag, a record with a colon in it":  {`<13>Mar  3 10:15:42 {"status": 200}`, `{"status": 200}`},
		"no tag, a name and a value":           {`<13>Mar  3 10:15:42 status=200 note="a: b"`, `status=200 note="a: b"`},
		"a priority that is none":              {"<192>Mar  3 10:15:42 host nginx: a line", "<192>Mar  3 10:15:42 host nginx: a line"},
		"a priority of a number and no end":    {"<19", "<19"},
		"nothing":                              {"", ""},
		"only a header":                        {"<190>Mar  3 10:15:42 web-1 nginx: ", ""},
		"only a priority":                      {"<190>", ""},
		"a tag with brackets, as systemd's is": {"<30>Mar  3 10:15:42 host (sd-pam)[12]: a line", "a line"},
	} {
		if got := string(syslogText([]byte(c[0]))); got != c[1] {
			t.Errorf("%s: %q, want %q", name, got, c[1])
		}
	}
	if got := string(appendSyslog([]byte("x\n"), []byte("<13>Mar  3 10:15:42 op: one\ntwo\n"))); got != "x\none two\n" {
		t.Errorf("one message of two lines is %q", got)
	}
	if got := string(appendSyslog([]byte("x\n"), []byte("<13>\n"))); got != "x\n" {
		t.Errorf("an empty message is %q", got)
	}
}
