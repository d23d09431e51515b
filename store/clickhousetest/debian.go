package clickhousetest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"
)

// Debian is Debian's ClickHouse server in a process of its own, empty. It is of 2018
// (18.16): it speaks the native protocol over TCP and TLS, to several connections at
// once, and knows little of the SQL that the store needs.
//
// Its packages have 16 MB. They lie in the folder .cache of the module, fetched by
// apt-get and unpacked, not installed.
type Debian struct {
	*Process
	// Addr and TLSAddr are where it speaks the native protocol, in the clear and
	// encrypted.
	Addr, TLSAddr string
	// CA is the authority of its certificate, which is for 127.0.0.1.
	CA *x509.CertPool
}

// The users of a Debian, and their passwords. The second may only read.
const (
	DebianUser     = "auditor"
	DebianPassword = "right"
	DebianReader   = "reader"
)

// StartDebian starts a server, which the test's end stops. Where its packages cannot be
// had the test is skipped, unless CI is set in the environment: then it fails.
func StartDebian(t testing.TB) *Debian {
	t.Helper()
	ports := freePorts(t, 2)
	return startDebian(t, ports[0], ports[1], "")
}

const debianConfig = `<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host>
  <tcp_port>{{.Port}}</tcp_port>
  <tcp_port_secure>{{.TLSPort}}</tcp_port_secure>
  <openSSL><server>
    <certificateFile>{{.Dir}}/server.crt</certificateFile>
    <privateKeyFile>{{.Dir}}/server.key</privateKeyFile>
    <verificationMode>none</verificationMode>
    <loadDefaultCAFile>false</loadDefaultCAFile>
  </server></openSSL>
  <path>{{.Dir}}/data/</path>
  <tmp_path>{{.Dir}}/tmp/</tmp_path>
  <user_files_path>{{.Dir}}/files/</user_files_path>
  <users_config>users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <mark_cache_size>10000000</mark_cache_size>
{{.More}}</yandex>
`

const debianUsers = `<yandex>
  <profiles><default></default><reading><readonly>2</readonly></reading></profiles>
  <users>
    <` + DebianUser + `><password>` + DebianPassword + `</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></` + DebianUser + `>
    <` + DebianReader + `><password></password><networks><ip>127.0.0.1</ip></networks><profile>reading</profile><quota>default</quota></` + DebianReader + `>
  </users>
  <quotas><default></default></quotas>
</yandex>
`

// startDebian starts a server at two ports, with more in its configuration.
func startDebian(t testing.TB, port, tlsPort int, more string) *Debian {
	t.Helper()
	root, err := cached("clickhouse-server", "root", fetchDebian)
	if err != nil {
		missing(t, "Debian ClickHouse server", err)
	}
	certificate, key, err := selfSigned()
	if err != nil {
		t.Fatal(err)
	}
	ca := x509.NewCertPool()
	ca.AppendCertsFromPEM(certificate)
	dir := t.TempDir()
	var config bytes.Buffer
	err = template.Must(template.New("").Parse(debianConfig)).Execute(&config, map[string]any{"Port": port, "TLSPort": tlsPort, "Dir": dir, "More": more})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"config.xml": config.Bytes(), "users.xml": []byte(debianUsers), "server.crt": certificate, "server.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var libraries []string
	for _, lib := range []string{"usr/lib", "lib"} {
		of, err := filepath.Glob(filepath.Join(root, lib, "*-linux-gnu"))
		if err != nil {
			t.Fatal(err)
		}
		libraries = append(libraries, of...)
	}
	cmd := exec.Command(filepath.Join(root, "usr", "sbin", "clickhouse-server"), "--config-file="+filepath.Join(dir, "config.xml"))
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
	addr, tlsAddr := loopback(port), loopback(tlsPort)
	return &Debian{start(t, "the ClickHouse server of Debian", cmd, dir, addr, tlsAddr), addr, tlsAddr, ca}
}

// selfSigned makes a certificate for 127.0.0.1 that is its own authority, and its key.
func selfSigned() (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clickhousetest"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes}), nil
}

// fetchDebian lets apt-get bring the packages of the server and all that it needs and
// this machine lacks.
func fetchDebian(ctx context.Context, temp string) error {
	plan, err := run(ctx, temp, "apt-get", "install", "--simulate", "--no-install-recommends", "clickhouse-server")
	if err != nil {
		return err
	}
	var packages []string
	for line := range strings.Lines(plan) {
		if rest, ok := strings.CutPrefix(line, "Inst "); ok {
			name, _, _ := strings.Cut(rest, " ")
			packages = append(packages, name)
		}
	}
	if len(packages) == 0 {
		return errors.New("apt-get would install nothing: remove the package clickhouse-server")
	}
	return unpackDebian(ctx, temp, packages)
}
