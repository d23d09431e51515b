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
}

// worstFirst orders parts by their excess.
func worstFirst(parts []portion) []portion {
	slices.SortFunc(parts, func(a, b portion) int {
		return cmp.Or(cmp.Compare(b.m.Repeats, a.m.Repeats), cmp.Compare(b.m.Responses.DeadSeconds, a.m.Responses.DeadSeconds),
			cmp.Compare(b.m.Arrivals, a.m.Arrivals), cmp.Compare(a.dependency, b.dependency), cmp.Compare(a.name, b.name))
	})
	return parts
}

// partTable makes a table of parts: their names, then cells of each, by column.
func partTable(r *aggregate.Report, s section, title string, most int, parts []portion, columns []column, cells func(p portion) []string) section {
	if len(parts) == 0 {
		return section{}
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

func byDependency(r *aggregate.Report) section {
	if len(r.Dependencies) < 2 {
		return section{}
	}
	var parts []portion
	for i := range r.Dependencies {
		parts = append(parts, portion{"", r.Dependencies[i].Name, &r.Dependencies[i].Measure})
	}
	return partTable(r, section{title: "Dependencies, most repeats first"}, "dependency", mostRows, parts,
		[]column{{"arrivals", figures}, {"questions", figures}, {"load f.", figures}, {"between", figures}, {"repeats", figures}, {"dead time", spare}, {"budget", spare}, {"coverage", figures}},
		func(p portion) []string {
			m := p.m
			return []string{whole(m.Arrivals), attributed(m, m.Questions), show(m.LoadFactor, factor),
				show(m.AmplificationLow, factor) + "…" + show(m.AmplificationHigh, factor), attributed(m, m.Repeats),
				sightOf(m).deadSeconds(m.Responses.DeadSeconds), peakOf(&m.Budget, m.Attributable, blind(&m.Budget)), show(m.Coverage, percent)}
		})
}

func byRoute(r *aggregate.Report) section {
	var parts []portion
	s := section{title: "Routes, most repeats first"}
	for i := range r.Dependencies {
		d := &r.Dependencies[i]
		for j := range d.Routes {
			parts = append(parts, portion{d.Name, d.Routes[j].Name, &d.Routes[j].Measure})
			if d.Routes[j].Undiscriminated {
				s.notes = []string{"* All on one path: under one key, calls for ten ids count as ten arrivals of one question, until the route has a discriminator."}
			}
		}
	}
	return partTable(r, s, "route", mostRows, parts,
		[]column{{"arrivals", figures}, {"share", spare}, {"questions", figures}, {"amplif.", figures}, {"repeats", figures}, {"dead time", spare}, {"coverage", figures}},
		func(p portion) []string {
			m := p.m
			a := show(m.Amplification, factor)
			if m.Undiscriminated {
				a += "*"
			}
			return []string{whole(m.Arrivals), of(m.Arrivals, r.Total.Arrivals, percent), attributed(m, m.Questions), a,
				attributed(m, m.Repeats), sightOf(m).deadSeconds(m.Responses.DeadSeconds), show(m.Coverage, percent)}
		})
}

func byOriginator(r *aggregate.Report) section {
	var parts []portion
	for i := range r.Dependencies {
		d := &r.Dependencies[i]
		for j := range d.Originators {
			parts = append(parts, portion{d.Name, d.Originators[j].Name, &d.Originators[j].Measure})
		}
	}
	return partTable(r, section{title: "Originators, most repeats first"}, "originator", mostRows, parts,
		[]column{{"key", words}, {"arrivals", figures}, {"share", spare}, {"questions", figures}, {"amplif.", figures}, {"repeats", figures}, {"dead time", figures}},
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
				attributed(m, m.Repeats), sightOf(m).deadSeconds(m.Responses.DeadSeconds)}
		})
}

func byPeer(r *aggregate.Report) section {
	var parts []portion
	for i := range r.Dependencies {
		d := &r.Dependencies[i]
		for j := range d.Peers {
			parts = append(parts, portion{d.Name, d.Peers[j].Name, &d.Peers[j].Measure})
		}
	}
	s := section{title: "Peers, most repeats first", notes: []string{"Questions are those that came by that peer; one may come by several. Early: started before a Retry-After was over, of the returns after one."}}
	return partTable(r, s, "peer", mostPeers, parts,
		[]column{{"arrivals", figures}, {"share", spare}, {"questions", figures}, {"amplif.", figures}, {"repeats", figures}, {"early", figures}, {"dead time", spare}, {"coverage", figures}},
		func(p portion) []string {
			m := p.m
			early := unknown
			if a := m.RetryAfter; a != nil {
				early = whole(a.Early) + " of " + whole(a.Returned)
			}
			return []string{whole(m.Arrivals), of(m.Arrivals, r.Total.Arrivals, percent), attributed(m, m.Questions), show(m.Amplification, factor),
				attributed(m, m.Repeats), early, sightOf(m).deadSeconds(m.Responses.DeadSeconds), show(m.Coverage, percent)}
		})
}
