package image

import (
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// The names of Docker's registry: the one that people use, and the one that the
// library uses.
const (
	dockerHost   = "docker.io"
	dockerServer = name.DefaultRegistry
)

// normal returns the one spelling that a name has in the store. It includes the
// tag, which is `latest` if ref names none. A registry stays as it is written.
func normal(ref string) (string, error) {
	tag, err := name.NewTag(ref, name.WithDefaultRegistry(""))
	if err != nil {
		return "", badName(err, ref)
	}
	return full(tag), checkName(ref)
}

// CheckName returns why no image can be called ref, or nil. Errors:
// InvalidArgument.
func CheckName(ref string) error { _, err := normal(ref); return err }

// CheckReference returns why ref can't be pulled, whatever registries have, or
// nil. Errors: InvalidArgument.
func (s *Store) CheckReference(ref string) error { _, err := s.c.Sources.places(ref); return err }

func badName(err error, ref string) error {
	return fault.Wrap(fault.InvalidArgument, err, "image name %.300q", ref)
}

// checkName refuses some names that the library accepts, such as /x and ../x.
func checkName(ref string) error {
	for part := range strings.SplitSeq(ref, "/") {
		if part == "" || strings.ContainsRune("._-:@", rune(part[0])) {
			return fault.New(fault.InvalidArgument, "image name %.300q: each part begins with a letter or digit", ref)
		}
	}
	return nil
}

// full returns a reference with all its parts. Docker's registry appears as
// docker.io.
func full(ref name.Reference) string {
	if rest, ok := strings.CutPrefix(ref.Name(), dockerServer+"/"); ok {
		return dockerHost + "/" + rest
	}
	return ref.Name()
}

// short reports whether ref names no registry.
func short(ref string) bool {
	first, _, more := strings.Cut(ref, "/")
	return !more || !strings.ContainsAny(first, ".:") && first != "localhost"
}

// places returns where to look for ref. An alias is looked for only where it
// points to; a short name at each of the configured registries and then at
// docker.io. Errors: InvalidArgument.
func (s Sources) places(ref string) ([]name.Reference, error) {
	if target, ok := s.Aliases[ref]; ok {
		ref = target
	}
	if err := checkName(ref); err != nil {
		return nil, err
	}
	var spellings []string
	if short(ref) {
		for _, r := range s.Registries {
			spellings = append(spellings, r.Host+"/"+ref)
		}
	}
	var all []name.Reference
	for _, spelling := range append(spellings, ref) {
		place, err := s.parse(spelling)
		if err != nil {
			return nil, badName(err, ref)
		}
		same := func(other name.Reference) bool { return other.Name() == place.Name() }
		if !slices.ContainsFunc(all, same) {
			all = append(all, place)
		}
	}
	return all, nil
}

func (s Sources) parse(spelling string) (name.Reference, error) {
	place, err := name.ParseReference(spelling)
	if err != nil || !s.plain(place.Context().RegistryStr()) {
		return place, err
	}
	return name.ParseReference(spelling, name.Insecure)
}

// registry returns the configuration of a registry, if it has one.
func (s Sources) registry(host string) (options.Registry, bool) {
	i := slices.IndexFunc(s.Registries, func(r options.Registry) bool {
		return r.Host == host || r.Host == dockerHost && host == dockerServer
	})
	if i < 0 {
		return options.Registry{}, false
	}
	return s.Registries[i], true
}

// names returns the names that the image which ref refers to may have in the
// store. ref itself comes first, because an import may have used it as the
// name. Errors: InvalidArgument.
func (s *Store) names(ref string) ([]string, error) {
	places, err := s.c.Sources.places(ref)
	if err != nil {
		return nil, err
	}
	var all []string
	if local, err := normal(ref); err == nil { // fails if ref is a digest
		all = append(all, local)
	}
	for _, place := range places {
		all = append(all, full(place))
	}
	return all, nil
}
