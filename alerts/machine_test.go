package alerts

import (
	"testing"
	"time"
)

// The machine alone, over every sequence of looks up to a length, one a second: what
// it promises holds at every step, whatever came before.
func TestEverySequenceOfLooks(t *testing.T) {
	const length = 7
	looks := []verdict{unknown, no, between, yes}
	for _, timing := range []timing{{0, 2 * time.Second}, {2 * time.Second, 2 * time.Second}, {time.Second, 0}} {
		sequence := make([]verdict, length)
		for n := range 1 << (2 * length) {
			for i := range sequence {
				sequence[i] = looks[n>>(2*i)&3]
			}
			var e *episode
			for i, v := range sequence {
				at := nine.Add(time.Duration(i) * time.Second)
				was := State("")
				if e != nil {
					was = e.State
				}
				if e == nil {
					if v != yes {
						continue
					}
					e = &episode{timing: timing}
					e.begin(at, at)
				}
				if !e.step(v, at, at, Resolved) {
					e = nil
				}
				is := State("")
				if e != nil {
					is = e.State
				}
				held := func(back time.Duration, v verdict) bool {
					for j := i; j >= 0 && j >= i-int(back/time.Second); j-- {
						if sequence[j] != v {
							return false
						}
					}
					return i >= int(back/time.Second)
				}
				fault := ""
				switch {
				case is == Firing && was != Firing && !held(timing.hold, yes):
					fault = "fires though its condition has not held for long enough"
				case held(timing.hold, yes) && is != Firing:
					fault = "does not fire though its condition has"
				case is == Resolved && was == Firing && !held(timing.keep, no):
					fault = "is resolved though that has not been clear for long enough"
				case was == Firing && held(timing.keep, no) && is != Resolved:
					fault = "is not resolved though it is clear"
				case was == Firing && v != no && is != Firing:
					fault = "does not fire on while it is not clear"
				case is == Pending && v != yes:
					fault = "is pending though its condition does not hold"
				}
				if fault != "" {
					t.Fatalf("%v %v: at %d it %s (%q, then %q)", timing, sequence, i, fault, was, is)
				}
			}
		}
	}
}
