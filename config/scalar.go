package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	wantDuration = "a duration with its unit, such as 500ms, 10s, 2m, 24h or 14d"
	wantSize     = "a size with its unit B, KiB, MiB or GiB, such as 64MiB"
)

const day = 24 * time.Hour

var days = regexp.MustCompile(`^([0-9]{1,6})d(.*)$`)

// parseDuration reads Go's syntax, with days of 24 hours before it. Durations
// are never negative here.
func parseDuration(text string) (time.Duration, error) {
	var total time.Duration
	rest := text
	if m := days.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		if time.Duration(n) > math.MaxInt64/day {
			return 0, errors.New("longer than 106751d")
		}
		total, rest = time.Duration(n)*day, m[2]
		if rest == "" {
			return total, nil
		}
	}
	if strings.HasPrefix(rest, "-") {
		return 0, errors.New("negative: want " + wantDuration)
	}
	parsed, err := time.ParseDuration(rest)
	if err != nil || strings.HasPrefix(rest, "+") {
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return 0, errors.New("no unit: want " + wantDuration)
		}
		return 0, errors.New("want " + wantDuration)
	}
	if total > math.MaxInt64-parsed {
		return 0, errors.New("longer than 106751d")
	}
	return total + parsed, nil
}

// formatDuration writes what parseDuration reads, without zero parts.
func formatDuration(d time.Duration) string {
	if d >= day {
		text := strconv.FormatInt(int64(d/day), 10) + "d"
		if d %= day; d == 0 {
			return text
		}
		return text + formatDuration(d)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Size is a number of bytes.
type Size int64

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String returns the size in the largest unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if int64(s)%u.bytes == 0 && s != 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return "0B"
}

var sizeText = regexp.MustCompile(`^([0-9]+) ?([A-Za-z]*)$`)

func parseSize(text string) (Size, error) {
	m := sizeText.FindStringSubmatch(text)
	if m == nil {
		return 0, errors.New("want " + wantSize)
	}
	for _, u := range sizeUnits {
		if u.name != m[2] {
			continue
		}
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || n > math.MaxInt64/u.bytes {
			return 0, errors.New("too large: want " + wantSize)
		}
		return Size(n * u.bytes), nil
	}
	if m[2] == "" {
		return 0, errors.New("no unit: want " + wantSize)
	}
	// GB is 10^9 bytes to some and 2^30 to others; neither is guessed.
	return 0, fmt.Errorf("unit %s: want %s", clip(m[2]), wantSize)
}

var (
	countText  = regexp.MustCompile(`^(0|[1-9][0-9]*(_[0-9]+)*)$`)
	numberText = regexp.MustCompile(`^(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

// parseCount reads a whole decimal number; a leading 0 is refused because YAML
// has read it as octal.
func parseCount(text string) (int64, bool) {
	if !countText.MatchString(text) {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, strconv.IntSize)
	return n, err == nil
}

// parseNumber reads a finite decimal number that is not negative.
func parseNumber(text string) (float64, bool) {
	if n, ok := parseCount(text); ok {
		return float64(n), true
	}
	if !numberText.MatchString(text) {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.IsInf(f, 0)
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces ${NAME} by the environment's value and $$ by $; any other $
// stays. It says whether a value came from the environment. Its errors quote
// variable names only.
func expand(text string, getenv func(string) (string, bool)) (string, bool, error) {
	if !strings.Contains(text, "$") {
		return text, false, nil
	}
	var b strings.Builder
	expanded := false
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i+1 == len(text) {
			b.WriteString(text)
			return b.String(), expanded, nil
		}
		b.WriteString(text[:i])
		switch text[i+1] {
		case '$':
			b.WriteByte('$')
			text = text[i+2:]
		case '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return "", false, errors.New("${ without }: want ${NAME}, or $${ for the characters themselves")
			}
			name := text[i+2 : i+end]
			if !envName.MatchString(name) {
				return "", false, errors.New("no variable name inside ${}: want letters, digits and _, or $${ for the characters themselves")
			}
			value, ok := getenv(name)
			if !ok {
				return "", false, fmt.Errorf("environment variable %s is not set", name)
			}
			if !utf8.ValidString(value) {
				return "", false, fmt.Errorf("environment variable %s is not UTF-8 text", name)
			}
			b.WriteString(value)
			expanded = true
			text = text[i+end+1:]
		default:
			b.WriteByte('$')
			text = text[i+1:]
		}
	}
}
