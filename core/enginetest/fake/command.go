package fake

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sandbox/core/options"
)

// init lets commands begin with the default actions of SIGHUP and SIGINT, as in a box. They
// would inherit that one is ignored, as it is in what a shell runs in the background. What
// the process catches is reset for them.
func init() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// command returns the command of o with what the contract gives a command
// (section 3).
func command(b *box, o options.Exec) (*exec.Cmd, error) {
	opts, img := b.record.Options, b.image
	who, err := account(cmp.Or(o.User, opts.User, img.User, "0"))
	if err != nil {
		return nil, err
	}
	dir := cmp.Or(o.WorkingDir, opts.WorkingDir, img.WorkingDir, "/")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("working directory %s: not a directory", dir)
	}
	env := environment(img.Env, who, opts.Env, o)
	file, err := lookup(o.Cmd[0], dir, env["PATH"])
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: file, Args: o.Cmd, Dir: dir, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+env[name])
	}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = credential(who)
	}
	return cmd, nil
}

func environment(image []string, who *user.User, box map[string]string, o options.Exec) map[string]string {
	env := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, pair := range image {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	env["HOME"], env["USER"] = who.HomeDir, who.Username
	if o.TTY {
		env["TERM"] = "xterm-256color"
	}
	maps.Copy(env, box)
	maps.Copy(env, o.Env)
	return env
}

// account returns the user that "name", "uid" or "uid:gid" refers to. A numeric
// user needs no entry in passwd.
func account(name string) (*user.User, error) {
	uid, gid, hasGID := strings.Cut(name, ":")
	who, err := user.Lookup(uid)
	if _, bad := strconv.ParseUint(uid, 10, 32); bad == nil {
		if who, err = user.LookupId(uid); err != nil {
			who, err = &user.User{Uid: uid, Gid: "0", HomeDir: "/"}, nil
		}
	}
	if err == nil && hasGID {
		who.Gid = gid
	}
	return who, err
}

func credential(who *user.User) *syscall.Credential {
	uid, _ := strconv.ParseUint(who.Uid, 10, 32)
	gid, _ := strconv.ParseUint(who.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
