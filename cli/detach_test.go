package cli

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"sandbox/backend"
)

func TestKeySequence(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"ctrl-p,ctrl-q": "\x10\x11", "": "", "a": "a", "ctrl-A,x": "\x01x", "ctrl-@,ctrl-[,ctrl-\\,ctrl-],ctrl-^,ctrl-_": "\x00\x1b\x1c\x1d\x1e\x1f",
	} {
		var k, again keySequence
		if err := k.Set(arg); err != nil || string(k) != want {
			t.Errorf("%q: %q, %v", arg, k, err)
		}
		if err := again.Set(k.String()); err != nil || string(again) != want {
			t.Errorf("%q is written %q, which is %q, %v", arg, k.String(), again, err)
		}
	}
	for _, arg := range []string{"ctrl-", "ctrl-ab", "ctrl-1", "ab", "a,,b", "é", "alt-x"} {
		if k := newKeySequence(); k.Set(arg) == nil {
			t.Errorf("%q is taken for %q", arg, k)
		}
	}
}

// passed is the input of a command.
type passed struct{ bytes.Buffer }

func (*passed) Close() error { return nil }

// TestDetachable passes on all keys but those that detach, however they come.
func TestDetachable(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"ab": "ab", "\x10": "", "\x10x": "\x10x", "a\x10\x10x": "a\x10\x10x", "a\x10\x11b": "a!", "\x10\x10\x11": "\x10!", "\x11\x10": "\x11", "\x10x\x10\x11": "\x10x!",
	} {
		for _, size := range []int{1, 2, len(typed)} {
			var got passed
			d := &detachable{WriteCloser: &got, keys: newKeySequence(), detach: func() bool { got.WriteByte('!'); return true }}
			var err error
			for rest := []byte(typed); len(rest) > 0 && err == nil; rest = rest[min(size, len(rest)):] {
				_, err = d.Write(rest[:min(size, len(rest))])
			}
			if got.String() != want || strings.HasSuffix(want, "!") != errors.Is(err, backend.ErrDetached) {
				t.Errorf("%q, %d keys at once: %q, %v; want %q", typed, size, got.String(), err, want)
			}
		}
	}
}

// left expects the message of a command that goes on, and returns how to join it.
func (k *keyboard) left() []string {
	k.t.Helper()
	k.expect("sandbox: the command goes on")
	k.expect("'sandbox ")
	k.expect("' joins it again")
	if code := <-k.code; code != 0 {
		k.t.Errorf("exit %d", code)
	}
	return regexp.MustCompile(`attach \S+ exec_[a-z2-7]{20}`).FindStringSubmatch(k.all.String())
}

// TestDetach leaves a command on a terminal and joins it again, on a larger one.
func TestDetach(t *testing.T) { // not parallel: as TestTerminal
	for name, h := range map[string]*host{"in process": newHost(t), "on a server": newServed(t)} {
		h.create("-n", "a")
		commands := []string{"exec -it -e PS1=ready>_ a -- sh -i"}
		if name == "on a server" {
			commands = append(commands, "attach --shell /bin/sh a", "run -it default -- sh -i")
		}
		for _, line := range commands {
			k := newKeyboard(t)
			k.run(h, strings.Fields(line)...)
			k.typ("PS1=; X=kept; echo be''fore\n")
			k.expect("before\r\n")
			k.typ("\x10\x11")
			again := newKeyboard(t)
			again.size(120, 40)
			again.run(h, strings.Fields(k.left()[0])...)
			again.typ("until [ \"$(stty size)\" = '40 120' ]; do :; done; echo $X; exit 9\n")
			again.expect("kept\r\n")
			if code := <-again.code; code != 9 {
				t.Errorf("%s, %s: exit %d, want 9", name, line, code)
			}
			if strings.Contains(again.all.String(), "before\r\n") {
				t.Errorf("%s, %s: it is shown again: %q", name, line, again.all.String())
			}
		}
	}
}

// TestDetachFromOwnBox wants a box that ends with us to be told, and its command to
// go on being ours.
func TestDetachFromOwnBox(t *testing.T) {
	t.Parallel()
	h, k := newHost(t), newKeyboard(t)
	k.run(h, "run", "-it", "default", "--", "sh", "-i")
	k.typ("echo be''fore\n")
	k.expect("before\r\n")
	k.typ("\x10\x11")
	k.expect("sandbox: this command can't be left")
	k.typ("exit 4\n")
	if code := <-k.code; code != 4 {
		t.Errorf("exit %d, want 4", code)
	}
	if out, _, _ := h.sandbox("ls", "-q"); out != "" {
		t.Errorf("left %q", out)
	}
}

// TestDetachKeys takes other keys, or none.
func TestDetachKeys(t *testing.T) {
	t.Parallel()
	h := newServed(t)
	h.create("-n", "a")
	k := newKeyboard(t)
	k.run(h, "exec", "-it", "--detach-keys", "ctrl-a,x", "a", "--", "sh", "-c", "stty raw -echo; echo set; head -c 3 | od -An -tx1; sleep 60")
	k.expect("set")
	k.typ("\x10\x11\x01y")
	k.expect("10 11 01")
	k.typ("\x01x")
	k.left()
	k = newKeyboard(t)
	k.run(h, "exec", "-it", "--detach-keys", "", "a", "--", "sh", "-c", "stty raw -echo; echo set; head -c 2 | od -An -tx1; exit 7")
	k.expect("set")
	k.typ("\x10\x11")
	k.expect("10 11")
	if code := <-k.code; code != 7 {
		t.Errorf("exit %d, want 7", code)
	}
}
