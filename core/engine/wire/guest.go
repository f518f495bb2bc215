package wire

import (
	"time"

	"sandbox/api"
	"sandbox/core/fault"
)

// Frames between a host process and the init of a box. A connection serves
// one request. After Start or Attach it stands for the exec's reader: init
// hands out the exec's descriptors to one connection at a time.
const (
	// From the shim to a new init, on the pair it was started with.
	TypeConfig Type = iota + 1 // Config, with the listening socket, the directory of exec groups, the count of OOM kills, lists of tasks
	TypeReady                  // no body: init's answer
	TypeGo                     // no body: serve

	// Requests to init.
	TypeStart    // Start
	TypeAttach   // Attach
	TypeStop     // Stop
	TypeStats    // no body
	TypeExecs    // no body
	TypeFind     // Find
	TypeAwait    // Find
	TypeEnd      // End
	TypeTransfer // Transfer

	// On the connection of an exec.
	TypeSignal     // Signal
	TypeCancel     // Cancel
	TypeCloseStdin // no body
	TypeHangUp     // Cancel: SIGHUP to the tree, SIGKILL to what is left after the grace
	TypeRelease    // no body: the output was read, or is not wanted

	// Answers of init.
	TypeStarted // Exec, with the exec's descriptors
	TypeExited  // api.ExitStatus
	TypeExec    // Exec: one of Execs; Find's; twice for Await and at the end for End
	TypeListed  // no body: the end of Execs
	TypeMoving  // no body: with the pipe and the socket of a transfer
	TypeStopped // no body: the answer to Stop, just before the end
	TypeStatsIs // Stats
	TypeError   // Error
)

// Config is what an init needs to know of its box.
type Config struct {
	Hostname   string            `json:"hostname"`
	ImageEnv   []string          `json:"image_env,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	WorkingDir string            `json:"working_dir"`
	User       string            `json:"user"`
	Files      map[string]string `json:"files,omitempty"` // what /etc has to hold, by name
}

// Start asks for a command.
type Start struct {
	Cmd        []string          `json:"cmd"`
	Env        map[string]string `json:"env,omitempty"`
	WorkingDir string            `json:"working_dir,omitempty"`
	User       string            `json:"user,omitempty"`
	TTY        bool              `json:"tty,omitempty"`
	Cols       int               `json:"cols,omitempty"`
	Rows       int               `json:"rows,omitempty"`
	Stdin      bool              `json:"stdin,omitempty"`
	KeepStdin  bool              `json:"keep_stdin,omitempty"` // init has it open too, until CloseStdin
	TimeoutMS  int64             `json:"timeout_ms,omitempty"`
}

// Attach asks for the descriptors of an exec whose reader has gone.
type Attach struct {
	ID string `json:"id"`
}

// Find names the exec of a Find or Await.
type Find struct {
	ID string `json:"id"`
}

// End asks for the end of an exec's whole tree, whoever reads it.
type End struct {
	ID      string `json:"id"`
	GraceMS int64  `json:"grace_ms"`
}

// MaxExecs is how many execs of a box are remembered (contract, section 3).
const MaxExecs = 1024

// Exec is what init knows of an exec. In the answer to Start and Attach, the
// descriptors beside it are stdout, stderr and, when Stdin says so, stdin; or
// the one terminal.
type Exec struct {
	ID         string            `json:"id"`
	PID        int               `json:"pid"` // in the box; 0 when it could not be started
	Cmd        []string          `json:"cmd"`
	Env        map[string]string `json:"env,omitempty"` // all that the command has
	WorkingDir string            `json:"working_dir"`
	User       string            `json:"user"`
	TTY        bool              `json:"tty,omitempty"`
	Stdin      bool              `json:"stdin,omitempty"`
	TimeoutMS  int64             `json:"timeout_ms,omitempty"`
	CreatedAt  time.Time         `json:"created_at"`
	End        *api.ExitStatus   `json:"end,omitempty"`
}

// Signal asks for a signal to the exec's own process.
type Signal struct {
	Signal int `json:"signal"`
}

// Cancel asks for the end of the exec's whole tree.
type Cancel struct {
	GraceMS int64 `json:"grace_ms"`
}

// Stop asks for the end of the box.
type Stop struct {
	GraceMS int64 `json:"grace_ms"`
}

// Stats counts the execs of a box.
type Stats struct {
	Execs      int64 `json:"execs"`
	ExecErrors int64 `json:"exec_errors"`
}

// Error answers a request that was refused: Code is a code of package fault.
type Error struct {
	Kind    fault.Kind `json:"code"`
	Message string     `json:"message"`
}
