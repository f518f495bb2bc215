package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/profile"
)

// envProfile is the environment variable that names the profile in use.
const envProfile = "SANDBOX_PROFILE"

// target holds the flags that say where a command goes.
type target struct {
	local        bool
	url, profile string
}

// boxes returns the boxes that a verb works on. With owned, boxes that it makes
// with auto_remove end with this run.
func (a *app) boxes(ctx context.Context, owned bool) (boxes, error) {
	o, remote, err := a.server(ctx)
	if err != nil {
		return nil, err
	}
	if !remote {
		host, err := a.open(owned)
		if err != nil {
			return nil, err
		}
		return hostBoxes{host}, nil
	}
	c, err := client.New(o)
	if err != nil {
		return nil, err
	}
	return &serverBoxes{Client: c, owned: owned}, nil
}

// withServer calls do with the server that commands go to. It is for verbs that
// only a server has.
func (a *app) withServer(ctx context.Context, do func(*client.Client) error) error {
	o, remote, err := a.server(ctx)
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

// server returns the server that commands go to; remote is false if they go to this
// host's boxes, in process. The first of these that applies counts: the flags, the
// environment, the default profile unless it is that of this home's own daemon,
// that daemon's socket if it listens, this process if it runs as root.
func (a *app) server(ctx context.Context) (o client.Options, remote bool, err error) {
	t := a.target
	switch {
	case t.local && (t.url != "" || t.profile != ""), t.url != "" && t.profile != "":
		return o, false, fault.New(fault.InvalidArgument, "--local, --url and --profile can't be combined: use one of them")
	case t.local:
		return o, false, nil
	case t.url != "":
		return client.Options{
			URL: t.url, Credential: client.NewApiKeyCredential(os.Getenv(client.EnvAPIKey)), PathPrefix: os.Getenv(client.EnvPathPrefix),
		}, true, nil
	case t.profile != "":
		o, err = profileOptions(t.profile)
		return o, true, err
	case os.Getenv(client.EnvURL) != "":
		o, err = client.OptionsFromEnv()
		return o, true, err
	case os.Getenv(envProfile) != "":
		o, err = profileOptions(os.Getenv(envProfile))
		return o, true, err
	}
	return ambient(ctx)
}

// storedProfile returns a profile of the user's credentials file.
func storedProfile(name string) (profile.Profile, bool, error) {
	profiles, err := profile.UserFile()
	if err != nil {
		return profile.Profile{}, false, err
	}
	return profiles.Get(name)
}

// profileOptions returns the server of a profile. Errors: Config (there is no such
// profile).
func profileOptions(name string) (client.Options, error) {
	p, ok, err := storedProfile(name)
	switch {
	case err != nil:
		return client.Options{}, err
	case !ok:
		return client.Options{}, fault.New(fault.Config, "there is no profile %q: 'sandbox auth login --profile %s' stores one", name, name)
	}
	return optionsOf(p), nil
}

// optionsOf returns the server of a profile. A key in the environment replaces the
// stored one, and nothing else does.
func optionsOf(p profile.Profile) client.Options {
	key := p.APIKey
	if env := os.Getenv(client.EnvAPIKey); env != "" {
		key = env
	}
	return client.Options{URL: p.URL, Credential: client.NewApiKeyCredential(key), PathPrefix: p.PathPrefix}
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
