package guest

import "golang.org/x/sys/unix"

// strictHere are the calls of the smaller list that only this architecture has.
var strictHere = []int{unix.SYS_FSTATAT, unix.SYS_RENAMEAT}
