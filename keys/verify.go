package keys

import "time"

// Explanation is what a ring makes of one key text, for a person. Unlike an Attribution it also says what a key that could
// not be verified claims about itself.
type Explanation struct {
	Class  Class
	Reason Reason
	Scheme string // "qk1", "qk2", or "" where neither is accepted for this text
	Detail string // one sentence: the rule that was broken, or that all of them hold; never part of the key

	// What the text says of itself; zero when it is malformed. Only Proven makes it more than a claim.
	Originator string
	KID        string
	Minted     time.Time
	Age        time.Duration // now − minted; negative when minted ahead
	Proven     bool          // the tag matches
}

// Verify explains a qk1 or qk2 key as it would be judged for an arrival at the time given. VerifyPerSecond does not apply.
func (r *Ring) Verify(text string, now time.Time) Explanation {
	e := Explanation{}
	field := -1
	for i := range r.fields {
		if r.fields[i].read == nil {
			field = i
		}
	}
	value := trimBlanks([]byte(text))
	switch {
	case field < 0:
		e.Reason, e.Detail = Malformed, "neither qk1 nor qk2 is accepted here"
		return e
	case len(value) == 0 || string(value) == "-":
		e.Reason, e.Detail = Absent, "there is no key"
		return e
	}
	if one, ok := collapse(value); ok && len(value) <= maxValueSize {
		value = one
	}
	unlimited := &Ring{schemes: r.schemes, fields: r.fields[field : field+1], authors: r.authors, keys: r.keys, origins: r.origins,
		lifetime: r.lifetime, skew: r.skew, seeds: r.seeds}
	a := unlimited.newChecker(1, 1).Attribute([][]byte{value}, false, now.UnixNano(), 0)
	e.Class, e.Reason, e.Proven = a.Class, a.Reason, a.OriginatorIndex >= 0
	if len(value) > prefixSize && string(value[:prefixSize]) == a.Scheme+"." {
		e.Scheme = a.Scheme
	}

	var k signedText
	fault := "a key begins with qk1. or qk2., and the scheme must be accepted here"
	if e.Scheme != "" {
		k, fault = parseText(value)
	}
	if fault == "" {
		e.Originator, e.KID = string(k.originator), string(k.kid)
		e.Minted = time.UnixMilli(k.minted).UTC()
		e.Age = now.Sub(e.Minted)
	}
	switch e.Reason {
	case None:
		e.Detail = "the tag matches and the times are right"
	case Malformed:
		e.Detail = fault
	case UnknownOriginator:
		e.Detail = "no originator here has a key of this kid and scheme"
	case Forged:
		e.Detail = "the tag does not match: the key was changed, or minted with another secret"
	case Expired:
		e.Detail = "minted longer ago than the lifetime of " + time.Duration(r.lifetime).String()
	case NotYetValid:
		e.Detail = "minted ahead of the start by more than the skew of " + time.Duration(r.skew).String()
	}
	return e
}
