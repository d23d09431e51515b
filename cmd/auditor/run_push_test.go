package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A push source has the certificate and the tokens of the configuration.
func TestDaemonTakesPushesBehindADoor(t *testing.T) {
	issuer := httptest.NewTLSServer(http.NotFoundHandler())
	defer issuer.Close()
	dir := t.TempDir()
	key, err := x509.MarshalPKCS8PrivateKey(issuer.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	for name, text := range map[string]string{
		"push.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw})),
		"push.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
		"auditor.yaml": fmt.Sprintf(`sources: [{http: {listen: %q, tls: {cert_file: push.pem, key_file: push.key}, tokens: [one, other]}, format: json}]
api: {listen: "127.0.0.1:0"}
`, address),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := startDaemon(t, filepath.Join(dir, "auditor.yaml"))
	for token, status := range map[string]int{"one": 200, "other": 200, "third": 401} {
		line := fmt.Sprintf(`{"time":%q,"method":"GET","path":"/seats","status":200,"duration_ms":1}`, time.Now().UTC().Format(time.RFC3339Nano))
		q, err := http.NewRequest("POST", "https://"+address+"/ingest", strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+token)
		res, err := issuer.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("%s: %s", token, res.Status)
		}
	}
	until(t, "what was let in is counted", func() bool {
		return dig(r.get("/api/v1/sources"), "sources", 0, "counted") == 2.0
	})
	issuer.Client().CloseIdleConnections()
	r.stop()

	// A certificate that cannot be read is said before anything runs.
	if err := os.Remove(filepath.Join(dir, "push.key")); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	p := &program{stdout: &out, stderr: &errs, now: time.Now, getenv: os.LookupEnv}
	_, err = runCommand(t.Context(), p, []string{"--config", filepath.Join(dir, "auditor.yaml")})
	if err == nil || !strings.Contains(err.Error(), "sources[0]: http.tls") || !strings.Contains(err.Error(), "push.key") {
		t.Errorf("without a key: %v", err)
	}
}

// A spool that is full of open seconds, with nothing that would close them: what is sent
// is taken all the same, one after the other, and counted once. Meanwhile the daemon says
// so where operators look, and stays ready: it must not be cut off from what makes room.
func TestDaemonWithAFullSpoolMovesOn(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	config := writeIn(t, filepath.Join(t.TempDir(), "auditor.yaml"), fmt.Sprintf(`sources: [{http: {listen: %q, spool: spool, spool_max: 1MiB}, format: json}]
declared: {deadline: 500ms}
keys: {accept: [{field: my_id}], horizon: 2s}
time: {lateness: 2s, idle: 1s}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
`, address))
	r := startDaemon(t, config)
	stamp := time.Now().UTC().Format(time.RFC3339Nano)
	pushed := 0
	push := func() bool {
		line := fmt.Sprintf(`{"time":%q,"method":"GET","path":"/seats","status":200,"duration_ms":1,"my_id":"q%d","pad":%q}`, stamp, pushed, strings.Repeat("x", 50_000))
		res, err := http.Post("http://"+address+"/ingest", "", strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK && (res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "") {
			t.Fatal(res.Status)
		}
		if res.StatusCode == http.StatusOK {
			pushed++
		}
		return res.StatusCode == http.StatusOK
	}
	for push() {
	}
	full := pushed
	if full < 15 || full > 21 {
		t.Fatalf("%d pushes of 50 kB fill 1 MiB", full)
	}
	until(t, "it is said that the spool is full", func() bool {
		push()
		return dig(r.get("/api/v1/sources"), "sources", 0, "state") == "full"
	})
	source := dig(r.get("/api/v1/sources"), "sources", 0)
	if text := fmt.Sprint(dig(source, "error")); !strings.Contains(text, "Raise spool_max") || dig(source, "intake", "refused").(float64) < 1 || dig(source, "partitions", 0, "state") != "full" {
		t.Errorf("the source is %v", source)
	}
	if ready := r.get("/readyz"); ready["ready"] != true || !strings.Contains(fmt.Sprint(ready["reasons"]), address+" is full: ") { // get wants 200
		t.Errorf("/readyz says %v", ready)
	}
	metrics := r.get("/metrics")["text"].(string)
	for _, want := range []string{`auditor_source_up{source="` + address + `"} 1`, `auditor_intake_messages_total{outcome="refused",source="` + address + `"} `} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	until(t, "three more are taken that close no second", func() bool { push(); return pushed >= full+3 })
	// As soon as newer records come there is room, and all that was taken is counted.
	until(t, "the seconds close", func() bool {
		stamp = time.Now().UTC().Format(time.RFC3339Nano)
		push()
		return dig(r.get("/api/v1/sources"), "sources", 0, "partitions", 0, "committed_offset").(float64) > 0
	})
	until(t, "all that was taken is counted", func() bool {
		return dig(r.get("/api/v1/sources"), "sources", 0, "counted") == float64(pushed)
	})
	source = dig(r.get("/api/v1/sources"), "sources", 0)
	if dig(source, "intake", "kept") != float64(pushed) || dig(source, "late") != 0.0 || dig(source, "duplicates") != 0.0 {
		t.Errorf("after %d pushes the source is %v", pushed, source)
	}
	r.stop()
}
