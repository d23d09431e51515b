package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
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
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
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
