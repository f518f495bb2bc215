package image

import (
	"fmt"
	"slices"
	"strings"

	"sandbox/core"
	"sandbox/core/fault"
)

// maxNamed is how many users of an image are named when it is not removed.
const maxNamed = 10

// refuseInUse returns an error if anything but ref needs an image: boxes that
// were made from it, and aliases that stand for it.
func (s *Store) refuseInUse(ref string, info Info) error {
	users, err := s.boxesOf(info)
	if err != nil {
		return err
	}
	users = append(users, s.aliasesOf(info, ref)...)
	if len(users) == 0 {
		return nil
	}
	if more := len(users) - maxNamed; more > 0 {
		users = append(users[:maxNamed], fmt.Sprintf("%d more", more))
	}
	return fault.New(fault.InvalidState, "image %s is in use by %s: remove these first, or use force, with which boxes keep their files",
		info.Name, strings.Join(users, ", "))
}

// boxesOf returns the boxes that were made from an image under its name.
func (s *Store) boxesOf(info Info) (names []string, err error) {
	if s.c.InUse == nil {
		return nil, nil
	}
	uses, err := s.c.InUse()
	for _, u := range uses {
		if madeFrom(u, info) {
			names = append(names, "box "+u.Box)
		}
	}
	slices.Sort(names)
	return names, err
}

// madeFrom reports whether a box was made from an image under its name.
func madeFrom(u core.ImageUse, info Info) bool {
	return u.Image.Ref == info.Name && u.Image.ID == info.ID
}

// aliasesOf returns the aliases other than ref that stand for an image. An image
// that has the name of an alias needs no alias for it.
func (s *Store) aliasesOf(info Info, ref string) (names []string) {
	for alias := range s.c.Sources.Aliases {
		own, _ := normal(alias)
		found, err := s.Inspect(alias)
		if err == nil && found.Name == info.Name && alias != ref && own != info.Name {
			names = append(names, "alias "+alias)
		}
	}
	slices.Sort(names)
	return names
}

// usedLayers returns the directories of the layers that boxes stand on.
func (s *Store) usedLayers() ([]string, error) {
	uses, err := s.c.InUse()
	return layersOf(uses), err
}

func layersOf(uses []core.ImageUse) (layers []string) {
	for _, u := range uses {
		layers = append(layers, u.Image.Layers...)
	}
	return layers
}
