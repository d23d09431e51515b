package ingest

import (
	"os"
	"syscall"
)

// mapPages maps n bytes of a file, with the pages there already.
func mapPages(f *os.File, from int64, n int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), from, n, syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_POPULATE)
}

func unmapPages(pages []byte) { _ = syscall.Munmap(pages) }
