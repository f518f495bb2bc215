package cli

import "github.com/spf13/cobra"

// targetTopic is 'sandbox help servers'.
func targetTopic() *cobra.Command {
	return &cobra.Command{Use: "servers", Short: "Where a command goes: to which server, or to this host", Long: `Where a command goes; the first that applies counts:

  --local                       this host's boxes, in process
  --url URL                     that server, with the key in SANDBOX_API_KEY
  --profile NAME                the server and key of a profile ('sandbox auth')
  SANDBOX_REST_URL              that server, with SANDBOX_API_KEY and
                                SANDBOX_REST_PATH_PREFIX
  SANDBOX_PROFILE               the server and key of that profile
  the profile "default"         unless it is that of this host's own daemon
  the socket of this home's daemon, if one listens
  this host's boxes, in process, for root

Images, doctor and version are always about this host.`}
}
