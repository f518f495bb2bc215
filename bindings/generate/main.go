// Command generate writes the words, documents and failures of the contract in the
// languages of the bindings. `make docs` runs it, and a test fails if a generated
// file differs from what it would write.
//
// It reads package api with its comments and the table of package fault, into a
// [Model]. Each language has one file here that turns the model into text.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// output is a generated file.
type output struct {
	path  string // below the top of the tree
	write func(Model) ([]byte, error)
}

// outputs are all generated files.
var outputs = []output{
	{"bindings/node/src/contract.ts", typescript},
	{"include/sandbox/words.hpp", cpp},
	{"bindings/python/src/libsandbox/_documents.py", python},
}

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run writes all files of the tree at top.
func run(top string) error {
	model, err := Read(filepath.Join(top, "api"))
	if err != nil {
		return err
	}
	for _, o := range outputs {
		content, err := o.write(model)
		if err != nil {
			return fmt.Errorf("%s: %w", o.path, err)
		}
		if err := os.WriteFile(filepath.Join(top, o.path), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
