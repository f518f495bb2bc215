package measures

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

const buildRounds = 10

// tenSteps is the recipe that both build: ten instructions, of which five run a command
// and two copy files.
const tenSteps = `FROM %s
ENV GREETING=hello
WORKDIR /srv
RUN echo one >one
COPY tree /srv/tree
RUN cp -r tree again
RUN echo $GREETING >two
COPY file /srv/file
RUN rm -r again && mkdir -p a/b/c
RUN cat file one two >all
`

// recipeFiles is how many files of 10 KB the recipe copies.
const recipeFiles = 200

// measureBuild builds a recipe of ten steps beside podman, with nothing cached and with
// everything: the wall time of the command.
func measureBuild(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	l, err := b.Lab(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.Dir, "build")
	if err := makeContext(dir); err != nil {
		return nil, err
	}
	ours := func(flags ...string) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) { return l.Build(ctx, b.Tools, dir, flags...) }
	}
	podman := func(flags ...string) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) { return l.Podman.Build(ctx, dir, flags...) }
	}
	all := harness.Pace{Rounds: buildRounds, Pause: b.Pause}.Interleave(ctx,
		named("ours", l.Ours.Contestant(ours("--no-cache"))), l.Podman.Contestant("podman", podman("--no-cache")),
		named("ours, cached", l.Ours.Contestant(ours())), l.Podman.Contestant("podman, cached", podman("--layers")))
	return harness.Rows(harness.Millis, all,
		harness.Bar{Contestant: "ours", Peer: "podman", Percentile: 50, Limit: 1},
		harness.Bar{Contestant: "ours, cached", Peer: "podman, cached", Percentile: 50, Limit: 1}), nil
}

// named returns a contestant under another name.
func named(name string, c harness.Contestant) harness.Contestant {
	c.Name = name
	return c
}

// makeContext writes the recipe and the files that it copies.
func makeContext(dir string) error {
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "tree"), 0o755),
		os.WriteFile(filepath.Join(dir, "Dockerfile"), fmt.Appendf(nil, tenSteps, contestants.LabImage), 0o600),
		os.WriteFile(filepath.Join(dir, "file"), []byte("file\n"), 0o644))
	for i := range recipeFiles {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "tree", fmt.Sprint(i)), []byte(strings.Repeat("x", 10_000)), 0o644))
	}
	return err
}
