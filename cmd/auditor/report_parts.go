package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/targetside/auditor/aggregate"
)

// The most rows of tables by name.
const (
	mostRows  = 20
	mostPeers = 10
)

// portion is one row of a table by name.
type portion struct {
	dependency, name string
	m                *aggregate.Measure
	excess           float64
	granted          bool // excess is known
}

// excessText prints repeats beyond the allowance; below 0 there is room left.
func (p portion) excessText() string {
	switch {
	case !p.granted:
		return unknown
	case p.excess < 0:
		return "−" + number(-p.excess)
	}
	return number(p.excess)
}

// worstFirst orders parts by their excess, and by their repeats where it is not known.
func worstFirst(parts []portion) []portion {
	by := func(p portion) float64 {
		if p.granted {
			return p.excess
		}
		return float64(p.m.Repeats)
	}
	deadTime := func(p portion) float64 {
		v, _ := p.m.Responses.DeadSeconds.Value()
		return v
	}
	slices.SortFunc(parts, func(a, b portion) int {
		return cmp.Or(cmp.Compare(by(b), by(a)), cmp.Compare(b.m.Repeats, a.m.Repeats), cmp.Compare(deadTime(b), deadTime(a)),
			cmp.Compare(b.m.Arrivals, a.m.Arrivals), cmp.Compare(a.dependency, b.dependency), cmp.Compare(a.name, b.name))
	})
	return parts
}

// partTable makes a table of parts: their names, then cells of each, by column.
// Their excess goes beside their repeats where a ratio is granted.
func partTable(r *aggregate.Report, o renderOptions, s section, title string, most int, parts []portion, columns []column, cells func(p portion) []string) section {
	if len(parts) == 0 {
		return section{}
	}
	granted := false
	for i := range parts {
		p := &parts[i]
		model, all := &o.Budget, title == "dependency"
		if own := o.RouteBudgets[p.name]; own != nil && title == "route" {
			model, all = own, true
		}
		p.excess, p.granted = excessOf(r, model, all, p.m)
		granted = granted || p.granted
	}
	if !granted {
		s.title += ", most repeats first"
	} else {
		s.title += ", largest excess first"
		after := slices.IndexFunc(columns, func(c column) bool { return c.title == "repeats" }) + 1
		columns = slices.Insert(columns, after, column{"excess", figures})
		rest := cells
		cells = func(p portion) []string { return slices.Insert(rest(p), after, p.excessText()) }
	}
	s.table = &table{columns: append([]column{{title, name}}, columns...)}
	several := len(r.Dependencies) > 1 && title != "dependency"
	if several {
		s.table.columns = append([]column{{"dependency", name}}, s.table.columns...)
	}
	parts = worstFirst(parts)
	for _, p := range parts[:min(most, len(parts))] {
		row := append([]string{p.name}, cells(p)...)
		if several {
			row = append([]string{p.dependency}, row...)
		}
		s.table.add(row...)
	}
	if len(parts) > most {
		var arrivals, repeats uint64
		for _, p := range parts[most:] {
			arrivals += p.m.Arrivals
			repeats += p.m.Repeats
		}
		s.notes = append(s.notes, fmt.Sprintf("Not shown: %s more, with %s arrivals and %s repeats together.",
			whole(uint64(len(parts)-most)), whole(arrivals), whole(repeats)))
	}
	return s
}

func byDependency(r *aggregate.Report, o renderOptions) section {
	if len(r.Dependencies) < 2 {
		return section{}
	}
	var parts []portion
	for i := range r.Dependencies {
		parts = append(parts, portion{name: r.Dependencies[i].Name, m: &r.Dependencies[i].Measure})
	}
	return partTable(r, o, section{title: "Dependencies"}, "dependency", mostRows, parts,
		[]column{{"arrivals", figures}, {"questions", figures}, {"load f.", figures}, {"between", figures}, {"repeats", figures}, {"dead time", spare}, {"budget", spare}, {"coverage", figures}},
		func(p portion) []string {
			m := p.m
			return []string{whole(m.Arrivals), attributed(m, m.Questions), show(m.LoadFactor, factor),
				show(m.AmplificationLow, factor) + "…" + show(m.AmplificationHigh, factor), attributed(m, m.Repeats),
				sightOf(m).deadSeconds(&m.Responses), peakOf(&m.Budget, m.Attributable, blind(&m.Budget)), show(m.Coverage, percent)}
		})
}

func byRoute(r *aggregate.Report, o renderOptions) section {
	var parts []portion
	s := section{title: "Routes"}
	for i := range r.Dependencies {
		d := &r.Dependencies[i]
		for j := range d.Routes {
			parts = append(parts, portion{dependency: d.Name, name: d.Routes[j].Name, m: &d.Routes[j].Measure})
			if d.Routes[j].Undiscriminated {
				s.notes = []string{"* All on one path: under one key, calls for ten ids count as ten arrivals of one question, until the route has a discriminator."}
			}
		}
	}
	return partTable(r, o, s, "route", mostRows, parts,
		[]column{{"arrivals", figures}, {"share", spare}, {"questions", figures}, {"amplif.", figures}, {"repeats", figures}, {"dead time", spare}, {"coverage", figures}},
		func(p portion) []string {
			m := p.m
			a := show(m.Amplification, factor)
			if m.Undiscriminated {
				a += "*"
			}
			return []string{whole(m.Arrivals), of(m.Arrivals, r.Total.Arrivals, percent), attributed(m, m.Questions), a,
				attributed(m, m.Repeats), sightOf(m).deadSeconds(&m.Responses), show(m.Coverage, percent)}
		})
}

func byOriginator(r *aggregate.Report, o renderOptions) section {
	var parts []portion
	for i := range r.Dependencies {
		d := &r.Dependencies[i]
		for j := range d.Originators {
			parts = append(parts, portion{dependency: d.Name, name: d.Originators[j].Name, m: &d.Originators[j].Measure})
		}
	}
	return partTable(r, o, section{title: "Originators"}, "originator", mostRows, parts,
		[]column{{"key", words}, {"arrivals", figures}, {"share", spare}, {"questions", figures}, {"amplif.", spare}, {"repeats", figures}, {"dead time", figures}},
		func(p portion) []string {
			m := p.m
			key := "verified"
			switch {
			case p.name == "":
				key = "none"
			case strings.HasPrefix(p.name, "claimed:"):
				key = "claimed"
			}
			return []string{key, whole(m.Arrivals), of(m.Arrivals, r.Total.Arrivals, percent), attributed(m, m.Questions), show(m.Amplification, factor),
				attributed(m, m.Repeats), sightOf(m).deadSeconds(&m.Responses)}
		})
}

func byPeer(r *aggregate.Report, o renderOptions) section {
	var parts []portion
	for i := range r.Dependencies {
		d := &r.Dependencies[i]
		for j := range d.Peers {
			parts = append(parts, portion{dependency: d.Name, name: d.Peers[j].Name, m: &d.Peers[j].Measure})
		}
	}
	s := section{title: "Peers", notes: []string{"Questions are those that came by that peer; one may come by several. Early: started before a Retry-After was over, of the returns after one."}}
	return partTable(r, o, s, "peer", mostPeers, parts,
		[]column{{"arrivals", figures}, {"share", spare}, {"questions", figures}, {"amplif.", spare}, {"repeats", figures}, {"early", figures}, {"dead time", spare}, {"coverage", figures}},
		func(p portion) []string {
			m := p.m
			early := unknown
			if a := m.RetryAfter; a != nil && a.Early != nil {
				early = timedCount(&m.Responses, *a.Early) + " of " + timedCount(&m.Responses, *a.Returned)
			}
			return []string{whole(m.Arrivals), of(m.Arrivals, r.Total.Arrivals, percent), attributed(m, m.Questions), show(m.Amplification, factor),
				attributed(m, m.Repeats), early, sightOf(m).deadSeconds(&m.Responses), show(m.Coverage, percent)}
		})
}
