package ingest

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"unsafe"
)

// Map returns what Next would, of the file's own pages in the kernel's cache and
// so without a copy, if the file allows it; where it does not, Next goes on. The
// block must be freed. To touch it is a fault once the file has been cut short,
// which Faulted tells from others.
func (f *File) Map(size int) (b Block, ok bool) {
	if !f.plain || f.ended {
		return Block{}, false
	}
	from := f.offset &^ int64(os.Getpagesize()-1)
	before := int(f.offset - from)
	// What lies behind the last whole block is read: it may still grow.
	if st, err := f.raw.Stat(); err != nil || f.offset+int64(size) > st.Size() {
		return Block{}, false
	}
	pages, err := mapPages(f.raw, from, before+size)
	if err != nil {
		f.plain = false // a file system that cannot
		return Block{}, false
	}
	b = Block{Offset: f.offset, pages: pages}
	end := lastLine(pages[before:])
	if end == 0 || f.skip(int64(end)) != nil {
		b.Free()
		return Block{}, false
	}
	b.Data = pages[before : before+end : before+end]
	return b, true
}

// lastLine is where the last whole line of mapped text ends, 0 if there is none.
func lastLine(text []byte) (end int) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			end = 0 // cut short since it was mapped: reading says what there is
		}
	}()
	return bytes.LastIndexByte(text, '\n') + 1
}

// skip passes over n bytes, of which some may have been read ahead.
func (f *File) skip(n int64) error {
	if _, err := f.raw.Seek(f.offset+n, 0); err != nil {
		return err
	}
	f.offset += n
	f.r, f.rest = &f.counter, f.rest[:0]
	f.counter.n.Store(f.offset)
	return nil
}

// Free gives back the pages of a block that Map returned.
func (b *Block) Free() {
	if b.pages != nil {
		unmapPages(b.pages)
		*b = Block{}
	}
}

// Faulted is the error for what was recovered from a panic, if that came from
// touching the block after its file was cut short; nil otherwise. It needs
// debug.SetPanicOnFault.
func (f *File) Faulted(b *Block, recovered any) error {
	fault, ok := recovered.(interface{ Addr() uintptr })
	if !ok || b.pages == nil || fault.Addr()-uintptr(unsafe.Pointer(&b.pages[0])) >= uintptr(len(b.pages)) {
		return nil
	}
	return fmt.Errorf("read %s: was cut short while it was read, within %d bytes from byte %d on; audit a copy of it, or what it was rotated to", f.name, len(b.Data), b.Offset)
}
