package options

import (
	"fmt"

	"sandbox/core/fault"
)

// boxPrefix begins the message of every failure of [Decode].
const boxPrefix = "invalid box options JSON: "

// boxDocument is the box options document. Pointers tell a member that is
// absent, or null, from one that is zero.
type boxDocument struct {
	Rootfs *rootfs `json:"rootfs"`
	members
}

// members are those that the documents of a box have in common.
type members struct {
	CPUs       *int      `json:"cpus"`
	MemoryMiB  *int      `json:"memory_mib"`
	DiskSizeGB *int      `json:"disk_size_gb"`
	WorkingDir *string   `json:"working_dir"`
	Env        *env      `json:"env"`
	Volumes    *[]volume `json:"volumes"`
	Network    *string   `json:"network"`
	Ports      *[]port   `json:"ports"`
	AutoRemove *bool     `json:"auto_remove"`
}

type rootfs struct {
	Image      *string `json:"Image"`
	RootfsPath *string `json:"RootfsPath"`
}

type volume struct {
	HostPath  *string `json:"host_path"`
	GuestPath *string `json:"guest_path"`
	ReadOnly  *bool   `json:"read_only"`
}

type port struct {
	HostIP    *string `json:"host_ip"`
	HostPort  *int    `json:"host_port"`
	GuestPort *int    `json:"guest_port"`
	Protocol  *string `json:"protocol"`
}

// Decode reads a box options document. It is strict: unknown and duplicate
// members, wrong types, text that is not UTF-8 and anything behind the
// document are refused; missing members, and then values that are not allowed,
// are named all at once. Of an environment variable given twice the last
// counts. Errors: Malformed and InvalidArgument, with fields; the message
// begins with "invalid box options JSON:".
func Decode(doc []byte) (Box, error) {
	var d boxDocument
	if err := decode(doc, &d, boxPrefix); err != nil {
		return Box{}, err
	}
	var p problems
	d.missing(&p)
	if err := p.err(fault.Malformed, boxPrefix); err != nil {
		return Box{}, err
	}
	b := d.box()
	b.check(&p)
	d.zeroDisk(&p)
	return b, p.err(fault.InvalidArgument, boxPrefix)
}

func (d *boxDocument) missing(p *problems) {
	p.required("rootfs", d.Rootfs != nil)
	p.required("env", d.Env != nil)
	p.required("volumes", d.Volumes != nil)
	p.required("network", d.Network != nil)
	p.required("ports", d.Ports != nil)
	d.members.missing(p)
}

func (d *members) missing(p *problems) {
	for i, v := range or(d.Volumes, nil) {
		p.required(fmt.Sprintf("volumes[%d].host_path", i), v.HostPath != nil)
		p.required(fmt.Sprintf("volumes[%d].guest_path", i), v.GuestPath != nil)
	}
	for i, q := range or(d.Ports, nil) {
		p.required(fmt.Sprintf("ports[%d].guest_port", i), q.GuestPort != nil)
	}
}

// zeroDisk refuses what a Box can't tell from no size.
func (d *members) zeroDisk(p *problems) {
	p.when(d.DiskSizeGB != nil && *d.DiskSizeGB == 0, "disk_size_gb", "range", "is 0 and must be at least 1")
}

func (d *boxDocument) box() Box {
	b := Defaults()
	d.fill(&b)
	b.Image, b.RootfsPath = or(d.Rootfs.Image, ""), or(d.Rootfs.RootfsPath, "")
	return b
}

// fill sets what is given and keeps the defaults for what is not. Nothing
// required is missing.
func (d *members) fill(b *Box) {
	b.CPUs = or(d.CPUs, b.CPUs)
	b.MemoryMiB = or(d.MemoryMiB, b.MemoryMiB)
	b.DiskSizeGB = or(d.DiskSizeGB, 0)
	b.WorkingDir = or(d.WorkingDir, "")
	b.Env = or(d.Env, nil)
	b.Network = or(d.Network, b.Network)
	b.AutoRemove = or(d.AutoRemove, b.AutoRemove)
	for _, v := range or(d.Volumes, nil) {
		b.Volumes = append(b.Volumes, Volume{HostPath: *v.HostPath, GuestPath: *v.GuestPath, ReadOnly: or(v.ReadOnly, false)})
	}
	for _, q := range or(d.Ports, nil) {
		b.Ports = append(b.Ports, Port{
			HostIP: or(q.HostIP, ""), HostPort: or(q.HostPort, 0),
			GuestPort: *q.GuestPort, Protocol: or(q.Protocol, ProtocolTCP),
		})
	}
}

func or[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}

func (p *problems) required(field string, present bool) {
	p.when(!present, field, "required", "is missing")
}
