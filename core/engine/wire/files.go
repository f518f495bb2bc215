package wire

// A transfer moves a file into or out of a box. Init starts a child process for
// it, with only the rights of the box's root, and passes the host process the
// other ends of the child's two descriptors: a pipe for the bytes, and a socket
// for messages, which are lines of JSON. The host sends a Move. For an upload it
// also sends a Commit, once it has written all bytes to the pipe and closed it;
// without the Commit a file is not kept. The child answers with one Moved at the
// end, and for a download also with one before the bytes. The child lives as
// long as the host's connection to init.
//
// Instead of moving a file the child can work on files where they are: then the
// host sends a Move with an Operation, the child sends records (see [Entry])
// through the pipe and closes it, and answers with one Moved.
type (
	// Transfer requests a child from init, with the rights of the box's root.
	Transfer struct {
		In bool `json:"in"` // the bytes go into the box
	}

	// Files requests a child from init, with the rights of a user. Boxes whose
	// init is too old for it know Transfer alone.
	Files struct {
		In   bool   `json:"in"`
		User string `json:"user,omitempty"` // "" for the box's root
	}

	// Move says what to move.
	Move struct {
		Path string `json:"path"`
		Tar  bool   `json:"tar,omitempty"`
		Name string `json:"name,omitempty"` // the file's name, for an upload into a directory; for User the user's
		Mode *int   `json:"mode,omitempty"` // the file's mode, for an upload
		// Owner is who owns what an upload or MakeDirectory makes, as USER[:GROUP], names
		// or numbers; "" for who makes it. Old children know none, or names of users alone.
		Owner string `json:"owner,omitempty"`
		// Owners says of the upload of a tar without an Owner that its entries belong to
		// whom they name. Old children know it not.
		Owners bool `json:"owners,omitempty"`

		Operation Operation `json:"operation,omitempty"` // "" moves the file
		To        string    `json:"to,omitempty"`        // for Rename
		Recursive bool      `json:"recursive,omitempty"` // for Remove and Watch
		Depth     int       `json:"depth,omitempty"`     // for List: levels of directories
		Limit     int       `json:"limit,omitempty"`     // for List: entries
		Make      bool      `json:"make,omitempty"`      // for User
		After     []byte    `json:"after,omitempty"`     // for List: the entry before the first, relative to Path
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

		Created bool  `json:"created,omitempty"` // of MakeDirectory and User: it was not there before
		Removed int64 `json:"removed,omitempty"` // of Remove: files and directories
		More    bool  `json:"more,omitempty"`    // of List: there are entries behind the last one
	}
)

// Operation is what a child does with files in their places.
type Operation string

// The operations, and the records that the child sends.
const (
	Stat          Operation = "stat"           // one Entry
	List          Operation = "list"           // an Entry for each file
	MakeDirectory Operation = "make_directory" // the Entry of the directory
	Rename        Operation = "rename"         // the Entry of the file in its new place
	Remove        Operation = "remove"         // now and then an empty record, as a sign of life
	User          Operation = "user"           // none: the Path of the Moved is the user's home
	Watch         Operation = "watch"          // an empty record when it has begun, then an Event for each; the last is an end
)

// MaxTalk bounds the bytes that are read of a line.
const MaxTalk = 64 << 10
