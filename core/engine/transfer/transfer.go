// Package transfer is the body of the child that moves one file, or a tar of
// files, in or out of a box. It runs inside the box with the rights of the
// box's root: what that one can't reach, no link leads this child to. See
// wire.Transfer for how it talks.
package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// Argument makes sandbox-init such a child.
const Argument = "files"

// Main does one transfer on stdin or stdout and talks on stderr.
func Main() {
	// It goes before init when the box is out of memory. A failure changes
	// no more than that.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	t := talk{lines: json.NewDecoder(io.LimitReader(os.Stderr, wire.MaxTalk)), to: json.NewEncoder(os.Stderr)}
	done, err := t.move()
	if done.Done = err == nil; !done.Done {
		done = wire.Moved{Error: answer(err)}
	}
	_ = t.to.Encode(done) // a host that has gone needs none
}

// talk is the way to the host.
type talk struct {
	lines *json.Decoder
	to    *json.Encoder
}

func (t talk) move() (wire.Moved, error) {
	var m wire.Move
	if err := t.lines.Decode(&m); err != nil {
		return wire.Moved{}, err
	}
	// Which end of the pipe it has says which way the bytes go.
	in, err := isPipe(os.Stdin)
	if err != nil {
		return wire.Moved{}, err
	}
	switch {
	case in && m.Tar:
		return unpack(m, os.Stdin, t.committed)
	case in:
		return put(m, os.Stdin, t.committed)
	case m.Tar:
		return pack(m, os.Stdout, t.announce)
	}
	return get(m, os.Stdout, t.announce)
}

func isPipe(f *os.File) (bool, error) {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeNamedPipe != 0, err
}

// errIncomplete is the end of an upload that its host did not finish.
var errIncomplete = errors.New("the upload was broken off")

// committed waits for the host's word that all has come.
func (t talk) committed() (wire.Commit, error) {
	var c wire.Commit
	if err := t.lines.Decode(&c); err != nil || !c.Commit {
		return wire.Commit{}, errIncomplete
	}
	return c, nil
}

// announce tells the host of the size of what is to come.
func (t talk) announce(size int64) error { return t.to.Encode(wire.Moved{Size: size}) }

// invalid is a short name, which kinds has room for.
const invalid = fault.InvalidArgument

// kinds are the classes of the kernel's answers that depend on what was asked
// for; [fault.Host] has the others.
var kinds = map[unix.Errno]fault.Kind{
	unix.ENOENT: fault.FileNotFound, unix.EISDIR: fault.IsDirectory, unix.EFBIG: fault.Storage,
	unix.ENOTDIR: invalid, unix.ELOOP: invalid, unix.ENAMETOOLONG: invalid, unix.EINVAL: invalid, unix.EACCES: invalid,
	unix.EPERM: invalid, unix.EEXIST: invalid, unix.ENOTEMPTY: invalid, unix.EBUSY: invalid, unix.ETXTBSY: invalid,
	unix.ENXIO: invalid, unix.EXDEV: invalid, unix.EOPNOTSUPP: invalid, unix.ENODEV: invalid,
}

// answer classifies a failure for the host.
func answer(err error) *wire.Error {
	var known *fault.Error
	var errno unix.Errno
	kind, host := fault.Host(err)
	switch {
	case errors.As(err, &known):
		kind = known.Kind
	case host: // kind is its
	case errors.As(err, &errno) && kinds[errno] != fault.Internal:
		kind = kinds[errno]
	default:
		kind = fault.Engine
	}
	return &wire.Error{Kind: kind, Message: fmt.Sprintf("%.900s", strings.ToValidUTF8(err.Error(), "?"))}
}
