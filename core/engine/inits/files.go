package inits

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Upload writes a file, or the files of a tar, in a box; see [core.Files].
func (c *Client) Upload(ctx context.Context, id string, u core.Upload, content io.Reader) (api.Uploaded, error) {
	if err := checkUpload(u); err != nil {
		return api.Uploaded{}, err
	}
	t, err := c.transfer(ctx, id, wire.Files{In: true, User: u.User}, wire.Move{Path: u.Dest, Tar: u.Tar, Name: u.Name, Mode: u.Mode, Owner: u.Owner, Owners: u.Owners})
	if err != nil {
		return api.Uploaded{}, err
	}
	defer t.close()
	source := &watched{Reader: content}
	// os.File's ReadFrom is hidden: with it, each small piece that comes would
	// be written on its own.
	to := bufio.NewWriterSize(struct{ io.Writer }{t.data}, transferBuffer)
	_, err = io.Copy(to, source)
	if err == nil {
		err = to.Flush()
	}
	switch {
	case source.failed != nil:
		return api.Uploaded{}, source.failed
	case err == nil:
		err = errors.Join(t.data.Close(), json.NewEncoder(t.talk).Encode(wire.Commit{Commit: true, Mode: lateMode(u)}))
	}
	if err != nil && !errors.Is(err, unix.EPIPE) { // on EPIPE the child's answer says why it ended
		return api.Uploaded{}, t.broken(err)
	}
	done, err := t.answer()
	if err != nil {
		return api.Uploaded{}, err
	}
	if !done.Done || !path.IsAbs(done.Path) || done.Size < 0 {
		return api.Uploaded{}, t.broken(wire.ErrProtocol)
	}
	return api.Uploaded{Dest: done.Path, Size: done.Size}, nil
}

// lateMode returns the mode that came after the content, or nil.
func lateMode(u core.Upload) *int {
	if u.LateMode == nil {
		return nil
	}
	return u.LateMode()
}

// watched is a reader that remembers its own failure, to tell it from one of
// the writer that its bytes go to.
type watched struct {
	io.Reader
	failed error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.failed = err
	}
	return n, err
}

// Download opens a file of a box, or a directory as a tar; see [core.Files].
func (c *Client) Download(ctx context.Context, id string, o options.Download) (*core.Download, error) {
	if err := checkPath("path", o.Path); err != nil {
		return nil, err
	}
	t, err := c.transfer(ctx, id, wire.Files{User: o.User}, wire.Move{Path: o.Path, Tar: o.Tar})
	if err != nil {
		return nil, err
	}
	first, err := t.answer()
	if err == nil && (first.Done || first.Size < -1 || (first.Size == -1) != o.Tar) {
		err = t.broken(wire.ErrProtocol)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return &core.Download{ReadCloser: &download{t, first.Size}, Name: path.Base(path.Clean(o.Path)), Size: first.Size}, nil
}

// download reads what a child sends, and no more than it announced.
type download struct {
	t    *transfer
	left int64 // -1 for a tar
}

func (d *download) Read(p []byte) (int, error) {
	if d.left >= 0 {
		p = p[:min(int64(len(p)), d.left)]
	}
	if len(p) == 0 && d.left == 0 {
		return 0, io.EOF
	}
	n, err := d.t.data.Read(p)
	if d.left >= 0 {
		d.left -= int64(n)
	}
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, d.t.broken(err)
	}
	done, failed := d.t.answer()
	if failed == nil && (!done.Done || d.left > 0) {
		failed = d.t.broken(io.ErrUnexpectedEOF)
	}
	if failed != nil {
		return n, failed
	}
	return n, io.EOF
}

func (d *download) Close() error {
	d.t.close()
	return nil
}

// transfer is a child process in a box that moves a file. Closing it ends the
// child.
type transfer struct {
	ctx     context.Context //nolint:containedctx // a download outlives the call that began it
	c       *Client
	id      string
	conn    *wire.Conn
	data    *os.File
	talk    *os.File
	answers *patience // reads from talk
	lines   *json.Decoder
	stop    func() bool
}

func (c *Client) transfer(ctx context.Context, id string, r wire.Files, m wire.Move) (*transfer, error) {
	conn, err := c.boxes.Dial(ctx, id, true)
	if err != nil {
		return nil, err
	}
	t := &transfer{ctx: ctx, c: c, id: id, conn: conn}
	t.stop = context.AfterFunc(ctx, conn.Cut)
	if err := t.begin(r, m); err != nil {
		t.close()
		return nil, c.boxes.Explain(id, errors.Join(ctx.Err(), err))
	}
	t.stop()
	t.stop = context.AfterFunc(ctx, t.cut)
	if err := json.NewEncoder(t.talk).Encode(m); err != nil && !errors.Is(err, unix.EPIPE) {
		defer t.close()
		return nil, t.broken(err)
	}
	return t, nil
}

const (
	// transferBuffer is how many bytes are written to the pipe of a transfer at
	// once.
	transferBuffer = 256 << 10
	// transferPipe is the size of that pipe: the largest that the kernel allows
	// an unprivileged process by default. With a smaller one, both sides wait
	// for each other all the time.
	transferPipe = 1 << 20
)

// begin takes over the descriptors of the child. They come from a box, so
// anything but a pipe and a socket is refused.
func (t *transfer) begin(r wire.Files, m wire.Move) error {
	limited, cancel := context.WithTimeout(t.ctx, answerTimeout)
	defer cancel()
	defer context.AfterFunc(limited, t.conn.Cut)()
	// What an old init can do too is asked for in the old way.
	old := r.User == "" && m.Operation == ""
	var err error
	if old {
		err = t.conn.Send(wire.TypeTransfer, wire.Transfer{In: r.In})
	} else {
		err = t.conn.Send(wire.TypeFiles, r)
	}
	if err != nil {
		return err
	}
	f, err := t.conn.Recv()
	if err != nil {
		return err
	}
	if f.Type == wire.TypeError {
		f.CloseFDs()
		return t.refusal(f, old)
	}
	if f.Type != wire.TypeMoving || len(f.FDs) != 2 || !is(f.FDs[0], unix.S_IFIFO) || !is(f.FDs[1], unix.S_IFSOCK) {
		f.CloseFDs()
		return fmt.Errorf("%w: got frame %d with %d descriptors, want a transfer", wire.ErrProtocol, f.Type, len(f.FDs))
	}
	for _, fd := range f.FDs {
		if err := unix.SetNonblock(fd, true); err != nil { // a box must not hold a thread
			f.CloseFDs()
			return err
		}
	}
	_, _ = unix.FcntlInt(uintptr(f.FDs[0]), unix.F_SETPIPE_SZ, transferPipe) // if refused, the old size will do
	t.data, t.talk = os.NewFile(uintptr(f.FDs[0]), "data"), os.NewFile(uintptr(f.FDs[1]), "talk")
	t.answers = t.patient(t.talk)
	t.lines = json.NewDecoder(io.LimitReader(t.answers, 2*wire.MaxTalk))
	return nil
}

// refusal returns the failure that init answers with. One that knows no such
// request is older than this program.
func (t *transfer) refusal(f wire.Frame, old bool) error {
	var e wire.Error
	if err := f.Decode(&e); err != nil {
		return err
	}
	if !old && e.Message == wire.ErrProtocol.Error() {
		return fault.New(fault.Unsupported, "the init of box %s is too old for this: stop the box and start it again", t.id)
	}
	return believed(e.Failure())
}

func is(fd int, kind uint32) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == kind
}

// answer waits for the child's next line and returns it, or the failure that
// it reports.
func (t *transfer) answer() (wire.Moved, error) {
	var m wire.Moved
	t.answers.since = time.Now()
	if err := t.lines.Decode(&m); err != nil {
		return m, t.broken(err)
	}
	if m.Error == nil {
		return m, nil
	}
	return m, believed(m.Error.Failure())
}

// broken returns the failure of a transfer that can't go on: the end of its
// context, or err.
func (t *transfer) broken(err error) error {
	if t.ctx.Err() != nil {
		return fault.Of(t.ctx.Err())
	}
	return fault.Wrap(fault.Engine, err, "the work on files in box %s was cut off", t.id)
}

func (t *transfer) cut() {
	_ = t.data.Close()
	_ = t.talk.Close()
	t.conn.Cut()
}

func (t *transfer) close() {
	t.stop()
	if t.data != nil {
		t.cut()
	}
	_ = t.conn.Close()
}

func checkUpload(u core.Upload) error {
	if err := checkPath("dest", u.Dest); err != nil {
		return err
	}
	if u.Mode != nil && (*u.Mode < 0 || *u.Mode > 0o7777) {
		return fault.New(fault.InvalidArgument, "mode %o must be within 0 and 7777, octal", *u.Mode)
	}
	if u.Name == "." || u.Name == ".." || strings.ContainsAny(u.Name, "/\x00") || !utf8.ValidString(u.Name) || len(u.Name) > unix.NAME_MAX {
		return fault.New(fault.InvalidArgument, "%.300q can't be the name of a file", u.Name)
	}
	return nil
}

func checkPath(what, p string) error {
	if !path.IsAbs(p) || strings.ContainsRune(p, 0) || !utf8.ValidString(p) || len(p) >= unix.PathMax {
		return fault.New(fault.InvalidArgument, "%s %.300q must be an absolute path of UTF-8, shorter than %d bytes", what, p, unix.PathMax)
	}
	return nil
}
