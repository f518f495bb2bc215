package chdb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandbox/core/landlock"
	"sandbox/logs/embedded/handover"
)

// lockIn takes from the process all rights that the engine does not need, and
// starts the same program again in its place. The new start is needed because
// Landlock and capabilities belong to a thread: only a new program has no
// threads from before.
func lockIn(s handover.Settings) error {
	self, err := unix.Open("/proc/self/exe", unix.O_PATH, 0)
	if err != nil {
		return fmt.Errorf("open this program: %w", err)
	}
	// When memory runs out, the kernel should end this process first.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core files: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := enterLandlock(self, s); err != nil {
		return err
	}
	s.Caged = true
	argv := append([]string{"sandbox-logs"}, s.Args()...)
	return fmt.Errorf("start this program anew: %w", execute(self, argv))
}

// dropCapabilities empties the bounding set. So the program that is started
// next has no capabilities, even if it runs as root. A user who is not root has none, and
// with no_new_privs never gets any.
func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP+16; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // the kernel has no capability beyond the previous one
			return nil
		}
		if errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return nil
}

func execute(program int, argv []string) error {
	args, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil {
		return err
	}
	empty, _ := unix.BytePtrFromString("") // it can't fail: the string has no NUL
	_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(program), uintptr(unsafe.Pointer(empty)),
		uintptr(unsafe.Pointer(&args[0])), uintptr(unsafe.Pointer(&env[0])), unix.AT_EMPTY_PATH, 0)
	return errno
}

// Rights on files.
const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE
	runFile  = readFile | unix.LANDLOCK_ACCESS_FS_EXECUTE
	useTree  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
)

// enterLandlock denies the thread the whole file system except the engine's
// directory, the library, this program and the C library's files. So it can't
// read /proc, nor /etc beyond the linker's cache. The network is denied too, if
// the kernel supports that.
func enterLandlock(self int, s handover.Settings) error {
	version, err := landlock.Version()
	if err != nil {
		return fmt.Errorf("the kernel lacks Landlock, without which the embedded engine is not started: %w", err)
	}
	handled := handledBy(version)
	rules, err := landlock.New(handled)
	if err != nil {
		return err
	}
	defer rules.Close()
	if err := rules.PermitFile(self, "this program", runFile); err != nil {
		return err
	}
	files := map[string]uint64{s.Data: useTree & handled.Handled_access_fs, s.Library: readFile}
	for _, name := range libcFiles() {
		files[name] = runFile
	}
	for name, rights := range files {
		if err := rules.Permit(name, rights); err != nil {
			return err
		}
	}
	return rules.Enter()
}

// handledBy returns all accesses that a version of Landlock can deny.
func handledBy(version int) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1}
	if version >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return attr
}

// libcFiles returns the files of the C library: those that this program uses,
// and those in the same directory that libchdb also needs.
func libcFiles() []string {
	files := map[string]bool{"/etc/ld.so.cache": true}
	maps, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if name := fields[len(fields)-1]; strings.Contains(filepath.Base(name), ".so") {
			for _, file := range []string{name, sibling(name, "libm.so.6"), sibling(name, "libpthread.so.0"), sibling(name, "librt.so.1"), sibling(name, "libdl.so.2")} {
				files[file] = true
			}
		}
	}
	var there []string
	for name := range files {
		if _, err := os.Stat(name); err == nil {
			there = append(there, name)
		}
	}
	return there
}

func sibling(path, name string) string { return filepath.Join(filepath.Dir(path), name) }
