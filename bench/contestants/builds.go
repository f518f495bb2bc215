package contestants

import (
	"context"
	"path/filepath"
	"time"

	"sandbox/bench/harness"
)

// builtImage is what both sides call what they build.
const builtImage = "localhost/built:1"

// Build builds the recipe of a directory by the command line in tools, in process.
func (l *Lab) Build(ctx context.Context, tools, dir string, flags ...string) (time.Duration, error) {
	args := append([]string{
		"env", "SANDBOX_HOME=" + l.Ours.Home, filepath.Join(tools, "sandbox"), "--local", "build", "-t", builtImage, "--network", "None",
	}, flags...)
	t, err := harness.Command{Args: append(args, dir), NS: l.Host}.Run(ctx)
	return t.End, err
}

// Build builds the recipe of a directory.
func (p *Podman) Build(ctx context.Context, dir string, flags ...string) (time.Duration, error) {
	args := append([]string{"build", "--tag", builtImage, "--network", "none", "--pull=never", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"}, flags...)
	t, err := p.command(append(args, dir)...).Run(ctx)
	return t.End, err
}
