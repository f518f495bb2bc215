package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sandbox/backend"
)

// defaultDetachKeys leave a command running: Ctrl-P Ctrl-Q.
const defaultDetachKeys = "ctrl-p,ctrl-q"

// keySequence is the value of --detach-keys: the keys that leave a command running,
// in docker's syntax. An empty one is none.
type keySequence []byte

// newKeySequence returns the default.
func newKeySequence() keySequence {
	var k keySequence
	_ = k.Set(defaultDetachKeys) // it is right
	return k
}

// detachKeysFlag adds --detach-keys.
func detachKeysFlag(fs *pflag.FlagSet, k *keySequence) {
	fs.Var(k, "detach-keys", "on a terminal, these keys leave the command running (\"\": none)")
}

// controls are the keys with Ctrl that are no letters, in the order of their codes
// from 27 on; Ctrl-@ is 0.
const controls = `[\]^_`

// String returns the sequence as it is typed on the command line.
func (k *keySequence) String() string {
	var words []string
	for _, b := range *k {
		switch {
		case b == 0:
			words = append(words, "ctrl-@")
		case b < 27:
			words = append(words, "ctrl-"+string('a'+b-1))
		case b < 32:
			words = append(words, "ctrl-"+controls[b-27:b-26])
		default:
			words = append(words, string(b))
		}
	}
	return strings.Join(words, ",")
}

// Type returns the name of the value in --help.
func (k *keySequence) Type() string { return "KEYS" }

// Set parses the sequence.
func (k *keySequence) Set(arg string) error {
	*k = nil
	if arg == "" {
		return nil
	}
	for word := range strings.SplitSeq(arg, ",") {
		b, ok := key(word)
		if !ok {
			return fmt.Errorf("%q is no key: want a character, or ctrl- and one of a-z @ [ \\ ] ^ _; several with commas between them", word)
		}
		*k = append(*k, b)
	}
	return nil
}

// key returns the byte that a terminal sends for a key.
func key(word string) (byte, bool) {
	with, ctrl := strings.CutPrefix(strings.ToLower(word), "ctrl-")
	switch {
	case !ctrl && len(word) == 1 && word[0] < 0x80:
		return word[0], true
	case !ctrl || len(with) != 1:
		return 0, false
	case with[0] >= 'a' && with[0] <= 'z':
		return with[0] - 'a' + 1, true
	case with == "@":
		return 0, true
	}
	i := strings.Index(controls, with)
	return byte(27 + i), i >= 0
}

// detachable passes input on until the keys come. The first ones of them are held
// back until it is known whether the others follow.
type detachable struct {
	io.WriteCloser
	keys []byte
	held int
	// detach is called when all the keys have come. It returns false if we can't
	// leave the command; then the keys are dropped and the input goes on.
	detach func() bool
}

// Write returns backend.ErrDetached behind the keys.
func (d *detachable) Write(p []byte) (int, error) {
	var pass []byte
	for i, b := range p {
		if b != d.keys[d.held] {
			pass = append(pass, d.keys[:d.held]...)
			d.held = 0
		}
		if b != d.keys[d.held] {
			pass = append(pass, b)
			continue
		}
		if d.held++; d.held < len(d.keys) {
			continue
		}
		d.held = 0
		if _, err := d.WriteCloser.Write(slices.Clone(pass)); err != nil || d.detach() {
			return i + 1, errors.Join(err, backend.ErrDetached)
		}
		pass = nil
	}
	if len(pass) == 0 {
		return len(p), nil
	}
	_, err := d.WriteCloser.Write(pass)
	return len(p), err
}
