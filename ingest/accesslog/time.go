package accesslog

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// Stamps are taken from 1973 to 2242: what lies outside is a broken clock or no
// time at all, and epoch numbers of every unit are told apart by their size.
const (
	minSecond = 100_000_000
	maxSecond = 8_600_000_000
)

// dayCache holds the start of the day that was read last.
type dayCache struct {
	head   uint64 // "2026-03-"
	tail   uint16 // "03"
	second int64  // Unix time of its start
	ok     bool

	// The minute that was read last, "2026-03-" and "03T10:15", and the Unix
	// nanoseconds of its start. Without minute there is none.
	date, clock uint64
	minute      int64

	// The day of the CLF stamp that was read last, "03/Mar/2" and "Mar/2026", and the Unix
	// time of its start; 0 is none.
	clfHead, clfTail uint64
	clfSecond        int64
}

// stamp reads a point in time as Unix nanoseconds with the resolution of what
// was written. Understood are RFC 3339 with any fraction and offset, the compact
// form 20260303T101542Z, CLF with and without brackets, and epoch seconds,
// milliseconds, microseconds and nanoseconds. A stamp without a zone is read
// in Config.Zone.
func (p *Parser) stamp(b []byte) (ns, uncertainty int64, ok bool) {
	if len(b) < 9 {
		return 0, 0, false
	}
	if len(b) == 24 {
		if ns, ok := p.day.millis(b); ok {
			return ns, 1e6, true
		}
	}
	if len(b) >= 20 && b[4] == '-' {
		return p.rfc3339(b)
	}
	if len(b) == 14 && b[10] == '.' {
		if ns, ok := epochMillis(b); ok {
			return ns, 1e6, true
		}
	}
	if len(b) == 13 {
		if ns, ok := wholeMillis(b); ok {
			return ns, 1e6, true
		}
	}
	if len(b) == 19 {
		if ns, ok := wholeNanos(b); ok {
			return ns, 0, true
		}
	}
	if b[0] == '[' {
		b = bytes.TrimSuffix(b[1:], []byte("]"))
	}
	switch {
	case len(b) >= 20 && b[2] == '/':
		return p.clf(b)
	case len(b) >= 15 && b[8] == 'T':
		return p.compact(b)
	case len(b) >= 19 && b[4] == '-':
		return p.rfc3339(b)
	}
	return epoch(b)
}

// millis reads 2026-03-03T10:15:42.118Z where the minute is that of the stamp
// before. Not ok says nothing about b.
func (d *dayCache) millis(b []byte) (ns int64, ok bool) {
	const form = ':' | '0'<<8 | '0'<<16 | '.'<<24 | '0'<<32 | '0'<<40 | '0'<<48 | 'Z'<<56
	// What takes a byte past its bound, 0, 5 or 9, to the top bit.
	const over = 0x7f | 0x7a<<8 | 0x76<<16 | 0x7f<<24 | 0x76<<32 | 0x76<<40 | 0x76<<48 | 0x7f<<56
	x := binary.LittleEndian.Uint64(b[16:]) ^ form
	if d.minute == 0 || binary.LittleEndian.Uint64(b) != d.date || binary.LittleEndian.Uint64(b[8:]) != d.clock ||
		(x+over|x)&highs != 0 {
		return 0, false
	}
	second := x>>8&0xff*10 + x>>16&0xff
	milli := x>>32&0xff*100 + x>>40&0xff*10 + x>>48&0xff
	return d.minute + int64(second*1000+milli)*1e6, true
}

// epochMillis reads 1772532942.118. Not ok says nothing about b.
func epochMillis(b []byte) (ns int64, ok bool) {
	const form = '0' | '0'<<8 | '0'<<16 | '0'<<24 | '.'<<32 | '0'<<40 | '0'<<48 | '0'<<56
	const over = 0x76 | 0x76<<8 | 0x76<<16 | 0x76<<24 | 0x7f<<32 | 0x76<<40 | 0x76<<48 | 0x76<<56
	x, y := binary.LittleEndian.Uint64(b)^'0'*lows, binary.LittleEndian.Uint64(b[6:])^form
	if notDigits(x) || (y+over|y)&highs != 0 {
		return 0, false
	}
	second := eight(x)*100 + int64(y>>16&0xff*10+y>>24&0xff)
	if second < minSecond || second > maxSecond {
		return 0, false
	}
	return second*1e9 + int64(y>>40&0xff*100+y>>48&0xff*10+y>>56)*1e6, true
}

// wholeMillis reads 1772532942118. Not ok says nothing about b.
func wholeMillis(b []byte) (ns int64, ok bool) {
	x, y := binary.LittleEndian.Uint64(b)^'0'*lows, binary.LittleEndian.Uint64(b[5:])^'0'*lows
	if notDigits(x) || notDigits(y) {
		return 0, false
	}
	milli := eight(x)*1e5 + eight(y)%1e5
	if milli < minSecond*1e3 || milli > maxSecond*1e3 {
		return 0, false
	}
	return milli * 1e6, true
}

// wholeNanos reads 1772532942118000000. Not ok says nothing about b.
func wholeNanos(b []byte) (ns int64, ok bool) {
	x, y, z := binary.LittleEndian.Uint64(b)^'0'*lows, binary.LittleEndian.Uint64(b[8:])^'0'*lows, binary.LittleEndian.Uint64(b[11:])^'0'*lows
	if notDigits(x) || notDigits(y) || notDigits(z) {
		return 0, false
	}
	second, rest := eight(x)*100+eight(y)/1e6, eight(y)%1e6*1e3+eight(z)%1e3
	if second < minSecond || second > maxSecond {
		return 0, false
	}
	return second*1e9 + rest, true
}

// rfc3339 reads 2026-03-03T10:15:42.118Z and its relatives.
func (p *Parser) rfc3339(b []byte) (ns, uncertainty int64, ok bool) {
	if len(b) < 19 || b[7] != '-' || b[13] != ':' || b[16] != ':' || b[10] != 'T' && b[10] != ' ' && b[10] != 't' {
		return 0, 0, false
	}
	d := &p.day
	head, tail := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint16(b[8:])
	if !d.ok || d.head != head || d.tail != tail {
		year, ok1 := digits(b[:4])
		month, ok2 := digits(b[5:7])
		day, ok3 := digits(b[8:10])
		if !ok1 || !ok2 || !ok3 || !validDate(year, month, day) {
			return 0, 0, false
		}
		d.head, d.tail, d.second, d.ok, d.minute = head, tail, 86400*daysSinceEpoch(year, month, day), true, 0
	}
	second, ok := clock(b[11], b[12], b[14], b[15], b[17], b[18])
	if !ok {
		return 0, 0, false
	}
	if start := d.second + second - int64(b[17]-'0')*10 - int64(b[18]-'0'); start >= minSecond && start+60 <= maxSecond {
		d.date, d.clock, d.minute = head, binary.LittleEndian.Uint64(b[8:]), start*1e9
	}
	return p.fractionAndZone(d.second+second, b[19:])
}

// clf reads 03/Mar/2026:10:15:42 +0000, with or without fraction and zone.
func (p *Parser) clf(b []byte) (ns, uncertainty int64, ok bool) {
	if b[6] != '/' || b[11] != ':' || b[14] != ':' || b[17] != ':' {
		return 0, 0, false
	}
	d := &p.day
	head, tail := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[3:])
	if d.clfSecond == 0 || d.clfHead != head || d.clfTail != tail {
		day, ok1 := digits(b[:2])
		year, ok2 := digits(b[7:11])
		month := monthOf(b[3:6])
		if !ok1 || !ok2 || !validDate(year, month, day) {
			return 0, 0, false
		}
		d.clfHead, d.clfTail, d.clfSecond = head, tail, 86400*daysSinceEpoch(year, month, day)
	}
	second, ok := clock(b[12], b[13], b[15], b[16], b[18], b[19])
	if !ok {
		return 0, 0, false
	}
	return p.fractionAndZone(d.clfSecond+second, b[20:])
}

// compact reads 20260303T101542Z.
func (p *Parser) compact(b []byte) (ns, uncertainty int64, ok bool) {
	year, ok1 := digits(b[:4])
	month, ok2 := digits(b[4:6])
	day, ok3 := digits(b[6:8])
	if !ok1 || !ok2 || !ok3 || !validDate(year, month, day) {
		return 0, 0, false
	}
	second, ok := clock(b[9], b[10], b[11], b[12], b[13], b[14])
	if !ok {
		return 0, 0, false
	}
	return p.fractionAndZone(86400*daysSinceEpoch(year, month, day)+second, b[15:])
}

// fractionAndZone reads what follows the seconds.
func (p *Parser) fractionAndZone(second int64, b []byte) (ns, uncertainty int64, ok bool) {
	uncertainty = WholeSecond
	var nanos int64
	if len(b) > 1 && (b[0] == '.' || b[0] == ',') {
		i := 1
		for ; i < len(b) && b[i]-'0' <= 9; i++ {
			if uncertainty > 1 {
				uncertainty /= 10
				nanos += int64(b[i]-'0') * uncertainty
			}
		}
		if i == 1 {
			return 0, 0, false
		}
		b = b[i:]
		if uncertainty == 1 {
			uncertainty = 0
		}
	}
	switch {
	case len(b) == 1 && b[0] == 'Z':
	case len(b) == 0:
		if p.cfg.Zone != nil {
			var again int64
			second, again = p.local.unix(p.cfg.Zone, second)
			uncertainty = max(uncertainty, again*1e9)
		}
	default:
		offset, ok := zone(b)
		if !ok {
			return 0, 0, false
		}
		second -= offset
	}
	if second < minSecond || second > maxSecond {
		return 0, 0, false
	}
	return second*1e9 + nanos, uncertainty, true
}

// zone reads an offset in seconds east of UTC.
func zone(b []byte) (offset int64, ok bool) {
	if b[0] == ' ' {
		b = b[1:]
	}
	switch string(b) {
	case "":
		return 0, false
	case "Z", "z", "UTC", "GMT":
		return 0, true
	}
	sign := int64(1)
	switch b[0] {
	case '-':
		sign = -1
	case '+':
	default:
		return 0, false
	}
	b = b[1:]
	var hour, minute int
	ok2 := true
	switch {
	case len(b) == 2:
		hour, ok = digits(b)
	case len(b) == 4:
		hour, ok = digits(b[:2])
		minute, ok2 = digits(b[2:])
	case len(b) == 5 && b[2] == ':':
		hour, ok = digits(b[:2])
		minute, ok2 = digits(b[3:])
	}
	if !ok || !ok2 || hour > 18 || minute > 59 {
		return 0, false
	}
	return sign * int64(hour*3600+minute*60), true
}

// epoch reads a number of seconds, milliseconds, microseconds or nanoseconds
// since 1970.
func epoch(b []byte) (ns, uncertainty int64, ok bool) {
	var whole, frac int64
	i, scale := 0, int64(1e9)
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if i >= 19 {
			return 0, 0, false
		}
		whole = whole*10 + int64(b[i]-'0')
	}
	if i == 0 || whole < 0 {
		return 0, 0, false
	}
	if i < len(b) && (b[i] == '.' || b[i] == ',') {
		for i++; i < len(b) && b[i]-'0' <= 9; i++ {
			if scale > 1 {
				scale /= 10
				frac += int64(b[i]-'0') * scale
			}
		}
	}
	if i < len(b) {
		if b[i] != 'e' && b[i] != 'E' || len(b) > 40 {
			return 0, 0, false
		}
		x, err := strconv.ParseFloat(string(b), 64)
		if err != nil || x < minSecond || x > maxSecond*1e9 {
			return 0, 0, false
		}
		// An exponent keeps no more than fifteen digits.
		for _, u := range [...]float64{1e9, 1e6, 1e3, 1} {
			if s := x / (1e9 / u); s >= minSecond && s <= maxSecond {
				return int64(x * u), max(int64(u), 1e3), true
			}
		}
		return 0, 0, false
	}
	// frac and scale are in billionths of the unit.
	unit := int64(1e9)
	for whole > maxSecond*(1e9/unit) && unit > 1 {
		unit /= 1000
	}
	if s := whole / (1e9 / unit); s < minSecond || s > maxSecond {
		return 0, 0, false
	}
	uncertainty = unit / (1e9 / scale)
	if uncertainty <= 1 {
		uncertainty = 0
	}
	return whole*unit + frac/(1e9/unit), uncertainty, true
}

// httpDate reads Tue, 03 Mar 2026 10:15:42 GMT.
func httpDate(b []byte) (ns int64, ok bool) {
	if len(b) != 29 || b[3] != ',' || b[19] != ':' || b[22] != ':' || string(b[25:]) != " GMT" {
		return 0, false
	}
	day, ok1 := digits(b[5:7])
	year, ok2 := digits(b[12:16])
	month := monthOf(b[8:11])
	if !ok1 || !ok2 || !validDate(year, month, day) {
		return 0, false
	}
	second, ok := clock(b[17], b[18], b[20], b[21], b[23], b[24])
	if !ok {
		return 0, false
	}
	second += 86400 * daysSinceEpoch(year, month, day)
	return second * 1e9, second >= minSecond && second <= maxSecond
}

// clock reads the digits of hour, minute and second as seconds of the day. A
// leap second counts as the next one.
func clock(h1, h2, m1, m2, s1, s2 byte) (int64, bool) {
	h1, h2, m1, m2, s1, s2 = h1-'0', h2-'0', m1-'0', m2-'0', s1-'0', s2-'0'
	if h1 > 9 || h2 > 9 || m1 > 5 || m2 > 9 || s1 > 6 || s2 > 9 {
		return 0, false
	}
	h, s := int64(h1)*10+int64(h2), int64(s1)*10+int64(s2)
	return h*3600 + (int64(m1)*10+int64(m2))*60 + s, h <= 23 && s <= 60
}

// digits reads b as a number, all of it.
func digits(b []byte) (int, bool) {
	n := 0
	for _, c := range b {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, len(b) > 0
}

func monthOf(b []byte) int {
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	for m := range 12 {
		if string(b) == names[3*m:3*m+3] {
			return m + 1
		}
	}
	return 0
}

func validDate(year, month, day int) bool {
	if month < 1 || month > 12 || day < 1 || year < 1970 || year > 2262 {
		return false
	}
	last := 31
	switch month {
	case 4, 6, 9, 11:
		last = 30
	case 2:
		last = 28
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			last = 29
		}
	}
	return day <= last
}

// daysSinceEpoch counts the days from 1970-01-01, in years that begin in March.
func daysSinceEpoch(year, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	return int64(365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 719469)
}

// spanScale are the nanoseconds of one in the last of so many decimals, 0 where
// that is no whole number.
var spanScale = [len(unitNanoseconds)][8]int64{
	unitDefault: {1e6, 1e5, 1e4, 1e3, 100, 10, 1},
	unitSeconds: {1e9, 1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 100},
	unitMillis:  {1e6, 1e5, 1e4, 1e3, 100, 10, 1},
	unitMicros:  {1e3, 100, 10, 1},
	unitNanos:   {1},
}

// maxSpan bounds durations and waits, in nanoseconds: a hundred years.
const maxSpan = 100 * 365 * 86400 * 1_000_000_000

// span reads a duration in nanoseconds: a number of the unit, or a number with a
// unit of its own (12ms, 1.5s, 1m30s, and gRPC's 100m, where one small letter m,
// u or n is milli, micro, nano). negative and oversized ones are not ok.
func span(b []byte, u unit) (ns int64, ok bool) {
	if n, behind, ok := smallDecimal(b); ok {
		if scale := spanScale[u][behind]; scale != 0 {
			return n * scale, true
		}
	}
	ns, n, ok := decimal(b, unitNanoseconds[u])
	if ok && n == len(b) {
		return ns, true
	}
	return spanSlow(b, u)
}

// decimal reads digits with a fraction as a multiple of scale nanoseconds, and
// says how many bytes it read.
func decimal(b []byte, scale int64) (ns int64, n int, ok bool) {
	i := 0
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if ns > maxSpan/10 {
			return 0, i, false
		}
		ns = ns*10 + int64(b[i]-'0')
	}
	whole := i
	if scale > 1 && ns > maxSpan/scale {
		return 0, i, false
	}
	ns *= scale
	if i < len(b) && b[i] == '.' {
		for i++; i < len(b) && b[i]-'0' <= 9; i++ {
			scale /= 10
			ns += int64(b[i]-'0') * scale
		}
		if i == whole+1 {
			return 0, i, false
		}
	}
	return ns, i, i > 0 && ns <= maxSpan
}

func spanSlow(b []byte, u unit) (int64, bool) {
	if len(b) == 0 || len(b) > 40 {
		return 0, false
	}
	if last := b[len(b)-1]; last-'0' <= 9 || last == '.' {
		x, err := strconv.ParseFloat(string(b), 64)
		x *= float64(unitNanoseconds[u])
		if err != nil || !(x >= 0 && x <= maxSpan) {
			return 0, false
		}
		return int64(x), true
	}
	if ns, ok := grpcTimeout(b); ok {
		return ns, true
	}
	var sum int64
	for len(b) > 0 {
		i := 0
		for i < len(b) && (b[i]-'0' <= 9 || b[i] == '.') {
			i++
		}
		j := i
		for j < len(b) && b[j]-'0' > 9 && b[j] != '.' {
			j++
		}
		var scale int64
		switch string(bytes.TrimSpace(b[i:j])) {
		case "h":
			scale = 3600e9
		case "m", "min":
			scale = 60e9
		case "s", "sec":
			scale = 1e9
		case "ms":
			scale = 1e6
		case "us", "µs", "μs":
			scale = 1e3
		case "ns":
			scale = 1
		default:
			return 0, false
		}
		ns, n, ok := decimal(b[:i], scale)
		if !ok || n != i {
			return 0, false
		}
		if sum += ns; sum > maxSpan {
			return 0, false
		}
		b = b[j:]
	}
	return sum, true
}

// grpcTimeout reads up to eight digits and a unit of one letter.
func grpcTimeout(b []byte) (int64, bool) {
	if len(b) < 2 || len(b) > 9 {
		return 0, false
	}
	n, ok := digits(b[:len(b)-1])
	if !ok {
		return 0, false
	}
	var scale int64
	switch b[len(b)-1] {
	case 'H':
		scale = 3600e9
	case 'M':
		scale = 60e9
	case 'S':
		scale = 1e9
	case 'm':
		scale = 1e6
	case 'u':
		scale = 1e3
	case 'n':
		scale = 1
	default:
		return 0, false
	}
	if int64(n) > maxSpan/scale {
		return maxSpan, true
	}
	return int64(n) * scale, true
}
