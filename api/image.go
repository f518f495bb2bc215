package api

import "time"

// Image is what is known of an image of the store.
type Image struct {
	Name         string       `json:"name"`             // includes the tag
	ID           string       `json:"id"`               // sha256:..., the digest of its config
	Digest       string       `json:"digest,omitempty"` // the digest by which its registry knows it
	Layers       []string     `json:"layers"`           // lowest first: digests of plain tars, or keys of snapshots
	Size         int64        `json:"size"`             // bytes of its layers as plain tars
	Architecture string       `json:"architecture,omitempty"`
	Env          []string     `json:"env,omitempty"`
	WorkingDir   string       `json:"working_dir,omitempty"`
	User         string       `json:"user,omitempty"`
	Entrypoint   []string     `json:"entrypoint,omitempty"`  // begins the command that the image has of its own
	Cmd          []string     `json:"cmd,omitempty"`         // the rest of that command
	HealthCheck  *HealthCheck `json:"healthcheck,omitempty"` // of its main command
	StopSignal   string       `json:"stop_signal,omitempty"` // ends its main command: a name or a number; "" for SIGTERM
	// Labels and ExposedPorts are kept for whoever runs the image elsewhere: boxes have
	// labels and published ports of their own. A port is as 80/tcp.
	Labels       map[string]string `json:"labels,omitempty"`
	ExposedPorts []string          `json:"exposed_ports,omitempty"`
	CreatedAt    time.Time         `json:"created_at"`       // when the image was made, or imported if it does not say
	Parent       string            `json:"parent,omitempty"` // of a snapshot: the id of the image below it
	Box          string            `json:"box,omitempty"`    // of a snapshot: the id of the box that it was taken of
}

// Snapshot is a snapshot of a box that was just taken.
type Snapshot struct {
	Image
	PausedMS float64 `json:"paused_ms"` // for how long the box stood still; 0 for one that did not run
}

// SnapshotNode is a snapshot in the tree of all of them.
type SnapshotNode struct {
	Image
	AddedBytes int64    `json:"added_bytes"` // what its own layer occupies on the disk
	Boxes      []string `json:"boxes"`       // the names, or else the ids, of the boxes that stand on it
}

// What a [Change] says of a file.
const (
	DiffAdded   = "added"
	DiffChanged = "changed" // its content, its mode, its owner, or what is in the directory
	DiffRemoved = "removed"
)

// Change is a difference between two states of a box's disk.
type Change struct {
	Path string `json:"path"` // absolute
	Kind string `json:"kind"` // added, changed or removed
}

// Changes is a page of changes, in the order of the paths.
type Changes struct {
	Changes       []Change `json:"changes"`
	NextPageToken *string  `json:"next_page_token"` // nil on the last page
}

// Snapshots are snapshots, each behind the one that it stands on.
type Snapshots struct {
	Snapshots []SnapshotNode `json:"snapshots"`
}

// Clones are the boxes that a clone has made.
type Clones struct {
	Boxes []Box `json:"boxes"`
}

// ImageStage is a step in the pull, import, export or push of a layer.
type ImageStage string

// The stages of a layer.
const (
	LayerFetching  ImageStage = "fetch"
	LayerUnpacking ImageStage = "unpack"
	LayerPacking   ImageStage = "pack" // its plain tar is made and compressed; the bytes are those of the tar
	LayerSending   ImageStage = "send"
	LayerDone      ImageStage = "done" // also reported for a layer that was there already
)

// ImageProgress is how far one layer has come.
type ImageProgress struct {
	Layer  int        `json:"layer"` // counts from 1
	Layers int        `json:"layers"`
	Stage  ImageStage `json:"stage"`
	Done   int64      `json:"done"`  // bytes of the layer as its source has it, or as it leaves the store
	Total  int64      `json:"total"` // the same of the whole layer; 0 if unknown
}

// Compression says how the layers of an image are compressed that leaves the
// store.
type Compression string

// The compressions.
const (
	CompressZstd Compression = "zstd" // what is used unless another one is named
	CompressGzip Compression = "gzip" // for readers that know no zstd
	CompressNone Compression = "none"
)

// Compressions lists all of them.
func Compressions() []Compression { return []Compression{CompressZstd, CompressGzip, CompressNone} }

// Pushed is an image that was sent to a registry.
type Pushed struct {
	Reference string `json:"reference"` // includes the registry and the tag
	Digest    string `json:"digest"`    // by which the registry knows it
}

// The events of a pull or a push that streams. The last one is what it has made or
// an error.
const (
	PullProgress = "progress" // an ImageProgress
	PullImage    = "image"    // the Image that was pulled
	PushDone     = "pushed"   // what was Pushed
	PullError    = "error"    // the document of the failure
)

// BuildStage is how far a step of a build has come.
type BuildStage string

// The stages of a step.
const (
	StepBegun  BuildStage = "begun"
	StepCached BuildStage = "cached" // what it had made before is used
	StepDone   BuildStage = "done"
)

// BuildStep tells of one step of a build: an instruction of the recipe.
type BuildStep struct {
	Step  int        `json:"step"`  // counts from 1
	Steps int        `json:"steps"` // that the build has
	Line  int        `json:"line"`  // of the recipe
	Text  string     `json:"text"`  // the instruction, on one line; a long one is cut off
	Stage BuildStage `json:"stage"`
	MS    int64      `json:"ms"` // that it took, once it is done; in milliseconds
}

// BuildOutput is output of the command of a step.
type BuildOutput struct {
	Step     int    `json:"step"`
	Stream   string `json:"stream"` // Stdout or Stderr
	Data     string `json:"data"`
	Encoding string `json:"encoding,omitempty"` // of Data: Base64, or "" for text
}

// NewBuildOutput returns a piece of output of a step as JSON can hold it.
func NewBuildOutput(step int, stderr bool, p []byte) BuildOutput {
	o := BuildOutput{Step: step, Stream: Stdout}
	if stderr {
		o.Stream = Stderr
	}
	var encoding string
	if o.Data, encoding = Text(p); encoding == Base64 {
		o.Encoding = Base64
	}
	return o
}

// Bytes returns the output as the command wrote it; it fails where Data is not what
// Encoding says.
func (o BuildOutput) Bytes() ([]byte, error) { return Bytes(o.Data, o.Encoding) }

// The events of a build that streams, beside [PullProgress] of the images that it pulls.
// The last one is [PullImage] or [PullError].
const (
	BuildStepEvent   = "step"   // a BuildStep
	BuildOutputEvent = "output" // a BuildOutput
)

// BuildEventType is what an event of a build tells.
type BuildEventType string

// What an event of a build tells, as programs read them one by one. The last one is a
// BuildEnd.
const (
	BuildPulled  BuildEventType = PullProgress     // progress, of an image that the recipe stands on
	BuildStepped BuildEventType = BuildStepEvent   // step
	BuildPrinted BuildEventType = BuildOutputEvent // output
	BuildEnd     BuildEventType = "end"            // image, or error if it has failed
)

// BuildEvent is one event of a build. Only the members of its type are set.
type BuildEvent struct {
	Type     BuildEventType `json:"type"`
	Progress *ImageProgress `json:"progress,omitempty"`
	Step     *BuildStep     `json:"step,omitempty"`
	Output   *BuildOutput   `json:"output,omitempty"`
	Image    *Image         `json:"image,omitempty"` // what was built
	Error    *Failure       `json:"error,omitempty"`
}
