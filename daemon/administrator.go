package daemon

import (
	"fmt"
	"io"

	"sandbox/auth"
	"sandbox/profile"
)

// administrator sees to it that the user of this host has a key: the first
// start makes one with all permissions and puts it into a profile of the
// command line; a later start on another address puts that right. before is
// the address of the last start. A credentials file that can't be written
// costs the key, not the start: the Unix socket needs none.
func (s settings) administrator(keys *auth.Store, before, now Address, say io.Writer) Address {
	now.Profile = before.Profile
	if now.URL == "" { // no TCP, no use for a key
		now.URL = before.URL
		return now
	}
	profiles, err := profile.UserFile()
	if err == nil {
		if before.Profile == "" {
			now.Profile, err = firstKey(keys, profiles, s.Environment, now, say)
		} else {
			err = moved(profiles, before, now, say)
		}
	}
	if err != nil {
		_, _ = fmt.Fprintf(say, "sandbox: no administrator's key could be stored: %v; 'sandbox keys create' makes one through the socket\n", err)
	}
	return now
}

// firstKey makes the administrator's key and returns the name of the profile that has it.
func firstKey(keys *auth.Store, profiles profile.File, environment string, now Address, say io.Writer) (string, error) {
	name, err := freeProfile(profiles, now.URL)
	if err != nil {
		return "", err
	}
	k, secret, err := keys.Create(auth.Local(environment), auth.Request{
		Name: "administrator", Permissions: auth.Permissions(), Environment: environment,
	})
	if err != nil {
		return "", err
	}
	if err := profiles.Put(name, profile.Profile{URL: now.URL, APIKey: secret, PathPrefix: now.Prefix}); err != nil {
		_ = keys.Delete(k.ID) // nobody knows its secret
		return "", err
	}
	_, _ = fmt.Fprintf(say, "sandbox: made the administrator's key %s and stored it as the profile %q in %s\n", k.ID, name, profiles.Path)
	return name, nil
}

// freeProfile returns the default profile, unless it is another server's: that
// one's key could not be had again.
func freeProfile(profiles profile.File, url string) (string, error) {
	old, taken, err := profiles.Get(profile.Default)
	if err != nil || !taken || old.URL == url {
		return profile.Default, err
	}
	return url, nil
}

// moved puts the profile right when this start has another address than the
// last, unless somebody has made it another server's.
func moved(profiles profile.File, before, now Address, say io.Writer) error {
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
