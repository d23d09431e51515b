package aggregate

import "github.com/targetside/auditor/keys"

// Number is v as a figure; null if v is not a number or has no end.
func Number(v float64) Figure { return figure(v) }

// Share is a / b, and null for b = 0.
func Share(a, b uint64) Figure { return share(a, b) }

// Bound is a / b, "unbounded" for b = 0, and null if both are 0.
func Bound(a, b uint64) Figure { return bound(a, b) }

// Each reports every reason and its count, zeros included, in the order in which
// reasons are tested.
func (u Unattributable) Each(f func(reason string, n uint64)) {
	for r := keys.None + 1; int(r) < keys.NumReasons; r++ {
		f(r.String(), u.Reasons[r])
	}
}
