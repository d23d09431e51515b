package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/lab"
)

// A scenario that was played two minutes ago is streamed to the daemon as Envoy streams its
// access log, and what the API then says of each target is the truth, count for count.
func TestLabByAccessLogService(t *testing.T) {
	f, err := lab.Parse("lies.yaml", []byte(strings.Replace(lyingScenario, "lasts: 30s\ndrain: 20s", "lasts: 5s\ndrain: 5s", 1)))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := f.Arm("")
	begun := time.Now().Add(-2 * time.Minute).Truncate(time.Second)
	a.Start(begun)
	var log bytes.Buffer
	truth, err := lab.Run(t.Context(), &a, lab.Output{Format: "envoy-als", Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	// What comes later makes all of that final.
	later, err := lab.Parse("later.yaml", []byte(`{name: later, lasts: 1s, drain: 1s, clients: {c: {route: r, rate: 2}}, layers: {l: {}}, targets: {later: {}}, routes: {r: {path: /r/, through: [l], target: later}}}`))
	if err != nil {
		t.Fatal(err)
	}
	last, _ := later.Arm("")
	last.Start(time.Now().Add(-2 * time.Second))
	if _, err := lab.Run(t.Context(), &last, lab.Output{Format: "envoy-als", Log: &log}); err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	writeIn(t, filepath.Join(dir, "originators.yaml"), string(a.Originators()))
	config := strings.Replace(string(a.Config("envoy-als", "access.log")), `file: {paths: ["access.log"], follow: false}`, fmt.Sprintf(`als: {listen: %q}`, address), 1)
	r := startDaemon(t, writeIn(t, filepath.Join(dir, "auditor.yaml"), config+"api: {listen: \"127.0.0.1:0\"}\n"))
	streamed(t, address, &log)

	total := func(target string, measures []string) map[string]any {
		all := map[string]any{}
		for some := range slices.Chunk(measures, 16) { // a parameter has a longest length
			answer, _ := r.get("/api/v1/series?" + url.Values{"dependency": {target}, "measure": {strings.Join(some, ",")}, "step": {"1s"},
				"from": {begun.UTC().Format(time.RFC3339)}, "to": {begun.Add(a.Lasts + a.Drain + time.Second).UTC().Format(time.RFC3339)}}.Encode())["total"].(map[string]any)
			maps.Copy(all, answer)
		}
		return all
	}
	for _, target := range truth.Targets {
		want := map[string]float64{}
		object, err := asObject(target.Counts)
		if err != nil {
			t.Fatal(err)
		}
		countsIn("", object, want)
		measures := slices.Sorted(maps.Keys(want))
		until(t, fmt.Sprintf("%d arrivals at %s are counted", target.Arrivals, target.Name), func() bool {
			got := total(target.Name, measures)
			return got["arrivals"] == float64(target.Arrivals) && got["originals"] != nil && got["questions"] != nil
		})
		got := total(target.Name, measures)
		for _, name := range measures {
			if n, _ := got[name].(float64); n != want[name] {
				t.Errorf("%s: %s is %v, want %v", target.Name, name, got[name], want[name])
			}
		}
	}
	source := dig(r.get("/api/v1/sources"), "sources", 0)
	if m, _ := dig(source, "quarantined").(map[string]any); len(m) > 0 || dig(source, "ignored") != 0.0 || dig(source, "duplicates") != 0.0 {
		t.Errorf("not all was counted: %v", source)
	}
}

// countsIn are the whole counts of an object, by their names with dots, but for what is
// known of a question only when it is over.
func countsIn(path string, object map[string]any, into map[string]float64) {
	for name, v := range object {
		switch v := v.(type) {
		case json.Number:
			if n, err := v.Int64(); err == nil {
				into[path+name] = float64(n)
			}
		case map[string]any:
			if name != "per_question" && name != "hops" {
				countsIn(path+name+".", v, into)
			}
		}
	}
}

// streamed sends a log of envoy-als in one stream of the service, a message a line, and
// waits until the daemon has read all of it.
func streamed(t *testing.T, address string, log *bytes.Buffer) {
	t.Helper()
	var body bytes.Buffer
	for line := range bytes.Lines(log.Bytes()) {
		message, err := base64.StdEncoding.DecodeString(string(bytes.TrimSuffix(line, []byte("\n"))))
		if err != nil {
			t.Fatal(err)
		}
		n := len(message)
		body.Write([]byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) // not compressed
		body.Write(message)
	}
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	sent := body.Bytes()
	var resp *http.Response
	until(t, "the stream is taken", func() bool {
		req, err := http.NewRequest("POST", "http://"+address+"/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs", bytes.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/grpc")
		req.Header.Set("Te", "trailers")
		resp, err = transport.RoundTrip(req)
		return err == nil
	})
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if code := resp.Trailer.Get("Grpc-Status"); code != "0" {
		t.Fatalf("the stream ended with status %q", code)
	}
}
