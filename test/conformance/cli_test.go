package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"sandbox/cli"
	"sandbox/core/fault"
)

// line is what one command line gave.
type line struct {
	exit        int
	stdout, err string
}

func (r *running) line(stdin string, args ...string) line {
	var out, err bytes.Buffer
	exit := cli.Run(r.ctx, args, cli.Stdio{In: strings.NewReader(stdin), Out: &out, Err: &err})
	return line{exit, out.String(), err.String()}
}

// result reads what a verb has printed with -o json.
func (l line) result(own bool) result {
	var v object
	if l.exit == 0 || !own && !strings.Contains(l.err, `"error"`) {
		_ = json.Unmarshal([]byte(l.stdout), &v)
		return result{value: v}
	}
	_ = json.Unmarshal([]byte(l.err), &v)
	code := at(v, "error.code")
	return result{fail: &failure{
		is:   func(row fault.Row) bool { return row.Code == code && (l.exit == row.Exit || !own && l.exit == 125) },
		text: fmt.Sprintf("exit %d: %s", l.exit, l.err),
	}}
}

// ask runs a verb that says all by its JSON and its exit code.
func (r *running) ask(args ...string) result {
	return r.line("", append(args, "-o", "json")...).result(true)
}

func onCommandLine() map[string]func(*running, object) result {
	return map[string]func(*running, object) result{
		"create": func(r *running, a object) result {
			return r.line("", append([]string{"create", "-o", "json"}, createFlags(r.request(a))...)...).result(true)
		},
		"get": func(r *running, a object) result { return r.ask("info", r.box(a)) },
		"list": func(r *running, a object) result {
			return r.ask(append([]string{"ls"}, flags(a, "status", "-s")...)...)
		},
		"start": func(r *running, a object) result { return r.then(a, r.ask("start", r.box(a))) },
		"stop": func(r *running, a object) result {
			return r.then(a, r.ask("stop", "-t", fmt.Sprint(graceOf(a).Seconds()), r.box(a)))
		},
		"pause": func(r *running, a object) result {
			return r.then(a, r.ask(append([]string{"pause", r.box(a)}, map[bool][]string{true: {"--reclaim"}}[a["reclaim"] == true]...)...))
		},
		"resume": func(r *running, a object) result { return r.then(a, r.ask("resume", r.box(a))) },
		"snapshot": func(r *running, a object) result {
			args := []string{"snapshot", r.box(a)}
			if a["name"] != nil {
				args = append(args, fmt.Sprint(a["name"]))
			}
			return r.ask(args...)
		},
		"rollback": func(r *running, a object) result { return r.ask("rollback", r.box(a), fmt.Sprint(a["snapshot"])) },
		"clone": func(r *running, a object) result {
			args := append([]string{"clone", r.box(a)}, flags(a, "n", "-n", "name_prefix", "--name-prefix", "snapshot", "--snapshot")...)
			if a["options"] != nil {
				args = append(args, "--options", word(a["options"]))
			}
			return r.ask(args...)
		},
		"snapshots": func(r *running, a object) result {
			if a["box"] == nil {
				return r.ask("snapshots")
			}
			return r.ask("snapshots", fmt.Sprint(a["box"]))
		},
		"diff": func(r *running, a object) result {
			return r.ask(append([]string{"diff", r.box(a)}, flags(a, "from", "--from")...)...)
		},
		"update": func(r *running, a object) result {
			args := append([]string{"update", r.box(a)}, flags(a, "ttl_seconds", "--ttl", "idle_seconds", "--idle", "on_expiry", "--on-expiry")...)
			if ttl, said := a["ttl_seconds"]; said && ttl == nil {
				args = append(args, "--ttl", "none")
			}
			return r.then(a, r.ask(args...))
		},
		"remove": func(r *running, a object) result {
			args := []string{"rm", r.box(a)}
			if a["force"] == true {
				args = append(args, "-f")
			}
			return r.ask(args...)
		},
		"exec": func(r *running, a object) result {
			args := append([]string{"exec", "-o", "json"}, execFlags(a)...)
			args = append(append(args, flags(a, "working_dir", "-w", "user", "-u")...), pairs(a, "env", "-e")...)
			return r.line(text(a["stdin"], ""), append(append(args, r.box(a), "--"), argv(a)...)...).result(false)
		},
		"run": func(r *running, a object) result {
			args := append([]string{"run", "-o", "json", "--network", "None"}, execFlags(a)...)
			args = append(args, flags(a, "name", "-n", "working_dir", "-w", "user", "-u", "memory_mib", "-m")...)
			args = append(append(args, pairs(a, "env", "-e")...), text(a["image"], "default"), "--")
			return r.line(text(a["stdin"], ""), append(args, argv(a)...)...).result(false)
		},
		"upload": func(r *running, a object) result {
			return r.ask(append([]string{"cp", r.source(a), r.box(a) + ":" + text(a["dest"], "")}, flags(a, "user", "-u")...)...)
		},
		"download": func(r *running, a object) result {
			l := r.line("", append([]string{"cp", r.box(a) + ":" + text(a["path"], ""), "-", "-o", "json"}, flags(a, "user", "-u")...)...)
			if l.exit == 0 {
				return result{value: object{"content": l.stdout}, only: []string{"content"}}
			}
			return l.result(true)
		},
		"stat_file": func(r *running, a object) result {
			return r.ask(append([]string{"files", "stat", r.box(a), text(a["path"], "")}, flags(a, "user", "-u")...)...)
		},
		"list_files": func(r *running, a object) result {
			return r.ask(append([]string{"files", "ls", r.box(a), text(a["path"], "")}, flags(a, "user", "-u", "depth", "--depth")...)...)
		},
		"make_directory": func(r *running, a object) result {
			return r.ask(append([]string{"files", "mkdir", r.box(a), text(a["path"], "")}, flags(a, "user", "-u", "mode", "-m")...)...)
		},
		"move_file": func(r *running, a object) result {
			return r.ask(append([]string{"files", "mv", r.box(a), text(a["from"], ""), text(a["to"], "")}, flags(a, "user", "-u")...)...)
		},
		"remove_file": func(r *running, a object) result {
			args := []string{"files", "rm", r.box(a), text(a["path"], "")}
			if a["recursive"] == true {
				args = append(args, "-r")
			}
			return r.ask(append(args, flags(a, "user", "-u")...)...)
		},
		"file": func(r *running, a object) result {
			info, err := os.Stat(text(a["path"], ""))
			must(r, err)
			b, err := os.ReadFile(text(a["path"], ""))
			must(r, err)
			return result{value: object{"mode": info.Mode().String(), "text": string(b)}}
		},
		"line": func(r *running, a object) result {
			var args []string
			for _, v := range a["args"].([]any) {
				args = append(args, fmt.Sprint(v))
			}
			l := r.line(text(a["stdin"], ""), args...)
			value := object{"exit": l.exit, "stdout": l.stdout, "stderr": l.err}
			var doc any
			if json.Unmarshal([]byte(l.stdout), &doc) == nil {
				value["json"] = doc
			}
			return result{value: toObject(value)}
		},
	}
}

// then returns the box as it is after a verb, if it is there still.
func (r *running) then(a object, done result) result {
	if done.fail != nil {
		return done
	}
	if got := r.ask("info", r.box(a)); got.fail == nil {
		return got
	}
	return done
}

// createFlags writes a create of REST as flags and the image.
func createFlags(a object) []string {
	args := flags(a, "name", "-n", "cpus", "--cpus", "memory_mib", "-m", "disk_size_gb", "--disk", "working_dir", "-w",
		"user", "-u", "network", "--network", "rootfs_path", "--rootfs", "ttl_seconds", "--ttl", "idle_seconds", "--idle", "on_expiry", "--on-expiry")
	args = append(append(args, pairs(a, "env", "-e")...), pairs(a, "labels", "--label")...)
	for _, v := range list(a["volumes"]) {
		source := text(v["host_path"], "")
		if claim := text(v["claim"], ""); claim != "" {
			source = "claim:" + claim
		}
		volume := source + ":" + text(v["guest_path"], "")
		if v["read_only"] == true {
			volume += ":ro"
		}
		args = append(args, "-v", volume)
	}
	for _, p := range list(a["ports"]) {
		port := fmt.Sprintf("%v:%v", p["host_port"], p["guest_port"])
		if ip := text(p["host_ip"], ""); ip != "" {
			port = ip + ":" + port
		}
		if p["protocol"] == "Udp" {
			port += "/udp"
		}
		args = append(args, "-p", port)
	}
	for member, flag := range map[string]string{"auto_remove": "--rm", "auto_start": "--auto-start", "stop_with_command": "--stop-with-command"} {
		if a[member] == true {
			args = append(args, flag)
		}
	}
	if list, ok := a["seccomp"].(string); ok {
		args = append(args, "--seccomp", list)
	}
	args = append(args, serviceFlags(a)...)
	if image, ok := a["image"].(string); ok {
		args = append(args, image)
	}
	if command, ok := a["command"].([]any); ok {
		args = append(args, "--")
		for _, arg := range command {
			args = append(args, fmt.Sprint(arg))
		}
	}
	return args
}

// serviceFlags writes what a create says of the main command, but for its arguments.
func serviceFlags(a object) (args []string) {
	args = flags(a, "restart", "--restart")
	if a["command"] == "image" {
		args = append(args, "--image-command")
	}
	check, _ := a["healthcheck"].(object)
	if test, ok := check["test"].([]any); ok {
		args = append(args, "--health-cmd", fmt.Sprint(test[1]))
	}
	if ms, ok := check["interval_ms"]; ok {
		args = append(args, "--health-interval", fmt.Sprintf("%vms", ms))
	}
	return append(args, flags(check, "retries", "--health-retries")...)
}

// flags writes members as flags: names holds a member and its flag by turns.
func flags(a object, names ...string) (args []string) {
	for i := 0; i < len(names); i += 2 {
		if v := a[names[i]]; v != nil {
			args = append(args, names[i+1], fmt.Sprint(v))
		}
	}
	return args
}

func pairs(a object, name, flag string) (args []string) {
	members, _ := a[name].(object)
	for key, value := range members {
		args = append(args, flag, key+"="+fmt.Sprint(value))
	}
	return args
}

func execFlags(a object) (args []string) {
	if a["stdin"] != nil {
		args = append(args, "-i")
	}
	if ms, ok := a["timeout_ms"].(int); ok {
		args = append(args, "--timeout", fmt.Sprint(float64(ms)/1000))
	}
	return args
}

func list(v any) (all []object) {
	items, _ := v.([]any)
	for _, item := range items {
		all = append(all, item.(object))
	}
	return all
}
