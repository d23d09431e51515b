package ingest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rotation is what rotation appends to a name: access.log.1, access.log-20261129,
// 0.log.20261129-101112, access.log.old.
var rotation = regexp.MustCompile(`^(.+)[.-]([0-9][0-9T:._-]*|old)$`)

// dated is a date that rotation puts before the extension: access-20261129.log.
var dated = regexp.MustCompile(`^(.+)[.-]([0-9]{4}-?[0-9]{2}-?[0-9]{2}[0-9T:._-]*)$`)

// rotatedFrom lists the paths of which path may be a rotated earlier part, the shortest
// first: access.log-20261129-10 is one of access.log rather than of access.log-20261129.
func rotatedFrom(path string) (bases []string) {
	dir, name := filepath.Split(path)
	for m := rotation.FindStringSubmatch(name); m != nil; m = rotation.FindStringSubmatch(m[1]) {
		bases = append(bases, dir+m[1])
	}
	slices.Reverse(bases)
	ext := filepath.Ext(name)
	if m := dated.FindStringSubmatch(strings.TrimSuffix(name, ext)); m != nil && ext != "" {
		bases = append(bases, dir+m[1]+ext)
	}
	return bases
}

// rotatedPaths lists what lies beside path under the name of a rotated part of it.
func rotatedPaths(path string) (paths []string) {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		p := filepath.Join(dir, e.Name())
		for _, base := range rotatedFrom(p) {
			if base == filepath.Clean(path) {
				paths = append(paths, p)
				break
			}
		}
	}
	return paths
}

// rotationNumber is the 3 of access.log.3; -1 without, and where a date has a number.
func rotationNumber(path string) int {
	m := rotation.FindStringSubmatch(filepath.Base(path))
	if m == nil || len(m[2]) > 4 || rotation.MatchString(m[1]) {
		return -1
	}
	n, err := strconv.Atoi(m[2])
	if err != nil {
		return -1
	}
	return n
}

func isGlob(p string) bool { return strings.ContainsAny(p, `*?[\`) }

// unfit says why a file that a glob found cannot be followed; empty if it can, or
// if that cannot be told yet.
func unfit(path string) string {
	st, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if !st.Mode().IsRegular() {
		return "is not a regular file"
	}
	switch filepath.Ext(path) {
	case ".gz", ".zst", ".bz2", ".xz", ".zip":
		if st.Size() == 0 { // its first bytes are still to come
			return "is to be compressed, by its name"
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	return compressed(f)
}

// compressed says so when the first bytes are those of a compressed file: such a
// file does not grow, and what it holds was read before it was compressed.
func compressed(f *os.File) string {
	head := make([]byte, 6)
	n, _ := f.ReadAt(head, 0)
	return compressedHead(head[:n])
}

func compressedHead(head []byte) string {
	for _, m := range magics {
		if strings.HasPrefix(string(head[:min(len(head), len(m.magic))]), m.magic) {
			return "is compressed with " + m.name + " and does not grow; audit it with replay"
		}
	}
	return ""
}
