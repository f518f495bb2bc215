//go:build !cgo

package layer_test

const cgo = false
