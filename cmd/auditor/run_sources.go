package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"strings"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/dashboards"
	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
	"github.com/targetside/auditor/pipeline"
)

// sourceName is what the API and metrics call a source.
func sourceName(s *config.Source) string {
	switch {
	case s.Kafka != nil:
		return s.Kafka.Topics[0]
	case s.File != nil:
		return s.File.Paths[0]
	}
	network, listen, _ := s.Listener()
	if network == "udp" {
		return "udp " + listen
	}
	return listen
}

// openSource prepares a source; it does not read yet.
func openSource(i int, s *config.Source, positions ingest.Positions, log *slog.Logger) (r reads, dead *ingest.DeadLetter, err error) {
	switch {
	case s.Kafka != nil:
		var k *ingest.Kafka
		if k, err = openKafka(i, s, log); err == nil && s.DeadLetter != nil {
			dead = k.DeadLetter(s.DeadLetter.Topic)
		}
		r = k
	case s.File != nil:
		if !s.File.Follow {
			return nil, nil, fmt.Errorf("sources[%d].file.follow is false: auditor replay reads files that are complete, auditor run follows them", i)
		}
		r, err = ingest.NewFollow(ingest.FollowConfig{Source: i, Paths: s.File.Paths, Positions: positions, Declares: accesslog.Declares(s.Format), Logger: log})
	default:
		r, err = openListening(i, s, log)
		return r, nil, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("sources[%d]: %w", i, err)
	}
	return r, dead, nil
}

func openKafka(i int, s *config.Source, log *slog.Logger) (*ingest.Kafka, error) {
	c, err := kafkaConfig(i, s.Kafka, log)
	if err != nil {
		return nil, err
	}
	c.Binary = s.Format == "otlp-proto"
	return ingest.NewKafka(c)
}

func kafkaConfig(i int, k *config.Kafka, log *slog.Logger) (c ingest.KafkaConfig, err error) {
	c = ingest.KafkaConfig{Source: i, Brokers: k.Brokers, Topics: k.Topics, Group: k.Group, SessionTimeout: k.SessionTimeout, Log: log}
	c.Keyed = k.Divided()
	if c.StartAt = k.StartAt(); k.Start == "last" {
		c.Start = ingest.KafkaLast
	}
	if k.TLS != nil {
		if c.TLS, err = clientTLS(k.TLS); err != nil {
			return c, err
		}
	}
	if k.SASL != nil {
		password := string(k.SASL.Password.Bytes())
		if k.SASL.PasswordFile != "" {
			b, err := os.ReadFile(k.SASL.PasswordFile)
			if err != nil {
				return c, fmt.Errorf("kafka.sasl.password_file: %w", err)
			}
			password = strings.TrimRight(string(b), "\r\n")
		}
		c.SASL = &ingest.KafkaSASL{Mechanism: k.SASL.Mechanism, Username: k.SASL.Username, Password: password}
	}
	return c, nil
}

// openListening listens for what is sent to a source, and opens its spool. What it
// cannot listen at is said before anything runs.
func openListening(i int, s *config.Source, log *slog.Logger) (r reads, err error) {
	network, listen, _ := s.Listener()
	var l net.Listener
	var packets *net.UDPConn
	if network == "udp" {
		var at *net.UDPAddr
		if at, err = net.ResolveUDPAddr(network, listen); err == nil {
			packets, err = net.ListenUDP(network, at)
		}
	} else {
		l, err = net.Listen(network, listen)
	}
	if err != nil {
		return nil, fmt.Errorf("sources[%d].%s.listen: %w", i, s.Kind(), err)
	}
	switch {
	case s.HTTP != nil:
		r, err = openPush(i, s, l, log)
	case s.Syslog != nil:
		r, err = openSyslog(i, s.Syslog, l, packets, log)
	default:
		r, err = openALS(i, s.ALS, l, log)
	}
	if err == nil {
		return r, nil
	}
	if l != nil {
		l.Close()
	}
	if packets != nil {
		packets.Close()
	}
	return nil, fmt.Errorf("sources[%d]: %w", i, err)
}

func openPush(i int, s *config.Source, l net.Listener, log *slog.Logger) (_ reads, err error) {
	h := s.HTTP
	c := ingest.PushConfig{
		Source: i, Listen: h.Listen, Listener: l, Logger: log, OTLP: strings.HasPrefix(s.Format, "otlp-"),
		Spool: ingest.SpoolConfig{Dir: h.Spool, Max: int64(h.SpoolMax), Logger: log}, Tokens: tokensOf(h.Tokens),
	}
	if c.TLS, err = listenerTLS("http", h.TLS); err != nil {
		return nil, err
	}
	return ingest.NewPush(c)
}

func openSyslog(i int, s *config.Syslog, l net.Listener, packets *net.UDPConn, log *slog.Logger) (_ reads, err error) {
	c := ingest.SyslogConfig{
		Source: i, Protocol: s.Protocol, Listen: s.Listen, Listener: l, Packets: packets, Logger: log,
		Spool: ingest.SpoolConfig{Dir: s.Spool, Max: int64(s.SpoolMax), Logger: log},
	}
	if c.TLS, err = listenerTLS("syslog", s.TLS); err != nil {
		return nil, err
	}
	return ingest.NewSyslog(c)
}

func openALS(i int, a *config.ALS, l net.Listener, log *slog.Logger) (_ reads, err error) {
	c := ingest.ALSConfig{
		Source: i, Listen: a.Listen, Listener: l, Logger: log,
		Spool: ingest.SpoolConfig{Dir: a.Spool, Max: int64(a.SpoolMax), Logger: log}, Tokens: tokensOf(a.Tokens),
	}
	if c.TLS, err = listenerTLS("als", a.TLS); err != nil {
		return nil, err
	}
	return ingest.NewALS(c)
}

func tokensOf(secrets []config.Secret) (out [][]byte) {
	for _, t := range secrets {
		out = append(out, t.Bytes())
	}
	return out
}

// listenerTLS is the TLS of a listener, nil where it has none.
func listenerTLS(kind string, t *config.ServerTLS) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	c, err := serverTLS(t)
	if err != nil {
		return nil, fmt.Errorf("%s.%w", kind, err)
	}
	return c, nil
}

func serverTLS(t *config.ServerTLS) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if t.ClientCAFile != "" {
		pem, err := os.ReadFile(t.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("tls.client_ca_file: %w", err)
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.client_ca_file %s holds no certificate", t.ClientCAFile)
		}
	}
	return c, nil
}

func clientTLS(t *config.ClientTLS) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls.ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca_file %s holds no certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls.cert_file: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func (l *loaded) apiOptions(log *slog.Logger) api.Options {
	o := api.Options{Log: log, Insecure: l.API.Insecure, Retention: map[time.Duration]time.Duration{}}
	o.Page, _ = dashboards.Page()
	for name, r := range resolutions {
		o.Retention[time.Duration(r)*time.Second] = l.Store.Retention[name]
	}
	o.Tokens = tokensOf(l.API.Tokens)
	if t := l.API.TLS; t != nil {
		o.TLS = &api.TLS{CertFile: t.CertFile, KeyFile: t.KeyFile, ClientCAFile: t.ClientCAFile}
	}
	return o
}

// show is the source as the API shows it; number is its place in the picture.
func (s *source) show(p *pipeline.Picture, number int) api.Source {
	c := &p.Sources[number]
	out := api.Source{
		Name: s.name, Kind: s.kind, State: "reading",
		Ignored: sumOf(c.Ignored) + c.Empty, Quarantined: c.Quarantined, GapRecords: c.Gap, GapInBytes: s.inBytes(),
	}
	stats := &p.Stats[number]
	out.Duplicates, out.Undecidable, out.Late, out.Together = stats.Duplicates, stats.Undecidable, stats.Late, p.Together[number]
	out.Counted = c.Lines - min(c.Lines, sumOf(c.Ignored)+sumOf(c.Quarantined))
	counted := map[string]*pipeline.LivePartition{}
	for i := range p.Partitions {
		if x := &p.Partitions[i]; x.Source == number {
			counted[x.Name] = x
		}
	}
	if s.standby() {
		out.State = "standby"
	}
	r, restarts, failed := s.now()
	out.Restarts = restarts
	if taking, ok := r.(interface{ Intake() ingest.Intake }); ok {
		n := taking.Intake()
		out.Intake = &api.Intake{
			Kept: uint64(n.Kept), Refused: uint64(n.Refused), Dropped: uint64(n.Dropped), Truncated: uint64(n.Truncated), Waits: uint64(n.Waits), Connections: n.Connections,
		}
	}
	idle := true
	for _, st := range r.Partitions() {
		part := api.Partition{Name: st.Partition.Name, State: "reading", Next: st.Next, Committed: st.Committed, Lag: st.Lag()}
		if x := counted[st.Partition.Name]; x != nil {
			if x.Watermark != math.MinInt64 {
				part.Watermark = time.Unix(0, x.Watermark).UTC()
				part.LagSeconds = aggregate.Number(max(0, p.At.Sub(part.Watermark).Seconds()))
			}
			if x.Idle {
				part.State = "idle"
			} else {
				idle = false
			}
		}
		if st.Err != nil && !errors.Is(st.Err, ingest.ErrAnew) {
			part.State, out.State = "failed", "failed"
			out.Error = cmp.Or(out.Error, st.Partition.Name+": "+st.Err.Error())
		} else if st.Full != nil {
			part.State, out.State, out.Error = "full", "full", st.Full.Error()
		}
		out.Partitions = append(out.Partitions, part)
	}
	if k, ok := r.(*ingest.Kafka); ok {
		failed = cmp.Or(failed, k.Err())
	}
	if failed != nil {
		out.State, out.Error = "failed", failed.Error()
		for i := range out.Partitions {
			out.Partitions[i].State = "failed"
		}
	}
	if out.State == "reading" && idle && len(out.Partitions) > 0 {
		out.State = "idle"
	}
	return out
}
