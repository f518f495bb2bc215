package options_test

import (
	"strings"
	"testing"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// All that is wrong with a request about files is named.
func TestFilesRefused(t *testing.T) {
	t.Parallel()
	long, mode := "/"+strings.Repeat("x", options.MaxPath), 0o10000
	for name, tt := range map[string]struct {
		o      interface{ Check() error }
		fields string
	}{
		"right":         {options.StatFile{Path: "/a/b..", User: "user:group"}, ""},
		"the longest":   {options.StatFile{Path: long[:options.MaxPath]}, ""},
		"nothing":       {options.StatFile{}, "path"},
		"relative":      {options.StatFile{Path: "a", User: "\x00"}, "path user"},
		"up":            {options.RemoveFile{Path: "/a/.."}, "path"},
		"too long":      {options.StatFile{Path: long}, "path"},
		"not UTF-8":     {options.StatFile{Path: "/\xff"}, "path"},
		"a NUL":         {options.StatFile{Path: "/\x00"}, "path"},
		"both":          {options.MoveFile{From: "a", To: "/b/../c"}, "from to"},
		"a mode":        {options.MakeDirectory{Path: "/a", Mode: &mode}, "mode"},
		"a deep list":   {options.ListFiles{Path: "/a", Depth: 65, PageSize: 10_001, PageToken: "?"}, "depth page_size page_token"},
		"a page up":     {options.ListFiles{Path: "/a", PageToken: options.FilePageToken("a/../b")}, "page_token"},
		"a page beyond": {options.ListFiles{Path: "/a", PageToken: options.FilePageToken(strings.Repeat("a/", 64) + "a")}, "page_token"},
		"a page":        {options.ListFiles{Path: "/a", PageToken: options.FilePageToken("a/b\xff")}, ""},
	} {
		var fields []string
		err := tt.o.Check()
		if err != nil {
			for _, f := range fault.Of(err).Fields {
				fields = append(fields, f.Field)
			}
		}
		if got := strings.Join(fields, " "); got != tt.fields || err != nil && !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("%s: %v, want %q", name, err, tt.fields)
		}
	}
}
