// Package attack_test attacks the engine from inside a box, and with an init or a
// record that lies: nothing gets out, nothing is taken from others, and the box and
// its host go on.
package attack_test

import (
	"testing"

	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
