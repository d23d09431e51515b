//go:build !purego

#include "textflag.h"

// What a character adds to become its value, by its high nibble; '/' is looked up one
// before its own.
DATA base64Roll<>+0(SB)/8, $0xb9b9bfbf04131000
DATA base64Roll<>+8(SB)/8, $0
GLOBL base64Roll<>(SB), RODATA|NOPTR, $16

// A character is none of base64 where what its low nibble and its high nibble have here
// share a bit.
DATA base64Low<>+0(SB)/8, $0x1111111111111115
DATA base64Low<>+8(SB)/8, $0x1a1b1b1b1a131111
GLOBL base64Low<>(SB), RODATA|NOPTR, $16
DATA base64High<>+0(SB)/8, $0x0804080402011010
DATA base64High<>+8(SB)/8, $0x1010101010101010
GLOBL base64High<>(SB), RODATA|NOPTR, $16

// The three bytes of each four, the highest first.
DATA base64Order<>+0(SB)/8, $0x090a040506000102
DATA base64Order<>+8(SB)/8, $0xffffffff0c0d0e08
GLOBL base64Order<>(SB), RODATA|NOPTR, $16

DATA base64Lanes<>+0(SB)/8, $0x0000000100000000
DATA base64Lanes<>+8(SB)/8, $0x0000000400000002
DATA base64Lanes<>+16(SB)/8, $0x0000000600000005
DATA base64Lanes<>+24(SB)/8, $0xffffffffffffffff
GLOBL base64Lanes<>(SB), RODATA|NOPTR, $32

// func decodeBase64AVX2(dst, src *byte, groups int) (done int)
//
// Decodes groups of 32 characters into 24 bytes each, up to the first group that holds
// something else than the 64 characters, and gives how many it decoded. It writes 32
// bytes for a group. The way is that of Wojciech Muła and Daniel Lemire, "Faster Base64
// Encoding and Decoding Using AVX2 Instructions" (2018): classify by two look-ups,
// add by a third, and put six bits beside six by two multiplications.
TEXT ·decodeBase64AVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ groups+16(FP), CX
	XORQ DX, DX
	VBROADCASTI128 base64Roll<>(SB), Y8
	VBROADCASTI128 base64Low<>(SB), Y9
	VBROADCASTI128 base64High<>(SB), Y10
	VBROADCASTI128 base64Order<>(SB), Y11
	VMOVDQU base64Lanes<>(SB), Y12
	MOVL $0x2F2F2F2F, AX
	VMOVQ AX, X13
	VPBROADCASTD X13, Y13
	MOVL $0x01400140, AX
	VMOVQ AX, X14
	VPBROADCASTD X14, Y14
	MOVL $0x00011000, AX
	VMOVQ AX, X15
	VPBROADCASTD X15, Y15

group:
	CMPQ DX, CX
	JGE done
	VMOVDQU (SI), Y0
	VPSRLD $4, Y0, Y1
	VPAND Y13, Y1, Y1       // high nibbles, and a bit that does not matter
	VPAND Y13, Y0, Y2       // low nibbles, and the same
	VPSHUFB Y2, Y9, Y2
	VPSHUFB Y1, Y10, Y3
	VPTEST Y3, Y2
	JNZ done
	VPCMPEQB Y13, Y0, Y4    // -1 at '/'
	VPADDB Y1, Y4, Y4
	VPSHUFB Y4, Y8, Y4
	VPADDB Y4, Y0, Y0       // values of six bits
	VPMADDUBSW Y14, Y0, Y0  // pairs, twelve bits
	VPMADDWD Y15, Y0, Y0    // fours, twenty-four
	VPSHUFB Y11, Y0, Y0
	VPERMD Y0, Y12, Y0
	VMOVDQU Y0, (DI)
	ADDQ $32, SI
	ADDQ $24, DI
	INCQ DX
	JMP group

done:
	MOVQ DX, done+24(FP)
	VZEROUPPER
	RET
