package cli

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/profile"
)

func (a *app) authCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "Store and show the keys of servers",
		Long: `Store and show the keys of servers, in profiles: each has a URL, a key and a
route prefix. They are in ~/.sandbox/credentials.toml, for its owner alone.

The profile in use is that of --profile, of SANDBOX_PROFILE, or "default". A
key in SANDBOX_API_KEY is used instead of the profile's key, with the profile's
URL.`,
		Args: cobra.ArbitraryArgs, // so that noVerb words the error
		RunE: noVerb,
	}
	cmd.AddCommand(a.authLoginCmd(), a.authStatusCmd(), a.authWhoamiCmd(), a.authLogoutCmd())
	return cmd
}

// profileName returns the name of the profile in use.
func (a *app) profileName() string {
	return cmp.Or(a.target.Profile, os.Getenv(backend.EnvProfile), profile.Default)
}

// profile returns the profile in use. Errors: Unauthenticated (there is none of
// that name), InvalidArgument (--url was given).
func (a *app) profile() (name string, p profile.Profile, err error) {
	if a.target.URL != "" {
		return "", p, fault.New(fault.InvalidArgument, "this command works on a profile: name one with --profile, and leave out --url")
	}
	name = a.profileName()
	p, ok, err := a.target.Stored(name)
	if err == nil && !ok {
		err = fault.New(fault.Unauthenticated, "not logged in: there is no profile %q", name)
	}
	return name, p, err
}

func (a *app) authStatusCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the profile in use, without asking its server",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			name, p, err := a.profile()
			if err != nil {
				return err
			}
			key, source := client.NewApiKeyCredential(p.APIKey), "the profile"
			if env := os.Getenv(client.EnvAPIKey); env != "" {
				key, source = client.NewApiKeyCredential(env), client.EnvAPIKey
			}
			doc := map[string]any{"profile": name, "url": p.URL, "api_key": key.String(), "key_source": source, "path_prefix": orNull(p.PathPrefix)}
			return a.show(doc, nil, withoutEmpty([][]any{
				{"profile", name}, {"url", p.URL}, {"key", key.String()}, {"key from", source}, {"path prefix", p.PathPrefix},
			}))
		},
	}
}

func (a *app) authWhoamiCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Ask the profile's server whose key the profile has",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, p, err := a.profile()
			if err != nil {
				return err
			}
			c, err := client.New(a.target.Options(p))
			if err != nil {
				return err
			}
			defer c.Close()
			me, err := c.Me(cmd.Context())
			return a.show(me, err, describeMe(me))
		},
	}
}

func describeMe(me api.Identity) [][]any {
	table := [][]any{{"id", me.Sub}, {"name", me.Name}, {"type", me.PrincipalType}, {"environment", me.Environment}}
	for _, permission := range me.Permissions {
		table = append(table, []any{"permission", permission})
	}
	return withoutEmpty(append(table, []any{"path prefix", deref(me.PathPrefix)}, []any{"expires", cmp.Or(when(me.ExpiresAt), "never")}))
}

func (a *app) authLogoutCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Delete the stored profile with its key",
		Long: `Delete the stored profile with its key. The key itself goes on working until
it is deleted at its server ('sandbox keys rm') or expires.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			profiles, err := profile.UserFile(os.Getenv("HOME"))
			if err != nil {
				return err
			}
			name := a.profileName()
			removed, err := profiles.Delete(name)
			if err == nil && !removed {
				err = fault.New(fault.Unauthenticated, "not logged in: there is no profile %q", name)
			}
			return a.show(map[string]any{"profile": name, "logged_out": removed}, err, [][]any{{"logged out of profile " + name}})
		},
	}
}

// orNull returns nil, which JSON shows as null, for "".
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
