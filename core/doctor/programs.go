package doctor

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"sandbox/core"
	"sandbox/core/engine"
)

// answer is how long a shim may take to print its version.
const answer = 10 * time.Second

func programs(ctx context.Context, c engine.Config) (string, *lack) {
	const fix = "make install, or SANDBOX_HELPER_DIR=DIR of sandbox-shim and sandbox-init"
	c.Home = existing(c.Home) // Open would make the home, which a check must not do
	e, err := engine.Open(c)
	if err != nil {
		return "", &lack{err.Error(), fix}
	}
	path := e.Shim()
	_ = e.Close() // nothing was started
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "version").Output()
	if err != nil {
		return path, &lack{"it does not print its version: " + err.Error(), fix}
	}
	version := strings.TrimSpace(string(out))
	found := fmt.Sprintf("%s, version %q", path, version)
	if version != core.Version {
		return found, &lack{"this is version " + core.Version, fix}
	}
	return fmt.Sprintf("%s, version %s", path, version), nil
}
