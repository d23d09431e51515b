package config

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
)

func (c *Config) checkSources(k *checks) {
	topics, paths := map[string]string{}, map[string]string{}
	listens, spools := map[string]string{c.API.Listen: "api.listen"}, map[string]string{}
	taken := func(seen map[string]string, value, at, why string) {
		if first, dup := seen[value]; dup && value != "" {
			k.faults = append(k.faults, fault{path: at, also: []string{first}, text: "is " + first + " already: " + why})
		} else {
			seen[value] = at
		}
	}
	for i := range c.Sources {
		s, at := &c.Sources[i], index("sources", i)
		kinds := 0
		if s.Kafka != nil {
			kinds++
			k.kafka(at+".kafka", s.Kafka)
			for j, topic := range s.Kafka.Topics {
				if topic != "" { // topics of two clusters may share a name
					taken(topics, cluster(s.Kafka.Brokers)+topic, index(at+".kafka.topics", j), "its records would be counted twice")
				}
			}
		}
		if s.File != nil {
			kinds++
			if len(s.File.Paths) == 0 {
				k.missing(at+".file", "paths", "want at least one path or glob")
			}
			for j, path := range s.File.Paths {
				where := index(at+".file.paths", j)
				if _, err := filepath.Match(path, ""); err != nil {
					k.add(where, "found %q: the glob's [ has no ]", clip(path))
				} else if path == "" {
					k.add(where, "found an empty text: want a path or glob")
				}
				taken(paths, path, where, "its records would be counted twice")
			}
		}
		if s.HTTP != nil {
			kinds++
			k.listener(at+".http", s.HTTP.Listen, "127.0.0.1:9465", s.HTTP.Insecure, s.HTTP.TLS, s.HTTP.Tokens)
			k.spool(at+".http", s.HTTP.Spool, s.HTTP.SpoolMax)
		}
		if s.Syslog != nil {
			kinds++
			k.syslog(at+".syslog", s.Syslog)
			k.spool(at+".syslog", s.Syslog.Spool, s.Syslog.SpoolMax)
		}
		if s.ALS != nil {
			kinds++
			k.listener(at+".als", s.ALS.Listen, "127.0.0.1:9466", s.ALS.Insecure, s.ALS.TLS, s.ALS.Tokens)
			k.spool(at+".als", s.ALS.Spool, s.ALS.SpoolMax)
			if s.Format != "envoy-als" {
				k.add(at+".format", "found %q: an als source has records of the format envoy-als alone; leave it out", clip(s.Format))
			}
		}
		if network, listen, spool := s.Listener(); network != "" {
			if _, port, _ := net.SplitHostPort(listen); port != "0" {
				if network != "tcp" {
					listen = network + " " + listen
				}
				taken(listens, listen, at+"."+s.Kind()+".listen", "only one can listen there")
			}
			taken(spools, spool, at+"."+s.Kind()+".spool", "each source has a spool of its own")
		}
		if kinds != 1 {
			k.add(at, "found %d of kafka, file, http, syslog and als: want exactly one", kinds)
		}
		k.oneOf(at+".format", s.Format, formats...)
		k.oneOf(at+".vantage", s.Vantage, vantages...)
		if _, err := zone(s.Zone); err != nil {
			k.add(at+".zone", "found %q: want a name such as Europe/Berlin, or an offset such as +02:00", clip(s.Zone))
		}
		if s.AttemptScope != "" {
			k.oneOf(at+".attempt_scope", s.AttemptScope, "hop", "origin")
		}
		if s.DeadLetter != nil {
			if s.Kafka == nil {
				k.add(at+".dead_letter", "belongs to a kafka source, which knows the brokers")
			}
			if s.DeadLetter.Topic == "" {
				k.missing(at+".dead_letter", "topic", "want a topic")
			} else if s.Kafka != nil && slices.Contains(s.Kafka.Topics, s.DeadLetter.Topic) {
				k.add(at+".dead_letter.topic", "found a topic that this source reads: a bad record would come back for ever")
			}
		}
		k.fields(at+".fields", s.Fields)
	}
	c.checkExchanges(k)
	if c.Dependency.Name != "" {
		c.checkScopes(k)
	}
}

// cluster names a Kafka cluster by its brokers, in whatever order.
func cluster(brokers []string) string {
	sorted := slices.Sorted(slices.Values(brokers))
	return strings.Join(sorted, ",") + "/"
}

// spool checks where records are kept that were sent.
func (k *checks) spool(at, dir string, most Size) {
	if dir == "" {
		k.missing(at, "spool", "want a directory")
	}
	if most < 1<<20 {
		k.add(at+".spool_max", "found %s: want at least 1MiB", most)
	}
}

// syslog checks who may send records by a protocol that has no tokens.
func (k *checks) syslog(at string, s *Syslog) {
	k.oneOf(at+".protocol", s.Protocol, "tcp", "udp")
	k.hostPort(at+".listen", s.Listen, true)
	if s.TLS != nil {
		switch {
		case s.Protocol == "udp":
			k.add(at+".tls", "found beside protocol: udp: TLS goes over tcp")
		case s.TLS.CertFile == "" || s.TLS.KeyFile == "":
			k.add(at+".tls", "want both cert_file and key_file")
		}
	}
	if known := s.TLS != nil && s.TLS.ClientCAFile != ""; !loopback(s.Listen) && !s.Insecure && !known {
		k.faults = append(k.faults, fault{path: at + ".listen", also: []string{at + ".tls", at + ".insecure"}, text: fmt.Sprintf(
			"found %q: want a loopback address such as 127.0.0.1:5514, or tls with client_ca_file (syslog has no tokens), or insecure: true", clip(s.Listen))})
	}
}

func (k *checks) kafka(at string, s *Kafka) {
	if len(s.Brokers) == 0 {
		k.missing(at, "brokers", "want at least one host:port")
	}
	for i, broker := range s.Brokers {
		k.hostPort(index(at+".brokers", i), broker, false)
	}
	if len(s.Topics) == 0 {
		k.missing(at, "topics", "want at least one topic")
	}
	for i, topic := range s.Topics {
		if topic == "" {
			k.add(index(at+".topics", i), "found an empty text: want a topic")
		}
	}
	if s.Group == "" {
		k.missing(at, "group", "want a consumer group")
	}
	if s.Start != "first" && s.Start != "last" && s.StartAt().IsZero() {
		k.add(at+".start", "found %q: want first, last, or a time such as 2026-11-29T09:00:00Z", clip(s.Start))
	}
	k.positive(at+".session_timeout", s.SessionTimeout)
	if s.Exchange != nil {
		switch {
		case s.Exchange.Topic == "":
			k.missing(at+".exchange", "topic", "want a topic")
		case slices.Contains(s.Topics, s.Exchange.Topic):
			k.add(at+".exchange.topic", "found a topic that this source reads: want one of its own")
		}
		if s.Keyed {
			k.add(at+".exchange", "found beside keyed: true: a keyed topic needs none, each partition holds its questions whole")
		}
	}
	k.clientTLS(at+".tls", s.TLS)
	if s.SASL != nil {
		k.oneOf(at+".sasl.mechanism", s.SASL.Mechanism, "plain", "scram-sha-256", "scram-sha-512")
		if s.SASL.Username == "" {
			k.missing(at+".sasl", "username", "want the user's name")
		}
		k.password(at+".sasl", s.SASL.Password, s.SASL.PasswordFile)
	}
}

// checkExchanges sees that instances can hash alike, and that who shares an exchange
// shares its cluster.
func (c *Config) checkExchanges(k *checks) {
	first := map[string]int{} // by topic
	for i := range c.Sources {
		s := c.Sources[i].Kafka
		if s == nil || s.Exchange == nil {
			continue
		}
		at := index("sources", i) + ".kafka"
		if len(first) == 0 && c.Keys.SaltFile == "" {
			k.missing(at, "exchange", "needs keys.salt_file, the same in all instances: by that salt they know a question again")
		}
		if other, some := first[s.Exchange.Topic]; !some {
			first[s.Exchange.Topic] = i
		} else if cluster(c.Sources[other].Kafka.Brokers) != cluster(s.Brokers) {
			k.add(at+".brokers", "differs from that of sources[%d], which has the same exchange: one exchange lies in one cluster", other)
		}
	}
}

// fields refuses a canonical name that nothing would ever read.
func (k *checks) fields(at string, fields map[string]string) {
	for _, name := range sortedKeys(fields) {
		if !slices.Contains(canonicalFields, name) {
			near, _ := nearest(name, canonicalFields)
			k.add(keyed(at, name), "unknown field on the left; the nearest known one is %q (the log's own name stands on the right)", near)
		}
		if fields[name] == "" {
			k.add(keyed(at, name), "found an empty text: want the log's own field")
		}
	}
}

// checkScopes holds the sources of one dependency together: one vantage, and
// one way in which a question's arrivals meet in one ledger.
func (c *Config) checkScopes(k *checks) {
	firstKeyed, firstLoose, firstExchange, exchange := -1, -1, -1, ""
	for i := range c.Sources {
		s, at := &c.Sources[i], index("sources", i)
		if first := &c.Sources[0]; s.Vantage != first.Vantage && slices.Contains(vantages, s.Vantage) && slices.Contains(vantages, first.Vantage) {
			k.faults = append(k.faults, fault{path: at + ".vantage", also: []string{"sources[0].vantage"},
				text: "differs from that of sources[0]: a dependency has one vantage, else the same requests count twice; audit the other log as a dependency of its own"})
		}
		switch {
		case s.Kafka != nil && s.Kafka.Keyed:
			if firstKeyed < 0 {
				firstKeyed = i
			}
		case s.Kafka != nil && s.Kafka.Exchange != nil:
			if topic := s.Kafka.Exchange.Topic; firstExchange < 0 {
				firstExchange, exchange = i, topic
			} else if topic != exchange {
				k.add(at+".kafka.exchange.topic", "differs from that of sources[%d]: sources of one dependency share one exchange, else a question is split over two", firstExchange)
			}
		default:
			if firstLoose < 0 {
				firstLoose = i
			}
		}
	}
	const split = "a question that reaches both would be split over two ledgers, and amplification read low"
	switch {
	case firstKeyed >= 0 && firstLoose >= 0:
		k.together(firstKeyed, firstLoose, "keyed: true beside the un-keyed sources[%d] of the same dependency: "+split)
	case firstKeyed >= 0 && firstExchange >= 0:
		k.together(firstKeyed, firstExchange, "keyed: true beside the exchange of sources[%d] of the same dependency: "+split)
	case firstExchange >= 0 && firstLoose >= 0:
		k.together(firstExchange, firstLoose, "exchange beside sources[%d] of the same dependency, which has none: "+split)
	}
}

func (k *checks) together(i, other int, format string) {
	k.add(index("sources", i)+".kafka", format, other)
	k.faults[len(k.faults)-1].also = []string{index("sources", other)}
}
