package attack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// watch begins a watch that ends with the test.
func watch(t *testing.T, b *boxes.Box, o options.WatchFiles) *core.FileWatch {
	t.Helper()
	w, err := b.Engine.WatchFiles(context.Background(), b.ID, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// until returns the events of a watch up to one that is as wanted.
func until(t *testing.T, w *core.FileWatch, last func(api.FileEvent) bool) (all []api.FileEvent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		e, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("after %v: %v", all, err)
		}
		if all = append(all, e); last(e) {
			return all
		}
	}
}

// brief writes events in short: what, where, and from where.
func brief(events []api.FileEvent) (all []string) {
	for _, e := range events {
		s := strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Type, e.Path, e.From))
		if e.Directory {
			s += " /"
		}
		all = append(all, s)
	}
	return slices.Compact(all)
}

func created(path string) func(api.FileEvent) bool {
	return func(e api.FileEvent) bool { return e.Type == api.FileCreated && e.Path == path }
}

// Each kind of change is told of, in the order of the changes.
func TestWatch(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, "mkdir -p /w/old/sub /out; echo x >/w/old/f")
	for name, tt := range map[string]struct {
		recursive bool
		steps     []string // each begins when the watch stands for what the one before has made
		want      []string
	}{
		"a file":       {false, []string{"echo 1 >f; chmod 600 f; mv f g; rm g"}, []string{"create /w/f", "modify /w/f", "attributes /w/f", "rename /w/g /w/f", "remove /w/g"}},
		"not below":    {false, []string{"touch old/sub/x; rm old/sub/x"}, nil},
		"below":        {true, []string{"touch old/sub/x; rm old/sub/x"}, []string{"create /w/old/sub/x", "remove /w/old/sub/x"}},
		"out and in":   {true, []string{"touch a; mv a /out/a; mv /out/a b; rm b"}, []string{"create /w/a", "remove /w/a", "create /w/b", "remove /w/b"}},
		"a directory":  {true, []string{"mkdir d", "mv d e", "mkdir e/in; rmdir e/in e"}, []string{"create /w/d /", "rename /w/e /w/d /", "create /w/e/in /", "remove /w/e/in /", "remove /w/e /"}},
		"a tree comes": {true, []string{"mkdir -p /out/t/u; touch /out/t/u/v; mv /out/t t", "rm -r t"}, []string{"create /w/t /", "create /w/t/u /", "create /w/t/u/v", "remove /w/t/u/v", "remove /w/t/u /", "remove /w/t /"}},
		"a tree goes":  {true, []string{"mkdir -p g/h", "mv g /out/g; touch /out/g/h/unseen; rm -r /out/g"}, []string{"create /w/g /", "create /w/g/h /", "remove /w/g /"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t, b, options.WatchFiles{Path: "/w/", Recursive: tt.recursive})
			var got []string
			for _, step := range tt.steps {
				b.Sh(t, "cd /w; "+step+"; touch /w/end")
				events := until(t, w, created("/w/end"))
				got = append(got, brief(events[:len(events)-1])...)
				b.Sh(t, "rm /w/end")
				until(t, w, func(e api.FileEvent) bool { return e.Type == api.FileRemoved && e.Path == "/w/end" })
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// Of a burst each create is told of, or an overflow says that some are not.
func TestWatchBurst(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, "mkdir /w")
	for name, script := range map[string]string{
		"files":       "mkdir /w/f; cd /w/f; seq 10000 19999 | xargs touch",
		"directories": "i=0; while [ $i -lt 200 ]; do mkdir -p /w/d$i/a/b; touch /w/d$i/1 /w/d$i/a/2 /w/d$i/a/b/3; i=$((i+1)); done",
	} {
		w := watch(t, b, options.WatchFiles{Path: "/w", Recursive: true})
		b.Sh(t, script+"; touch /w/end-"+strings.ReplaceAll(name, " ", ""))
		seen, lost := map[string]int{}, 0
		for _, e := range until(t, w, created("/w/end-"+name)) {
			switch e.Type {
			case api.FileCreated:
				seen[e.Path]++
			case api.Overflow:
				lost++
			}
		}
		made := strings.Fields(b.Sh(t, "find /w -mindepth 1"))
		for _, path := range made {
			if seen[path] > 1 {
				t.Errorf("%s: %s was told of %d times", name, path, seen[path])
			}
			if seen[path] == 0 && lost == 0 {
				t.Errorf("%s: %s is lost silently", name, path)
			}
		}
		t.Logf("%s: %d made, %d told of, %d overflows", name, len(made), len(seen), lost)
		b.Sh(t, "rm -r /w; mkdir /w")
	}
}

// Who does not read gets an overflow in place of what was lost, and goes on behind
// it; the box's memory stays bounded.
func TestWatchOverflow(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, "mkdir /w")
	w := watch(t, b, options.WatchFiles{Path: "/w"})
	b.Sh(t, "cd /w; i=0; while [ $i -lt 20 ]; do seq 10000 17999 | xargs touch; i=$((i+1)); done; seq 10000 17999 | xargs rm")
	lost := until(t, w, func(e api.FileEvent) bool { return e.Type == api.Overflow })
	t.Logf("overflow behind %d events", len(lost))
	done := make(chan struct{})
	go func() { defer close(done); until(t, w, created("/w/end")) }()
	for i := 0; ; i++ {
		select {
		case <-done:
			b.Lives(t)
			return
		default:
			b.Sh(t, "rm -f /w/end; touch /w/end")
		}
	}
}

// A watch ends with its directory, its box and its reader, and says why.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	for script, reason := range map[string]api.WatchEnd{"rmdir /w": api.WatchRemoved, "mv /w /x": api.WatchRemoved, "": api.WatchBoxStopped, "force": api.WatchBoxStopped} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			b := boxes.New(t)
			b.Sh(t, "mkdir /w")
			w := watch(t, b, options.WatchFiles{Path: "/w", Recursive: true})
			var err error
			switch script {
			case "":
				_, err = b.Engine.Stop(t.Context(), b.ID, 0)
			case "force":
				_, err = b.Engine.Stop(t.Context(), b.ID, time.Second)
			default:
				b.Sh(t, script)
			}
			if err != nil {
				t.Fatal(err)
			}
			events := until(t, w, func(e api.FileEvent) bool { return e.Type == api.EndOfWatch })
			if end := events[len(events)-1]; end.Reason != reason {
				t.Errorf("it ended with %+v", end)
			}
			if _, err := w.Next(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("behind the end: %v", err)
			}
		})
	}
}

// What can't be watched is refused, and a closed watch leaves no child behind.
func TestWatchRefused(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, "mkdir -m 700 /private; mkdir -m 755 /open; mkdir -m 700 /open/closed; ln -s /proc/self/root /root-link")
	for _, tt := range []struct {
		o    options.WatchFiles
		kind fault.Kind
	}{
		{options.WatchFiles{Path: "/nosuch"}, fault.FileNotFound}, {options.WatchFiles{Path: "/etc/passwd"}, fault.InvalidArgument},
		{options.WatchFiles{Path: "/a/../b"}, fault.InvalidArgument}, {options.WatchFiles{Path: "/proc/1/root"}, fault.InvalidArgument}, {options.WatchFiles{Path: "/root-link/etc"}, fault.InvalidArgument},
		{options.WatchFiles{Path: "/private", User: "1000"}, fault.PermissionDenied}, {options.WatchFiles{Path: "/", User: "nosuch"}, fault.InvalidArgument},
	} {
		if w, err := b.Engine.WatchFiles(t.Context(), b.ID, tt.o); !fault.Is(err, tt.kind) {
			t.Errorf("%+v: %v, %v", tt.o, w, err)
		}
	}
	w := watch(t, b, options.WatchFiles{Path: "/open", Recursive: true, User: "1000"})
	b.Sh(t, "touch /open/closed/unseen /open/seen")
	if got := brief(until(t, w, created("/open/seen"))); !slices.Equal(got, []string{"create /open/seen"}) {
		t.Errorf("the user sees %q", got)
	}
	_ = w.Close()
	boxes.Await(t, "the end of the child", func() bool { return !strings.Contains(b.Sh(t, "ps -o args"), "sandbox-init files") })
	b.Lives(t)
}
