// Package examples holds the scenarios of the lab, as files that users copy; the
// program carries them along.
package examples

import "embed"

// Lab holds lab/NAME.yaml for every scenario.
//
//go:embed lab/*.yaml
var Lab embed.FS
