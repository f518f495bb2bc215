package cli

import (
	"context"

	"github.com/spf13/cobra"

	"sandbox/backend"
	"sandbox/client"
	"sandbox/core/fault"
)

// boxes returns the boxes that a verb works on. With owned, boxes that it makes
// with auto_remove end with this run.
func (a *app) boxes(ctx context.Context, owned bool) (backend.Boxes, error) {
	return a.target.Open(ctx, owned, a.open)
}

// withServer calls do with the server that commands go to. It is for verbs that
// only a server has.
func (a *app) withServer(ctx context.Context, do func(*client.Client) error) error {
	o, remote, err := a.target.Server(ctx)
	if err != nil {
		return err
	}
	if !remote {
		return fault.New(fault.Unavailable, "only a daemon can do that, and this command uses none: start one with 'sandbox serve', or name one with --url")
	}
	c, err := client.New(o)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// targetTopic is 'sandbox help servers'.
func targetTopic() *cobra.Command {
	return &cobra.Command{Use: "servers", Short: "Where a command goes: to which server, or to this host", Long: `Where a command goes. The first line that applies is used:

  --local                       this host's boxes, in process
  --url URL                     that server, with the key in SANDBOX_API_KEY
  --profile NAME                the server and key of a profile ('sandbox auth')
  SANDBOX_REST_URL              that server, with SANDBOX_API_KEY and
                                SANDBOX_REST_PATH_PREFIX
  SANDBOX_PROFILE               the server and key of that profile
  the profile "default"         unless it is that of this host's own daemon
  the socket of this home's daemon, if one listens; where SANDBOX_HOME is not
  set, also that of root's daemon in /var/lib/sandbox
  this host's boxes, in process, for root

Aliases and the pruning of images, doctor and version are always about this
host.`}
}
