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

	"sandbox/api"
	"sandbox/core/fault"
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

// Download opens a file of a running box or, with tar, a file or directory as a
// tar. Errors: BoxNotFound, FileNotFound, IsDirectory (without tar),
// InvalidState (not running).
func (c *Client) Download(ctx context.Context, box, file string, tar bool) (*Download, error) {
	path, err := c.boxPath(box, "", "files", "download")
	if err != nil {
		return nil, err
	}
	body := map[string]string{"path": file}
	if tar {
		body["archive"] = "tar"
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
