package daemon

import (
	"context"
	"fmt"
	"io"
	"os"

	"sandbox/api"
	"sandbox/auth"
	"sandbox/daemon/address"
	"sandbox/profile"
)

// administrator makes sure that the user of this host has a key. The first start
// makes one with all permissions and stores it in a profile of the command line;
// a later start on another address changes the profile. before is the address of
// the last start. If the credentials file can't be written, the daemon starts
// without the key, since the Unix socket needs none. Where servers share their keys
// none is made: one a start of a server with a new home would be one too many.
func (s settings) administrator(ctx context.Context, keys *auth.Store, before, now address.Address, say io.Writer) address.Address {
	now.Profile = before.Profile
	if now.URL == "" { // without TCP nobody needs a key
		now.URL = before.URL
		return now
	}
	if keys.Shared() {
		return now
	}
	profiles, err := profile.UserFile(os.Getenv("HOME"))
	if err == nil {
		if before.Profile == "" {
			now.Profile, err = firstKey(ctx, keys, profiles, s.Environment, now, say)
		} else {
			err = moved(profiles, before, now, say)
		}
	}
	if err != nil {
		_, _ = fmt.Fprintf(say, "sandbox: the administrator's key could not be stored: %v; 'sandbox keys create' makes one through the socket\n", err)
	}
	return now
}

// firstKey makes the administrator's key and returns the name of the profile that has it.
func firstKey(ctx context.Context, keys *auth.Store, profiles profile.File, environment string, now address.Address, say io.Writer) (string, error) {
	name, err := freeProfile(profiles, now.URL)
	if err != nil {
		return "", err
	}
	k, secret, err := keys.Create(ctx, auth.Local(environment), auth.Request{
		Name: "administrator", Permissions: api.Permissions(), Environment: environment,
	})
	if err != nil {
		return "", err
	}
	if err := profiles.Put(name, profile.Profile{URL: now.URL, APIKey: secret, PathPrefix: now.Prefix}); err != nil {
		_ = keys.Delete(ctx, k.ID) // nobody knows its secret
		return "", err
	}
	_, _ = fmt.Fprintf(say, "sandbox: made the administrator's key %s and stored it as the profile %q in %s\n", k.ID, name, profiles.Path)
	return name, nil
}

// freeProfile returns the name of the profile to write: the default profile,
// unless another server has it. Its key may be the only copy, so the profile is
// named after the address then.
func freeProfile(profiles profile.File, url string) (string, error) {
	old, taken, err := profiles.Get(profile.Default)
	if err != nil || !taken || old.URL == url {
		return profile.Default, err
	}
	return url, nil
}

// moved changes the profile's address when this start has another one than the
// last. A profile that the user has pointed at another server stays as it is.
func moved(profiles profile.File, before, now address.Address, say io.Writer) error {
	p, ok, err := profiles.Get(before.Profile)
	if err != nil || !ok || p.URL != before.URL {
		return err
	}
	if p.URL == now.URL && p.PathPrefix == now.Prefix {
		return nil
	}
	p.URL, p.PathPrefix = now.URL, now.Prefix
	if err := profiles.Put(before.Profile, p); err != nil {
		return err
	}
	_, err = fmt.Fprintf(say, "sandbox: the profile %q in %s is for %s now\n", before.Profile, profiles.Path, now.URL)
	return err
}
