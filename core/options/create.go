package options

import "sandbox/core/fault"

// createPrefix begins the message of every failure of [DecodeCreate].
const createPrefix = "invalid box JSON: "

// createDocument is the body of a create over REST.
type createDocument struct {
	Name       *string             `json:"name"`
	Image      *string             `json:"image"`
	RootfsPath *string             `json:"rootfs_path"`
	User       *string             `json:"user"`
	Labels     *map[string]*string `json:"labels"`
	members
}

// DecodeCreate reads the body of a create over REST (contract, section 2). It
// is as strict as [Decode], but every member may be left out: a box without
// image and rootfs_path is of the image [DefaultImage], and is kept when it
// stops. Errors: Malformed and InvalidArgument, with fields.
func DecodeCreate(doc []byte) (Box, error) {
	var d createDocument
	if err := decode(doc, &d, createPrefix); err != nil {
		return Box{}, err
	}
	var p problems
	d.missing(&p)
	for key, value := range or(d.Labels, nil) {
		p.when(value == nil, "labels."+key, "type", "must be a string")
	}
	if err := p.err(fault.Malformed, createPrefix); err != nil {
		return Box{}, err
	}
	b := d.box()
	b.check(&p)
	d.zeroDisk(&p)
	p.when(d.Name != nil && *d.Name == "", "name", "empty", "must not be empty")
	for i := range p {
		p[i].Field = inCreate(p[i].Field)
	}
	return b, p.err(fault.InvalidArgument, createPrefix)
}

func (d *createDocument) box() Box {
	b := Defaults()
	b.AutoRemove = false // or stop and restart would mean nothing
	d.fill(&b)
	b.Name, b.User = or(d.Name, ""), or(d.User, "")
	b.Image, b.RootfsPath = or(d.Image, ""), or(d.RootfsPath, "")
	if d.Image == nil && d.RootfsPath == nil {
		b.Image = DefaultImage
	}
	if d.Labels != nil {
		b.Labels = make(map[string]string, len(*d.Labels))
		for key, value := range *d.Labels {
			b.Labels[key] = *value
		}
	}
	return b
}

// inCreate is the name that a member of the options document has over REST.
func inCreate(field string) string {
	switch field {
	case "rootfs", "rootfs.Image":
		return "image"
	case "rootfs.RootfsPath":
		return "rootfs_path"
	}
	return field
}

// Strict reads a JSON document of another part as strictly as [Decode] reads
// its own; what names it in messages. Errors: Malformed, with fields.
func Strict(doc []byte, v any, what string) error {
	return decode(doc, v, "invalid "+what+" JSON: ")
}
