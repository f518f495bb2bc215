package e2b

import (
	"context"
	"path"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/httpd/e2b/protocol"
)

// at returns the user of a call, and a path of its as the box knows it. As with E2B,
// files are worked on with the rights of root: the user says what a relative path is
// below, and who owns what is made.
func (s *Server) at(ctx context.Context, name string) (visit, account, string, error) {
	v := visitOf(ctx)
	user, err := s.account(ctx, v.box, named(v.header, ""))
	return v, user, user.under(name), err
}

func (s *Server) statFile(ctx context.Context, q *connect.Request[protocol.StatRequest]) (*protocol.StatResponse, error) {
	v, _, name, err := s.at(ctx, q.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	file, err := v.box.StatFile(ctx, options.StatFile{Path: name})
	if err != nil {
		return nil, err
	}
	return &protocol.StatResponse{Entry: entry(file)}, nil
}

// makeDirectory makes a directory with all above it. Errors: AlreadyExists.
func (s *Server) makeDirectory(ctx context.Context, q *connect.Request[protocol.MakeDirRequest]) (*protocol.MakeDirResponse, error) {
	v, user, name, err := s.at(ctx, q.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	made, err := v.box.MakeDirectory(ctx, options.MakeDirectory{Path: name, Owner: user.name})
	if err != nil {
		return nil, err
	}
	if !made.Created {
		return nil, fault.New(fault.AlreadyExists, "the directory %s is there already", made.Path)
	}
	return &protocol.MakeDirResponse{Entry: entry(made.File)}, nil
}

// moveFile gives a file another path, and makes the directories above that.
func (s *Server) moveFile(ctx context.Context, q *connect.Request[protocol.MoveRequest]) (*protocol.MoveResponse, error) {
	v, user, from, err := s.at(ctx, q.Msg.GetSource())
	if err != nil {
		return nil, err
	}
	o := options.MoveFile{From: from, To: user.under(q.Msg.GetDestination())}
	file, err := v.box.MoveFile(ctx, o)
	if fault.Is(err, fault.FileNotFound) {
		if _, made := v.box.MakeDirectory(ctx, options.MakeDirectory{Path: path.Dir(o.To), Owner: user.name}); made == nil {
			file, err = v.box.MoveFile(ctx, o)
		}
	}
	if err != nil {
		return nil, err
	}
	return &protocol.MoveResponse{Entry: entry(file)}, nil
}

// listDirectory lists a directory to a depth, all of it at once.
func (s *Server) listDirectory(ctx context.Context, q *connect.Request[protocol.ListDirRequest]) (*protocol.ListDirResponse, error) {
	v, _, name, err := s.at(ctx, q.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	if q.Msg.GetDepth() > options.MaxDepth {
		return nil, fault.New(fault.InvalidArgument, "the depth must be at most %d", options.MaxDepth)
	}
	o := options.ListFiles{Path: name, Depth: int(q.Msg.GetDepth())}
	var list protocol.ListDirResponse
	for {
		page, err := v.box.ListFiles(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, file := range page.Files {
			list.Entries = append(list.Entries, entry(file))
		}
		if page.NextPageToken == nil {
			return &list, nil
		}
		if len(list.Entries) >= maxEntries {
			return nil, fault.New(fault.ResourceExhausted, "the directory has more than %d files: list it with a smaller depth", maxEntries)
		}
		o.PageToken = *page.NextPageToken
	}
}

// maxEntries bounds a list, which is sent as one message.
const maxEntries = 100_000

// removeFile removes a file, or a directory with all that is in it. One that is not
// there is removed already.
func (s *Server) removeFile(ctx context.Context, q *connect.Request[protocol.RemoveRequest]) (*protocol.RemoveResponse, error) {
	v, _, name, err := s.at(ctx, q.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	_, err = v.box.RemoveFile(ctx, options.RemoveFile{Path: name, Recursive: true})
	if fault.Is(err, fault.FileNotFound) {
		err = nil
	}
	return &protocol.RemoveResponse{}, err
}

// entry returns a file as the protocol tells of it.
func entry(f api.File) *protocol.EntryInfo {
	e := &protocol.EntryInfo{
		Name: f.Name, Path: f.Path, Size: f.Size, Mode: uint32(f.Mode), Permissions: permissions(f),
		Owner: owner(f.Owner, f.UID), Group: owner(f.Group, f.GID), ModifiedTime: timestamppb.New(f.ModifiedAt),
	}
	switch f.Type {
	case api.RegularFile:
		e.Type = protocol.FileType_FILE_TYPE_FILE
	case api.Directory:
		e.Type = protocol.FileType_FILE_TYPE_DIRECTORY
	case api.Symlink:
		e.Type, e.IsSymlink, e.SymlinkTarget = protocol.FileType_FILE_TYPE_SYMLINK, true, f.Target
	}
	return e
}
