package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// family is a source file of attacks on one class of walls.
type family struct {
	name, source string
	class        string
	order        int      // in the table
	box, exec    []string // more arguments of create and of exec
	where        string   // its program runs; "" is in the box
	neighbour    bool     // it wants another box, and the host, to listen
	alone        bool     // no other family runs beside it
}

// Where the program of a family runs, if not in the box.
const (
	onHost   = "host"   // on the host, as a user without rights
	atClient = "client" // on the host, as a client of the daemon and of the command line
)

// readFamilies reads the heads of all families: lines of comments with a key, a colon and
// a value.
func readFamilies(dir string) ([]family, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.[cp]*"))
	if err != nil {
		return nil, err
	}
	var all []family
	for _, file := range files {
		f, err := readFamily(file)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no family of attacks in %s", dir)
	}
	slices.SortStableFunc(all, func(a, b family) int { return cmp.Compare(a.order, b.order) })
	return all, nil
}

func readFamily(file string) (family, error) {
	text, err := os.Open(file)
	if err != nil {
		return family{}, err
	}
	defer text.Close()
	f := family{name: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), source: file}
	for lines := bufio.NewScanner(text); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#!") {
			continue
		}
		head, ok := strings.CutPrefix(strings.Replace(lines.Text(), "#", "//", 1), "// ")
		key, value, found := strings.Cut(head, ": ")
		if !ok || !found {
			break
		}
		switch key {
		case "class":
			f.class = value
		case "order":
			f.order, err = strconv.Atoi(value)
		case "box":
			f.box = strings.Fields(value)
		case "exec":
			f.exec = strings.Fields(value)
		case "where":
			f.where = value
		case "neighbour":
			f.neighbour = true
		case "alone":
			f.alone = true
		}
	}
	if f.class == "" || err != nil {
		return f, fmt.Errorf("%s does not begin with its class and its order", file)
	}
	return f, nil
}
