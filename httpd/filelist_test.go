package httpd

import (
	"testing"
	"time"

	"sandbox/api"
)

// A page of files is encoded as any other document is.
func TestEncodeFiles(t *testing.T) {
	t.Parallel()
	root, odd, token := "root", "a\"\\\n\u2028<é>\x00", "next"
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, page := range []api.Files{
		{Files: []api.File{}},
		{Files: []api.File{{Name: "a", Path: "/a", Type: api.RegularFile, Size: 1 << 40, Mode: 0o4755, UID: 1, GID: 2, Owner: &root, Group: &root, ModifiedAt: at}}},
		{NextPageToken: &token, Files: []api.File{
			{Name: odd, Path: "/" + odd, PathBase64: "YQ==", Type: api.Symlink, Mode: 0o777, ModifiedAt: at.Truncate(time.Second), Target: &odd, TargetBase64: "Yg=="},
			{Name: "d", Path: "/d", Type: api.Directory, Unreadable: true, Owner: &odd, ModifiedAt: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)},
			{Name: "e", Path: "/e", Type: api.Directory, Size: -1, UID: -1, ModifiedAt: time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)},
		}},
	} {
		want, err := encode(page)
		if got := encodeFiles(page); err != nil || string(got) != string(want) {
			t.Errorf("%s, want %s, %v", got, want, err)
		}
	}
}
