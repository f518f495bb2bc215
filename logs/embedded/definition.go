package embedded

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// The engine keeps the definition of each table in a file, which it writes anew at
// each change of the table. On a full disk this can leave the file empty, and an
// engine that finds it so does not start. So there is a copy beside the engine's
// own directory, made whenever the engine answers.
const definitions = "data/metadata/otel"

// defined are the names of the files, and of their copies.
func defined() []string { return []string{"otel_logs.sql", "sandbox_metrics.sql"} }

// mendDefinitions puts the copy in the place of each empty definition. Without a copy
// the table was never used, and the engine makes it again. No engine may run.
func (e *Engine) mendDefinitions() error {
	for _, name := range defined() {
		if err := e.mendDefinition(name); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) mendDefinition(name string) error {
	file := filepath.Join(e.options.Dir, definitions, name)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	e.options.Logger.Error("the definition of a table was lost and is mended", "file", file)
	text, err := os.ReadFile(filepath.Join(e.options.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(file)
	}
	if err != nil {
		return err
	}
	return replace(file, text)
}

// copyDefinitions brings the copies up to date.
func (e *Engine) copyDefinitions() error {
	for _, name := range defined() {
		if err := e.copyDefinition(name); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) copyDefinition(name string) error {
	text, err := os.ReadFile(filepath.Join(e.options.Dir, definitions, name))
	if err != nil || len(text) == 0 {
		return err
	}
	file := filepath.Join(e.options.Dir, name)
	if before, err := os.ReadFile(file); err == nil && bytes.Equal(before, text) {
		return nil
	}
	return replace(file, text)
}

// replace writes a file as a whole: whatever happens, there is the old one or the
// new one.
func replace(file string, text []byte) error {
	next, err := os.OpenFile(file+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	if err = errors.Join(err, next.Sync(), next.Close()); err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return os.Rename(next.Name(), file)
}
