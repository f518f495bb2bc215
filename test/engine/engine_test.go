// Package engine_test looks at what the engine does on a real host: boxes, their
// limits, disks, networks and volumes, and what is left when a shim, an init or an
// owner dies.
package engine_test

import (
	"log"
	"os"
	"testing"

	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/enginetest"
	"sandbox/test/boxes"
	"sandbox/test/leak"
	"sandbox/test/rootfs"
)

func TestMain(m *testing.M) {
	if home := os.Getenv("OWNER_HOME"); home != "" {
		own(home, os.Getenv("OWNER_ROOT")) // the child of TestOwnerKilled
	}
	if home := os.Getenv("REFUSED_HOME"); home != "" {
		refused(home) // the child of TestHostsWithout
	}
	if os.Getenv("PURE_V1") != "" { // the child of TestPureV1
		if err := leaveV2(); err != nil {
			log.Fatal(err)
		}
	}
	leak.Main(m)
}

func TestEngine(t *testing.T) {
	t.Parallel()
	// With its records in memory; most other tests read them each time.
	enginetest.Run(t, enginetest.Subject{New: func(t *testing.T) core.Engine {
		return boxes.OpenConfig(t, engine.Config{Home: t.TempDir(), Cached: true})
	}, Rootfs: rootfs.Busybox(t)})
}
