//go:build !purego

package accesslog

//go:noescape
func decodeBase64AVX2(dst, src *byte, groups int) (done int)

// decodeGroups decodes groups of 32 characters, as long as they are characters of base64
// and there is room to write 32 bytes for the 24 that a group stands for. It gives how
// much it has read and written.
func decodeGroups(into, text []byte) (read, written int) {
	if !useAVX2 || len(text) < 32 || len(into) < 32 {
		return 0, 0
	}
	n := decodeBase64AVX2(&into[0], &text[0], min(len(text)/32, (len(into)-8)/24))
	return 32 * n, 24 * n
}
