package fake_test

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/enginetest"
	"sandbox/core/enginetest/fake"
	"sandbox/core/options"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestEngine(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, enginetest.Subject{New: func(t *testing.T) core.Engine { return fake.NewEngine(t) }, Rootfs: "/"})
}

// TestDefaultSignals ends commands by signals that a shell has ignored in what it runs in
// the background.
func TestDefaultSignals(t *testing.T) {
	t.Parallel()
	o := options.Defaults()
	o.RootfsPath = "/"
	box, _, err := core.New(core.Config{Engine: fake.NewEngine(t)}).Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for name, sig := range map[string]unix.Signal{"HUP": unix.SIGHUP, "INT": unix.SIGINT} {
		got, err := box.Run(t.Context(), "sh", "-c", "kill -"+name+" $$; echo lived")
		if err != nil || got.Signal == nil || *got.Signal != int(sig) {
			t.Errorf("a command that was sent SIG%s: %+v, %v", name, got, err)
		}
	}
}

// TestInBackground runs TestDefaultSignals as a shell runs a program in the background.
func TestInBackground(t *testing.T) {
	t.Parallel()
	test, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `trap "" HUP INT; exec "$0" -test.run '^TestDefaultSignals$'`, test).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
