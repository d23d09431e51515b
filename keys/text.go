package keys

import (
	"bytes"
	"math"
)

// Header is the request header that carries a qk1 or qk2 key.
const Header = "Question-Key"

// Sizes of the parts of a signed key, in characters of its text.
const (
	prefixSize        = 4 // "qk1." or "qk2."
	maxOriginatorSize = 32
	maxKIDSize        = 8
	maxMintedSize     = 13 // digits of the largest int64 in base 36
	nonceSize         = 16 // 96 bits
	tagSize           = 22 // 128 bits
	signatureSize     = 86 // 512 bits

	maxTextSize = prefixSize + maxOriginatorSize + 1 + maxKIDSize + 1 + maxMintedSize + 1 + nonceSize + 1 + signatureSize
)

// signedText is a signed key taken apart. The slices alias the text.
type signedText struct {
	signed     []byte // what the tag covers: everything before the last dot
	author     []byte // "originator.kid", as in Ring.authors
	originator []byte
	kid        []byte
	minted     int64 // Unix ms
	tag        []byte
}

// parseText takes apart a text that begins with "qk1." or "qk2.". The fault is "" or says which rule is broken; it never
// repeats any part of the text.
func parseText(text []byte) (k signedText, fault string) {
	if len(text) > maxTextSize {
		return k, "the key is longer than any key can be"
	}
	rest := text[prefixSize:]
	var part [4][]byte // originator, kid, minted, nonce
	for i := range part {
		dot := nonceSize
		if i < 3 || len(rest) <= dot || rest[dot] != '.' {
			dot = bytes.IndexByte(rest, '.')
		}
		if dot < 0 {
			return k, "a key has six parts with a dot between them"
		}
		part[i], rest = rest[:dot], rest[dot+1:]
	}
	k = signedText{
		signed:     text[:len(text)-len(rest)-1],
		author:     text[prefixSize : prefixSize+len(part[0])+1+len(part[1])],
		originator: part[0],
		kid:        part[1],
		tag:        rest,
	}
	if !validOriginator(k.originator) {
		return k, "the originator is not 1 to 32 of a-z, 0-9 and -"
	}
	if !validKID(k.kid) {
		return k, "the kid is not 1 to 8 of a-z and 0-9"
	}
	minted, ok := parseBase36(part[2])
	if !ok {
		return k, "minted is not Unix milliseconds in lower-case base 36 without leading zeros"
	}
	k.minted = minted
	if len(part[3]) != nonceSize || !isBase64URL(part[3]) {
		return k, "the nonce is not 16 characters of base64url"
	}
	if text[2] == '1' {
		if len(k.tag) != tagSize || !isBase64URL(k.tag) {
			return k, "the tag is not 22 characters of base64url without padding"
		}
	} else if len(k.tag) != signatureSize || !isBase64URL(k.tag) {
		return k, "the signature is not 86 characters of base64url without padding"
	}
	// 22 characters hold 132 bits and 86 hold 516: the last four must be zero, else one tag would have sixteen texts.
	if base64Value[k.tag[len(k.tag)-1]]&0x0f != 0 {
		return k, "the last character carries bits beyond the tag: re-encode it"
	}
	return k, ""
}

func validOriginator[T ~string | ~[]byte](id T) bool {
	if len(id) < 1 || len(id) > maxOriginatorSize {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !isLowerAlnum(c) && c != '-' {
			return false
		}
	}
	return true
}

func validKID[T ~string | ~[]byte](kid T) bool {
	if len(kid) < 1 || len(kid) > maxKIDSize {
		return false
	}
	for i := range len(kid) {
		if !isLowerAlnum(kid[i]) {
			return false
		}
	}
	return true
}

func isLowerAlnum(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// parseBase36 reads what strconv.FormatInt(n, 36) writes for n >= 0, and nothing else.
func parseBase36(digits []byte) (int64, bool) {
	if len(digits) == 0 || len(digits) > maxMintedSize || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		var d int64
		switch {
		case '0' <= c && c <= '9':
			d = int64(c - '0')
		case 'a' <= c && c <= 'z':
			d = int64(c-'a') + 10
		default:
			return 0, false
		}
		if len(digits) == maxMintedSize && n > (math.MaxInt64-d)/36 {
			return 0, false
		}
		n = n*36 + d
	}
	return n, true
}

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// base64Value holds the six bits of each character of the base64url alphabet, 0xff for every other byte.
var base64Value = func() (table [256]byte) {
	for i := range table {
		table[i] = 0xff
	}
	for i := range len(base64Alphabet) {
		table[base64Alphabet[i]] = byte(i)
	}
	return table
}()

// tagBits decodes the 128 bits of a tag.
func tagBits(tag []byte) (high, low uint64) {
	for _, c := range tag[:10] {
		high = high<<6 | uint64(base64Value[c])
	}
	middle := uint64(base64Value[tag[10]])
	for _, c := range tag[11:21] {
		low = low<<6 | uint64(base64Value[c])
	}
	return high<<4 | middle>>2, middle<<62 | low<<2 | uint64(base64Value[tag[21]])>>4
}

func isBase64URL(text []byte) bool {
	var bad byte
	for _, c := range text {
		bad |= base64Value[c]
	}
	return bad&0xc0 == 0
}
