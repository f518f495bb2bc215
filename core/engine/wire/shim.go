package wire

// Protocol is the version of the two protocols. It is part of the shim's socket name, so
// that a shim of another version finishes its boxes beside a new one.
const Protocol = "2"

// Frames between a host process and the shim of its home. The shim greets
// with Hello; then each request has one answer, in order.
const (
	TypeHello Type = iota + 64 // Hello

	// Requests to the shim.
	TypeCreate // Create
	TypeStartBox
	TypeStopBox
	TypeRemoveBox
	TypeUnpack // Unpack, with the read end of the tar stream
	TypeSweep  // Sweep
	TypeFlush  // no body; answered before the disk has the layers

	// Answers of the shim; or TypeError.
	TypeRecord // core.Record
	TypeDone   // no body
	TypeSwept  // Swept
)

// Ready is what a new shim tells its starter once it serves. One that can't
// tells an Error, as one line of JSON.
const Ready = "ready\n"

// Hello says who answers.
type Hello struct {
	Protocol string `json:"protocol"`
	Version  string `json:"version"`
	PID      int    `json:"pid"`
}

// BoxRequest is StartBox, StopBox or RemoveBox.
type BoxRequest struct {
	ID      string `json:"id"`
	GraceMS int64  `json:"grace_ms,omitempty"` // StopBox
	Force   bool   `json:"force,omitempty"`    // RemoveBox
}

// Unpack asks for a layer: the tar stream beside it goes into the new directory Dir.
type Unpack struct {
	Dir string `json:"dir"`
}

// Sweep asks for the removal of boxes that have been over for a while, and of
// what a crash left.
type Sweep struct {
	OlderMS int64 `json:"older_ms"`
}

// Swept is what a sweep did, also where it failed in parts.
type Swept struct {
	Boxes []string `json:"boxes"`
	Bytes int64    `json:"bytes"`
	Error *Error   `json:"error,omitempty"`
}

// Names in the home.
const (
	ShimSocket = "shim-" + Protocol + ".sock" // in the directory "engine"
	ShimLock   = "shim-" + Protocol + ".lock"
	StartLock  = "start-" + Protocol + ".lock"
	ShimLog    = "shim.log"
	InitSocket = "init.sock" // in the box's directory
)
