//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package ingest

import (
	"os"
	"syscall"
)

// lockFile takes no lock here: that no two share a spool is for who starts them.
func lockFile(*os.File) error { return nil }

func isFull(err error) bool { return errorIs(err, syscall.ENOSPC) }
