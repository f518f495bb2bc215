package build_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/core/image"
	"sandbox/test/podman"
)

// TestPodman has podman run an image that was built, after an export: its files,
// and what the recipe says of its command, are there as docker has them.
func TestPodman(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.built(`FROM base
ENV GREETING=hello
RUN echo app:x:1000:100::/srv:/bin/sh >>/etc/passwd && rm -r /usr/bin && mkdir -p /usr/bin
COPY --chown=app file /srv/file
WORKDIR /srv
USER app
LABEL maker=test
EXPOSE 80
STOPSIGNAL SIGQUIT
HEALTHCHECK --interval=5s CMD true
ENTRYPOINT ["sh", "-c"]
CMD ["echo $GREETING $(id -u) $(pwd) $(cat file) $(stat -c %u:%g file) $(ls /usr/bin | wc -l)"]
`, map[string]string{"file": "content"})
	p := podman.New(t)
	file := filepath.Join(p.Dir, "archive")
	to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	must(t, err)
	must(t, errors.Join(h.Images.Export(t.Context(), "built", to, image.ExportOptions{}), to.Close()))
	p.Do("load", "--input", file)
	if got, want := p.Run("built"), "hello 1000 /srv content 1000:100 0\n"; got != want {
		t.Errorf("it printed %q, want %q", got, want)
	}
	config := p.Do("inspect", "--format", "{{.Config.Labels.maker}} {{.Config.ExposedPorts}} {{.Config.StopSignal}}", "built")
	if want := "test map[80/tcp:{}] SIGQUIT"; strings.TrimSpace(config) != want {
		t.Errorf("its config is %q, want %q", config, want)
	}
	p.Do("pull", "docker-archive:"+file) // as docker reads it: the format of OCI has no health check
	if got := p.Do("inspect", "--format", "{{.HealthCheck.Test}} {{.HealthCheck.Interval}}", "built"); strings.TrimSpace(got) != "[CMD-SHELL true] 5s" {
		t.Errorf("its health check is %q", got)
	}
}
