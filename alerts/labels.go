package alerts

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"
)

// mostLabel is how many bytes a label's value has at most.
const mostLabel = 128

// SafeLabel makes a value that may stand as a label, of an alert or a metric: UTF-8,
// which is all that Alertmanager and Prometheus take, and no longer than mostLabel. One
// that had to be changed ends with a hash of itself, so that two do not become one.
func SafeLabel(v string) string {
	if utf8.ValidString(v) && len(v) <= mostLabel {
		return v
	}
	h := fnv.New32a()
	h.Write([]byte(v))
	v = strings.ToValidUTF8(v, "\uFFFD")
	if cut := mostLabel - 12; len(v) > cut {
		for !utf8.RuneStart(v[cut]) {
			cut--
		}
		v = v[:cut]
	}
	return fmt.Sprintf("%s…%08x", v, h.Sum32())
}

// clean leaves out labels without a value and bounds the others.
func clean(labels map[string]string) map[string]string {
	for k, v := range labels {
		if v == "" {
			delete(labels, k)
		} else {
			labels[k] = SafeLabel(v)
		}
	}
	return labels
}
