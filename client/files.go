package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Upload says where in a box content goes.
type Upload struct {
	// Dest is an absolute path. If it ends in "/" or is a directory, the file
	// goes into it under its Name. Missing directories are made.
	Dest string
	Name string
	Mode *int // permission bits; nil means those of the file that is there, or 0644
	// Tar says that the content is a tar. Its entries go into the directory Dest.
	Tar bool
	// User is the user of the box whose rights count and who owns what is made,
	// as in [options.Exec]; "" for the box's root.
	User string
}

// Upload streams content into a file of a running box. Errors: BoxNotFound,
// InvalidState (not running), InvalidArgument, Storage.
func (c *Client) Upload(ctx context.Context, box string, u Upload, content io.Reader) (api.Uploaded, error) {
	path, err := c.boxPath(box, "", "files", "upload")
	if err != nil {
		return api.Uploaded{}, err
	}
	head, tail, contentType, err := u.form()
	if err != nil {
		return api.Uploaded{}, err
	}
	var made api.Uploaded
	err = c.call(ctx, request{
		method: http.MethodPost, path: path, stream: io.MultiReader(head, content, tail),
		// The server can refuse the upload before gigabytes were sent.
		header: http.Header{"Content-Type": {contentType}, "Expect": {"100-continue"}},
	}, &made)
	return made, err
}

// form returns the beginning and the end of the multipart form around the content,
// and its content type.
func (u Upload) form() (head, tail io.Reader, contentType string, err error) {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	field := func(name, value string) {
		if err == nil {
			err = form.WriteField(name, value)
		}
	}
	field("dest", u.Dest)
	if u.Mode != nil {
		field("mode", fmt.Sprintf("%04o", *u.Mode))
	}
	if u.Tar {
		field("archive", "tar")
	}
	if u.User != "" {
		field("user", u.User)
	}
	if err == nil {
		_, err = form.CreateFormFile("file", u.Name)
	}
	if err != nil {
		return nil, nil, "", fault.Wrap(fault.Internal, err, "write the form of an upload")
	}
	end := fmt.Sprintf("\r\n--%s--\r\n", form.Boundary())
	return &b, bytes.NewReader([]byte(end)), form.FormDataContentType(), nil
}

// Download is a file that streams out of a box. One goroutine may read it, and its
// owner closes it. If the stream breaks off, Read returns an error and not io.EOF.
type Download struct {
	io.ReadCloser
	Name string // last element of the path
	Size int64  // in bytes; -1 if unknown, as for a tar
}

// content is the body of a download. It classifies the failures of Read.
type content struct {
	io.ReadCloser
	c   *Client
	ctx context.Context // of the request; it ends with the content
}

func (r *content) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.c.lost(r.ctx, err)
	}
	return n, err
}

// Download opens a file of a running box, or a file or directory as a tar.
// Errors: BoxNotFound, FileNotFound, IsDirectory (not as a tar), InvalidState (not
// running), PermissionDenied (the user lacks the right).
func (c *Client) Download(ctx context.Context, box string, o options.Download) (*Download, error) {
	path, err := c.boxPath(box, "", "files", "download")
	if err != nil {
		return nil, err
	}
	body := map[string]string{"path": o.Path}
	if o.Tar {
		body["archive"] = "tar"
	}
	if o.User != "" {
		body["user"] = o.User
	}
	resp, err := c.send(ctx, request{method: http.MethodPost, path: path, body: body, again: true})
	if err != nil {
		return nil, err
	}
	d := &Download{ReadCloser: &content{resp.Body, c, ctx}, Size: resp.ContentLength}
	if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
		d.Name = params["filename"]
	}
	return d, nil
}

// StatFile looks at a file of a running box. It does not follow a link that the
// path leads to. Errors: BoxNotFound, FileNotFound, InvalidState (not running),
// PermissionDenied (the user lacks the right).
func (c *Client) StatFile(ctx context.Context, box string, o options.StatFile) (file api.File, err error) {
	err = c.files(ctx, request{method: http.MethodGet, query: onFile(o.Path, o.User), again: true}, box, "stat", &file)
	return file, err
}

// ListFiles returns a page of the files below a directory of a running box.
// Errors: those of StatFile.
func (c *Client) ListFiles(ctx context.Context, box string, o options.ListFiles) (page api.Files, err error) {
	query := onFile(o.Path, o.User)
	for name, n := range map[string]int{"depth": o.Depth, "page_size": o.PageSize} {
		if n != 0 {
			query.Set(name, strconv.Itoa(n))
		}
	}
	if o.PageToken != "" {
		query.Set("page_token", o.PageToken)
	}
	err = c.files(ctx, request{method: http.MethodGet, query: query, again: true}, box, "list", &page)
	return page, err
}

// MakeDirectory makes a directory in a running box, and what is missing on its
// path. Errors: those of StatFile, InvalidArgument (a file is in the way).
func (c *Client) MakeDirectory(ctx context.Context, box string, o options.MakeDirectory) (made api.MadeDirectory, err error) {
	body := map[string]string{"path": o.Path}
	if o.Mode != nil {
		body["mode"] = fmt.Sprintf("%04o", *o.Mode)
	}
	if o.User != "" {
		body["user"] = o.User
	}
	err = c.files(ctx, request{method: http.MethodPost, body: body}, box, "mkdir", &made)
	return made, err
}

// MoveFile gives a file of a running box another path. It replaces a file that has
// this path, but no directory that is not empty. Errors: those of StatFile,
// InvalidArgument (another file system, a directory that is not empty).
func (c *Client) MoveFile(ctx context.Context, box string, o options.MoveFile) (file api.File, err error) {
	body := map[string]string{"from": o.From, "to": o.To}
	if o.User != "" {
		body["user"] = o.User
	}
	err = c.files(ctx, request{method: http.MethodPost, body: body}, box, "move", &file)
	return file, err
}

// RemoveFile removes a file or a directory of a running box. What it removed before
// it failed is gone. Errors: those of StatFile, InvalidArgument (a directory that
// is not empty, without Recursive).
func (c *Client) RemoveFile(ctx context.Context, box string, o options.RemoveFile) (removed api.RemovedFiles, err error) {
	query := onFile(o.Path, o.User)
	if o.Recursive {
		query.Set("recursive", "true")
	}
	err = c.files(ctx, request{method: http.MethodDelete, query: query}, box, "", &removed)
	return removed, err
}

// files sends a request about files of a box.
func (c *Client) files(ctx context.Context, r request, box, verb string, out any) (err error) {
	if r.path, err = c.boxPath(box, "", "files"); err != nil {
		return err
	}
	if verb != "" {
		r.path += ":" + verb
	}
	return c.call(ctx, r, out)
}

// onFile returns the query of a request about one path.
func onFile(path, user string) url.Values {
	query := url.Values{"path": {path}}
	if user != "" {
		query.Set("user", user)
	}
	return query
}
