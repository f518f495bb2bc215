package fake_test

import (
	"testing"

	"sandbox/core"
	"sandbox/core/enginetest"
	"sandbox/core/enginetest/fake"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestEngine(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, enginetest.Subject{New: func(t *testing.T) core.Engine { return fake.NewEngine(t) }, Rootfs: "/"})
}
