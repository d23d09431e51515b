package ingest

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// kafkaLink is how we connect to a cluster, the same for the group, for requests
// and for reading. TLS is done here, under kafka-go, so that one place knows why
// it failed.
type kafkaLink struct {
	brokers []string
	group   string
	dialRaw func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config
	login   sasl.Mechanism // nil for none
	request time.Duration

	user, mechanism string // for messages; empty without a login

	client *kafka.Client
	pool   *kafka.Transport
}

func newKafkaLink(cfg *KafkaConfig) (*kafkaLink, error) {
	l := &kafkaLink{
		brokers: cfg.Brokers, group: cfg.Group, dialRaw: cfg.Dial, tls: cfg.TLS,
		request: cfg.tune.request,
	}
	if l.dialRaw == nil {
		l.dialRaw = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	if cfg.SASL != nil {
		login, err := newLogin(cfg.SASL)
		if err != nil {
			return nil, err
		}
		l.login, l.user, l.mechanism = login, cfg.SASL.Username, strings.ToUpper(cfg.SASL.Mechanism)
	}
	l.pool = &kafka.Transport{
		ClientID: kafkaClientID, Dial: l.dial, SASL: l.login, DialTimeout: cfg.tune.request,
		MetadataTTL: cfg.tune.metadataTTL, MetadataTopics: cfg.Topics,
	}
	l.client = &kafka.Client{Addr: kafka.TCP(cfg.Brokers...), Transport: l.pool, Timeout: cfg.tune.request}
	return l, nil
}

func newLogin(s *KafkaSASL) (sasl.Mechanism, error) {
	var inner sasl.Mechanism
	var err error
	switch strings.ToLower(s.Mechanism) {
	case "plain":
		inner = plain.Mechanism{Username: s.Username, Password: s.Password}
	case "scram-sha-256":
		inner, err = scram.Mechanism(scram.SHA256, s.Username, s.Password)
	case "scram-sha-512":
		inner, err = scram.Mechanism(scram.SHA512, s.Username, s.Password)
	default:
		return nil, fmt.Errorf("kafka: sasl.mechanism %q is none of plain, scram-sha-256, scram-sha-512", s.Mechanism)
	}
	if err != nil { // of preparing the text, which holds the password
		return nil, errors.New("kafka: the user name or the password has characters that SCRAM does not allow")
	}
	return login{inner}, nil
}

// errRefusedLogin marks that the exchange itself went wrong: SCRAM's own words
// for it vary, and they end in no error code.
var errRefusedLogin = errors.New("login refused")

type login struct{ sasl.Mechanism }

func (l login) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	machine, first, err := l.Mechanism.Start(ctx)
	if err != nil {
		return nil, nil, errRefusedLogin
	}
	return loginSession{machine}, first, nil
}

type loginSession struct{ sasl.StateMachine }

func (s loginSession) Next(ctx context.Context, challenge []byte) (bool, []byte, error) {
	done, answer, err := s.StateMachine.Next(ctx, challenge)
	if err != nil {
		return false, nil, errRefusedLogin
	}
	return done, answer, nil
}

// dial connects to a broker, with TLS if that is configured. It takes half the
// time of a request, so that who waits for one learns why there is no connection.
func (l *kafkaLink) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, l.request/2)
	defer cancel()
	raw, err := l.dialRaw(ctx, network, address)
	if err != nil {
		return nil, dialError(address, err)
	}
	if l.tls == nil {
		return newBrokerConn(raw, address, true), nil
	}
	cfg := l.tls
	if cfg.ServerName == "" {
		cfg = cfg.Clone()
		cfg.ServerName, _, _ = net.SplitHostPort(address)
	}
	secure := tls.Client(raw, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, handshakeError(address, err)
	}
	return newBrokerConn(secure, address, false), nil
}

// dialer is for kafka-go's own connections. With a set, they can be closed.
func (l *kafkaLink) dialer(in *connSet) *kafka.Dialer {
	dial := l.dial
	if in != nil {
		dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := l.dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return in.add(conn), nil
		}
	}
	return &kafka.Dialer{ClientID: kafkaClientID, DialFunc: dial, SASLMechanism: l.login, Timeout: l.request}
}

// longestSilence bounds every wait that kafka-go itself sets no limit to, such as
// the one for the answer to a login. Its longest own one is that for a rebalance.
const longestSilence = 2 * time.Minute

// brokerConn is a connection on which nobody waits for ever, and which knows what
// it means when a broker hangs up: by what was asked last, and whether it ever
// said a word.
type brokerConn struct {
	net.Conn
	address string
	plain   bool
	asked   atomic.Int32 // the API key of the last request
	heard   bool         // at least one byte; used by the one reader
}

// Requests that a broker answers before a login, and those that are the login.
const (
	saslHandshakeKey    = 17
	apiVersionsKey      = 18
	saslAuthenticateKey = 36
)

func newBrokerConn(conn net.Conn, address string, plain bool) *brokerConn {
	c := &brokerConn{Conn: conn, address: address, plain: plain}
	c.SetDeadline(time.Time{})
	return c
}

// Write takes note of the request: its size and its API key come first.
func (c *brokerConn) Write(b []byte) (int, error) {
	if len(b) >= 6 && int(binary.BigEndian.Uint32(b)) >= len(b)-4 {
		c.asked.Store(int32(binary.BigEndian.Uint16(b[4:])))
	}
	return c.Conn.Write(b)
}

func (c *brokerConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 && err != nil {
		return n, c.hungUp(err)
	}
	// Answers begin with their size: this would be one of 352 MB.
	if !c.heard && c.plain && n >= 2 && b[0] == 0x15 && b[1] == 0x03 {
		return 0, c.wantsTLS()
	}
	c.heard = true
	return n, err
}

func (c *brokerConn) wantsTLS() error {
	return fmt.Errorf("broker %s: %w; set tls, or name the broker's plain port", c.address, ErrKafkaWantsTLS)
}

// hungUp says why a broker closed the connection, where that is clear.
func (c *brokerConn) hungUp(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	switch asked := c.asked.Load(); {
	case asked == saslHandshakeKey, asked == saslAuthenticateKey:
		return errRefusedLogin
	case asked == apiVersionsKey && c.plain && !c.heard: // every broker answers this one, to everybody
		return c.wantsTLS()
	}
	return err
}

func bounded(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now().Add(longestSilence)
	}
	return t
}

func (c *brokerConn) SetDeadline(t time.Time) error      { return c.Conn.SetDeadline(bounded(t)) }
func (c *brokerConn) SetReadDeadline(t time.Time) error  { return c.Conn.SetReadDeadline(bounded(t)) }
func (c *brokerConn) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(bounded(t)) }

// connSet holds the open connections of a group, so that leaving it need not wait
// for a rebalance to end.
type connSet struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

type heldConn struct {
	net.Conn
	set *connSet
}

func (s *connSet) add(conn net.Conn) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[net.Conn]struct{}{}
	}
	held := &heldConn{conn, s}
	s.open[held] = struct{}{}
	return held
}

func (c *heldConn) Close() error {
	c.set.mu.Lock()
	delete(c.set.open, c)
	c.set.mu.Unlock()
	return c.Conn.Close()
}

// hangUp closes what is open now.
func (s *connSet) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.(*heldConn).Conn.Close()
	}
}

// connect opens a connection of our own to a broker, logged in. All of it is
// done when ctx ends. The connection under kafka-go's is used afterwards: see
// fetchConn.
func (l *kafkaLink) connect(ctx context.Context, address string) (net.Conn, int, error) {
	ctx, cancel := context.WithTimeout(ctx, l.request)
	defer cancel()
	var under net.Conn
	stop := func() bool { return true }
	d := l.dialer(nil)
	d.DialFunc = func(inner context.Context, network, address string) (net.Conn, error) {
		conn, err := l.dial(inner, network, address)
		if err != nil {
			return nil, err
		}
		under = conn
		stop = context.AfterFunc(ctx, func() { conn.Close() }) // kafka-go logs in without looking at its context
		return conn, nil
	}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		stop()
		return nil, 0, err
	}
	versions, err := conn.ApiVersions()
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		stop()
		conn.Close()
		return nil, 0, err
	}
	for _, v := range versions {
		if v.ApiKey == fetchKey {
			return under, int(v.MaxVersion), nil
		}
	}
	conn.Close()
	return nil, 0, fmt.Errorf("broker %s: %w: it offers no Fetch", address, ErrKafkaUnreadable)
}
