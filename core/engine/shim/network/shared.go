package network

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sandbox/core/filelock"
)

// shared is what all shims of the host's network namespace have in common: the
// pools of addresses, and how settings of the kernel were before. It is kept in
// one file in /run. A shim that uses it holds a shared lock of this file, so that
// a shim that gets an exclusive lock knows that it is the last. A shim that
// changes it holds the lock of a second file meanwhile. The kernel releases both
// locks when the process ends.
type shared struct {
	Pool     netip.Prefix  `json:"pool"`
	Pool6    *netip.Prefix `json:"pool6,omitempty"` // nil if the host has no default route over IPv6
	MTU      int           `json:"mtu"`
	Settings []setting     `json:"settings"`

	file *filelock.File
}

// setting is a setting of the kernel: its value before the first box, and the
// value that boxes need.
type setting struct {
	Name string `json:"name"`
	Was  string `json:"was"`
	Want string `json:"want,omitempty"` // "" for one that is only changed by the kernel when another is set
}

func (s setting) apply() error {
	if now, err := sysctl(s.Name); s.Want == "" || err == nil && now == s.Want {
		return err
	}
	return setSysctl(s.Name, s.Want)
}

// The pool is searched from 10.firstPool to 10.lastPool, with prefixes of
// poolBits bits. This is the part of 10/8 that other software uses least.
const (
	firstPool = 201
	lastPool  = 254
	poolBits  = 16
)

// pool6 is a unique local prefix of our own (RFC 4193). It is never seen outside
// the host, as boxes' addresses are translated to the host's.
var pool6 = netip.MustParsePrefix("fd73:6278:7b1d::/64")

func (s *shared) pools() []netip.Prefix {
	if s.Pool6 == nil {
		return []netip.Prefix{s.Pool}
	}
	return []netip.Prefix{s.Pool, *s.Pool6}
}

// stateFile returns the path of the shared file. Each network namespace has one of
// its own, as boxes of shims in another one share nothing with ours.
func (h *Host) stateFile() (string, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return "", err
	}
	return filepath.Join(cmp.Or(h.Dir, "/run"), fmt.Sprintf("sandbox-network-%d", st.Ino)), nil
}

// join takes the shared lock of the file called name, and makes those of the shared parts
// that are missing; look finds what the host has. The caller ends its use with leave.
func join(h *netlink.Handle, name string, look func(*netlink.Handle) (surveyed, error)) (*shared, error) {
	changing, err := change(name)
	if err != nil {
		return nil, err
	}
	defer changing.Close()
	f, err := filelock.Shared(context.Background(), name)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	s := &shared{file: f}
	if err := s.enter(h, look); err != nil {
		_ = f.Close()
		return nil, err
	}
	return s, nil
}

// change takes the lock that a shim must hold to change what is shared. It waits
// for other shims, which hold the lock only for moments. The caller closes it.
func change(name string) (*filelock.File, error) {
	f, err := filelock.Exclusive(context.Background(), name+".lock")
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return f, nil
}

// enter reads the file, or writes it if it is empty, and then makes the settings
// and the table that it describes.
func (s *shared) enter(h *netlink.Handle, look func(*netlink.Handle) (surveyed, error)) error {
	text, err := io.ReadAll(s.file)
	if err != nil {
		return err
	}
	if len(text) > 0 && json.Unmarshal(text, s) != nil {
		return fmt.Errorf("%s is damaged: remove it when no box runs", s.file.Name())
	}
	if len(text) == 0 {
		if err := s.begin(h, look); err != nil {
			return err
		}
	}
	for _, set := range s.Settings {
		if err := set.apply(); err != nil {
			return err
		}
	}
	if err := errors.Join(canUntrack(), makeTable(s.pools())); err != nil {
		return fmt.Errorf("make the nftables table: %w", err)
	}
	return purge(h, s)
}

// begin looks at the host, and writes the pools and the present values of the
// settings to the file before anything is changed.
func (s *shared) begin(h *netlink.Handle, look func(*netlink.Handle) (surveyed, error)) error {
	out, err := look(h)
	if err != nil {
		return err
	}
	s.Pool, s.Pool6, s.MTU = out.pool, out.pool6, out.mtu
	for _, set := range settings(out) {
		if set.Was, err = sysctl(set.Name); err != nil {
			return err
		}
		s.Settings = append(s.Settings, set)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = s.file.WriteAt(text, 0)
	return err
}

// settings returns the settings of the kernel that boxes need or that change with
// these, in the order of the changes.
func settings(out surveyed) []setting {
	list := []setting{
		{Name: "net/ipv4/ip_forward", Want: "1"},
		// The kernel switches this off when forwarding is switched on, and on
		// when forwarding is switched off, whatever was set before. So leave
		// has to restore it.
		{Name: "net/ipv4/conf/all/accept_redirects"},
	}
	if out.pool6 == nil {
		return list
	}
	// A host that forwards ignores router advertisements unless this is 2.
	if value, err := sysctl(out.acceptRA()); err == nil && value == "1" {
		list = append(list, setting{Name: out.acceptRA(), Want: "2"})
	}
	return append(list, setting{Name: "net/ipv6/conf/all/forwarding", Want: "1"})
}

// leave releases the shared lock. If no other shim holds it and no box is left,
// leave removes the table and both files, and restores the settings.
func (s *shared) leave(h *netlink.Handle) error {
	name := s.file.Name()
	changing, err := change(name)
	if err != nil {
		return errors.Join(err, s.file.Close())
	}
	defer changing.Close()
	if err := s.file.Close(); err != nil {
		return err
	}
	last, err := filelock.Try(name)
	if errors.Is(err, filelock.ErrHeld) { // others are there
		return nil
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	defer last.Close()
	if alive, err := anyBox(h); err != nil || alive {
		return err // boxes whose shim has died still need all of it
	}
	errs := []error{removeTable()}
	for _, set := range s.Settings {
		if err := setSysctl(set.Name, set.Was); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, os.Remove(name), os.Remove(changing.Name()))...)
}
