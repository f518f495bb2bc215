package main

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandbox/test/leak"
	"sandbox/test/programs"
)

func TestMain(m *testing.M) { leak.Main(m) }

// Every attack runs, and none gets through.
func TestBoard(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), settings{build: programs.Dir(), sources: "../families"}); err != nil {
		t.Error(err)
	}
}

// Who reaches the host is heard of.
func TestEars(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "udp"} {
		e, err := listen()
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial(network, net.JoinHostPort("127.0.0.1", strconv.Itoa(e.port)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte("x"))
		_, _ = conn.Read(make([]byte, 8)) // it is answered, or closed, when it was heard
		_ = conn.Close()
		if e.close(); e.seen.Load() != 1 {
			t.Errorf("%s: heard %d times", network, e.seen.Load())
		}
	}
}

// A clock that somebody sets is seen, and one that goes on is not, wherever it is in a minute.
func TestClockSet(t *testing.T) {
	t.Parallel()
	for _, before := range []time.Duration{0, 59500 * time.Millisecond, 59999 * time.Millisecond, time.Hour} {
		for by, want := range map[time.Duration]bool{0: false, time.Millisecond: false, -time.Second: false, time.Second: false, time.Minute: true, -time.Minute: true} {
			if got := wasSet(before, before+by); got != want {
				t.Errorf("from %v by %v: %t, want %t", before, by, got, want)
			}
		}
	}
	if before, now := clockAhead(), clockAhead(); before == 0 || wasSet(before, now) {
		t.Errorf("the clock of this host: %v, then %v", before, now)
	}
}

// A board with an attack that got through, did not run, said nothing of itself or was seen
// by the host fails, and names it.
func TestVerdict(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"plan\t1\na\theld\tEPERM\n":                       "",
		"plan\t2\r\na\theld\tEPERM\r\nb\theld\tEPERM\r\n": "", // of a terminal
		"plan\t2\na\theld\tEPERM\nb\tGOT THROUGH\tfd 3\n": "f: b: GOT THROUGH: fd 3",
		"plan\t1\na\tNOT RUN\tSegmentation fault\n":       "f: a: NOT RUN: Segmentation fault",
		"plan\t3\na\theld\tEPERM\n":                       "1 attacks of 3",
		"a\theld\tEPERM\n":                                "1 attacks of -1",
		"":                                                "0 attacks of -1",
		"plan\t1\na\theld\tEPERM\nb\theld\tEPERM\n":       "2 attacks of 1",
	} {
		r := result{family: family{name: "f", class: "c"}}
		r.read(said)
		err := verdict([]result{r})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", said, err, want)
		}
	}
	seen := result{saw: []string{"another clock"}}
	if err := verdict([]result{seen}); err == nil || !strings.Contains(err.Error(), "another clock") {
		t.Errorf("what the host saw: %v", err)
	}
}
