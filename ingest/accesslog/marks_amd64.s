//go:build !purego

#include "textflag.h"

// func markAVX2(dst, src *byte, n int, c byte) (seen uint8)
//
// Sets bit i of dst where src[i] == c, for i < n, and clears sixteen bytes after;
// n is 64 at least. It reads src[:n] and no more: what is left of the last 64
// bytes is read together with the bytes before it, which are shifted out. Of
// seen, bit 0 says that there is a backslash, bit 1 that there is a byte from
// 0x80 on.
TEXT ·markAVX2(SB), NOSPLIT, $0-33
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VPBROADCASTB c+24(FP), Y0
	MOVL $0x5C5C5C5C, AX
	VMOVQ AX, X1
	VPBROADCASTD X1, Y1
	VPXOR Y2, Y2, Y2 // where there are backslashes
	VPXOR Y3, Y3, Y3 // all bytes, or'ed
	XORQ R8, R8      // how far the last word is too high

block:
	VMOVDQU (SI), Y4
	VMOVDQU 32(SI), Y5
	VPCMPEQB Y4, Y0, Y6
	VPCMPEQB Y5, Y0, Y7
	VPMOVMSKB Y6, AX
	VPMOVMSKB Y7, BX
	VPCMPEQB Y4, Y1, Y6
	VPCMPEQB Y5, Y1, Y7
	VPOR Y6, Y2, Y2
	VPOR Y7, Y2, Y2
	VPOR Y4, Y3, Y3
	VPOR Y5, Y3, Y3
	SHLQ $32, BX
	ORQ BX, AX
	MOVQ AX, (DI)
	ADDQ $64, SI
	ADDQ $8, DI
	SUBQ $64, CX
	CMPQ CX, $64
	JGE block
	TESTQ CX, CX
	JZ done
	MOVQ $64, R8
	SUBQ CX, R8
	SUBQ R8, SI
	MOVQ $64, CX
	JMP block

done:
	MOVQ R8, CX
	SHRQ CX, AX
	MOVQ AX, -8(DI)
	MOVQ $0, (DI)
	MOVQ $0, 8(DI)
	VPMOVMSKB Y2, AX
	NEGL AX
	SBBL AX, AX
	ANDL $1, AX
	VPMOVMSKB Y3, BX
	NEGL BX
	SBBL BX, BX
	ANDL $2, BX
	ORL BX, AX
	MOVB AX, seen+32(FP)
	VZEROUPPER
	RET

// func haveAVX2() bool
//
// The processor has AVX2 and the system keeps its registers.
TEXT ·haveAVX2(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	XORL AX, AX
	CPUID
	CMPL AX, $7
	JLT no
	MOVL $1, AX
	XORL CX, CX
	CPUID
	ANDL $0x18000000, CX // OSXSAVE, AVX
	CMPL CX, $0x18000000
	JNE no
	XORL CX, CX
	XGETBV
	ANDL $6, AX // XMM, YMM
	CMPL AX, $6
	JNE no
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $5, BX
	ANDL $1, BX
	MOVB BX, ret+0(FP)

no:
	RET
