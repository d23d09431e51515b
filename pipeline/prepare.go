package pipeline

import (
	"hash/maphash"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/ingest/accesslog"
)

// newShared prepares what all decoders read. It returns the log fields by which
// questions are told apart, too.
func newShared(c *Config, ledger aggregate.Config) (*shared, []string) {
	s := &shared{
		cfg: c, router: newRouter(c.Routes.Templates), callers: newCallers(c.Peers),
		ledger: ledger, hasher: hasher{seed: maphash.MakeSeed()},
		ignorePath: map[string]bool{}, ignorePeer: map[string]bool{}, discs: map[string]int{},
		deadlines: len(c.Peers.CallerTimeout) > 0, shardCount: c.Parallel,
		latest: c.Now.Add(c.MaxFuture).UnixNano(), spare: make(chan *batch, 4*c.Parallel+4),
		claimedAt: uint16(len(c.Keys.Originators())) + 1, lots: newLots(c.Salt),
	}
	for _, code := range c.Refused {
		if code > 0 && code < len(s.refused) {
			s.refused[code] = true
		}
	}
	for _, p := range c.Ignore.Paths {
		s.ignorePath[p] = true
	}
	for _, p := range c.Ignore.Peers {
		s.ignorePeer[p] = true
	}
	for _, a := range c.Ignore.UserAgents {
		s.agents = append(s.agents, []byte(a))
	}
	for i := range c.Sources {
		c.Sources[i].name = []byte(c.Sources[i].Dependency)
	}
	var extra []string
	for _, route := range sortedKeys(c.Discriminators) {
		s.discs[route] = len(extra)
		extra = append(extra, c.Discriminators[route])
	}
	return s, extra
}

// newDecoder returns a decoder without parsers.
func newDecoder(number int, s *shared, c *Config) *decoder {
	return &decoder{number: number, shards: s.shardCount, shared: s, checker: c.Keys.NewChecker(), names: newLocalNames(s.callers, s.discs, &s.hasher)}
}

// newParser returns a parser for the records of a source.
func newParser(c *Config, src *Source, format string, extra []string) (*accesslog.Parser, error) {
	pc := src.Parser
	pc.Format, pc.Keys, pc.Extra = format, c.Keys.Fields(), extra
	if src.DependencyField != "" {
		pc.Fields = withField(pc.Fields, "dependency", src.DependencyField)
	}
	return accesslog.New(pc)
}

func withField(fields map[string]string, name, log string) map[string]string {
	out := map[string]string{name: log}
	for k, v := range fields {
		if k != name {
			out[k] = v
		}
	}
	return out
}
