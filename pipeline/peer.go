package pipeline

import (
	"net/netip"
	"slices"
	"time"
)

// callers folds what a record says of its adjacent caller into a workload.
type callers struct {
	names    map[string]string
	prefixes []prefix // longest first
	timeouts map[string]time.Duration
}

type prefix struct {
	netip.Prefix
	name string
}

func newCallers(p Peers) *callers {
	c := &callers{names: map[string]string{}, timeouts: p.CallerTimeout}
	for from, to := range p.Map {
		if n, err := netip.ParsePrefix(from); err == nil {
			c.prefixes = append(c.prefixes, prefix{n.Masked(), to})
		} else {
			c.names[from] = to
		}
	}
	slices.SortFunc(c.prefixes, func(a, b prefix) int {
		if d := b.Bits() - a.Bits(); d != 0 {
			return d
		}
		return a.Addr().Compare(b.Addr())
	})
	return c
}

// workload names a peer: as the map says, by the whole text, by its address
// without the port, or by the longest prefix; else the address itself.
func (c *callers) workload(raw string) string {
	if to, ok := c.names[raw]; ok {
		return to
	}
	addr, err := netip.ParseAddr(raw)
	if err != nil {
		port, err := netip.ParseAddrPort(raw)
		if err != nil {
			return raw
		}
		addr = port.Addr()
	}
	addr = addr.Unmap()
	if to, ok := c.names[addr.String()]; ok {
		return to
	}
	for _, p := range c.prefixes {
		if p.Contains(addr) {
			return p.name
		}
	}
	return addr.WithZone("").String()
}
