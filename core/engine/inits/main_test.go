package inits

import (
	"testing"

	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
