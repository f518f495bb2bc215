package e2b

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"connectrpc.com/connect"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/options"
	"sandbox/httpd/e2b/protocol"
)

// directory is a directory that is watched.
type directory struct {
	*core.FileWatch
	box     *core.Box
	path    string
	entries bool // tell of each file what it is
}

// watched begins to watch a directory. The caller closes it; it also ends with ctx.
func (s *Server) watched(ctx, watching context.Context, name string, recursive, entries bool) (*directory, error) {
	v, _, name, err := s.at(ctx, name)
	if err != nil {
		return nil, err
	}
	watch, err := v.box.WatchFiles(watching, options.WatchFiles{Path: name, Recursive: recursive})
	if err != nil {
		return nil, err
	}
	return &directory{watch, v.box, strings.TrimSuffix(name, "/"), entries}, nil
}

// errOverflow tells that events were lost, for which the protocol has no event.
var errOverflow = connect.NewError(connect.CodeDataLoss, errors.New("more has changed than the watch could keep: look at the directory, and watch it again"))

// next waits for what happened next and returns it as the protocol tells it: a rename
// is two events. Errors: io.EOF at the end, errOverflow, and those of ctx.
func (d *directory) next(ctx context.Context) ([]*protocol.FilesystemEvent, error) {
	e, err := d.Next(ctx)
	if err != nil {
		return nil, err
	}
	switch e.Type {
	case api.Overflow:
		return nil, errOverflow
	case api.EndOfWatch:
		return nil, io.EOF
	case api.FileRenamed:
		return []*protocol.FilesystemEvent{
			{Name: d.name(e.From), Type: protocol.EventType_EVENT_TYPE_RENAME},
			d.event(ctx, e.Path, protocol.EventType_EVENT_TYPE_CREATE),
		}, nil
	case api.FileRemoved:
		return []*protocol.FilesystemEvent{{Name: d.name(e.Path), Type: protocol.EventType_EVENT_TYPE_REMOVE}}, nil
	}
	return []*protocol.FilesystemEvent{d.event(ctx, e.Path, eventTypes[e.Type])}, nil
}

// eventTypes are the protocol's words for what happens to a file that stays.
var eventTypes = map[api.FileEventType]protocol.EventType{
	api.FileCreated:    protocol.EventType_EVENT_TYPE_CREATE,
	api.FileModified:   protocol.EventType_EVENT_TYPE_WRITE,
	api.FileAttributes: protocol.EventType_EVENT_TYPE_CHMOD,
}

// event returns an event of a file, with what the file is if that was asked for and it
// is still there.
func (d *directory) event(ctx context.Context, name string, what protocol.EventType) *protocol.FilesystemEvent {
	e := &protocol.FilesystemEvent{Name: d.name(name), Type: what}
	if !d.entries {
		return e
	}
	if file, err := d.box.StatFile(ctx, options.StatFile{Path: name}); err == nil {
		e.Entry = entry(file)
	}
	return e
}

// name returns a path below the directory.
func (d *directory) name(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, d.path), "/")
}

// watchDirectory streams what happens in a directory.
func (s *Server) watchDirectory(ctx context.Context, q *connect.Request[protocol.WatchDirRequest], out *connect.ServerStream[protocol.WatchDirResponse]) error {
	ctx, cancel := s.streaming(ctx)
	defer cancel()
	d, err := s.watched(ctx, ctx, q.Msg.GetPath(), q.Msg.GetRecursive(), q.Msg.GetIncludeEntry())
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	start := &protocol.WatchDirResponse_Start{Start: &protocol.WatchDirResponse_StartEvent{}}
	if err := out.Send(&protocol.WatchDirResponse{Event: start}); err != nil {
		return err
	}
	quiet := quietTime(visitOf(ctx).header)
	for {
		events, err := d.nextWithin(ctx, quiet)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := sendEvents(out, events); err != nil {
			return err
		}
	}
}

// nextWithin does what next does, and returns no event when none comes for so long.
func (d *directory) nextWithin(ctx context.Context, quiet time.Duration) ([]*protocol.FilesystemEvent, error) {
	waiting, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	events, err := d.next(waiting)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return events, err
}

// sendEvents sends events, or a sign of life when there are none.
func sendEvents(out *connect.ServerStream[protocol.WatchDirResponse], events []*protocol.FilesystemEvent) error {
	if len(events) == 0 {
		alive := &protocol.WatchDirResponse_Keepalive{Keepalive: &protocol.WatchDirResponse_KeepAlive{}}
		return out.Send(&protocol.WatchDirResponse{Event: alive})
	}
	for _, e := range events {
		if err := out.Send(&protocol.WatchDirResponse{Event: &protocol.WatchDirResponse_Filesystem{Filesystem: e}}); err != nil {
			return err
		}
	}
	return nil
}
