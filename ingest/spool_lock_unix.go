//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package ingest

import (
	"os"
	"syscall"
)

// lockFile takes a file for this process alone; the lock ends with the process.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// isFull says that an error is for want of room on the disk.
func isFull(err error) bool { return errorIs(err, syscall.ENOSPC, syscall.EDQUOT) }
