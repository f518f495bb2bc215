package cli

import (
	"fmt"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// boxFlags are the flags of run and create that describe the new box.
type boxFlags struct {
	options.Box
	env            envFlags
	labels         []string
	volumes, ports []string
	service        serviceFlags
}

// register adds the flags. A flag that is not given has the default.
func (f *boxFlags) register(fs *pflag.FlagSet) {
	f.Box = options.Defaults()
	fs.StringVarP(&f.Name, "name", "n", "", "name of the box")
	fs.IntVar(&f.CPUs, "cpus", f.CPUs, "number of CPUs, a whole number")
	fs.VarP((*mebibytes)(&f.MemoryMiB), "memory", "m", "memory in MiB, or with a unit")
	fs.IntVar(&f.DiskSizeGB, "disk", 0, "disk size in GB (0: disk_ceiling_gb of config.toml, else none)")
	f.env.register(fs)
	fs.StringArrayVarP(&f.volumes, "volume", "v", nil, "share a host path with the box: `HOST:GUEST[:ro]` (repeatable), or a claim of a cluster: claim:NAME:GUEST[:ro]; a box can leave set-user-id programs of root in a directory of the host's root: share such a directory read-only or mounted nosuid")
	fs.StringArrayVarP(&f.ports, "publish", "p", nil, "publish a port: `[IP:]HOST:GUEST[/udp]` (repeatable)")
	fs.StringVarP(&f.WorkingDir, "workdir", "w", "", "working directory of commands")
	fs.StringVarP(&f.User, "user", "u", "", "user of commands: a name or id, with :group if wanted")
	fs.StringVar(&f.Hostname, "hostname", "", "host name of the box (default: its name, or its id where that is no host name)")
	fs.Var(&choice{&f.Seccomp, []string{options.SeccompDefault, options.SeccompStrict}}, "seccomp", "which system calls it has: strict is what Python, bash and compilers need (default default)")
	fs.BoolVar(&f.AllowUnenforcedLimits, "allow-unenforced-limits", false, "run where the host can't enforce the limits, too (see docs/rootless.md)")
	fs.StringVar(&f.Network, "network", f.Network, "Isolated or None")
	fs.StringArrayVar(&f.labels, "label", nil, "label the box `KEY=VALUE` (repeatable)")
	lifeFlags(fs, &f.Box)
	f.service.register(fs)
	fs.StringVar(&f.RootfsPath, "rootfs", "", "use the root file system in `DIR`, read-only, in place of an image")
}

// box returns the options of the box that the flags and the image ask for.
func (f *boxFlags) box(image string) (options.Box, error) {
	b := f.Box
	if err := f.root(&b, image); err != nil {
		return options.Box{}, err
	}
	var err error
	if b.Env, err = f.env.env(); err != nil {
		return options.Box{}, err
	}
	if b.Labels, err = pairs("--label", f.labels); err != nil {
		return options.Box{}, err
	}
	if b.Volumes, err = all(f.volumes, volume); err != nil {
		return options.Box{}, err
	}
	if b.Ports, err = all(f.ports, port); err != nil {
		return options.Box{}, err
	}
	f.service.fill(&b)
	return b, b.Check()
}

// root sets the image or directory that the box's files come from.
func (f *boxFlags) root(b *options.Box, image string) error {
	if b.RootfsPath == "" {
		b.Image = image
		if image == "" {
			b.Image = options.DefaultImage
		}
		return nil
	}
	if image != "" {
		return fault.New(fault.InvalidArgument, "name an image or use --rootfs, not both")
	}
	abs, err := filepath.Abs(b.RootfsPath)
	b.RootfsPath = abs
	return fault.Wrap(fault.InvalidArgument, err, "--rootfs %q", b.RootfsPath)
}

// keepFlags adds --rm and --keep. Without them auto_remove is as byDefault says.
func keepFlags(cmd *cobra.Command, autoRemove *bool, byDefault bool) {
	rm := cmd.Flags().Bool("rm", byDefault, "remove the box when it stops")
	keep := cmd.Flags().Bool("keep", !byDefault, "keep the box when it stops")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		*autoRemove = *rm
		if !cmd.Flags().Changed("keep") {
			return nil
		}
		*autoRemove = !*keep
		if cmd.Flags().Changed("rm") && *rm == *keep {
			return fault.New(fault.InvalidArgument, "--rm and --keep contradict each other: use one of them")
		}
		return nil
	}
}

// pairs parses the KEY=VALUE arguments of a flag. If a key comes twice the last
// one counts.
func pairs(flag string, args []string) (map[string]string, error) {
	m := make(map[string]string, len(args))
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, fault.New(fault.InvalidArgument, "%s %q: want KEY=VALUE", flag, arg)
		}
		m[key] = value
	}
	return m, nil
}

// all parses every argument of a flag.
func all[T any](args []string, read func(string) (T, error)) ([]T, error) {
	var ts []T
	for _, arg := range args {
		t, err := read(arg)
		if err != nil {
			return nil, err
		}
		ts = append(ts, t)
	}
	return ts, nil
}

// volume parses HOST:GUEST[:ro] and claim:NAME:GUEST[:ro]. A relative HOST is relative to
// the working directory.
func volume(arg string) (options.Volume, error) {
	parts := strings.Split(arg, ":")
	claim := ""
	if len(parts) > 2 && parts[0] == claimPrefix && parts[2] != "ro" { // a directory may be called so
		claim, parts = parts[1], parts[1:]
	}
	readOnly := len(parts) == 3 && parts[2] == "ro"
	if !readOnly && len(parts) != 2 || parts[0] == "" {
		return options.Volume{}, fault.New(fault.InvalidArgument, "-v %q: want HOST:GUEST or claim:NAME:GUEST, with :ro if wanted", arg)
	}
	if claim != "" {
		return options.Volume{Claim: claim, GuestPath: parts[1], ReadOnly: readOnly}, nil
	}
	host, err := filepath.Abs(parts[0])
	return options.Volume{HostPath: host, GuestPath: parts[1], ReadOnly: readOnly},
		fault.Wrap(fault.InvalidArgument, err, "-v %q", arg)
}

// claimPrefix is in the place of HOST in a -v that names a claim.
const claimPrefix = "claim"

// port parses [IP:]HOST:GUEST[/udp]. An IPv6 address stands in brackets.
func port(arg string) (options.Port, error) {
	bad := fault.New(fault.InvalidArgument, "-p %q: want [IP:]HOST:GUEST, with /udp if wanted", arg)
	p := options.Port{Protocol: "Tcp"}
	rest, protocol, _ := strings.Cut(arg, "/")
	switch protocol {
	case "udp":
		p.Protocol = "Udp"
	case "tcp", "":
	default:
		return p, bad
	}
	host, guest, ok := cutLast(rest)
	if !ok {
		return p, bad
	}
	if ip, number, ok := cutLast(host); ok {
		p.HostIP, host = strings.Trim(ip, "[]"), number
		if net.ParseIP(p.HostIP) == nil {
			return p, bad
		}
	}
	var errHost, errGuest error
	p.HostPort, errHost = strconv.Atoi(host)
	p.GuestPort, errGuest = strconv.Atoi(guest)
	if errHost != nil || errGuest != nil {
		return p, bad
	}
	return p, nil
}

// cutLast cuts at the last colon.
func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// seconds is the value of a flag that takes a number of seconds, with a fraction
// if wanted.
type seconds time.Duration

// String returns the number of seconds.
func (s *seconds) String() string {
	return strconv.FormatFloat(time.Duration(*s).Seconds(), 'g', -1, 64)
}

// Type returns the name of the value in --help.
func (s *seconds) Type() string { return "SECONDS" }

// Set parses the number of seconds.
func (s *seconds) Set(arg string) error {
	f, err := strconv.ParseFloat(arg, 64)
	if err != nil || !(f >= 0 && f <= math.MaxInt32) {
		return fmt.Errorf("%q is not a number of seconds", arg)
	}
	*s = seconds(f * float64(time.Second))
	return nil
}

// choice is the value of a flag that takes one of a few words.
type choice struct {
	value   *string
	allowed []string
}

// String returns the word.
func (c *choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// Type returns the name of the value in --help.
func (c *choice) Type() string { return strings.Join(c.allowed, "|") }

// Set refuses a word that is not allowed.
func (c *choice) Set(arg string) error {
	if !slices.Contains(c.allowed, arg) {
		return fmt.Errorf("want %s", strings.Join(c.allowed, " or "))
	}
	*c.value = arg
	return nil
}
