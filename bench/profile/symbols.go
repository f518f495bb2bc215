package main

import (
	"cmp"
	"debug/elf"
	"path/filepath"
	"slices"
)

// symbols are the functions of a program, by their places in its file.
type symbols []symbol

type symbol struct {
	place uint64
	name  string
}

// symbolsOf returns the functions of programs, by the programs' names.
func symbolsOf(paths ...string) (map[string]symbols, error) {
	all := map[string]symbols{}
	for _, path := range paths {
		file, err := elf.Open(path)
		if err != nil {
			return nil, err
		}
		s, err := functions(file)
		_ = file.Close()
		if err != nil {
			return nil, err
		}
		all[filepath.Base(path)] = s
	}
	return all, nil
}

func functions(file *elf.File) (all symbols, err error) {
	list, err := file.Symbols()
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC {
			continue
		}
		for _, p := range file.Progs {
			if p.Type == elf.PT_LOAD && s.Value >= p.Vaddr && s.Value < p.Vaddr+p.Filesz {
				all = append(all, symbol{s.Value - p.Vaddr + p.Off, s.Name})
			}
		}
	}
	slices.SortFunc(all, func(a, b symbol) int { return cmp.Compare(a.place, b.place) })
	return all, nil
}

// at returns the function that a place is in.
func (s symbols) at(place uint64) string {
	i, found := slices.BinarySearchFunc(s, place, func(a symbol, at uint64) int { return cmp.Compare(a.place, at) })
	if !found {
		i--
	}
	if i < 0 {
		return "?"
	}
	return s[i].name
}
