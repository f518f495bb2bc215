package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// watched are the events that a watch asks the kernel for.
const watched = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// watch sends the events of a directory, and if recursive of all below it, until
// the directory or the box ends.
func (r *records) watch(path string, recursive bool) error {
	w := watcher{queue: newQueue(), path: path, recursive: recursive, paths: map[int32]string{}, found: map[string]bool{}}
	var err error
	if w.fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		return tooMany(err)
	}
	defer unix.Close(w.fd)
	if err := w.begin(); err != nil {
		return err
	}
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, unix.SIGTERM) // which a box that stops sends to all its processes
	go func() {
		<-stops
		w.queue.end(wire.Event{Type: api.EndOfWatch, Reason: api.WatchBoxStopped})
	}()
	if err := r.alive(); err != nil {
		return err
	}
	go w.run()
	return w.queue.write(r.to)
}

// tooMany says which limit a watch has met.
func tooMany(err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return fault.New(fault.ResourceExhausted, "the users of this box have as many inotify watches as they may have (%s): watch fewer directories", limit("max_inotify_watches"))
	case errors.Is(err, unix.EMFILE):
		return fault.New(fault.ResourceExhausted, "the users of this box watch as much at once as they may (%s inotify instances): end another watch", limit("max_inotify_instances"))
	}
	return fmt.Errorf("watch: %w", err)
}

// limit returns a limit of the box's user namespace.
func limit(name string) string {
	b, err := os.ReadFile("/proc/sys/user/" + name)
	if err != nil {
		return "the host's limit"
	}
	return strings.TrimSpace(string(b))
}

// watcher reads the events of a directory.
type watcher struct {
	queue     *queue
	fd        int    // of inotify
	path      string // of the directory
	recursive bool
	top       int32            // the watch of the directory itself
	paths     map[int32]string // of the watched directories, relative to that one
	// found are files that were found in a directory when its watch began. The
	// kernel may tell of them too, in an event that it has queued by then.
	found map[string]bool
	next  []event // read and not told yet
}

// begin watches the directory, and what is in it if that is wanted.
func (w *watcher) begin() error {
	root, err := openAt(unix.AT_FDCWD, w.path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("%s: %w", w.path, err)
	}
	defer unix.Close(root)
	if w.top, err = w.add(root, ""); err == nil && w.recursive {
		err = w.scan(root, "", false)
	}
	return err
}

// root opens the directory once more. It does not stay open, because the kernel
// does not tell that a directory was removed that is. Errors: ENOENT also if
// another one has its path.
func (w *watcher) root() (int, error) {
	fd, err := openAt(unix.AT_FDCWD, w.path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	wd, err := unix.InotifyAddWatch(w.fd, "/proc/self/fd/"+strconv.Itoa(fd), watched)
	if err == nil && int32(wd) == w.top {
		return fd, nil
	}
	_ = unix.Close(fd)
	if err != nil {
		return -1, tooMany(err)
	}
	_, _ = unix.InotifyRmWatch(w.fd, uint32(wd))
	delete(w.paths, int32(wd))
	return -1, unix.ENOENT
}

// add watches an open directory. Errors: those of tooMany.
func (w *watcher) add(dir int, path string) (int32, error) {
	wd, err := unix.InotifyAddWatch(w.fd, "/proc/self/fd/"+strconv.Itoa(dir), watched)
	if err != nil {
		return 0, tooMany(err)
	}
	w.paths[int32(wd)] = path
	return int32(wd), nil
}

// scan watches the directories in an open one, and those in them. With tell, it
// tells of all files that it finds. A directory that vanishes meanwhile, or that
// the user may not read, is left out.
func (w *watcher) scan(dir int, path string, tell bool) error {
	copied, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ignoreGone(err)
	}
	f := os.NewFile(uintptr(copied), path)
	defer f.Close()
	for {
		entries, err := f.ReadDir(namesAtOnce)
		for _, e := range entries {
			if err := w.discovered(dir, join(path, e.Name()), e, tell); err != nil {
				return err
			}
		}
		if err != nil {
			return nil // its end; a directory that can't be read to its end has gone
		}
	}
}

// discovered tells of a file that was found, and watches it if it is a directory.
func (w *watcher) discovered(dir int, path string, e os.DirEntry, tell bool) error {
	if tell {
		w.queue.push(wire.Event{Type: api.FileCreated, Path: path, Directory: e.IsDir()})
		w.found[path] = true
	}
	if !e.IsDir() {
		return nil
	}
	below, err := within(dir, e.Name())
	if err != nil || below < 0 {
		return err
	}
	defer unix.Close(below)
	if _, err := w.add(below, path); err != nil {
		return ignoreGone(err)
	}
	return w.scan(below, path, tell)
}

// tree watches a directory that is new below the watched one, with all in it.
func (w *watcher) tree(path string, tell bool) error {
	root, err := w.root()
	if err != nil {
		return ignoreGone(err)
	}
	defer unix.Close(root)
	dir, err := within(root, path)
	if err != nil || dir < 0 {
		return ignoreGone(err)
	}
	defer unix.Close(dir)
	if _, err := w.add(dir, path); err != nil {
		return ignoreGone(err)
	}
	return w.scan(dir, path, tell)
}

// ignoreGone returns nil for the failure of a directory that has gone, or that the
// user may not read.
func ignoreGone(err error) error {
	for _, gone := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES} {
		if errors.Is(err, gone) {
			return nil
		}
	}
	return err
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// event is one event as the kernel tells it.
type event struct {
	wd           int32
	mask, cookie uint32
	name         string
}

// run tells of events until the watch ends.
func (w *watcher) run() {
	reason, err := w.tellAll()
	end := wire.Event{Type: api.EndOfWatch, Reason: reason}
	if err != nil {
		end.Reason, end.Message = api.WatchFailed, answer(err).Message
	}
	w.queue.end(end)
}

// tellAll tells of events and returns why there are no more.
func (w *watcher) tellAll() (api.WatchEnd, error) {
	for {
		if len(w.next) == 0 {
			if err := w.read(-1); err != nil {
				return "", err
			}
			continue
		}
		e := w.next[0]
		w.next = w.next[1:]
		ended, err := w.tell(e)
		if err != nil {
			return "", err
		}
		if ended {
			return api.WatchRemoved, nil
		}
	}
}

// read reads events, for which it waits up to wait milliseconds; -1 is for ever.
func (w *watcher) read(wait int) error {
	buf := make([]byte, 64<<10)
	n, err := unix.Read(w.fd, buf)
	if errors.Is(err, unix.EAGAIN) {
		clear(w.found) // all that was queued by then has been told
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}, wait)
		if err == nil {
			n, err = unix.Read(w.fd, buf)
		}
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		w.next = append(w.next, event{
			wd: int32(binary.NativeEndian.Uint32(b)), mask: binary.NativeEndian.Uint32(b[4:]), cookie: binary.NativeEndian.Uint32(b[8:]),
			name: unix.ByteSliceToString(b[unix.SizeofInotifyEvent:end]),
		})
		b = b[end:]
	}
	return nil
}

// tell tells of one event. ended is true if nothing is left to watch.
func (w *watcher) tell(e event) (ended bool, err error) {
	dir, known := w.paths[e.wd]
	switch {
	case e.mask&unix.IN_Q_OVERFLOW != 0:
		w.queue.push(wire.Event{Type: api.Overflow})
		return false, w.again()
	case e.wd == w.top && e.mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_UNMOUNT|unix.IN_IGNORED) != 0:
		return true, nil
	case e.mask&unix.IN_IGNORED != 0:
		delete(w.paths, e.wd)
		return false, nil
	case !known || e.name == "": // what a directory tells of itself, the one above it tells too
		return false, nil
	}
	return false, w.about(e, join(dir, e.name), e.mask&unix.IN_ISDIR != 0)
}

// again watches what is new since events were lost.
func (w *watcher) again() error {
	if !w.recursive {
		return nil
	}
	root, err := w.root()
	if err != nil {
		return ignoreGone(err)
	}
	defer unix.Close(root)
	return w.scan(root, "", false)
}

// about tells of an event about a file.
func (w *watcher) about(e event, path string, isDir bool) error {
	switch {
	case e.mask&unix.IN_MOVED_FROM != 0:
		return w.moved(e, path, isDir)
	case e.mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		return w.created(path, isDir)
	case e.mask&unix.IN_DELETE != 0:
		delete(w.found, path)
		w.queue.push(wire.Event{Type: api.FileRemoved, Path: path, Directory: isDir})
	case e.mask&unix.IN_MODIFY != 0:
		w.queue.push(wire.Event{Type: api.FileModified, Path: path, Directory: isDir})
	case e.mask&unix.IN_ATTRIB != 0:
		w.queue.push(wire.Event{Type: api.FileAttributes, Path: path, Directory: isDir})
	}
	return nil
}

// created tells of a new file, unless it was found already.
func (w *watcher) created(path string, isDir bool) error {
	if w.found[path] {
		delete(w.found, path)
		return nil
	}
	w.queue.push(wire.Event{Type: api.FileCreated, Path: path, Directory: isDir})
	if isDir && w.recursive {
		return w.tree(path, true)
	}
	return nil
}

// moved tells of a file that was moved: as a rename if it is still in a watched
// directory, and else as a removal.
func (w *watcher) moved(e event, from string, isDir bool) error {
	delete(w.found, from)
	if isDir {
		clear(w.found) // the paths of files in it are others now
	}
	to, ok, err := w.partner(e.cookie)
	if err != nil {
		return err
	}
	if !ok {
		w.queue.push(wire.Event{Type: api.FileRemoved, Path: from, Directory: isDir})
		w.forget(from)
		return nil
	}
	w.queue.push(wire.Event{Type: api.FileRenamed, Path: to, From: from, Directory: isDir})
	if !isDir || !w.recursive {
		return nil
	}
	for wd, path := range w.paths {
		if rest, below := strings.CutPrefix(path+"/", from+"/"); below {
			w.paths[wd] = strings.TrimSuffix(to+"/"+rest, "/")
		}
	}
	return w.tree(to, false) // it may have been moved before it was watched
}

const (
	// near is how many events there may be between the two of a rename.
	near = 128
	// soon is how long the second one may take in milliseconds: the kernel queues
	// both at once, but a read can come between.
	soon = 10
)

// partner takes the event that tells where a file was moved to.
func (w *watcher) partner(cookie uint32) (to string, ok bool, err error) {
	for tries := range 2 {
		for i, e := range w.next[:min(near, len(w.next))] {
			if e.mask&unix.IN_MOVED_TO == 0 || e.cookie != cookie {
				continue
			}
			dir, known := w.paths[e.wd]
			w.next = append(w.next[:i:i], w.next[i+1:]...)
			return join(dir, e.name), known, nil
		}
		if tries > 0 || len(w.next) >= near {
			break
		}
		if err := w.read(soon); err != nil {
			return "", false, err
		}
	}
	return "", false, nil
}

// forget ends the watches of a directory that was moved away.
func (w *watcher) forget(path string) {
	for wd, p := range w.paths {
		if p == path || strings.HasPrefix(p, path+"/") {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd))
			delete(w.paths, wd)
		}
	}
}
