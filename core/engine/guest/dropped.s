#include "textflag.h"

// A signal handler that does nothing: the kernel calls it, and it returns to
// the restorer that Go has set.
TEXT dropped<>(SB), NOSPLIT|NOFRAME, $0-0
	RET

DATA ·droppedPC(SB)/8, $dropped<>(SB)
GLOBL ·droppedPC(SB), NOPTR|RODATA, $8
