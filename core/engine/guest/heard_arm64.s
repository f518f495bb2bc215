#include "textflag.h"

// A signal handler for process 1 of a pod: see heard_amd64.s.
TEXT heard<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVWU 8(R1), R3 // si_code
	MOVWU 16(R1), R4 // si_pid
	ORR   R4, R3
	CBNZ  R3, done
	MOVW  ·heardFD(SB), R0
	MOVD  $·heardOne(SB), R1
	MOVD  $8, R2
	MOVD  $64, R8 // write
	SVC
done:
	RET

DATA ·heardPC(SB)/8, $heard<>(SB)
GLOBL ·heardPC(SB), NOPTR|RODATA, $8
