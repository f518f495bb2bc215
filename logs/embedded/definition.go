package embedded

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// The engine keeps the definition of the log table in a file, which it writes anew
// at each change of the table. On a full disk this can leave the file empty, and an
// engine that finds it so does not start. So there is a copy beside the engine's
// own directory, made whenever the engine answers.
const (
	definitionFile = "data/metadata/otel/otel_logs.sql"
	definitionCopy = "otel_logs.sql"
)

// mendDefinition puts the copy in the place of an empty definition. Without a copy
// the table was never used, and the engine makes it again. No engine may run.
func (e *Engine) mendDefinition() error {
	file := filepath.Join(e.options.Dir, definitionFile)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	e.options.Logger.Error("the definition of the log table was lost and is mended", "file", file)
	text, err := os.ReadFile(filepath.Join(e.options.Dir, definitionCopy))
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(file)
	}
	if err != nil {
		return err
	}
	return replace(file, text)
}

// copyDefinition brings the copy up to date.
func (e *Engine) copyDefinition() error {
	text, err := os.ReadFile(filepath.Join(e.options.Dir, definitionFile))
	if err != nil || len(text) == 0 {
		return err
	}
	file := filepath.Join(e.options.Dir, definitionCopy)
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
