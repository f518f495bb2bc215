package client

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"

	"github.com/BurntSushi/toml"

	"sandbox/core/fault"
)

// DefaultProfile is the profile in use where nobody names one.
const DefaultProfile = "default"

// Profile is how to reach one server.
type Profile struct {
	URL        string `toml:"url"`
	APIKey     string `toml:"api_key"`
	PathPrefix string `toml:"path_prefix,omitempty"`
}

// Profiles is the credentials file of a user. Its methods read and write the
// whole file, which is made when it is missing.
type Profiles struct {
	Path string
}

// UserProfiles returns the profiles of the user that this process runs as:
// $HOME/.sandbox/credentials.toml. Errors: Config.
func UserProfiles() (Profiles, error) {
	home, err := os.UserHomeDir()
	if err != nil { // a service manager may leave HOME out
		var u *user.User
		if u, err = user.Current(); err == nil {
			home = u.HomeDir
		}
	}
	if err != nil {
		return Profiles{}, fault.Wrap(fault.Config, err, "no home directory for credentials: set HOME")
	}
	return Profiles{filepath.Join(home, ".sandbox", "credentials.toml")}, nil
}

// document is the credentials file.
type document struct {
	Profiles map[string]Profile `toml:"profiles"`
}

// Get returns a profile; ok is false if there is none of this name. Errors: Config.
func (p Profiles) Get(name string) (profile Profile, ok bool, err error) {
	all, err := p.read()
	profile, ok = all[name]
	return profile, ok, err
}

// Names returns the names of all profiles, sorted. Errors: Config.
func (p Profiles) Names() ([]string, error) {
	all, err := p.read()
	return slices.Sorted(maps.Keys(all)), err
}

// Put writes a profile, in place of one of its name. Errors: Config.
func (p Profiles) Put(name string, profile Profile) error {
	all, err := p.read()
	if err != nil {
		return err
	}
	all[name] = profile
	return p.write(all)
}

// Delete forgets a profile; ok is false if there was none. Errors: Config.
func (p Profiles) Delete(name string) (ok bool, err error) {
	all, err := p.read()
	if err != nil {
		return false, err
	}
	if _, ok = all[name]; !ok {
		return false, nil
	}
	delete(all, name)
	return true, p.write(all)
}

func (p Profiles) read() (map[string]Profile, error) {
	d := document{Profiles: map[string]Profile{}}
	meta, err := toml.DecodeFile(p.Path, &d)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.Profiles, nil
	case err != nil:
		// The decoder quotes lines of the file, which may hold keys.
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return nil, fault.New(fault.Config, "%s: line %d is not TOML that profiles are made of", p.Path, syntax.Position.Line)
		}
		return nil, fault.New(fault.Config, "%s can't be read as profiles: mend or remove the file", p.Path)
	}
	if meta.IsDefined("profiles") && meta.Type("profiles") != "Hash" { // which the decoder lets pass
		return nil, fault.New(fault.Config, "%s: profiles is no table", p.Path)
	}
	if undecoded := meta.Undecoded(); len(undecoded) > 0 {
		return nil, fault.New(fault.Config, "%s: no setting is called %q", p.Path, undecoded[0])
	}
	if d.Profiles == nil {
		d.Profiles = map[string]Profile{}
	}
	return d.Profiles, nil
}

// write replaces the file in one step: a reader sees the old one or the new.
func (p Profiles) write(all map[string]Profile) error {
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(document{all}); err != nil {
		return fault.Wrap(fault.Internal, err, "encode profiles")
	}
	dir := filepath.Dir(p.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "make the directory of the credentials")
	}
	f, err := os.CreateTemp(dir, ".credentials-") // of mode 0600
	if err != nil {
		return fault.Wrap(fault.Config, err, "write the credentials")
	}
	_, err = f.Write(text.Bytes())
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), p.Path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return fault.Wrap(fault.Config, err, "write the credentials")
}
