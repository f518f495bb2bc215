package engine_test

import (
	"log"
	"os"
	"testing"

	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/enginetest"
	"sandbox/test/leak"
	"sandbox/test/programs"
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

// open returns the engine of a new home.
func open(t *testing.T) *engine.Client {
	t.Helper()
	return openAt(t, t.TempDir())
}

// openAt returns the engine of a home, on the programs that make build built.
func openAt(t *testing.T, home string) *engine.Client {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root: boxes are made of mounts, cgroups and namespaces")
	}
	e, err := engine.Open(engine.Config{Home: home, HelperDir: programDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func programDir() string { return programs.Dir() }

func TestEngine(t *testing.T) {
	t.Parallel()
	// With its records in memory; most other tests read them each time.
	enginetest.Run(t, func(t *testing.T) core.Engine { return cachedAt(t, t.TempDir()) }, rootfs.Busybox(t))
}
