//go:build unix

package ingest

import (
	"io/fs"
	"syscall"
)

// inode is what tells a file from all others that there are at the moment.
func inode(st fs.FileInfo) (dev, ino uint64) {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev), uint64(s.Ino)
	}
	return 0, 0
}

// unlinked says that a file has no name any more.
func unlinked(st fs.FileInfo) bool {
	s, ok := st.Sys().(*syscall.Stat_t)
	return ok && s.Nlink == 0
}
