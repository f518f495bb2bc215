package client

import (
	"io"
	"net/http"
	"testing"

	"sandbox/api"
	"sandbox/core/fault"
)

// TestPullStreams reads streams that end in each way, and those of no pull.
func TestPullStreams(t *testing.T) {
	t.Parallel()
	const progress = "event: progress\ndata: {\"layer\":1,\"layers\":2,\"stage\":\"fetch\",\"done\":1,\"total\":2}\n\n"
	for name, tt := range map[string]struct {
		reply string
		kind  fault.Kind // of the failure; 0 for none
		news  int
	}{
		"an image":           {": alive\n\n" + progress + "event: other\ndata: 1\n\nevent: image\ndata: {\"name\":\"a:latest\"}\n\n", 0, 1},
		"a failure":          {progress + progress + "event: error\ndata: {\"error\":{\"code\":\"upstream_error\",\"message\":\"m\"}}\n\n", fault.Upstream, 2},
		"a strange failure":  {"event: error\ndata: {}\n\n", fault.Upstream, 0},
		"no end":             {progress, fault.Unavailable, 1},
		"half an event":      {progress + "event: image\ndata: {\"na", fault.Unavailable, 1},
		"a strange image":    {"event: image\ndata: [\n\n", fault.Upstream, 0},
		"a strange progress": {"event: progress\ndata: 1\n\n", fault.Upstream, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || r.URL.Path != "/v1/images:pull" || r.Header.Get("Accept") != "text/event-stream" {
					t.Errorf("asked %s %s, %v", r.Method, r.URL, r.Header)
				}
				_, _ = io.WriteString(w, tt.reply)
			})
			news := 0
			img, err := c.Pull(t.Context(), "a", func(p api.ImageProgress) {
				if p.Layers == 2 && p.Stage == api.LayerFetching {
					news++
				}
			})
			if tt.kind == 0 && (err != nil || img.Name != "a:latest") || tt.kind != 0 && !fault.Is(err, tt.kind) {
				t.Errorf("%+v, %v, want %s", img, err, tt.kind)
			}
			if news != tt.news {
				t.Errorf("%d pieces of news, want %d", news, tt.news)
			}
		})
	}
}

// TestImagePaths wants slashes to stay in the path of an image, and no reference to
// lead to another path.
func TestImagePaths(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]string{
		"a": "/v1/images/a", "host:5000/team/app:v1": "/v1/images/host:5000/team/app:v1", "a@sha256:0": "/v1/images/a@sha256:0", "a b?c": "/v1/images/a%20b%3Fc",
		"": "", "..": "", "a/../b": "", "/a": "", "a//b": "", "./a": "",
	} {
		got, err := imagePath(ref)
		if got != want || (err == nil) != (want != "") || err != nil && !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("%q: %q, %v, want %q", ref, got, err, want)
		}
	}
}
