//go:build race

package lab

// raced says that the race detector watches.
const raced = true
