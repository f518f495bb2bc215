package backend

import (
	"cmp"
	"context"
	"os"

	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/core/local"
	"sandbox/profile"
)

// EnvProfile is the environment variable that names the profile in use.
const EnvProfile = "SANDBOX_PROFILE"

// Target says where boxes are. What it leaves open the environment decides, and then
// what is there; see [Target.Server].
type Target struct {
	Local        bool   // this host, in process
	URL, Profile string // a server, or the name of the profile that has it
	// Getenv reads the environment; nil means that of Go's package os.
	Getenv func(name string) string
}

// Open returns the boxes of the target. open opens those of this host. With owned,
// boxes that are made with auto_remove end with Close.
func (t Target) Open(ctx context.Context, owned bool, open func(owned bool) (*local.Host, error)) (Boxes, error) {
	o, remote, err := t.Server(ctx)
	if err != nil {
		return nil, err
	}
	if !remote {
		host, err := open(owned)
		if err != nil {
			return nil, err
		}
		return OnHost(host), nil
	}
	c, err := client.New(o)
	if err != nil {
		return nil, err
	}
	return OnServer(c, owned), nil
}

// Server returns the server that has the boxes; remote is false if this host has them,
// in process. The first of these that applies counts: the target, the environment, the
// default profile unless it is that of this home's own daemon, that daemon's socket if
// it listens, this process if it runs as root.
func (t Target) Server(ctx context.Context) (o client.Options, remote bool, err error) {
	address, name := t.getenv(client.EnvURL), t.getenv(EnvProfile)
	switch {
	case t.Local && (t.URL != "" || t.Profile != ""), t.URL != "" && t.Profile != "":
		return o, false, fault.New(fault.InvalidArgument, "--local, --url and --profile can't be combined: use one of them")
	case t.Local:
		return o, false, nil
	case t.URL != "":
		return t.at(t.URL), true, nil
	case t.Profile != "":
		o, err = t.named(t.Profile)
		return o, true, err
	case address != "":
		return t.at(address), true, nil
	case name != "":
		o, err = t.named(name)
		return o, true, err
	}
	return t.ambient(ctx)
}

// at returns the server of an address, with what the environment says of it.
func (t Target) at(url string) client.Options {
	return client.Options{
		URL: url, Credential: client.NewApiKeyCredential(t.getenv(client.EnvAPIKey)), PathPrefix: t.getenv(client.EnvPathPrefix),
	}
}

func (t Target) getenv(name string) string {
	if t.Getenv == nil {
		return os.Getenv(name)
	}
	return t.Getenv(name)
}

// Stored returns a profile of the user's credentials file.
func (t Target) Stored(name string) (profile.Profile, bool, error) {
	profiles, err := profile.UserFile(t.getenv("HOME"))
	if err != nil {
		return profile.Profile{}, false, err
	}
	return profiles.Get(name)
}

// named returns the server of a profile. Errors: Config (there is no such profile).
func (t Target) named(name string) (client.Options, error) {
	p, ok, err := t.Stored(name)
	switch {
	case err != nil:
		return client.Options{}, err
	case !ok:
		return client.Options{}, fault.New(fault.Config, "there is no profile %q: 'sandbox auth login --profile %s' stores one", name, name)
	}
	return t.Options(p), nil
}

// Options returns the server of a profile. A key in the environment replaces the
// stored one, and nothing else does.
func (t Target) Options(p profile.Profile) client.Options {
	key := cmp.Or(t.getenv(client.EnvAPIKey), p.APIKey)
	return client.Options{URL: p.URL, Credential: client.NewApiKeyCredential(key), PathPrefix: p.PathPrefix}
}
