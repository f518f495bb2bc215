// Package soak_test tries the product under load while it is disturbed. Clients over
// the Unix socket and over TCP, and programs in C with the library in their process,
// use one home at once: they make boxes with Idempotency-Keys, stop, start and remove
// them, run commands whose output is known, move files, type into terminals and talk
// with a command's stdin. Their readers are cut and go on where they were. Meanwhile
// an adversary disturbs, one way after another. All choices follow from a seed, which
// is printed; what meets what in time does not.
//
// What may fail, and how, while a disturbance lasts:
//
//	disturbance                    calls that may fail                      with
//	daemon killed                  all                                      unavailable (no answer)
//	shim killed                    create, start, stop, remove, gc, run     engine_error
//	host program killed            none
//	daemon short of descriptors    all                                      resource_exhausted
//	shim short of descriptors      create, start, stop, remove, gc, run     resource_exhausted
//	both started with few          all                                      both of the above
//	disk full                      those, exec, terminal, upload, key       storage_error
//	records damaged                those of the damaged thing               storage_error, unauthenticated
//
// What may never fail, whatever happens:
//
//   - A command's output comes whole, once and in order, over as many connections as
//     it takes, and can be read again after its end. The one exception is a disk that
//     is full while it runs: what no reader holds may be dropped, and a gap says so.
//   - An exec goes on and ends with its own exit code: no kill of the daemon or of the
//     shim ends it, nor a full disk.
//   - A file that was put into a box comes out with the same bytes, also after the box
//     was stopped and started. Boxes with a disk_size_gb are left out: their disk is a
//     sparse file, which fails like a broken disk when there is no room for it.
//   - One Idempotency-Key is one box.
//   - A call that failed can be repeated, and then succeeds, or says that it was done.
//   - The boxes of a program with the library go with it, however it ends.
//   - When all boxes are removed, nothing of them is left, and the daemon and the shim
//     are as small as before.
//
// Each failure that may not be fails the run, and is told with the ids and with what
// the logs say of them. The short form, which is a part of make test, disturbs once in
// each way; make soak SECONDS=n SEED=n disturbs for as long as it is told.
package soak_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"sandbox/client"
	"sandbox/test/leak"
	"sandbox/test/rootfs"
)

var (
	seconds = flag.Int("seconds", 0, "how long to disturb; 0 disturbs once in each way")
	seed    = flag.Uint64("seed", 1, "what all choices follow from")
)

// deadline bounds a whole run, beyond the time that was asked for. It is there for
// calls that hang, which are named then.
const deadline = 15 * time.Minute

// inside marks the process that runs in a network namespace of its own.
const inside = "SOAK_INSIDE"

func TestMain(m *testing.M) {
	if os.Getenv(inside) == "" {
		os.Exit(enter())
	}
	leak.Main(m)
}

// enter runs this program again in a network namespace of its own: what other
// tests have in the host's network is not counted then.
func enter() int {
	runtime.LockOSThread() // the child dies with the thread that started it
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "soak (needs root): ", err)
		return 1
	}
	return 0
}

// soak is one run.
type soak struct {
	t       *testing.T
	ctx     context.Context // ends at the deadline
	rng     *rand.Rand      // the adversary's
	dir     string          // of everything
	home    string          // on a small disk
	root    string          // of the boxes
	daemon  *server
	clients []*client.Client // over the Unix socket, and over TCP with a key
	left    func() []string  // what came after the beginning and has not gone

	program string // in C, that makes boxes in its process
	running running
	round   int // of the work
	damages int

	history
	tally
}

func TestSoak(t *testing.T) {
	s := begin(t)
	fmt.Printf("soak: SEED=%d SECONDS=%d\n", *seed, *seconds)
	half := time.Duration(*seconds) * time.Second / 2
	s.under(half, s.killDaemon, s.killShim, s.killHost, s.damage, s.startShort, s.fillDisk)
	before := s.measure()
	// Nothing kills the daemon or the shim from here on, so that they have time
	// to leak.
	s.under(half, s.fillDisk, s.shortDaemon, s.killHost, s.shortShim)
	after := s.measure()
	s.awaitMemory(before, &after)
	s.daemon.signal(os.Interrupt)
	s.report(before, after)
}

func begin(t *testing.T) *soak {
	runtime.LockOSThread() // daemons die with the thread that starts them
	ctx, cancel := context.WithTimeout(t.Context(), deadline+time.Duration(*seconds)*time.Second)
	t.Cleanup(cancel)
	s := &soak{t: t, ctx: ctx, rng: rand.New(rand.NewPCG(*seed, 0)), dir: t.TempDir()}
	lo, err := netlink.LinkByName("lo")
	must(t, err)
	must(t, netlink.LinkSetUp(lo))
	s.root = rootfs.Busybox(t)
	s.program = s.compileHost()
	s.home = smallDisk(t, s.dir)
	s.left = leak.Watch()
	s.configure(s.rng.IntN(3))
	s.daemon = &server{soak: s}
	must(t, s.daemon.start(0))
	t.Cleanup(func() { s.daemon.signal(os.Kill) }) // one that has ended is as good
	s.command("--local", "images", "import", "busybox", s.root)
	s.clients = s.connect()
	s.awaitLogs()
	return s
}

// configure sets how many boxes are kept ready, and lets the disk become really full.
func (s *soak) configure(pool int) {
	fmt.Printf("soak: pool=%d\n", pool)
	must(s.t, os.WriteFile(filepath.Join(s.home, "config.toml"), fmt.Appendf(nil, "disk_floor_mib = 0\npool = %d\n", pool), 0o600))
}

// under disturbs for a time, or once in each way if that is 0, while clients and
// host programs work.
func (s *soak) under(time time.Duration, ways ...func()) {
	s.round++
	stop := make(chan struct{})
	var work sync.WaitGroup
	for n := range workers {
		work.Go(func() { s.newWorker(fmt.Sprintf("client%d-%d", s.round, n)).work(stop) })
	}
	for n := range hosts {
		work.Go(func() { s.host(fmt.Sprintf("host%d-%d", s.round, n), stop) })
	}
	defer work.Wait() // also when the adversary gives up
	defer close(stop)
	s.disturb(time, ways)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
