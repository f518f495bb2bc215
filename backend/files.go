package backend

import (
	"context"
	"io"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core"
	"sandbox/core/options"
)

// Files are the files of one box, as package hostcopy copies them.
type Files struct {
	On   Boxes
	Ref  string
	User string // whose rights count; "" for the box's root
}

// Upload writes a file, or the files of a tar, to the box.
func (f Files) Upload(ctx context.Context, u core.Upload, content io.Reader) (api.Uploaded, error) {
	return f.On.Upload(ctx, f.Ref, client.Upload{Dest: u.Dest, Name: u.Name, Mode: u.Mode, Tar: u.Tar, User: f.User}, content)
}

// Download opens a file of the box, or a directory as a tar.
func (f Files) Download(ctx context.Context, path string, asTar bool) (*core.Download, error) {
	d, err := f.On.Download(ctx, f.Ref, options.Download{Path: path, Tar: asTar, User: f.User})
	return (*core.Download)(d), err
}
