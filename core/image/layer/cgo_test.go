//go:build cgo

package layer_test

// cgo: system calls that concern one thread can't be made in all of them.
const cgo = true
