package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/targetside/auditor/aggregate"
)

// unknown stands for a figure that there is not. It is never printed as 0.
const unknown = "–"

// show prints a figure, or says that there is none or that it has no upper end.
func show(f aggregate.Figure, format func(float64) string) string {
	if f.Unbounded() {
		return "unbounded"
	}
	v, ok := f.Value()
	if !ok {
		return unknown
	}
	return format(v)
}

// What stands before a figure that only has a bound on one side.
const (
	atLeast = "≥ "
	atMost  = "≤ "
)

// marked puts that before a figure, if it is such a bound. What is not known has none.
func marked(mark, figure string, is bool) string {
	if !is || figure == unknown {
		return figure
	}
	return mark + figure
}

// of prints a / b.
func of(a, b uint64, format func(float64) string) string {
	if b == 0 {
		return unknown
	}
	return format(float64(a) / float64(b))
}

// whole groups the digits of a whole number by threes.
func whole(n uint64) string { return grouped(strconv.FormatUint(n, 10)) }

func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func rounded(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	i, rest, point := strings.Cut(s, ".")
	if point {
		rest = "." + rest
	}
	return grouped(i) + rest
}

// factor prints a multiple of something. What is not exactly 1 does not read as 1.
func factor(v float64) string {
	if v >= 9.995 {
		return rounded(v, 1) + "×"
	}
	s := rounded(v, 2)
	switch {
	case s == "1.00" && v > 1:
		s = ">1.00"
	case s == "1.00" && v < 1:
		s = "<1.00"
	}
	return s + "×"
}

// percent prints a share. Little does not read as nothing, nor nearly all as all.
func percent(v float64) string {
	switch p := v * 100; {
	case v == 0:
		return "0 %"
	case p < 0.05:
		return "<0.1 %"
	case v < 1 && p >= 99.95:
		return ">99.9 %"
	case p >= 100:
		return rounded(p, 0) + " %"
	default:
		return rounded(p, 1) + " %"
	}
}

// number prints a quantity of two or three digits' precision; rates are such.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.005:
		return "<0.01"
	case v < 9.995:
		return rounded(v, 2)
	case v < 99.95:
		return rounded(v, 1)
	}
	return rounded(v, 0)
}

// seconds prints a time in system.
func seconds(v float64) string {
	switch {
	case v == 0:
		return "0 s"
	case v < 0.001:
		return "<1 ms"
	case v < 0.9995:
		return rounded(v*1000, 0) + " ms"
	}
	return number(v) + " s"
}

func secondsOrNone(v *float64) string {
	if v == nil {
		return unknown
	}
	return seconds(*v)
}

func wholeOrNone(n *uint64) string {
	if n == nil {
		return unknown
	}
	return whole(*n)
}

// length prints a whole number of seconds in the largest units that say it in
// full.
func length(s int64) string {
	switch {
	case s == 0:
		return "0 s"
	case s%86400 == 0:
		return fmt.Sprintf("%d d", s/86400)
	case s%3600 == 0:
		return fmt.Sprintf("%d h", s/3600)
	case s%60 == 0:
		return fmt.Sprintf("%d min", s/60)
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	return fmt.Sprintf("%d h %d min %d s", s/3600, s/60%60, s%60)
}

// size prints bytes.
func size(n uint64) string {
	v, unit := float64(n), "B"
	for _, u := range [...]string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, u
	}
	if unit == "B" {
		return whole(n) + " B"
	}
	return number(v) + " " + unit
}

// moment prints a stamp of a report for people; one that cannot be read stays as
// it is.
func moment(stamp string) string {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return visible(stamp, 40, "")
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// visible makes a text that came out of a log harmless to look at, in at most
// max columns: what is not a plain character, and what is in also, is written as
// an escape, and the middle of what is too long becomes "…". Two different texts
// that are not cut look different.
func visible(s string, max int, also string) string {
	if s == "" {
		return ""
	}
	// Enough to see whether the whole fits; of a long text the rest is not read.
	var b strings.Builder
	width, rest := 0, s
	for len(rest) > 0 && width <= max {
		r, n := utf8.DecodeRuneInString(rest)
		piece, w := character(r, rest[:n], also, len(rest) == len(s) || len(rest) == n)
		b.WriteString(piece)
		width += w
		rest = rest[n:]
	}
	if width <= max {
		return b.String()
	}
	room := max - 1
	var head strings.Builder
	used, rest := 0, s
	for rest != "" {
		r, n := utf8.DecodeRuneInString(rest)
		piece, w := character(r, rest[:n], also, len(rest) == len(s))
		if used+w > room-room/2 {
			break
		}
		head.WriteString(piece)
		used += w
		rest = rest[n:]
	}
	tail := ""
	for first := true; rest != ""; first = false {
		r, n := utf8.DecodeLastRuneInString(rest)
		piece, w := character(r, rest[len(rest)-n:], also, first)
		if used+w > room {
			break
		}
		tail = piece + tail
		used += w
		rest = rest[:len(rest)-n]
	}
	return head.String() + "…" + tail
}

// character returns what one character is shown as, and how many columns that
// takes. A blank at an edge would not be seen.
func character(r rune, raw, also string, edge bool) (string, int) {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		s := fmt.Sprintf(`\x%02x`, raw[0])
		return s, len(s)
	case r == '\\':
		return `\\`, 2
	case r == ' ' && edge, r < utf8.RuneSelf && (strings.ContainsRune(also, r) || !unicode.IsPrint(r)):
		s := fmt.Sprintf(`\x%02x`, r)
		return s, len(s)
	case r < utf8.RuneSelf:
		return string(r), 1
	// Beyond ASCII only letters and digits of scripts that run from left to right:
	// others change the order or the width of what stands beside them, or cannot
	// be seen at all.
	case !unicode.IsLetter(r) && !unicode.IsDigit(r), rightToLeft(r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		s := fmt.Sprintf(`\u{%x}`, r)
		return s, len(s)
	}
	return string(r), runeColumns(r)
}

func rightToLeft(r rune) bool {
	return r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff ||
		r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

// runeColumns is 2 for the scripts that terminals print at double width.
func runeColumns(r rune) int {
	if r >= 0x1100 && r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xa960 && r <= 0xa97f ||
		r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff || r >= 0xff00 && r <= 0xff60 || r >= 0x17000 && r <= 0x18fff || r >= 0x1b000 && r <= 0x1b2ff ||
		r >= 0x20000 && r <= 0x3ffff {
		return 2
	}
	return 1
}

// columnsOf is how many columns a text takes.
func columnsOf(s string) (n int) {
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}
