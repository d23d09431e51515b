//go:build !race

package drill

// raced says that the race detector watches.
const raced = false
