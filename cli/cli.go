// Package cli is the command line: one file per verb, behind [Run].
package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sandbox/backend"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/local"
)

// Stdio are the standard streams of a run. -t needs an In or Out that is an
// *os.File of a terminal.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
}

// Run runs one command line (args without the program's name) and returns its exit
// code. It ends early when ctx ends. If the cause of that is a [Signal], the exit
// code is that signal's.
func Run(ctx context.Context, args []string, std Stdio) int {
	return (&app{Stdio: std, open: openHost}).run(ctx, args)
}

// app is one run of the command line.
type app struct {
	Stdio
	// open opens this host's home. With owned, the boxes that this run makes
	// end with it. Tests replace it.
	open func(owned bool) (*local.Host, error)

	output  string // value of -o
	target  backend.Target
	running bool // flags and arguments were accepted: any failure is the verb's own
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.running {
		err = fault.Wrap(fault.InvalidArgument, err, "")
	}
	return a.finish(ctx, cmd, err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sandbox",
		Short: "Isolated Linux boxes for code you don't trust",
		Long: `Isolated Linux boxes for code you don't trust.

State is kept in the directory that SANDBOX_HOME names; by default that is
/var/lib/sandbox for root and ~/.sandbox for others. 'sandbox help servers'
says where a command goes: to a server, or to this host's boxes in process.`,
		Version:       core.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs, // so that noVerb words the error
		RunE:          noVerb,

		SuggestionsMinimumDistance: 2,
	}
	root.SetFlagErrorFunc(flagError)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	flags := root.PersistentFlags()
	flags.VarP(&choice{value: &a.output, allowed: []string{"text", "json", "table"}}, "output", "o", "how to print: text (or table, the same) or json")
	flags.BoolVar(&a.target.Local, "local", false, "work on this host's boxes in process, without a daemon")
	flags.StringVar(&a.target.URL, "url", "", "the server to use: http(s)://HOST, or unix:///PATH of a daemon's socket")
	flags.StringVar(&a.target.Profile, "profile", "", "use the server of this stored profile, see 'sandbox auth'")
	root.AddCommand(
		a.runCmd(), a.createCmd(), a.lsCmd(), a.infoCmd(), a.startCmd(), a.stopCmd(), a.restartCmd(), a.pauseCmd(), a.resumeCmd(), a.updateCmd(), a.rmCmd(), a.gcCmd(),
		a.snapshotCmd(), a.snapshotsCmd(), a.rollbackCmd(), a.cloneCmd(), a.diffCmd(),
		a.execCmd(), a.attachCmd(), a.psCmd(), a.killCmd(), a.statsCmd(), a.logsCmd(), a.cpCmd(), a.filesCmd(), a.codeCmd(), a.contextsCmd(), a.portForwardCmd(), a.shareCmd(),
		a.imagesCmd(), a.imagesPullCmd(), a.imagesImportCmd(), a.exportCmd(), a.buildCmd(), a.keysCmd(), a.authCmd(), a.serveCmd(), a.consoleCmd(), a.mcpCmd(), a.doctorCmd(), a.versionCmd(), a.manCmd(), exitCodesTopic(), targetTopic(),
	)
	a.addCompletion(root)
	a.mark(root)
	return root
}

// mark makes every verb set a.running when it is reached.
func (a *app) mark(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = true // otherwise cobra adds "[flags]" behind the arguments
	if verb := cmd.RunE; verb != nil && cmd.HasParent() {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.running = true
			return verb(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		a.mark(sub)
	}
}

// noVerb prints the help if there is no verb, and refuses an unknown one.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	err := fault.New(fault.InvalidArgument, "no command %q", args[0])
	if ours, ok := dockerWords[args[0]]; ok && !cmd.HasParent() {
		return fault.New(fault.InvalidArgument, "no command %q; use %s", args[0], ours)
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err = fault.New(fault.InvalidArgument, "no command %q; did you mean %q?", args[0], near[0])
	}
	return err
}

// asJSON reports whether -o json was given.
func (a *app) asJSON() bool { return a.output == "json" }

// with calls do with the boxes to work on; see [app.boxes] for owned.
func (a *app) with(ctx context.Context, owned bool, do func(backend.Boxes) error) error {
	on, err := a.boxes(ctx, owned)
	if err != nil {
		return err
	}
	return joined(do(on), closed(ctx, on))
}

// withHost calls do with this host's home. It is for verbs that no server has.
func (a *app) withHost(ctx context.Context, do func(*local.Host) error) error {
	if a.target.URL != "" || a.target.Profile != "" {
		return fault.New(fault.InvalidArgument, "this command works on the host's own store: leave out --url and --profile")
	}
	host, err := a.open(false)
	if err != nil {
		return err
	}
	return joined(do(host), closed(ctx, host))
}

// closing bounds how long it takes to clean up after a signal.
const closing = 15 * time.Second

// closed closes c, even if ctx has ended.
func closed(ctx context.Context, c interface{ Close(context.Context) error }) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	return c.Close(ctx)
}

// openHost opens the default home.
func openHost(owned bool) (*local.Host, error) {
	return local.Open(local.Config{Beside: programDir(), Owned: owned})
}

// programDir returns the directory of this program, with links resolved, or "" if
// it is not known.
func programDir() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Dir(self)
}
