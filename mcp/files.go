package mcp

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// readArguments are the arguments of read_file.
type readArguments struct {
	oneBox
	Path   string `json:"path" jsonschema:"absolute path in the box"`
	Offset int64  `json:"offset,omitempty" jsonschema:"byte to begin at"`
}

// file is the result of read_file.
type file struct {
	Path      string `json:"path"`
	Size      int64  `json:"size" jsonschema:"bytes of the whole file"`
	Next      int64  `json:"next" jsonschema:"offset of the first byte that did not come"`
	Content   string `json:"content"`
	Encoding  string `json:"encoding" jsonschema:"of content: utf-8 or base64"`
	Truncated bool   `json:"truncated" jsonschema:"there is more behind it"`
}

func readFile(ctx context.Context, s *session, in readArguments) (file, error) {
	var p document.Problems
	p.When(in.Offset < 0, "offset", "range", "must not be negative")
	ref, err := s.box(in.Box)
	if err = errors.Join(p.Err(fault.InvalidArgument), err); err != nil {
		return file{}, err
	}
	d, err := s.Boxes.Download(ctx, ref, options.Download{Path: in.Path})
	if err != nil {
		return file{}, err
	}
	defer d.Close()
	if _, err := io.CopyN(io.Discard, d, in.Offset); err != nil && !errors.Is(err, io.EOF) {
		return file{}, err
	}
	content, err := io.ReadAll(io.LimitReader(d, int64(s.MaxOutput)))
	if err != nil {
		return file{}, err
	}
	f := file{Path: in.Path, Size: d.Size, Truncated: in.Offset+int64(len(content)) < d.Size}
	if f.Truncated {
		content = content[:len(content)-api.Partial(content)]
	}
	f.Next = in.Offset + int64(len(content))
	f.Content, f.Encoding = api.Text(content)
	return f, nil
}

// writeArguments are the arguments of write_file.
type writeArguments struct {
	oneBox
	Path     string `json:"path" jsonschema:"absolute path in the box"`
	Content  string `json:"content"`
	Encoding string `json:"encoding,omitempty" jsonschema:"of content: utf-8, which is the default, or base64"`
	Mode     *int   `json:"mode,omitempty" jsonschema:"permission bits as a decimal number: 420 is 0644, 493 is 0755"`
}

func writeFile(ctx context.Context, s *session, in writeArguments) (api.Uploaded, error) {
	var p document.Problems
	p.When(in.Encoding != "" && in.Encoding != api.UTF8 && in.Encoding != api.Base64, "encoding", "value", "must be utf-8 or base64")
	content, wrong := api.Bytes(in.Content, in.Encoding)
	p.When(wrong != nil, "content", "base64", "must be base64, as encoding says")
	p.When(strings.HasSuffix(in.Path, "/"), "path", "file", "must name a file, and ends in /")
	if in.Mode != nil {
		p.Within("mode", *in.Mode, 0, 0o7777)
	}
	ref, err := s.box(in.Box)
	if err = errors.Join(p.Err(fault.InvalidArgument), err); err != nil {
		return api.Uploaded{}, err
	}
	u := client.Upload{Dest: in.Path, Name: path.Base(in.Path), Mode: in.Mode}
	return s.Boxes.Upload(ctx, ref, u, strings.NewReader(string(content)))
}
