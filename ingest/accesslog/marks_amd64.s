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

// func markLineAVX2(dst, src *byte) (n int, seen uint8)
//
// Marks the quotes of a line as markAVX2 does, and finds its end on the way: n is
// how many bytes are before the first line feed, or 4096 if it is not among that
// many bytes, which must be there. It is the first to touch the text, and asks for
// what lies a page ahead: left to itself the processor stops at every page.
TEXT ·markLineAVX2(SB), NOSPLIT, $0-25
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVL $0x22222222, AX
	VMOVQ AX, X0
	VPBROADCASTD X0, Y0
	MOVL $0x5C5C5C5C, AX
	VMOVQ AX, X1
	VPBROADCASTD X1, Y1
	MOVL $0x0A0A0A0A, AX
	VMOVQ AX, X8
	VPBROADCASTD X8, Y8
	VPXOR Y2, Y2, Y2 // where there are backslashes
	VPXOR Y3, Y3, Y3 // all bytes, or'ed
	XORQ CX, CX
	XORQ R11, R11 // of the last block: backslashes, high bytes
	XORQ R12, R12

block:
	PREFETCHT0 4096(SI)(CX*1)
	VMOVDQU (SI)(CX*1), Y4
	VMOVDQU 32(SI)(CX*1), Y5
	VPCMPEQB Y4, Y8, Y6
	VPCMPEQB Y5, Y8, Y7
	VPMOVMSKB Y6, R9
	VPMOVMSKB Y7, BX
	SHLQ $32, BX
	ORQ BX, R9
	VPCMPEQB Y4, Y0, Y6
	VPCMPEQB Y5, Y0, Y7
	VPMOVMSKB Y6, R10
	VPMOVMSKB Y7, BX
	SHLQ $32, BX
	ORQ BX, R10
	VPCMPEQB Y4, Y1, Y6
	VPCMPEQB Y5, Y1, Y7
	TESTQ R9, R9
	JNZ last
	MOVQ R10, (DI)
	VPOR Y6, Y2, Y2
	VPOR Y7, Y2, Y2
	VPOR Y4, Y3, Y3
	VPOR Y5, Y3, Y3
	ADDQ $8, DI
	ADDQ $64, CX
	CMPQ CX, $4096
	JLT block
	JMP done

last:
	BSFQ R9, DX
	ADDQ DX, CX
	LEAQ -1(R9), R8 // what comes before the line feed
	NOTQ R9
	ANDQ R9, R8
	ANDQ R8, R10
	MOVQ R10, (DI)
	ADDQ $8, DI
	VPMOVMSKB Y6, R11
	VPMOVMSKB Y7, BX
	SHLQ $32, BX
	ORQ BX, R11
	ANDQ R8, R11
	VPMOVMSKB Y4, R12
	VPMOVMSKB Y5, BX
	SHLQ $32, BX
	ORQ BX, R12
	ANDQ R8, R12

done:
	MOVQ $0, (DI)
	MOVQ $0, 8(DI)
	VPMOVMSKB Y2, AX
	ORQ R11, AX
	NEGQ AX
	SBBQ AX, AX
	ANDL $1, AX
	VPMOVMSKB Y3, BX
	ORQ R12, BX
	NEGQ BX
	SBBQ BX, BX
	ANDL $2, BX
	ORL BX, AX
	MOVQ CX, n+16(FP)
	MOVB AX, seen+24(FP)
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
