package lab

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
)

// The size of a chart's panels, in pixels.
const (
	chartWidth  = 960
	panelHeight = 200
	panelTop    = 40
	panelLeft   = 80
	panelRight  = 20
	panelGap    = 40
)

// curve is one line of a panel.
type curve struct {
	name, color string
	values      []float64 // by second
}

// Chart draws a run as SVG: a panel for each route, with what was asked, what arrived
// and what was of use, per second at full size; and one for each layer whose workers
// have a limit, with who held them.
func (t *Truth) Chart(w io.Writer) error {
	type panel struct {
		title  string
		curves []curve
	}
	var panels []panel
	seconds := 0
	for _, r := range t.Routes {
		seconds = max(seconds, len(r.Seconds))
	}
	for _, r := range t.Routes {
		asked, arrived, useful := make([]float64, seconds), make([]float64, seconds), make([]float64, seconds)
		for i := range r.Seconds {
			asked[i], arrived[i], useful[i] = float64(r.Seconds[i].Asked)*t.Scale, float64(r.Seconds[i].Arrivals)*t.Scale, float64(r.Seconds[i].Useful)*t.Scale
		}
		panels = append(panels, panel{"route " + r.Route + ", per second", []curve{{"arrivals", "#c0392b", arrived}, {"asked", "#2c3e50", asked}, {"useful", "#1e8449", useful}}})
	}
	colors := []string{"#c0392b", "#2471a3", "#1e8449", "#b7950b", "#7d3c98"}
	for _, l := range t.Workers {
		if l.Workers == 0 {
			continue
		}
		p := panel{title: "workers of " + l.Layer + " that are taken, by route"}
		for i, r := range t.Routes {
			values := make([]float64, seconds)
			for k, n := range l.Busy[r.Route] {
				if k < seconds {
					values[k] = float64(n) * t.Scale
				}
			}
			p.curves = append(p.curves, curve{r.Route, colors[i%len(colors)], values})
		}
		panels = append(panels, p)
	}

	out := bufio.NewWriter(w)
	title := escaped(t.Scenario + ", " + t.Arm)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", chartWidth, panelTop+len(panels)*(panelHeight+2*panelGap))
	fmt.Fprintf(out, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n", title)
	fmt.Fprintf(out, `<text x="%d" y="24" font-size="16">%s</text>`+"\n", panelLeft, title)
	for i, p := range panels {
		drawPanel(out, panelTop+i*(panelHeight+2*panelGap)+panelGap, p.title, p.curves, seconds)
	}
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

func drawPanel(w io.Writer, top int, title string, curves []curve, seconds int) {
	most := 0.0
	for _, c := range curves {
		for _, v := range c.values {
			most = max(most, v)
		}
	}
	step := tickStep(most)
	most = max(math.Ceil(most/step), 1) * step // also where nothing is drawn but zeros
	width := float64(chartWidth - panelLeft - panelRight)
	y := func(v float64) float64 { return float64(top+panelHeight) - v/most*panelHeight }
	x := func(second float64) float64 { return panelLeft + second/float64(max(seconds-1, 1))*width }

	fmt.Fprintf(w, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", panelLeft, top-22, escaped(title))
	at := panelLeft
	for _, c := range curves {
		fmt.Fprintf(w, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", at, top-16, c.color, at+14, top-7, escaped(c.name))
		at += 40 + 8*len(c.name)
	}
	for v := 0.0; v <= most+step/2; v += step {
		fmt.Fprintf(w, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#dddddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			panelLeft, chartWidth-panelRight, y(v), y(v), panelLeft-6, y(v)+4, short(v))
	}
	every := tickStep(float64(seconds))
	for s := 0.0; s < float64(seconds); s += math.Max(every, 1) {
		fmt.Fprintf(w, `<text x="%.1f" y="%d" text-anchor="middle">%.0f s</text>`+"\n", x(s), top+panelHeight+16, s)
	}
	for _, c := range curves {
		var points strings.Builder
		for i, v := range c.values {
			fmt.Fprintf(&points, "%.1f,%.1f ", x(float64(i)), y(v))
		}
		fmt.Fprintf(w, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`+"\n", c.color, strings.TrimSpace(points.String()))
	}
}

// tickStep is 1, 2 or 5 times a power of ten, so that there are four to ten of them.
func tickStep(most float64) float64 {
	if most <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most)))
	switch m := most / power; {
	case m > 5:
		return power
	case m > 2:
		return power / 2
	}
	return power / 5
}

// short writes a figure of an axis.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.4g M", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.4g k", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func escaped(s string) string { return escaper.Replace(s) }
