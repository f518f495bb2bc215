package systemd

import (
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// Manager is told how this process is doing. A nil Manager is nobody, and told
// nothing.
type Manager struct{ conn *net.UnixConn }

// notifySocket is the variable that names the manager's socket.
const notifySocket = "NOTIFY_SOCKET"

// FindManager connects to the manager that the environment names, and takes its name
// from the environment, so that no child speaks for this process. Without one it
// returns nil. Errors: Config.
func FindManager() (*Manager, error) {
	name := os.Getenv(notifySocket)
	if name == "" {
		return nil, nil
	}
	_ = os.Unsetenv(notifySocket)                                                          // of a name without = it can't fail
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"}) // a name that begins with @ is abstract
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "reach the service manager at %s=%s", notifySocket, name)
	}
	return &Manager{conn}, nil
}

// Ready says that requests are answered from now on, and where.
func (m *Manager) Ready(status string) error { return m.tell("READY=1", "STATUS="+status) }

// Reloading says that settings are read again. Ready follows it.
func (m *Manager) Reloading() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	return m.tell("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000))
}

// Stopping says that this process is about to end.
func (m *Manager) Stopping(status string) error { return m.tell("STOPPING=1", "STATUS="+status) }

// Close ends the connection to the manager.
func (m *Manager) Close() {
	if m != nil {
		_ = m.conn.Close()
	}
}

func (m *Manager) tell(lines ...string) error {
	if m == nil {
		return nil
	}
	_, err := m.conn.Write([]byte(strings.Join(lines, "\n")))
	if err != nil {
		return fmt.Errorf("tell the service manager %s: %w", lines[0], err)
	}
	return nil
}
