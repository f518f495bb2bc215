package wire

import (
	"time"

	"sandbox/api"
	"sandbox/core/fault"
)

// These are the frames between a host process and the init of a box. Each
// connection serves one request. After Start or Attach the connection represents
// the exec's reader: init passes the exec's descriptors to one connection at a
// time.
const (
	// Frames between the shim and a new init, on the socket pair that init was
	// started with.
	TypePrepare Type = iota + 1 // no body, with the listening socket, the directory of exec groups, the count of OOM kills, lists of tasks
	TypeReady                   // no body: init's answer to Prepare, to Config, and to Pause and Resume
	TypeConfig                  // Config: init serves the box from now on

	// Requests to init.
	TypeStart    // Start
	TypeAttach   // Attach
	TypeStop     // Stop
	TypeStats    // Measure
	TypeExecs    // no body
	TypeFind     // Find
	TypeAwait    // Find
	TypeEnd      // End
	TypeTransfer // Transfer

	// Requests on the connection of an exec.
	TypeSignal     // Signal
	TypeCancel     // Cancel
	TypeCloseStdin // Streams
	TypeHangUp     // Cancel: SIGHUP to the tree, SIGKILL to processes left after the grace
	TypeRelease    // Streams: the output has been read, or nobody wants it

	// Answers of init.
	TypeStarted // Exec, with the exec's descriptors
	TypeExited  // api.ExitStatus
	TypeExec    // Exec: each one for Execs, one for Find, at once and at its end for Await, at its end for End
	TypeListed  // no body: the end of the answer to Execs
	TypeMoving  // no body: has the pipe and the socket of a transfer
	TypeStopped // no body: the answer to Stop, just before init ends
	TypeStatsIs // Stats
	TypeError   // Error

	// Requests that came later. They stand here so that the other types keep their
	// numbers: boxes outlive the program that made them.
	TypeDetach // Streams: on the connection of an exec: this reader leaves, and another may come
	TypeKill   // Kill: to init, which answers with TypeExec
	TypePause  // no body: to init, of the shim, before it freezes the commands
	TypeResume // no body: to init, of the shim, when the commands go on
	TypeFiles  // Files: to init, which answers with TypeMoving

	// Frames between the shim and a prepared init whose box has another root file
	// system than the one that init was started in.
	TypeRoot   // no body, with a mount that is empty yet: init puts it into place and answers with TypeReady
	TypeRooted // no body: the root file system is mounted there; init moves into it and answers with TypeReady

	// Requests of the shim that came later still.
	TypeIdle   // Idle: to init
	TypeIdleIs // IdleIs: the answer

	// The supervision of a box's main command.
	TypeSupervise // Supervise: to init, of the shim: the command runs from now on, unless it did before
	TypeMain      // Main: the answer, at once and after each change

	TypeReach   // Reach: to init of a pod, which answers with TypeReached
	TypeReached // no body: has a socket that is connected to the port

	TypeResize // Resize: to init, of a host process that does not have the terminal open; the answer is TypeReady
)

// NewRoot is the directory in the mount of a TypeRoot where the box's root file
// system appears.
const NewRoot = "root"

// Config is what an init needs to know of its box. It comes once init is prepared,
// perhaps long before the box is asked for.
type Config struct {
	Hostname   string            `json:"hostname"`
	ImageEnv   []string          `json:"image_env,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	WorkingDir string            `json:"working_dir"`
	User       string            `json:"user"`
	Files      map[string]string `json:"files,omitempty"`  // the text of files in /etc, by name
	Strict     bool              `json:"strict,omitempty"` // commands have the smaller list of system calls
	Watched    *Watched          `json:"watched,omitempty"`
}

// Watched are the limits of a box without cgroups, which init watches over.
type Watched struct {
	MemoryBytes int64 `json:"memory_bytes"`
	Processes   int   `json:"processes"` // and threads, of each user of the box
}

// Start requests a command.
type Start struct {
	Cmd        []string          `json:"cmd"`
	Env        map[string]string `json:"env,omitempty"`
	WorkingDir string            `json:"working_dir,omitempty"`
	User       string            `json:"user,omitempty"`
	TTY        bool              `json:"tty,omitempty"`
	Cols       int               `json:"cols,omitempty"`
	Rows       int               `json:"rows,omitempty"`
	Stdin      bool              `json:"stdin,omitempty"`
	KeepStdin  bool              `json:"keep_stdin,omitempty"` // init keeps it open too, until CloseStdin
	TimeoutMS  int64             `json:"timeout_ms,omitempty"`
}

// Attach requests the descriptors of an exec whose reader has disconnected. Those of a
// main command are the shim's, which asks with Main. Have is for an exec of a box on
// another host, whose output is kept on the way until it has been taken: it says how much
// of it the caller has already. Without it, the output goes on behind what was taken last.
// Init, which keeps nothing, ignores it.
type Attach struct {
	ID   string    `json:"id"`
	Main bool      `json:"main,omitempty"`
	Have *Position `json:"have,omitempty"`
}

// Position counts the bytes of an exec's output since it was started. All output of a
// terminal is Stdout.
type Position struct {
	Stdout int64 `json:"stdout,omitempty"`
	Stderr int64 `json:"stderr,omitempty"`
}

// Find is the body of a Find or Await and names its exec.
type Find struct {
	ID string `json:"id"`
}

// End requests the end of an exec's whole process tree, with or without a reader.
type End struct {
	ID      string `json:"id"`
	GraceMS int64  `json:"grace_ms"`
}

// MaxExecs is how many execs of a box are remembered (contract, section 3).
const MaxExecs = 1024

// Exec is what init knows of an exec. In the answer to Start and Attach, its
// frame has the descriptors of stdout, stderr and, if Stdin is set, stdin; an
// exec with a terminal has only that one descriptor.
type Exec struct {
	ID         string            `json:"id"`
	PID        int               `json:"pid"` // in the box; 0 if it could not be started
	Cmd        []string          `json:"cmd"`
	Env        map[string]string `json:"env,omitempty"` // the command's whole environment
	WorkingDir string            `json:"working_dir"`
	User       string            `json:"user"`
	TTY        bool              `json:"tty,omitempty"`
	Stdin      bool              `json:"stdin,omitempty"`
	TimeoutMS  int64             `json:"timeout_ms,omitempty"`
	Main       bool              `json:"main,omitempty"` // it is a run of the main command
	CreatedAt  time.Time         `json:"created_at"`
	End        *api.ExitStatus   `json:"end,omitempty"`
	Streams    Streams           `json:"streams,omitzero"` // in the answer to Start and Attach: so far
	// From is where the output begins that follows, in the answer to an Attach of an exec
	// on another host. It is behind what the caller has if the bytes between are lost.
	From Position `json:"from,omitzero"`
}

// Streams is what the readers of an exec have counted since it was started: bytes
// written to its stdin, and bytes read of its output.
type Streams struct {
	Stdin  int64 `json:"stdin,omitempty"`
	Output int64 `json:"output,omitempty"`
}

// Signal requests a signal to the exec's own process.
type Signal struct {
	Signal int `json:"signal"`
}

// Resize requests another size of an exec's terminal.
type Resize struct {
	ID   string `json:"id"`
	Cols int    `json:"cols"`
	Rows int    `json:"rows"`
}

// Reach requests a connection to a TCP port of the box.
type Reach struct {
	Port int `json:"port"`
}

// Kill requests a signal to an exec's own process, whoever its reader is. An init
// that does not know Group sends it to that process alone.
type Kill struct {
	ID     string `json:"id"`
	Signal int    `json:"signal"`
	Group  bool   `json:"group,omitempty"` // to all of its process group
}

// Cancel requests the end of the exec's whole process tree.
type Cancel struct {
	GraceMS int64 `json:"grace_ms"`
}

// Stop requests the end of the box.
type Stop struct {
	GraceMS int64 `json:"grace_ms"`
}

// Idle asks for how long nobody has used the box. Where that is AtLeastMS or more,
// nothing is started in the box for the next moments, in which the shim ends it.
type Idle struct {
	AtLeastMS int64 `json:"at_least_ms"`
}

// IdleIs says for how long nobody has used the box: no command runs, and no host
// process is connected to use it.
type IdleIs struct {
	InUse bool  `json:"in_use,omitempty"`
	MS    int64 `json:"ms"` // 0 while it is in use
}

// Measure requests the Stats of a box. It tells what the requesting process has
// counted of the execs that it reads, by their ids.
type Measure struct {
	Read map[string]Streams `json:"read,omitempty"`
}

// Stats counts the execs of a box, and the bytes of their streams.
type Stats struct {
	Execs      int64   `json:"execs"`
	ExecErrors int64   `json:"exec_errors"`
	Streams    Streams `json:"streams,omitzero"`
	Used       *Used   `json:"used,omitempty"` // nil where the host knows it
}

// Used is what a pod's container has used, as its init reads it.
type Used struct {
	CPUNS       int64 `json:"cpu_ns"`
	MemoryBytes int64 `json:"memory_bytes"`
	CacheBytes  int64 `json:"cache_bytes"`
	Processes   int64 `json:"processes"`
}

// Error answers a request that failed. Kind is a kind of package fault.
type Error struct {
	Kind    fault.Kind `json:"code"`
	Message string     `json:"message"`
}
