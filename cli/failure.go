package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sandbox/client"
	"sandbox/core/fault"
)

// The exit codes that belong to no kind of failure. The others are in [fault.Table].
const (
	exitOwn    = 125 // run and exec: we have failed, not the command
	exitSignal = 128 // plus the signal's number
)

// Signal is the cause of a context that a signal has ended.
type Signal syscall.Signal

// Error returns the name of the signal.
func (s Signal) Error() string { return syscall.Signal(s).String() }

// exit is an error that ends the program with an exit code and prints nothing.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// runsCommand is the annotation of the verbs that end with the exit code of
// the command they run.
const runsCommand = "runs-command"

// finish reports err and returns the exit code. It is the only place where a
// failure becomes an exit code.
func (a *app) finish(ctx context.Context, cmd *cobra.Command, err error) int {
	var code exit
	var sig Signal
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, syscall.EPIPE): // the reader of our output has gone, so there is nobody to tell
		return exitSignal + int(syscall.SIGPIPE)
	case fault.Is(err, fault.Canceled) && errors.As(context.Cause(ctx), &sig):
		return exitSignal + int(sig)
	}
	a.report(cmd, err)
	if cmd.Annotations[runsCommand] != "" {
		return exitOwn
	}
	return fault.Of(err).Kind.Row().Exit
}

// report prints err: each failure on a line, or all as one JSON document.
func (a *app) report(cmd *cobra.Command, err error) {
	f := fault.Of(err)
	if a.asJSON() {
		_ = writeJSON(a.Err, map[string]any{"error": failure{f.Kind.String(), f.Message, f.Prerequisite, requestID(err), f.Fields}})
		return
	}
	for _, err := range apart(err) {
		lines := strings.Split(err.Error(), "\n") // a server's text must not look like lines of ours
		for i := range lines {
			lines[i] = printable(lines[i])
		}
		fmt.Fprintf(a.Err, "sandbox: %s\n", strings.Join(lines, "\n  "))
	}
	if f.Prerequisite != "" {
		fmt.Fprintf(a.Err, "  %s\n", printable(f.Prerequisite))
	}
	if id := requestID(err); id != "" && f.Kind.Row().HTTP >= http.StatusInternalServerError {
		fmt.Fprintf(a.Err, "  the request in the server's log: %s\n", printable(id))
	}
	if next := nextStep(cmd, f.Kind); next != "" {
		fmt.Fprintf(a.Err, "  %s\n", next)
	}
}

// failure is a failure in JSON.
type failure struct {
	Code         string        `json:"code"`
	Message      string        `json:"message"`
	Prerequisite string        `json:"prerequisite,omitempty"`
	RequestID    string        `json:"request_id,omitempty"`
	Fields       []fault.Field `json:"fields,omitempty"`
}

// requestID returns the server's id of the request that failed, or "".
func requestID(err error) string {
	var answer *client.Error
	if errors.As(err, &answer) {
		return answer.RequestID
	}
	return ""
}

// nextStep says what to try after a failure, or "".
func nextStep(cmd *cobra.Command, k fault.Kind) string {
	if k == fault.InvalidState && cmd.Name() == "rm" {
		return "'sandbox rm -f' removes running boxes too"
	}
	if k == fault.Image && cmd.Name() == "build" { // most often a command that failed, which says why
		return ""
	}
	switch k {
	case fault.InvalidArgument, fault.Malformed, fault.InvalidInterval, fault.SQLRejected, fault.SQLError:
		return fmt.Sprintf("see '%s --help'", cmd.CommandPath())
	case fault.BoxNotFound, fault.Ambiguous:
		return "'sandbox ls' lists the boxes"
	case fault.ImageNotFound, fault.Image:
		return "'sandbox images ls' lists the images, 'sandbox images pull' and 'sandbox images import' add one"
	case fault.Unauthenticated:
		return "'sandbox auth login' stores a key; SANDBOX_API_KEY may hold one instead"
	case fault.Engine, fault.Unsupported:
		return "'sandbox doctor' checks this host"
	}
	return ""
}

// joined is [errors.Join], except that it returns a single error as it is.
func joined(errs ...error) error {
	var kept []error
	for _, err := range errs {
		if err != nil {
			kept = append(kept, err)
		}
	}
	if len(kept) == 1 {
		return kept[0]
	}
	return errors.Join(kept...)
}

// apart returns the errors that joined has joined.
func apart(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok { // only the outermost is a list
		return many.Unwrap()
	}
	return []error{err}
}

// each calls do for every ref, even after one has failed.
func each(refs []string, do func(ref string) error) error {
	var errs []error
	for _, ref := range refs {
		errs = append(errs, do(ref))
	}
	return joined(errs...)
}

// exitCodesTopic is 'sandbox help exit-codes'.
func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString(`Exit codes:

  0     success
  125   run and exec: sandbox failed, not the command
  126   run and exec: the command is not executable
  127   run and exec: the command does not exist
  128+N ended by signal N, such as 130 for Ctrl-C; for run and exec also:
        the command was ended by it, such as 143 or 137 after --timeout
        run and exec end with the command's own exit code otherwise

`)
	for _, row := range fault.Table() {
		if row.Exit < exitOwn {
			fmt.Fprintf(&b, "  %-5d %s: %s\n", row.Exit, row.Code, row.Class)
		}
	}
	return &cobra.Command{Use: "exit-codes", Short: "What each exit code means", Long: strings.TrimRight(b.String(), "\n")}
}
