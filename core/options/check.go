package options

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/ids"
)

// Check returns an error that names everything that is wrong with b, or nil.
// Errors: InvalidArgument, with fields.
func (b Box) Check() error {
	var p problems
	b.checkRootfs(&p)
	b.check(&p)
	return p.Err(fault.InvalidArgument)
}

// validHostname tells whether all that stands between the dots of a name can be the
// name of a host.
func validHostname(name string) bool {
	return len(name) <= 63 && !slices.ContainsFunc(strings.Split(name, "."), func(part string) bool { return !IsHostname(part) })
}

// IsHostname tells whether a name without dots can be that of a host.
func IsHostname(name string) bool {
	if name == "" || len(name) > 63 || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// checkRootfs checks the root file system. It names the members as the box
// options document does.
func (b Box) checkRootfs(p *problems) {
	p.When((b.Image == "") == (b.RootfsPath == ""), "rootfs", "one_of", "must be exactly one of Image and RootfsPath")
	p.text("rootfs.Image", b.Image)
	p.hostPath("rootfs.RootfsPath", b.RootfsPath)
}

// check checks everything but the root file system.
func (b Box) check(p *problems) {
	p.name("name", b.Name)
	p.Within("cpus", b.CPUs, 1, maxInt32)
	p.Within("memory_mib", b.MemoryMiB, MinMemoryMiB, maxInt32)
	p.Within("disk_size_gb", b.DiskSizeGB, 0, MaxDiskSizeGB)
	p.absolute("working_dir", b.WorkingDir)
	b.checkLife(p)
	b.checkService(p)
	p.text("user", b.User)
	p.When(b.Hostname != "" && !validHostname(b.Hostname), "hostname", "value", "must be letters, digits and hyphens, with dots between them, at most 63")
	p.env(b.Env)
	p.atMost("volumes", len(b.Volumes), MaxVolumes)
	for i, v := range b.Volumes {
		at := fmt.Sprintf("volumes[%d].", i)
		v.check(p, at)
		twice := slices.ContainsFunc(b.Volumes[:i], func(o Volume) bool { return path.Clean(o.GuestPath) == path.Clean(v.GuestPath) })
		p.When(twice, at+"guest_path", "twice", "must not be the path of two volumes")
	}
	p.OneOf("network", b.Network, NetworkIsolated, NetworkNone)
	p.atMost("ports", len(b.Ports), MaxPorts)
	for i, port := range b.Ports {
		checkPort(port, p, fmt.Sprintf("ports[%d].", i))
	}
	p.atMost("labels", len(b.Labels), MaxLabels)
	for key, value := range b.Labels {
		p.When(key == "", "labels", "empty", "must not have an empty key")
		p.text("labels", key)
		p.text("labels."+key, value)
	}
}

func (v Volume) check(p *problems, at string) {
	p.When((v.HostPath == "") == (v.Claim == ""), at+"host_path", "one_of", "must be given, or claim: one of them, which must not be empty")
	p.hostPath(at+"host_path", v.HostPath)
	p.When(v.Claim != "" && !validClaim(v.Claim), at+"claim", "name", "must be the name of a claim: at most 253 small letters, digits, - and ., and each part between dots begins and ends with a letter or digit")
	p.When(v.GuestPath == "", at+"guest_path", "empty", "must not be empty")
	p.absolute(at+"guest_path", v.GuestPath)
	p.When(v.GuestPath != "" && Reserved(v.GuestPath), at+"guest_path", "reserved", "must not be /, nor /dev, /proc, /sys or in them")
}

// validClaim tells whether a name is what Kubernetes calls a DNS-1123 subdomain.
func validClaim(name string) bool {
	const characters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	return len(name) <= 253 && !slices.ContainsFunc(strings.Split(name, "."), func(part string) bool {
		return part == "" || strings.Trim(part, "-") != part || strings.Trim(part, characters) != ""
	})
}

// Reserved tells whether no volume may be mounted at an absolute path in a box.
// Reserved are the root directory, and the file systems that every box has of
// its own.
func Reserved(guestPath string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path.Clean(guestPath), "/"), "/")
	return slices.Contains([]string{"", "dev", "proc", "sys"}, first)
}

func checkPort(port Port, p *problems, at string) {
	if port.HostIP != "" {
		_, err := netip.ParseAddr(port.HostIP)
		p.When(err != nil, at+"host_ip", "address", "must be an IP address")
	}
	p.Within(at+"host_port", port.HostPort, 0, MaxPort)
	p.Within(at+"guest_port", port.GuestPort, 1, MaxPort)
	p.OneOf(at+"protocol", port.Protocol, ProtocolTCP, ProtocolUDP)
}

// Check returns an error that names everything that is wrong with e, or nil.
// Errors: InvalidArgument, with fields.
func (e Exec) Check() error {
	var p problems
	e.check(&p)
	return p.Err(fault.InvalidArgument)
}

// CheckImageCommand returns an error that names everything that is wrong with the
// command that an image has of its own, or nil. Errors: InvalidArgument, with
// fields.
func CheckImageCommand(image string, cmd []string) error {
	var p problems
	if none := len(cmd) == 0 || cmd[0] == ""; none {
		p.When(none, "cmd", "required", "must be given: image %.200q has no command of its own", image)
	} else {
		p.command(cmd)
	}
	return p.Err(fault.InvalidArgument)
}

func (e Exec) check(p *problems) {
	p.command(e.Cmd)
	e.checkSettings(p)
}

// checkSettings checks everything but the command.
func (e Exec) checkSettings(p *problems) {
	p.env(e.Env)
	p.absolute("working_dir", e.WorkingDir)
	p.text("user", e.User)
	p.Within("cols", e.Cols, 0, MaxPort)
	p.Within("rows", e.Rows, 0, MaxPort)
	p.When(e.Timeout < 0, "timeout_ms", "range", "must not be negative")
}

const (
	maxInt32   = 1<<31 - 1
	maxNameLen = 128
)

// problems collects what is wrong with a box or an exec. It adds to
// [document.Problems] the checks that many members share.
type problems struct{ document.Problems }

func (p *problems) atMost(field string, n, high int) {
	p.When(n > high, field, "too_many", "has %d entries and may have at most %d", n, high)
}

// text refuses what a path, an argument, an environment or a record can't
// carry: NUL bytes, and what is not UTF-8. All of these are sent and stored as
// JSON, which would silently change bytes that are not UTF-8.
func (p *problems) text(field, s string) {
	p.When(strings.ContainsRune(s, 0), field, "nul", "must not contain a NUL byte")
	p.When(!utf8.ValidString(s), field, "utf8", "must be UTF-8")
}

// absolute checks that a path is absolute. It accepts "", which stands for a
// path that was left out.
func (p *problems) absolute(field, s string) {
	p.text(field, s)
	p.When(s != "" && !path.IsAbs(s), field, "absolute", "must be an absolute path")
	p.When(slices.Contains(strings.Split(s, "/"), ".."), field, "dot_dot", "must not contain ..")
}

// hostPath checks that a path is absolute and is not the host's root directory.
func (p *problems) hostPath(field, s string) {
	p.absolute(field, s)
	p.When(s != "" && path.Clean(s) == "/", field, "root", "must not be the host's root directory")
}

// command checks the arguments of a command, the first of which names it.
func (p *problems) command(cmd []string) { p.arguments("cmd", cmd) }

// arguments does the same for the command that is a member of another name.
func (p *problems) arguments(field string, cmd []string) {
	p.When(len(cmd) == 0 || cmd[0] == "", field, "empty", "must name a command")
	size := 0
	for i, arg := range cmd {
		size += len(arg) + 1
		p.text(fmt.Sprintf("%s[%d]", field, i), arg)
	}
	p.When(size > MaxCmdBytes, field, "size", "has %d bytes and may have at most %d", size, MaxCmdBytes)
}

func (p *problems) env(env map[string]string) {
	const field = "env"
	p.atMost(field, len(env), MaxEnvPairs)
	size := 0
	for name, value := range env {
		size += len(name) + len(value) + 2
		p.When(name == "" || strings.ContainsRune(name, '='), field, "name", "has %q, which can't be the name of a variable", name)
		p.text(field, name)
		p.text(field+"."+name, value)
	}
	p.When(size > MaxEnvBytes, field, "size", "has %d bytes and may have at most %d", size, MaxEnvBytes)
}

func (p *problems) name(field, s string) {
	p.When(s != "" && !validName(s), field, "name",
		"must be 1 to %d letters, digits, _, . or -, and begin with a letter or digit", maxNameLen)
	p.When(ids.Box.Prefixes(s) || ids.Exec.Prefixes(s), field, "reserved", "must not begin with box_ or exec_")
}

func validName(s string) bool {
	rest := strings.TrimLeft(s, alphanumeric+"_.-")
	return rest == "" && len(s) <= maxNameLen && strings.ContainsRune(alphanumeric, rune(s[0]))
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
