package ingest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/segmentio/kafka-go"
)

// What can be wrong between us and a Kafka cluster, to be told apart with
// errors.Is. Every one of them is tried again while a source runs.
var (
	ErrKafkaNoBroker  = errors.New("no broker answers")
	ErrKafkaNoTopic   = errors.New("no such topic")
	ErrKafkaLogin     = errors.New("the login was refused")
	ErrKafkaForbidden = errors.New("not authorised")
	// ErrKafkaNoTLS: we speak TLS and the broker's port does not.
	ErrKafkaNoTLS = errors.New("the port does not speak TLS")
	// ErrKafkaWantsTLS: the broker's port speaks TLS and we do not.
	ErrKafkaWantsTLS = errors.New("the port speaks TLS")
	// ErrKafkaCertificate: one side does not trust the other's certificate.
	ErrKafkaCertificate = errors.New("the certificate was refused")
	// ErrKafkaTruncated: the log ends before the offset that was read up to.
	ErrKafkaTruncated = errors.New("the log ends before what was read of it")
	// ErrKafkaUnreadable: what a broker sent is no log that we can read.
	ErrKafkaUnreadable = errors.New("the log cannot be read")
	// ErrKafkaStalled: the broker has records and gives none.
	ErrKafkaStalled = errors.New("records are waiting and none come")
)

// dialError says why no connection to address came about.
func dialError(address string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("broker %s: %w in time; check the address and the firewall", address, ErrKafkaNoBroker)
	}
	return fmt.Errorf("broker %s: %w: %w; check brokers, and what the cluster advertises (advertised.listeners)", address, ErrKafkaNoBroker, err)
}

// handshakeError says why TLS did not come about.
func handshakeError(address string, err error) error {
	var (
		record    tls.RecordHeaderError
		unknown   x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		alert     tls.AlertError
		certified *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &record), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("broker %s: %w; name the broker's TLS port, or leave tls out", address, ErrKafkaNoTLS)
	case errors.As(err, &hostname):
		return fmt.Errorf("broker %s: %w: %w; set tls.server_name to a name that it carries", address, ErrKafkaCertificate, err)
	case errors.As(err, &unknown):
		return fmt.Errorf("broker %s: %w: %w; set tls.ca_file to the authority that signed it", address, ErrKafkaCertificate, err)
	case errors.As(err, &certified), errors.As(err, &invalid):
		return fmt.Errorf("broker %s: %w: %w", address, ErrKafkaCertificate, err)
	case errors.As(err, &alert):
		return fmt.Errorf("broker %s: %w by the broker: %w; set tls.cert_file and tls.key_file to one that it trusts", address, ErrKafkaCertificate, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("broker %s: %w: it says nothing; name the broker's TLS port, or leave tls out", address, ErrKafkaNoTLS)
	}
	return fmt.Errorf("broker %s: TLS handshake: %w", address, err)
}

// named gives an error of a broker or of kafka-go its name, says what was being
// done and what can be done about it. Errors that have a name keep it.
func (l *kafkaLink) named(doing string, err error) error {
	var code kafka.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrKafkaNoBroker), errors.Is(err, ErrKafkaNoTLS), errors.Is(err, ErrKafkaWantsTLS),
		errors.Is(err, ErrKafkaCertificate), errors.Is(err, ErrKafkaUnreadable):
		return fmt.Errorf("%s: %w", doing, err)
	case errors.Is(err, errRefusedLogin):
		return fmt.Errorf("%s: %w for user %q with %s; check sasl", doing, ErrKafkaLogin, l.user, l.mechanism)
	case errors.As(err, &code):
		return l.coded(doing, code)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%s: the broker closed the connection%s", doing, l.missing())
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func (l *kafkaLink) coded(doing string, code kafka.Error) error {
	switch code {
	case kafka.SASLAuthenticationFailed, kafka.IllegalSASLState:
		return fmt.Errorf("%s: %w for user %q with %s; check sasl", doing, ErrKafkaLogin, l.user, l.mechanism)
	case kafka.UnsupportedSASLMechanism:
		return fmt.Errorf("%s: %w: the broker does not offer %s; check sasl.mechanism", doing, ErrKafkaLogin, l.mechanism)
	case kafka.TopicAuthorizationFailed:
		return fmt.Errorf("%s: %w: user %q needs Read and Describe on the topic", doing, ErrKafkaForbidden, l.user)
	case kafka.GroupAuthorizationFailed:
		return fmt.Errorf("%s: %w: user %q needs Read on group %s", doing, ErrKafkaForbidden, l.user, l.group)
	case kafka.ClusterAuthorizationFailed:
		return fmt.Errorf("%s: %w: user %q lacks rights on the cluster", doing, ErrKafkaForbidden, l.user)
	case kafka.UnknownTopicOrPartition:
		return fmt.Errorf("%s: %w; create it, or correct topics", doing, ErrKafkaNoTopic)
	case kafka.InconsistentGroupProtocol:
		return fmt.Errorf("%s: group %s has members that share partitions out by another rule; give each kind of reader a group of its own: %w", doing, l.group, code)
	}
	return fmt.Errorf("%s: %w", doing, code)
}

// missing is what a broker that hangs up may have expected.
func (l *kafkaLink) missing() string {
	var may []string
	if l.tls == nil {
		may = append(may, "TLS (tls)")
	}
	if l.mechanism == "" {
		may = append(may, "a login (sasl)")
	}
	if len(may) == 0 {
		return ""
	}
	return "; if it always does, it may want " + strings.Join(may, " or ")
}
