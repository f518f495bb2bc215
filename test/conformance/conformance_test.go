// Package conformance_test holds the product to its contract, row by row, with
// real boxes. rows.yaml lists the rows; the files in cases are cases as data.
// A case names its row, the surfaces that it runs on, and what it does there:
//
//	{row: box.stop, name: the disk is kept, on: [core, c, rest, cli], do: [
//	  {create: {}}, {exec: {cmd: touch /kept}}, {stop: {}}, {start: {}},
//	  {exec: {cmd: ls /kept}, want: {exit_code: 0}}]}
//
// The surfaces are core (Go), c (libsandbox, through testdata/driver.c; c-remote on a daemon), rest
// (TCP and a key), socket (REST without one), cli, and those of the bindings
// ([bindings]; DRIVERS.md says how another one joins): "bindings" stands for all
// that work in process, "remotes" for those on a daemon. A step is a verb with
// its arguments, named as REST names them, and what shall come of it: want
// holds values by their paths, where "~x" is a pattern and "(absent)" says
// that there is none; fails is a code of the table of failures, which each
// surface tells in its own way; says is a part of the message. via is another
// surface for one step. save keeps values of the result; <name> in later
// arguments is replaced with them. <box> is the box made last, <exec> the
// exec, <name> a name of this case alone, <ROOTFS> a root file system and
// <SHARE> a directory of the host that boxes may see, with a file in it, <long> 128 KiB of text, <mebibyte> more of it,
// <URL> the daemon, <HOME> the directory of profiles; <65 volumes> is so many.
// Cases of the log queries store rows of the service <name> with log, from the
// midnight <from> of <day> to a day later, <to>, which is where searches look.
package conformance_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// fewest is how many cases there are at least.
const fewest = 220

func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("makes hundreds of boxes")
	}
	if *rootless && os.Geteuid() == 0 {
		runAsUser(t)
		return
	}
	all := load(t)
	h := newHost(t)
	t.Cleanup(func() { h.table.write(t, rows(t)) })
	for _, c := range all {
		if c.Alone {
			c.run(t, h)
		}
	}
	for _, c := range all {
		if !c.Alone {
			c.run(t, h)
		}
	}
}

// TestIndex wants each row of the index to have a case, and each case a row.
func TestIndex(t *testing.T) {
	t.Parallel()
	all := load(t)
	if len(all) < fewest {
		t.Errorf("%d cases, want %d or more", len(all), fewest)
	}
	rows := rows(t)
	held, names := map[string]bool{}, map[string]bool{}
	for _, c := range all {
		held[c.Row] = true
		if rows[c.Row] == "" {
			t.Errorf("%s: %q is of no row of rows.yaml: %s", c.file, c.Name, c.Row)
		}
		if names[c.Row+c.Name] {
			t.Errorf("%s: %q is there twice", c.file, c.Name)
		}
		names[c.Row+c.Name] = true
	}
	for id, quote := range rows {
		if !held[id] {
			t.Errorf("no case holds %s: %s", id, quote)
		}
	}
	t.Logf("%d cases of %d rows", len(all), len(rows))
}

// load reads all cases.
func load(t *testing.T) (all []*testCase) {
	t.Helper()
	files, err := filepath.Glob("cases/*.yaml")
	must(t, err)
	for _, file := range files {
		var list []*testCase
		readYAML(t, file, &list)
		for _, c := range list {
			c.file = file
			c.On = expand(c.On)
			c.check(t)
		}
		all = append(all, list...)
	}
	return all
}

// rows reads the index: a short quote by id.
func rows(t *testing.T) (all map[string]string) {
	t.Helper()
	readYAML(t, "rows.yaml", &all)
	return all
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *testCase) check(t *testing.T) {
	t.Helper()
	if c.Row == "" || c.Name == "" || len(c.On) == 0 || len(c.Do) == 0 {
		t.Errorf("%s: %q lacks its row, name, surfaces or steps", c.file, c.Name)
	}
	for _, name := range c.On {
		if !slices.Contains(surfaceNames, name) {
			t.Errorf("%s: %q: no surface %s", c.file, c.Name, name)
		}
	}
}
