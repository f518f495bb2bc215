// Package transfer is the body of the child process that moves one file, or a
// tar of files, into or out of a box, or works on files in their places. It runs
// inside the box with the rights of the box's root or another user of the box, so
// no link can lead it to a file that this user can't reach. wire.Transfer
// describes its protocol.
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

// Argument is the command line argument that makes sandbox-init such a child.
const Argument = "files"

// Main does one transfer. The bytes go through stdin or stdout, the messages
// through stderr.
func Main() {
	// When the box is out of memory, the kernel shall kill this child rather
	// than init. A failure here only makes that choice less certain.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	t := talk{lines: json.NewDecoder(io.LimitReader(os.Stderr, wire.MaxTalk)), to: json.NewEncoder(os.Stderr)}
	done, err := t.move()
	if done.Done = err == nil; !done.Done {
		done = wire.Moved{Error: answer(err)}
	}
	_ = t.to.Encode(done) // fails if the host process has gone, which needs no answer
}

// talk exchanges messages with the host process.
type talk struct {
	lines *json.Decoder
	to    *json.Encoder
}

func (t talk) move() (wire.Moved, error) {
	var m wire.Move
	if err := t.lines.Decode(&m); err != nil {
		return wire.Moved{}, err
	}
	// The bytes go into the box if the pipe is on stdin, else out of it.
	in, err := isPipe(os.Stdin)
	if err != nil {
		return wire.Moved{}, err
	}
	switch {
	case m.Operation != "":
		return operate(m, os.Stdout)
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

// errIncomplete is the failure of an upload that the host process did not
// finish.
var errIncomplete = errors.New("the upload was cut off")

// committed waits for the host's Commit, which says that all bytes have been
// sent, and returns it.
func (t talk) committed() (wire.Commit, error) {
	var c wire.Commit
	if err := t.lines.Decode(&c); err != nil || !c.Commit {
		return wire.Commit{}, errIncomplete
	}
	return c, nil
}

// announce tells the host how many bytes will follow; -1 announces a tar.
func (t talk) announce(size int64) error { return t.to.Encode(wire.Moved{Size: size}) }

// invalid is a short name, to keep the table of kinds compact.
const invalid = fault.InvalidArgument

// kinds classifies the kernel's errors whose cause is the request. [fault.Host]
// classifies the others.
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
	case os.Geteuid() != 0 && (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)):
		kind = fault.PermissionDenied // what the box's root is refused, nobody may do
	case host: // kind is the one from fault.Host
	case errors.As(err, &errno) && kinds[errno] != fault.Internal:
		kind = kinds[errno]
	default:
		kind = fault.Engine
	}
	return &wire.Error{Kind: kind, Message: fmt.Sprintf("%.900s", strings.ToValidUTF8(err.Error(), "?"))}
}
