package lab

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A chart is well-formed, has a line for everything, and none leaves its panel.
func TestChart(t *testing.T) {
	f := scenario(t, "on-sale")
	r := played(t, f, "refusing")
	r.Arm = `<b>"&` // a name out of a file
	var b bytes.Buffer
	if err := r.Chart(&b); err != nil {
		t.Fatal(err)
	}
	lines := map[string][]string{} // by colour
	titles := 0
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.CharData:
			if string(x) == `on-sale, <b>"&` {
				titles++
			}
		case xml.StartElement:
			if x.Name.Local == "polyline" {
				at := map[string]string{}
				for _, a := range x.Attr {
					at[a.Name.Local] = a.Value
				}
				lines[at["stroke"]] = append(lines[at["stroke"]], at["points"])
			}
		}
	}
	if titles != 2 {
		t.Errorf("the title is there %d times, want 2: as title and as text", titles)
	}
	// Two routes with three curves, and the gateway's workers by route.
	if n := len(lines["#c0392b"]) + len(lines["#2c3e50"]) + len(lines["#1e8449"]) + len(lines["#2471a3"]); n != 8 {
		t.Errorf("%d curves, want 8", n)
	}
	for _, all := range lines {
		for _, points := range all {
			for i, p := range strings.Fields(points) {
				var x, y float64
				if _, err := fmt.Sscanf(p, "%f,%f", &x, &y); err != nil {
					t.Fatalf("point %d: %v", i, err)
				}
				if !(x >= panelLeft && x <= chartWidth-panelRight && y >= panelTop && y <= panelTop+3*(panelHeight+2*panelGap)) {
					t.Errorf("point %d, %s, is outside", i, p)
				}
			}
		}
	}
	// The arrivals of seats fall to a sixth while the gateway is full, and come back.
	var heights []float64
	for _, p := range strings.Fields(lines["#c0392b"][0]) {
		var x, y float64
		fmt.Sscanf(p, "%f,%f", &x, &y)
		heights = append(heights, panelTop+panelGap+panelHeight-y)
	}
	if !(heights[20] < heights[5]/4 && heights[100] > heights[5]*0.95) {
		t.Errorf("arrivals are drawn %.0f, %.0f and %.0f high", heights[5], heights[20], heights[100])
	}
}

// Workers that nobody holds at the end of any second are a line at zero.
func TestChartOfNothing(t *testing.T) {
	f := written(t, `
name: idle
lasts: 5s
clients: {c: {route: r, rate: 1, from: 500ms}}
layers: {l: {workers: 10}}
targets: {t: {service: 5ms}}
routes: {r: {path: /r/, through: [l], target: t}}
`)
	var b bytes.Buffer
	if err := played(t, f, "").Chart(&b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "<polyline "); n != 4 || strings.Contains(b.String(), "NaN") {
		t.Errorf("%d lines, want 4, and each point a number:\n%s", n, b.String())
	}
}

func TestTicks(t *testing.T) {
	for most, want := range map[float64]float64{0: 1, 1: 0.2, 3: 0.5, 7: 1, 150: 20, 4.86e6: 500_000} {
		if got := tickStep(most); got != want {
			t.Errorf("up to %v: steps of %v, want %v", most, got, want)
		}
	}
}
