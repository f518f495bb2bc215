package guest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
)

// defaultPath is the PATH of commands whose image sets none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// plan is how a command will be started.
type plan struct {
	path string // path of the program
	dir  int    // descriptor of the working directory
	env  []string
	user user
}

// startFailure says why a command can't be started. The exit code is the one a
// shell uses: 127 for a command that is not found, 126 for everything else. The
// message is written to stderr before anyone reads it, so it must fit into one
// page, the least that a pipe holds, however long the command's name is.
type startFailure struct {
	reason  api.Reason
	code    int
	message string
}

func notFound(name string) *startFailure {
	return &startFailure{api.ReasonNotFound, 127, fmt.Sprintf("%.900s: command not found", name)}
}

func cannotRun(err error) *startFailure {
	return &startFailure{api.ReasonNotExecutable, 126, fmt.Sprintf("%.900s", err.Error())}
}

func (f *startFailure) exited() api.ExitStatus {
	return api.ExitStatus{Status: api.ExecFailed, Reason: f.reason, ExitCode: f.code, Message: f.message}
}

// plan finds out the user, program, working directory and environment of a
// command.
func (g *guest) plan(r wire.Start) (plan, *startFailure) {
	u, err := lookUpUser(g.userOf(r))
	if err != nil {
		return plan{}, cannotRun(err)
	}
	p := plan{user: u}
	dir := g.workingDir(r)
	if p.dir, err = openDir(dir); err != nil {
		return plan{}, cannotRun(fmt.Errorf("working directory %q: no such directory in the box", dir))
	}
	env := g.environment(r, u)
	for k, v := range env {
		p.env = append(p.env, k+"="+v)
	}
	var why *startFailure
	if p.path, why = lookUpProgram(r.Cmd[0], dir, env["PATH"]); why != nil {
		p.close()
	}
	return p, why
}

func (g *guest) userOf(r wire.Start) string { return first(r.User, g.config.User, "0") }

func (g *guest) workingDir(r wire.Start) string { return first(r.WorkingDir, g.config.WorkingDir, "/") }

func (p plan) close() { _ = unix.Close(p.dir) }

// openDir opens a directory of the box. A command enters it by this descriptor,
// because its name could lead to one of init's own descriptors by then.
func openDir(path string) (int, error) { return openNamed(path, unix.O_PATH|unix.O_DIRECTORY) }

// openNamed opens a path in the box. It never follows the name of one of init's
// own descriptors (/proc/self/fd/N), since some lead outside the box.
func openNamed(path string, flags uint64) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
}

// environment returns the environment of a command. Later sources override
// earlier ones: the image, the user, the box, the exec (contract, section 3).
func (g *guest) environment(r wire.Start, u user) map[string]string {
	env := map[string]string{"PATH": defaultPath}
	for _, pair := range g.config.ImageEnv {
		if k, v, ok := strings.Cut(pair, "="); ok {
			env[k] = v
		}
	}
	delete(env, "TERM")
	env["HOME"], env["USER"] = u.home, u.name
	if r.TTY {
		env["TERM"] = "xterm-256color"
	}
	for _, more := range []map[string]string{g.config.Env, r.Env} {
		for k, v := range more {
			env[k] = v
		}
	}
	return env
}

// lookUpProgram returns the path of the program, which it finds as a shell does.
func lookUpProgram(name, dir, path string) (string, *startFailure) {
	if strings.Contains(name, "/") {
		return checkProgram(name, dir)
	}
	found := notFound(name)
	for _, entry := range filepath.SplitList(path) {
		program, why := checkProgram(filepath.Join(first(entry, "."), name), dir)
		if why == nil {
			return program, nil
		}
		if why.reason == api.ReasonNotExecutable {
			found = why // a later directory may still have one that can run
		}
	}
	return "", found
}

func checkProgram(path, dir string) (string, *startFailure) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	mode, err := modeOf(path)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return "", notFound(path)
	case err != nil:
		return "", cannotRun(fmt.Errorf("%s: %w", path, err))
	case mode&unix.S_IFMT == unix.S_IFDIR:
		return "", cannotRun(fmt.Errorf("%s: is a directory", path))
	case mode&0o111 == 0:
		return "", cannotRun(fmt.Errorf("%s: permission denied", path))
	}
	return path, nil
}

// modeOf returns the mode of the file that a path in the box leads to. It fails
// with ELOOP on a path through the name of one of init's own descriptors.
func modeOf(path string) (uint32, error) {
	fd, err := openNamed(path, unix.O_PATH)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	return st.Mode, err
}

// explain returns the start failure for an error of fork or exec.
func (p plan) explain(err error) *startFailure {
	if errors.Is(err, unix.ENOENT) {
		return &startFailure{api.ReasonNotFound, 127, fmt.Sprintf("%.900s: its interpreter or loader is not in the box", p.path)}
	}
	return cannotRun(fmt.Errorf("%s: %w", p.path, err))
}

// first returns the first string that is not empty, or "".
func first(s ...string) string {
	for _, v := range s {
		if v != "" {
			return v
		}
	}
	return ""
}
