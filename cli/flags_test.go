package cli

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"sandbox/core/fault"
	"sandbox/core/options"
)

func TestPort(t *testing.T) {
	t.Parallel()
	tests := []struct {
		arg  string
		want options.Port
	}{
		{"8080:80", options.Port{HostPort: 8080, GuestPort: 80, Protocol: "Tcp"}},
		{"0:80/tcp", options.Port{GuestPort: 80, Protocol: "Tcp"}},
		{"53:53/udp", options.Port{HostPort: 53, GuestPort: 53, Protocol: "Udp"}},
		{"0.0.0.0:1:2", options.Port{HostIP: "0.0.0.0", HostPort: 1, GuestPort: 2, Protocol: "Tcp"}},
		{"[::1]:1:2/udp", options.Port{HostIP: "::1", HostPort: 1, GuestPort: 2, Protocol: "Udp"}},
	}
	for _, test := range tests {
		if got, err := port(test.arg); err != nil || got != test.want {
			t.Errorf("port(%q) = %+v, %v, want %+v", test.arg, got, err, test.want)
		}
	}
	for _, arg := range []string{"", "80", ":80", "80:", "a:80", "80:b", "80:80/sctp", "host:1:2", "::1:1:2:x"} {
		if got, err := port(arg); !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("port(%q) = %+v, %v, want invalid_argument", arg, got, err)
		}
	}
}

func TestVolume(t *testing.T) {
	t.Parallel()
	got, err := volume("/a:/b:ro")
	if want := (options.Volume{HostPath: "/a", GuestPath: "/b", ReadOnly: true}); err != nil || got != want {
		t.Errorf("volume = %+v, %v, want %+v", got, err, want)
	}
	if got, err := volume("./a:/b"); err != nil || got.HostPath[0] != '/' {
		t.Errorf("a relative host path became %+v, %v", got, err)
	}
	for arg, want := range map[string]options.Volume{
		"claim:data:/b":    {Claim: "data", GuestPath: "/b"},
		"claim:data:/b:ro": {Claim: "data", GuestPath: "/b", ReadOnly: true},
	} {
		if got, err := volume(arg); err != nil || got != want {
			t.Errorf("volume(%q) = %+v, %v, want %+v", arg, got, err, want)
		}
	}
	if got, err := volume("claim:/b:ro"); err != nil || got.Claim != "" || !strings.HasSuffix(got.HostPath, "/claim") || !got.ReadOnly {
		t.Errorf("a directory called claim became %+v, %v", got, err)
	}
	for _, arg := range []string{"", "/a", ":/b", "/a:/b:rw", "/a:/b:ro:x", "claim", "claim::/b", "claim:data:/b:rw", "claim:data:/b:ro:x"} {
		if got, err := volume(arg); !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("volume(%q) = %+v, %v, want invalid_argument", arg, got, err)
		}
	}
}

func TestPairs(t *testing.T) {
	t.Parallel()
	got, err := pairs("-e", []string{"A=1", "B=x=y", "C=", "A=2"})
	if want := map[string]string{"A": "2", "B": "x=y", "C": ""}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("pairs = %v, %v, want %v", got, err, want)
	}
	for _, arg := range []string{"", "A", "=1"} {
		if _, err := pairs("-e", []string{arg}); !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("pairs(%q): %v, want invalid_argument", arg, err)
		}
	}
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]time.Duration{"0": 0, "2": 2 * time.Second, "0.25": 250 * time.Millisecond} {
		var s seconds
		if err := s.Set(arg); err != nil || time.Duration(s) != want {
			t.Errorf("Set(%q) = %v, %v, want %v", arg, time.Duration(s), err, want)
		}
		if s.String() != arg {
			t.Errorf("String = %q, want %q", s.String(), arg)
		}
	}
	for _, arg := range []string{"", "-1", "NaN", "Inf", "1e300", "2s"} {
		if err := new(seconds).Set(arg); err == nil {
			t.Errorf("Set(%q) did not fail", arg)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		name string
		argv []string // nil: refused
	}{
		{[]string{"img", "--", "ls", "-l"}, "img", []string{"ls", "-l"}},
		{[]string{"img", "ls", "-l"}, "img", []string{"ls", "-l"}},
		{[]string{"img", "--", "--", "x"}, "img", []string{"--", "x"}},
		{[]string{"--", "ls", "--", "x"}, "", []string{"ls", "--", "x"}},
		{[]string{"-i", "img", "sh", "-c", "true"}, "img", []string{"sh", "-c", "true"}},
		{[]string{"img"}, "img", []string{}},
		{[]string{"img", "--"}, "img", []string{}},
		{[]string{"img", "-e", "A=1", "--", "ls"}, "", nil},
	}
	for _, test := range tests {
		var name string
		var argv []string
		cmd := &cobra.Command{Args: cobra.MinimumNArgs(1), RunE: func(cmd *cobra.Command, args []string) (err error) {
			name, argv, err = split(cmd, args)
			return err
		}}
		new(execFlags).register(cmd.Flags())
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(test.args)
		err := cmd.Execute()
		if name != test.name || !reflect.DeepEqual(argv, test.argv) || (err == nil) != (test.argv != nil) {
			t.Errorf("split(%q) = %q, %q, %v, want %q, %q", test.args, name, argv, err, test.name, test.argv)
		}
	}
}
