package wire

// A transfer moves a file into or out of a box. Init starts a child process for
// it, with only the rights of the box's root, and passes the host process the
// other ends of the child's two descriptors: a pipe for the bytes, and a socket
// for messages, which are lines of JSON. The host sends a Move. For an upload it
// also sends a Commit, once it has written all bytes to the pipe and closed it;
// without the Commit a file is not kept. The child answers with one Moved at the
// end, and for a download also with one before the bytes. The child lives as
// long as the host's connection to init.
type (
	// Transfer requests a child from init.
	Transfer struct {
		In bool `json:"in"` // the bytes go into the box
	}

	// Move says what to move.
	Move struct {
		Path string `json:"path"`
		Tar  bool   `json:"tar,omitempty"`
		Name string `json:"name,omitempty"` // the file's name, for an upload into a directory
		Mode *int   `json:"mode,omitempty"` // the file's mode, for an upload
	}

	// Commit says that an upload is complete.
	Commit struct {
		Commit bool `json:"commit"`
		Mode   *int `json:"mode,omitempty"` // the file's mode, instead of the Move's
	}

	// Moved announces a download or reports the result of a transfer.
	Moved struct {
		Path  string `json:"path,omitempty"`
		Size  int64  `json:"size"` // -1 announces a tar
		Done  bool   `json:"done,omitempty"`
		Error *Error `json:"error,omitempty"`
	}
)

// MaxTalk bounds the bytes that are read of a line.
const MaxTalk = 64 << 10
