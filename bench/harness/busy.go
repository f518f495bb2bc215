package harness

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// BesideBusy returns run, beside a process that computes all the time.
func BesideBusy(run func(context.Context) (time.Duration, error)) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		busy := exec.Command("/bin/busybox", "sh", "-c", "while :; do :; done")
		busy.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		if err := busy.Start(); err != nil {
			return 0, err
		}
		took, err := run(ctx)
		err = errors.Join(err, busy.Process.Kill())
		_ = busy.Wait() // it says that it was killed
		return took, err
	}
}
