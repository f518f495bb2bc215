package api_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sandbox/api"
)

func TestPartial(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want int
	}{
		{"", 0}, {"a", 0}, {"ä", 0}, {"\xc3", 1}, {"a\xe2\x82", 2}, {"\xf0\x9f\x98", 3}, {"\xf0\x9f\x98\x80", 0},
		{"\x80", 0}, {"\x80\x80\x80", 0}, {"\xff", 0}, {"\xc3a", 0}, {"\xc0", 0}, {"\xed\xa0", 0}, {"€\xe2", 1},
	} {
		if got := api.Partial([]byte(c.in)); got != c.want {
			t.Errorf("%q: %d, want %d", c.in, got, c.want)
		}
	}
}

// Text that comes in pieces of any size is passed on whole, and no piece ends inside a
// character; one that never ends is left.
func TestCharacters(t *testing.T) {
	t.Parallel()
	const whole, end = "aä€😀 ошибка 🚧", "\xf0\x9f"
	for size := 1; size < 9; size++ {
		var (
			stream api.Characters
			got    string
		)
		for p := range slices.Chunk([]byte(whole+end), size) {
			p = stream.Cut(p)
			if !utf8.Valid(p) {
				t.Errorf("in pieces of %d: %q was passed on", size, p)
			}
			got += string(p)
		}
		if left := string(stream.Left()); got != whole || left != end {
			t.Errorf("in pieces of %d: got %q and then %q, want %q and %q", size, got, left, whole, end)
		}
	}
}

// TestTextIsBytesBack wants any bytes back from the text that JSON carried.
func TestTextIsBytesBack(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": api.UTF8, "hällo\x00": api.UTF8, "\xff": api.Base64, "€\xe2": api.Base64} {
		text, encoding := api.Text([]byte(in))
		back, err := api.Bytes(text, encoding)
		if encoding != want || string(back) != in || err != nil {
			t.Errorf("%q: %q in %s, back %q, %v", in, text, encoding, back, err)
		}
	}
	if b, err := api.Bytes("no base64", api.Base64); err == nil {
		t.Errorf("what is no base64 is %q", b)
	}
}

// TestCapture fills one stream over its limit, within a character, and the
// other up to its limit.
func TestCapture(t *testing.T) {
	t.Parallel()
	full := bytes.Repeat([]byte("\xff"), api.MaxOutput)
	for name, c := range map[string]struct {
		stdout    []string // piece by piece
		length    int      // of what is kept
		encoding  string
		truncated bool
	}{
		"nothing":       {nil, 0, api.UTF8, false},
		"pieces":        {[]string{"a\xc3", "\xa4b"}, 4, api.UTF8, false},
		"to the limit":  {[]string{strings.Repeat("a", api.MaxOutput)}, api.MaxOutput, api.UTF8, false},
		"over it":       {[]string{strings.Repeat("a", api.MaxOutput-1), "ä"}, api.MaxOutput - 1, api.UTF8, true},
		"no more of it": {[]string{strings.Repeat("a", api.MaxOutput), "b", "c"}, api.MaxOutput, api.UTF8, true},
		"begun, not cut": {
			[]string{strings.Repeat("a", api.MaxOutput-1), "\xc3"}, api.MaxOutput, api.Base64, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kept api.Capture
			for _, p := range c.stdout {
				_ = kept.Add(false, []byte(p))
			}
			_ = kept.Add(true, full)
			r := kept.Result(api.ExitStatus{Status: api.ExecFailed, Reason: api.ReasonSignaled, ExitCode: 137, Signal: 9})
			stdout, stderr, err := r.Output()
			if err != nil || len(stdout) != c.length || r.StdoutEncoding != c.encoding || r.Truncated != c.truncated {
				t.Errorf("%d bytes in %s, truncated %v, %v", len(stdout), r.StdoutEncoding, r.Truncated, err)
			}
			if !bytes.Equal(stderr, full) || *r.ExitCode != 137 || *r.Signal != 9 || *r.Reason != api.ReasonSignaled {
				t.Errorf("%d bytes of the other stream, exit code %d, signal %d, %s", len(stderr), *r.ExitCode, *r.Signal, *r.Reason)
			}
		})
	}
}

// TestCaptureOfLess keeps less of each stream than it does by default.
func TestCaptureOfLess(t *testing.T) {
	t.Parallel()
	kept := api.Capture{Most: 4}
	_, _ = kept.Add(false, []byte("abcä")), kept.Add(true, []byte("abcd"))
	if r := kept.Result(api.ExitStatus{}); r.Stdout != "abc" || r.Stderr != "abcd" || !r.Truncated {
		t.Errorf("kept %q and %q, truncated %v", r.Stdout, r.Stderr, r.Truncated)
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	running := api.Exec{ID: "exec_a", Status: api.ExecRunning, CreatedAt: begin}
	for name, c := range map[string]struct {
		end  api.ExitStatus
		want string // the members that an end sets
	}{
		"exited": {
			api.ExitStatus{Status: api.ExecSucceeded, Reason: api.ReasonExited, FinishedAt: begin.Add(time.Second)},
			`{"status":"succeeded","exit_code":0,"signal":null,"reason":"exited","finished_at":"2026-01-02T03:04:06Z","duration_ms":1000}`,
		},
		"killed": {
			api.ExitStatus{Status: api.ExecFailed, Reason: api.ReasonSignaled, ExitCode: 137, Signal: 9, FinishedAt: begin},
			`{"status":"failed","exit_code":137,"signal":9,"reason":"signaled","finished_at":"2026-01-02T03:04:05Z","duration_ms":0}`,
		},
		"lost, by a clock that was set back": {
			api.ExitStatus{Status: api.ExecLost, FinishedAt: begin.Add(-time.Hour)},
			`{"status":"lost","exit_code":null,"signal":null,"reason":null,"finished_at":"2026-01-02T02:04:05Z","duration_ms":0}`,
		},
	} {
		var got, want map[string]any
		doc, err := json.Marshal(running.Ended(c.end))
		if err == nil {
			err = json.Unmarshal(doc, &got)
		}
		if err == nil {
			err = json.Unmarshal([]byte(c.want), &want)
		}
		if err != nil {
			t.Fatal(err)
		}
		for member, value := range want {
			if !reflect.DeepEqual(got[member], value) {
				t.Errorf("%s: %s is %v, want %v", name, member, got[member], value)
			}
		}
	}
}
