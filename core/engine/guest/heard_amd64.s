#include "textflag.h"

// A signal handler for process 1 of a pod. It drops signals from inside the box. Those
// that a process outside of its pid namespace has sent by kill have si_code SI_USER and
// si_pid 0, both of them zero, which nobody inside can forge. They are written to an
// eventfd.
TEXT heard<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVL 8(SI), AX // si_code
	ORL  16(SI), AX // si_pid
	JNE  done
	MOVL ·heardFD(SB), DI
	LEAQ ·heardOne(SB), SI
	MOVL $8, DX
	MOVL $1, AX // write
	SYSCALL
done:
	RET

DATA ·heardPC(SB)/8, $heard<>(SB)
GLOBL ·heardPC(SB), NOPTR|RODATA, $8
