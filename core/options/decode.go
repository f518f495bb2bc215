package options

import (
	"fmt"

	"sandbox/core/document"
	"sandbox/core/fault"
)

// boxPrefix is the beginning of the message of every failure of [Decode].
const boxPrefix = "invalid box options JSON: "

// boxDocument is the box options document. Its members are pointers, so that
// one that is absent or null differs from one that is zero.
type boxDocument struct {
	boxMembers
	Rootfs *rootfs `json:"rootfs"`
}

// boxMembers are the members that all documents about a box have.
type boxMembers struct {
	CPUs        *int      `json:"cpus"`
	MemoryMiB   *int      `json:"memory_mib"`
	DiskSizeGB  *int      `json:"disk_size_gb"`
	WorkingDir  *string   `json:"working_dir"`
	Env         *env      `json:"env"`
	Volumes     *[]volume `json:"volumes"`
	Network     *string   `json:"network"`
	Ports       *[]port   `json:"ports"`
	AutoRemove  *bool     `json:"auto_remove"`
	TTLSeconds  *int      `json:"ttl_seconds"`
	IdleSeconds *int      `json:"idle_seconds"`
	OnExpiry    *string   `json:"on_expiry"`
	AutoStart   *bool     `json:"auto_start"`
	Seccomp     *string   `json:"seccomp"`

	AllowUnenforcedLimits *bool `json:"allow_unenforced_limits"`
	serviceMembers
}

type rootfs struct {
	Image      *string `json:"Image"`
	RootfsPath *string `json:"RootfsPath"`
}

type volume struct {
	HostPath  *string `json:"host_path"`
	Claim     *string `json:"claim"`
	GuestPath *string `json:"guest_path"`
	ReadOnly  *bool   `json:"read_only"`
}

type port struct {
	HostIP    *string `json:"host_ip"`
	HostPort  *int    `json:"host_port"`
	GuestPort *int    `json:"guest_port"`
	Protocol  *string `json:"protocol"`
}

// Decode reads a box options document. It is strict: it refuses unknown and
// duplicate members, wrong types, text that is not UTF-8, and anything behind
// the document. It names all members at once that are unknown, missing, of the
// wrong type or of a value that is not allowed. When an environment variable is
// given twice, the last one counts. Errors: Malformed and InvalidArgument, with
// fields; the message begins with "invalid box options JSON:".
func Decode(doc []byte) (Box, error) {
	var d boxDocument
	p := problems{document.Problems{Prefix: boxPrefix}}
	if err := p.Read(doc, &d, MaxDocument); err != nil {
		return Box{}, err
	}
	d.missing(&p)
	b := d.box()
	b.checkRootfs(&p)
	d.check(b, &p)
	return b, p.Err(fault.InvalidArgument)
}

func (d *boxDocument) missing(p *problems) {
	p.Required("rootfs", d.Rootfs != nil)
	p.Required("env", d.Env != nil)
	p.Required("volumes", d.Volumes != nil)
	p.Required("network", d.Network != nil)
	p.Required("ports", d.Ports != nil)
	d.boxMembers.missing(p)
}

func (d *boxMembers) missing(p *problems) {
	for i, v := range or(d.Volumes, nil) {
		p.Required(fmt.Sprintf("volumes[%d].host_path", i), v.HostPath != nil || v.Claim != nil)
		p.Required(fmt.Sprintf("volumes[%d].guest_path", i), v.GuestPath != nil)
	}
	for i, q := range or(d.Ports, nil) {
		p.Required(fmt.Sprintf("ports[%d].guest_port", i), q.GuestPort != nil)
	}
}

// check checks b, which was made from d.
func (d *boxMembers) check(b Box, p *problems) {
	b.check(p)
	d.serviceMembers.check(p)
	p.When(d.TTLSeconds != nil && *d.TTLSeconds == 0, "ttl_seconds", "range", "is 0 and must be at least 1")
	p.When(d.IdleSeconds != nil && *d.IdleSeconds == 0, "idle_seconds", "range", "is 0 and must be at least 1")
	p.When(d.OnExpiry != nil && *d.OnExpiry == "", "on_expiry", "value", "must be %s, %s or %s", ExpiryStop, ExpiryPause, ExpiryRemove)
	if d.Seccomp != nil {
		p.OneOf("seccomp", *d.Seccomp, SeccompDefault, SeccompStrict)
	}
	p.When(d.DiskSizeGB != nil && *d.DiskSizeGB == 0, "disk_size_gb", "range", "is 0 and must be at least 1")
}

// box returns the box that the document describes, with the defaults filled in.
// A required member that is missing is left empty.
func (d *boxDocument) box() Box {
	b := Defaults()
	d.fill(&b)
	root := or(d.Rootfs, rootfs{})
	b.Image, b.RootfsPath = or(root.Image, ""), or(root.RootfsPath, "")
	return b
}

// fill sets those fields of b that d has a member for.
func (d *boxMembers) fill(b *Box) {
	b.CPUs = or(d.CPUs, b.CPUs)
	b.MemoryMiB = or(d.MemoryMiB, b.MemoryMiB)
	b.DiskSizeGB = or(d.DiskSizeGB, b.DiskSizeGB)
	b.WorkingDir = or(d.WorkingDir, b.WorkingDir)
	b.Env = or(d.Env, b.Env)
	b.Network = or(d.Network, b.Network)
	b.AutoRemove = or(d.AutoRemove, b.AutoRemove)
	b.AutoStart = or(d.AutoStart, b.AutoStart)
	b.AllowUnenforcedLimits = or(d.AllowUnenforcedLimits, b.AllowUnenforcedLimits)
	if b.Seccomp = or(d.Seccomp, b.Seccomp); b.Seccomp == SeccompDefault {
		b.Seccomp = ""
	}
	d.serviceMembers.fill(b)
	b.TTLSeconds, b.IdleSeconds, b.OnExpiry = or(d.TTLSeconds, b.TTLSeconds), or(d.IdleSeconds, b.IdleSeconds), or(d.OnExpiry, b.OnExpiry)
	for _, v := range or(d.Volumes, nil) {
		b.Volumes = append(b.Volumes, Volume{HostPath: or(v.HostPath, ""), Claim: or(v.Claim, ""), GuestPath: or(v.GuestPath, ""), ReadOnly: or(v.ReadOnly, false)})
	}
	for _, q := range or(d.Ports, nil) {
		b.Ports = append(b.Ports, Port{
			HostIP: or(q.HostIP, ""), HostPort: or(q.HostPort, 0), GuestPort: or(q.GuestPort, 0), Protocol: or(q.Protocol, ProtocolTCP),
		})
	}
}

func or[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}
