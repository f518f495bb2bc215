package api

// Event is one event of an exec, as Server-Sent Events carry it (contract,
// section 3). Exactly one member is set.
type Event struct {
	Log  *Log
	Gap  *Gap
	Exit *Exit
}

// The names of an exec's streams.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Log is output of a command.
type Log struct {
	Seq      int64  `json:"seq"`    // of the event, from 1
	Stream   string `json:"stream"` // Stdout or Stderr
	Data     string `json:"data"`
	Encoding string `json:"encoding,omitempty"` // of Data: Base64, or "" for text
}

// Bytes returns the output as the command wrote it; it fails where Data is not
// what Encoding says.
func (l Log) Bytes() ([]byte, error) { return Bytes(l.Data, l.Encoding) }

// Gap tells that output was dropped before it could be read: the events From
// to To. What comes next lies behind as many bytes of each stream.
type Gap struct {
	From       int64 `json:"from"`
	To         int64 `json:"to"`
	StdoutFrom int64 `json:"stdout_from"`
	StderrFrom int64 `json:"stderr_from"`
}

// Exit is the end of a command, and its last event.
type Exit struct {
	Seq         int64      `json:"seq"`
	ExitCode    *int       `json:"exit_code"`
	Signal      *int       `json:"signal"`
	Status      ExecStatus `json:"status"`
	Reason      *Reason    `json:"reason"`
	StdoutBytes *int64     `json:"stdout_bytes"`
	StderrBytes *int64     `json:"stderr_bytes"`
}
