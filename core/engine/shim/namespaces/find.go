package namespaces

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/sockets"
)

// find returns descriptors of the home's user and network namespaces. It has them made if
// there are none.
func find(home string) ([]int, error) {
	fds, err := ask(home)
	if err == nil || !goneAway(err) {
		return fds, err
	}
	if err := start(home); err != nil {
		return nil, err
	}
	if fds, err = ask(home); err != nil {
		return nil, fault.Wrap(fault.Engine, err, "the process that keeps the namespaces of the home does not answer; see %s", logOf(home))
	}
	return fds, nil
}

// ask asks the process outside for the namespaces.
func ask(home string) ([]int, error) {
	conn, err := dial(home)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	f, err := request(conn, wire.TypeNamespaces, nil)
	if err != nil {
		return nil, err
	}
	if len(f.FDs) != 2 {
		f.CloseFDs()
		return nil, fault.Wrap(fault.Engine, wire.ErrProtocol, "ask for the namespaces of the home")
	}
	return f.FDs, nil
}

// answerTimeout bounds each request to the process outside.
const answerTimeout = 15 * time.Second

func dial(home string) (*wire.Conn, error) {
	dir, err := sockets.OpenDir(filepath.Join(home, "engine"))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	conn, err := wire.Dial(dir, wire.OutsideSocket)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetTimeout(answerTimeout)
}

// answers are the types of the answers to requests.
var answers = map[wire.Type]wire.Type{
	wire.TypeNamespaces: wire.TypeDone,
	wire.TypeUplink:     wire.TypeConnected,
	wire.TypeListen:     wire.TypeListening,
	wire.TypeLeave:      wire.TypeDone,
}

// request sends a request and returns its answer. An answer that is an error is returned
// as that.
func request(conn *wire.Conn, t wire.Type, body any) (wire.Frame, error) {
	if err := conn.Send(t, body); err != nil {
		return wire.Frame{}, err
	}
	f, err := conn.Recv()
	if err != nil || f.Type == answers[t] {
		return f, err
	}
	f.CloseFDs()
	if f.Type != wire.TypeError {
		return wire.Frame{}, fmt.Errorf("%w: frame %d answers request %d", wire.ErrProtocol, f.Type, t)
	}
	var e wire.Error
	if err = f.Decode(&e); err == nil {
		err = fault.New(e.Kind, "%s", e.Message)
	}
	return wire.Frame{}, err
}

// goneAway tells whether err means that nobody serves the socket.
func goneAway(err error) bool {
	for _, is := range []error{unix.ENOENT, unix.ECONNREFUSED, unix.EPIPE, unix.ECONNRESET, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// startTimeout bounds how long the namespaces may take to be made.
const startTimeout = 30 * time.Second

// start starts the process outside and waits until it serves.
func start(home string) error {
	ready, theirs, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "make a pipe")
	}
	defer ready.Close()
	log, err := os.OpenFile(logOf(home), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fault.Disk(err, "open the shim's log")
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe", "outside", home)
	cmd.Args[0], cmd.Stderr, cmd.ExtraFiles = "sandbox-shim", log, []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return fault.Wrap(fault.Engine, err, "start the process that keeps the namespaces of the home")
	}
	if err := ready.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	line, err := io.ReadAll(io.LimitReader(ready, wire.MaxTalk))
	if string(line) == wire.Ready {
		return nil
	}
	var why wire.Error
	if json.Unmarshal(line, &why) == nil {
		return fault.New(why.Kind, "%s", why.Message)
	}
	return fault.Wrap(fault.Engine, errors.Join(err, errors.New("it has ended: "+strconv.Quote(string(line)))), "make the namespaces of the home; see %s", logOf(home))
}

func logOf(home string) string { return filepath.Join(home, "engine", wire.ShimLog) }
