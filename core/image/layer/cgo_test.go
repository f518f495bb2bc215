//go:build cgo

package layer_test

// cgo is set if the program is built with cgo. Then a system call that concerns
// one thread can't be made in all threads.
const cgo = true
