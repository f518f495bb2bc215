package wire

// A transfer moves a file in or out of a box. Init starts a child for it, with
// the rights of the box's root and no more, and hands the host the other ends
// of the child's two descriptors: a pipe with the bytes, and a socket on which
// both sides talk in lines of JSON. The host sends a Move; of an upload, once
// all bytes are in the pipe and it is closed, a Commit, without which nothing
// is kept. The child answers with one Moved, and with one before the bytes of
// a download. Its life is the connection's to init.
type (
	// Transfer asks init for a child.
	Transfer struct {
		In bool `json:"in"` // the bytes go into the box
	}

	// Move says what to move.
	Move struct {
		Path string `json:"path"`
		Tar  bool   `json:"tar,omitempty"`
		Name string `json:"name,omitempty"` // of an upload into a directory
		Mode *int   `json:"mode,omitempty"` // of an upload
	}

	// Commit says that an upload is whole.
	Commit struct {
		Commit bool `json:"commit"`
		Mode   *int `json:"mode,omitempty"` // of a file, in place of the Move's
	}

	// Moved is what became of it.
	Moved struct {
		Path  string `json:"path,omitempty"`
		Size  int64  `json:"size"` // -1 for a tar that is to come
		Done  bool   `json:"done,omitempty"`
		Error *Error `json:"error,omitempty"`
	}
)

// MaxTalk bounds what is read of a line.
const MaxTalk = 64 << 10
