package ingest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// certificate is one for names, which signs itself.
func certificate(t testing.TB, names ...string) (server *tls.Config, trust *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trust = x509.NewCertPool()
	trust.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, trust
}

// lockedBuffer takes a log from several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

const secret = "correct horse battery staple"

// refuses holds a source to naming what is wrong, at the start and while it runs.
func refuses(t *testing.T, cfg KafkaConfig, is error, says ...string) {
	t.Helper()
	var log lockedBuffer
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	cfg.tune.request = 500 * time.Millisecond
	k := start(t, cfg, newKafkaRecorder(t))
	check := k.Check(t.Context())
	var running error
	defer func() {
		if t.Failed() {
			t.Logf("at the start: %v\nrunning: %v", check, running)
		}
	}()
	eventually(t, "the running source says it, too", func() bool {
		running = k.Err()
		for _, s := range k.Partitions() {
			running = errors.Join(running, s.Err)
		}
		return errors.Is(running, is)
	})
	k.stop()
	for _, err := range []error{check, running} {
		if !errors.Is(err, is) {
			t.Errorf("error is %v, want %v", err, is)
			continue
		}
		for _, s := range says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("error %q does not say %q", err, s)
			}
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("error %q holds the password", err)
		}
	}
	if !strings.Contains(log.String(), is.Error()) || strings.Contains(log.String(), secret) {
		t.Errorf("log is %s", log.String())
	}
}

func TestKafkaSaysWhatIsWrong(t *testing.T) {
	t.Run("no broker", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		l.Close()
		cfg := quick(cluster(t, 1, []string{"a"}), "a")
		cfg.Brokers = []string{address}
		refuses(t, cfg, ErrKafkaNoBroker, address, "refused")
	})
	t.Run("no topic", func(t *testing.T) {
		refuses(t, quick(cluster(t, 1, []string{"a"}), "missing", "a"), ErrKafkaNoTopic, "missing", "create it")
	})
	t.Run("TLS to a plain port", func(t *testing.T) {
		c := cluster(t, 1, []string{"a"})
		cfg := quick(c, "a")
		cfg.TLS = &tls.Config{}
		refuses(t, cfg, ErrKafkaNoTLS, cfg.Brokers[0], "TLS port")
	})
	server, trust := certificate(t, "127.0.0.1")
	t.Run("plain text to a TLS port", func(t *testing.T) {
		cfg := quick(cluster(t, 1, []string{"a"}, kfake.TLS(server)), "a")
		refuses(t, cfg, ErrKafkaWantsTLS, cfg.Brokers[0], "set tls")
	})
	t.Run("a certificate of nobody we know", func(t *testing.T) {
		cfg := quick(cluster(t, 1, []string{"a"}, kfake.TLS(server)), "a")
		cfg.tune.request = 20 * time.Second // a handshake takes long on a busy machine
		cfg.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
		refuses(t, cfg, ErrKafkaCertificate, "tls.ca_file")
	})
	t.Run("a certificate for another name", func(t *testing.T) {
		other, trust := certificate(t, "kafka.example")
		cfg := quick(cluster(t, 1, []string{"a"}, kfake.TLS(other)), "a")
		cfg.tune.request = 20 * time.Second
		cfg.TLS = &tls.Config{RootCAs: trust}
		refuses(t, cfg, ErrKafkaCertificate, "tls.server_name")
		cfg.TLS = &tls.Config{RootCAs: trust, ServerName: "kafka.example"}
		k, err := NewKafka(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		c := cluster(t, 1, []string{"a"}, kfake.EnableSASL(), kfake.TLS(server), kfake.Superuser(mechanism, "reader", secret))
		login := func(as KafkaSASL) KafkaConfig {
			cfg := quick(c, "a")
			cfg.TLS = &tls.Config{RootCAs: trust}
			cfg.SASL = &as
			return cfg
		}
		t.Run(mechanism, func(t *testing.T) {
			r := newKafkaRecorder(t)
			cfg := login(KafkaSASL{strings.ToLower(mechanism), "reader", secret})
			k := start(t, cfg, r)
			eventually(t, "it reads", func() bool { return k.state("kafka a/0").Next == 0 && k.Err() == nil })
			if err := k.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
		t.Run(mechanism+" with a wrong password", func(t *testing.T) {
			refuses(t, login(KafkaSASL{mechanism, "reader", secret + "r"}), ErrKafkaLogin, `"reader"`, mechanism, "check sasl")
		})
		t.Run(mechanism+" without such a user", func(t *testing.T) {
			refuses(t, login(KafkaSASL{mechanism, "nobody", secret}), ErrKafkaLogin, `"nobody"`)
		})
	}
	t.Run("a mechanism that is not offered", func(t *testing.T) {
		cfg := quick(cluster(t, 1, []string{"a"}, kfake.EnableSASL(), kfake.Superuser("PLAIN", "reader", secret)), "a")
		cfg.SASL = &KafkaSASL{"scram-sha-512", "reader", secret}
		refuses(t, cfg, ErrKafkaLogin, "SCRAM-SHA-512")
	})
}

func TestKafkaWithoutRights(t *testing.T) {
	allow := func(resource kmsg.ACLResourceType, name string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	readTopic := allow(kmsg.ACLResourceTypeTopic, "a", kmsg.ACLOperationRead)
	describeTopic := allow(kmsg.ACLResourceTypeTopic, "a", kmsg.ACLOperationDescribe)
	readGroup := allow(kmsg.ACLResourceTypeGroup, "auditor", kmsg.ACLOperationRead)
	for name, test := range map[string]struct {
		acls []kfake.ACL
		says string
	}{
		"to read the topic":     {[]kfake.ACL{describeTopic, readGroup}, "Read and Describe on the topic"},
		"to describe the topic": {[]kfake.ACL{readGroup}, "Read and Describe on the topic"},
		"to read the group":     {[]kfake.ACL{readTopic}, "Read on group auditor"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, 1, []string{"a"}, kfake.EnableSASL(), kfake.EnableACLs(),
				kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "reader", secret, test.acls...))
			cl := producer(t, c, kgo.SASL(plain.Auth{User: "admin", Pass: "admin"}.AsMechanism()))
			produce(t, cl, "a", 0, "one")
			cfg := quick(c, "a")
			cfg.SASL = &KafkaSASL{"plain", "reader", secret}
			refuses(t, cfg, ErrKafkaForbidden, `"reader"`, test.says)
		})
	}
}

// A broker that wants a login hangs up on who brings none.
func TestKafkaLoginIsMissing(t *testing.T) {
	c := cluster(t, 1, []string{"a"}, kfake.EnableSASL(), kfake.Superuser("PLAIN", "reader", secret))
	cfg := quick(c, "a")
	k := start(t, cfg, newKafkaRecorder(t))
	if err := k.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "a login (sasl)") {
		t.Errorf("error is %v", err)
	}
	eventually(t, "the running source says it, too", func() bool {
		return k.Err() != nil && strings.Contains(k.Err().Error(), "a login (sasl)")
	})
}

// A listener that accepts and says nothing is not waited for longer than it takes.
func TestKafkaBrokerThatIsSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := quick(cluster(t, 1, []string{"a"}), "a")
	cfg.Brokers = []string{l.Addr().String()}
	cfg.tune.request = 100 * time.Millisecond
	k, err := NewKafka(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), inTime)
	defer cancel()
	if err := k.Check(ctx); !errors.Is(err, ErrKafkaNoBroker) {
		t.Errorf("error is %v", err)
	}
}
