// Package profile reads and writes the credentials file of a user, in which the
// address and the API key of each server stand under a name, the profile. The
// command line and the daemon share it.
package profile

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

// Default is the name of the profile that is used when none is named.
const Default = "default"

// Profile says how to reach one server, and as whom. PathPrefix is the segment
// behind /v1 that the server keeps its boxes under, or "".
type Profile struct {
	URL        string `toml:"url"`
	APIKey     string `toml:"api_key"`
	PathPrefix string `toml:"path_prefix,omitempty"`
}

// File is a credentials file. Its methods read or write the whole file, and make
// it when it is missing. Two processes that write at once may lose the change of
// one of them, but never damage the file.
type File struct {
	Path string
}

// UserFile returns the credentials file of the user that this process runs as:
// .sandbox/credentials.toml in home, which is the value of HOME. Errors: Config.
func UserFile(home string) (File, error) {
	if home == "" { // a service manager may leave HOME out
		u, err := user.Current()
		if err != nil {
			return File{}, fault.Wrap(fault.Config, err, "no home directory for credentials: set HOME")
		}
		home = u.HomeDir
	}
	return File{filepath.Join(home, ".sandbox", "credentials.toml")}, nil
}

// document is the credentials file.
type document struct {
	Profiles map[string]Profile `toml:"profiles"`
}

// Get returns a profile; ok is false if there is none of this name. Errors: Config.
func (f File) Get(name string) (profile Profile, ok bool, err error) {
	all, err := f.read()
	profile, ok = all[name]
	return profile, ok, err
}

// Names returns the names of all profiles, sorted. Errors: Config.
func (f File) Names() ([]string, error) {
	all, err := f.read()
	return slices.Sorted(maps.Keys(all)), err
}

// Put writes a profile, in place of one of its name. Errors: Config.
func (f File) Put(name string, profile Profile) error {
	all, err := f.read()
	if err != nil {
		return err
	}
	all[name] = profile
	return f.write(all)
}

// Delete forgets a profile; ok is false if there was none. Errors: Config.
func (f File) Delete(name string) (ok bool, err error) {
	all, err := f.read()
	if err != nil {
		return false, err
	}
	if _, ok = all[name]; !ok {
		return false, nil
	}
	delete(all, name)
	return true, f.write(all)
}

func (f File) read() (map[string]Profile, error) {
	d := document{Profiles: map[string]Profile{}}
	meta, err := toml.DecodeFile(f.Path, &d)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.Profiles, nil
	case err != nil:
		// The decoder's own message quotes lines of the file, which may hold keys.
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return nil, fault.New(fault.Config, "%s: line %d is not TOML that profiles are made of", f.Path, syntax.Position.Line)
		}
		return nil, fault.New(fault.Config, "%s can't be read as profiles: mend or remove the file", f.Path)
	}
	if kind := meta.Type("profiles"); kind != "" && kind != "Hash" { // the decoder ignores it; "" is of a header [profiles.NAME] alone
		return nil, fault.New(fault.Config, "%s: profiles is not a table", f.Path)
	}
	if undecoded := meta.Undecoded(); len(undecoded) > 0 {
		return nil, fault.New(fault.Config, "%s: no setting is called %q", f.Path, undecoded[0])
	}
	if d.Profiles == nil {
		d.Profiles = map[string]Profile{}
	}
	return d.Profiles, nil
}

// write replaces the file in one step: a reader sees the old file or the new one.
func (f File) write(all map[string]Profile) error {
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(document{all}); err != nil {
		return fault.Wrap(fault.Internal, err, "encode profiles")
	}
	dir := filepath.Dir(f.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "make the directory of the credentials")
	}
	tmp, err := os.CreateTemp(dir, ".credentials-") // of mode 0600
	if err != nil {
		return fault.Wrap(fault.Config, err, "write the credentials")
	}
	_, err = tmp.Write(text.Bytes())
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.Path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return fault.Wrap(fault.Config, err, "write the credentials")
}
