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
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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
	// Addr and TLSAddr are where it speaks the native protocol, in the clear and
	// encrypted.
	Addr, TLSAddr string
	// CA is the authority of its certificate, which is for 127.0.0.1.
	CA *x509.CertPool

	process *exec.Cmd
	ended   chan struct{}
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
	root, err := cached("clickhouse-server", "root", fetchDebian)
	if err != nil {
		missing(t, "Debian ClickHouse server", err)
	}
	d, err := startDebian(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Kill)
	return d
}

// Kill ends the server as a crash would.
func (d *Debian) Kill() {
	_ = d.process.Process.Kill()
	<-d.ended
}

// Hang lets the server do nothing until it may go on.
func (d *Debian) Hang() (goOn func(), err error) {
	if err := d.process.Process.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return func() { _ = d.process.Process.Signal(syscall.SIGCONT) }, nil
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
</yandex>
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

// debianStart bounds how long the server takes to answer.
const debianStart = time.Minute

// startDebian runs the server that is unpacked in a folder on another folder.
func startDebian(root, dir string) (*Debian, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	d := &Debian{
		Addr: fmt.Sprintf("127.0.0.1:%d", ports[0]), TLSAddr: fmt.Sprintf("127.0.0.1:%d", ports[1]),
		CA: x509.NewCertPool(), ended: make(chan struct{}),
	}
	certificate, key, err := selfSigned()
	if err != nil {
		return nil, err
	}
	d.CA.AppendCertsFromPEM(certificate)
	var config bytes.Buffer
	err = template.Must(template.New("").Parse(debianConfig)).Execute(&config, map[string]any{"Port": ports[0], "TLSPort": ports[1], "Dir": dir})
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"config.xml": config.Bytes(), "users.xml": []byte(debianUsers), "server.crt": certificate, "server.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, err
	}
	defer output.Close()
	libraries, err := filepath.Glob(filepath.Join(root, "usr", "lib", "*-linux-gnu"))
	if err != nil {
		return nil, err
	}
	more, err := filepath.Glob(filepath.Join(root, "lib", "*-linux-gnu"))
	if err != nil {
		return nil, err
	}
	d.process = exec.Command(filepath.Join(root, "usr", "sbin", "clickhouse-server"), "--config-file="+filepath.Join(dir, "config.xml"))
	d.process.Dir, d.process.Stdout, d.process.Stderr = dir, output, output
	d.process.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(append(libraries, more...), ":"))
	if err := d.process.Start(); err != nil {
		return nil, err
	}
	go func() { _ = d.process.Wait(); close(d.ended) }()
	if err := d.await(); err != nil {
		d.Kill()
		said, _ := os.ReadFile(output.Name())
		return nil, fmt.Errorf("the ClickHouse server of Debian does not start: %w\n%s", err, said)
	}
	return d, nil
}

// await returns when the server takes connections at both addresses.
func (d *Debian) await() error {
	end := time.Now().Add(debianStart)
	for _, addr := range []string{d.Addr, d.TLSAddr} {
		for {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				_ = conn.Close()
				break
			}
			if time.Now().After(end) {
				return err
			}
			select {
			case <-d.ended:
				return errors.New("it has ended")
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// freePorts are ports of the loopback address that nobody listens at.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
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
// this machine lacks, and unpacks them into the folder root.
func fetchDebian(ctx context.Context, temp string) error {
	run := func(name string, args ...string) (string, error) {
		c := exec.CommandContext(ctx, name, args...)
		c.Dir, c.Env = temp, append(os.Environ(), "LC_ALL=C")
		var out, said bytes.Buffer
		c.Stdout, c.Stderr = &out, &said
		if err := c.Run(); err != nil {
			return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said.Bytes())
		}
		return out.String(), nil
	}
	plan, err := run("apt-get", "install", "--simulate", "--no-install-recommends", "clickhouse-server")
	if err != nil {
		return err
	}
	packages := []string{"download"}
	for line := range strings.Lines(plan) {
		if rest, ok := strings.CutPrefix(line, "Inst "); ok {
			name, _, _ := strings.Cut(rest, " ")
			packages = append(packages, name)
		}
	}
	if len(packages) == 1 {
		return errors.New("apt-get would install nothing: remove the package clickhouse-server")
	}
	if _, err := run("apt-get", packages...); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(temp, "*.deb"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if _, err := run("dpkg-deb", "--extract", archive, filepath.Join(temp, "root")); err != nil {
			return err
		}
	}
	return nil
}
