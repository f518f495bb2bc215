package wire

// Protocol is the version of the protocols of the shim and of init. It is part
// of the name of the shim's socket, so that a shim of another version can finish
// its boxes while a new one runs.
const Protocol = "2"

// These are the frames between a host process and the shim of its home. The shim
// sends Hello first; then each request gets one answer, in order.
const (
	TypeHello Type = iota + 64 // Hello

	// Requests to the shim.
	TypeCreate // Create
	TypeStartBox
	TypeStopBox
	TypeRemoveBox
	TypeUnpack // Unpack, with the read end of the tar stream
	TypeSweep  // Sweep
	TypeFlush  // no body; answered before the layers are on the disk
	TypeSettle // no body; the last one of a connection, answered when no spare is being made

	// Answers of the shim. A request that failed is answered with TypeError.
	TypeRecord // core.Record
	TypeDone   // no body
	TypeSwept  // Swept

	// Requests that came later.
	TypePauseBox  // BoxRequest
	TypeResumeBox // BoxRequest
	TypeUpdateBox // UpdateBox
	TypeSockets   // BoxRequest; answered with TypeDone and sockets in the box's network: of IPv4, and of IPv6 where there is that
	TypeSnapshot  // Snapshot; answered with TypeTaken
	TypeTaken     // Taken
	TypeRollback  // Rollback
	TypeOpenDisks // OpenDisks; answered with TypeDone and a descriptor of each directory
	TypeDiscard   // Unpack; removes the directory, of a layer that is not complete or not needed any more
	TypePack      // Unpack; writes the layer in the directory to the pipe that comes with it, as a plain tar
)

// Ready is what a new shim writes to the process that started it, once it
// serves. A shim that can't serve writes an Error instead, as one line of JSON.
const Ready = "ready\n"

// Hello says which shim has accepted the connection.
type Hello struct {
	Protocol string `json:"protocol"`
	Version  string `json:"version"`
	PID      int    `json:"pid"`
}

// BoxRequest is the body of StartBox, StopBox, RemoveBox, PauseBox, ResumeBox and
// Sockets.
type BoxRequest struct {
	ID      string `json:"id"`
	GraceMS int64  `json:"grace_ms,omitempty"` // StopBox
	Force   bool   `json:"force,omitempty"`    // RemoveBox
	Reclaim bool   `json:"reclaim,omitempty"`  // PauseBox
}

// UpdateBox changes options of a box. What is nil stays as it is.
type UpdateBox struct {
	ID          string  `json:"id"`
	TTLSeconds  *int    `json:"ttl_seconds,omitempty"`  // 0: none
	IdleSeconds *int    `json:"idle_seconds,omitempty"` // 0: none
	OnExpiry    *string `json:"on_expiry,omitempty"`
	AutoStart   *bool   `json:"auto_start,omitempty"`
}

// Snapshot requests that the disk of a box, as it is now, becomes the layer with a key.
type Snapshot struct {
	ID    string `json:"id"`
	Layer string `json:"layer"` // the key: 64 hexadecimal digits
	// Last says that the box is not needed any more: it is ended, its disk becomes the
	// layer without a copy, and it is removed. Old shims know it not: they copy, and
	// leave the box alone.
	Last bool `json:"last,omitempty"`
}

// Taken says what the box of a Snapshot stood on at that moment.
type Taken struct {
	Image    Image `json:"image"`     // the box's image, with the new layer as its topmost one
	PausedUS int64 `json:"paused_us"` // for how long the box stood still, in microseconds
}

// Rollback requests that a box stands on other layers than its own, with an empty
// writable one.
type Rollback struct {
	ID     string   `json:"id"`
	Layers []string `json:"layers"` // directories, lowest first; they begin with those of the box's image
}

// OpenDisks requests descriptors of the directories in which the files of layers are,
// and behind them of the writable layer of a box, unless that has none.
type OpenDisks struct {
	Layers []string `json:"layers,omitempty"`
	Box    string   `json:"box,omitempty"` // "" for none
}

// Unpack requests a layer: the tar stream whose descriptor the frame has is
// extracted into the new directory Dir.
type Unpack struct {
	Dir string `json:"dir"`
}

// Sweep requests the removal of boxes that stopped or failed at least OlderMS
// milliseconds ago, and of anything that a crash left behind.
type Sweep struct {
	OlderMS int64 `json:"older_ms"`
}

// Swept is the result of a sweep, also of one that failed in part.
type Swept struct {
	Boxes []string `json:"boxes"`
	Bytes int64    `json:"bytes"`
	Error *Error   `json:"error,omitempty"`
}

// These are the names of files in the home.
const (
	ShimSocket = "shim-" + Protocol + ".sock" // in the directory "engine"
	ShimLock   = "shim-" + Protocol + ".lock"
	StartLock  = "start-" + Protocol + ".lock"
	ShimLog    = "shim.log"
	InitSocket = "init.sock" // in the box's directory
)
