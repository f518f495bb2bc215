package conformance_test

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// do asks the case's driver, which it starts for the first operation.
func (r *running) do(op string, members object) result {
	r.Helper()
	if r.driving == nil {
		r.driving = r.launch(named(r.on))
	}
	return r.driving.ask(r, op, members)
}

// inBinding returns the verbs of bindings.
func inBinding() map[string]func(*running, object) result {
	verbs := map[string]func(*running, object) result{
		"create": func(r *running, a object) result { return r.do("create", bindingOptions(r, a)) },
		"get":    func(r *running, a object) result { return r.do("get", r.about(a)) },
		"list":   func(r *running, _ object) result { return r.do("list", object{}).called("boxes") },
		"start":  func(r *running, a object) result { return r.thenGet(a, r.do("start", r.about(a))) },
		"stop":   func(r *running, a object) result { return r.do("stop", r.about(a)) },
		"pause":  func(r *running, a object) result { return r.thenGet(a, r.do("pause", r.about(a))) },
		"resume": func(r *running, a object) result { return r.thenGet(a, r.do("resume", r.about(a))) },
		"update": func(r *running, a object) result {
			return r.thenGet(a, r.do("update", object{"box": r.box(a), "changes": without(a, "box")}))
		},
		"snapshot": func(r *running, a object) result { return r.do("snapshot", r.about(a)) },
		"clone":    func(r *running, a object) result { return r.do("clone", r.about(a)).called("boxes") },
		"rollback": func(r *running, a object) result { return r.do("rollback", r.about(a)) },
		"diff":     func(r *running, a object) result { return r.do("diff", r.about(a)).called("changes") },
		"snapshots": func(r *running, a object) result {
			return r.do("snapshots", a).called("snapshots")
		},
		"remove": func(r *running, a object) result { return r.do("remove", r.about(a)) },
		"exec":   func(r *running, a object) result { return r.executes(a) },
		"start_exec": func(r *running, a object) result {
			got := r.do("exec_start", bindingExec(r, a))
			if got.fail != nil {
				return got
			}
			return r.do("exec_info", object{"exec": got.value["id"]})
		},
		"get_exec": func(r *running, a object) result { return r.do("exec_info", r.aboutExec(a)) },
		"cancel": func(r *running, a object) result {
			return r.thenInfo(a, r.do("exec_kill", r.aboutExec(a)), true)
		},
		"signal": func(r *running, a object) result {
			a = without(a)
			a["signal"] = int(unix.SignalNum("SIG" + text(a["signal"], "")))
			return r.thenInfo(a, r.do("exec_signal", r.aboutExec(a)), false)
		},
		"wait_exec": func(r *running, a object) result { return r.ended(r.aboutExec(a)) },
		"execs":     func(r *running, a object) result { return r.do("exec_list", r.about(a)).called("execs") },
		"upload":    func(r *running, a object) result { return r.copiesIn(a) },
		"download":  func(r *running, a object) result { return r.copiesOut(a) },
		"stat_file": func(r *running, a object) result { return r.do("stat_file", r.about(a)) },
		"list_files": func(r *running, a object) result {
			return r.do("list_files", r.about(a)).called("files")
		},
		"make_directory": func(r *running, a object) result { return r.do("make_directory", octalMode(r, r.about(a))) },
		"move_file":      func(r *running, a object) result { return r.do("move_file", r.about(a)) },
		"remove_file":    func(r *running, a object) result { return r.do("remove_file", r.about(a)) },
		"watch_files":    func(r *running, a object) result { return r.watchesFiles(a) },
		"images":         func(r *running, a object) result { return r.do("image_list", a).called("images") },
	}
	for _, op := range []string{"close", "version", "metrics", "shutdown", "image_import", "image_remove"} {
		verbs[op] = func(r *running, a object) result { return r.do(op, a) }
	}
	verbs["box_metrics"] = func(r *running, a object) result { return r.do("box_metrics", r.about(a)) }
	return verbs
}

// called gives a result that is no object a name.
func (got result) called(name string) result {
	if got.fail == nil {
		got.value = object{name: got.value[""]}
	}
	return got
}

// about returns the members of an operation on a box.
func (r *running) about(a object) object {
	members := without(a)
	members["box"] = r.box(a)
	return members
}

// aboutExec returns the members of an operation on an exec.
func (r *running) aboutExec(a object) object {
	members := without(a, "box")
	members["exec"] = text(a["exec"], r.vars["exec"])
	return members
}

// thenGet returns the box as it is after an operation.
func (r *running) thenGet(a object, done result) result {
	if done.fail != nil {
		return done
	}
	return r.do("get", r.about(a))
}

// thenInfo returns the exec as it is after an operation, and after its end if wanted.
func (r *running) thenInfo(a object, done result, ended bool) result {
	if done.fail != nil {
		return done
	}
	if ended {
		return r.ended(r.aboutExec(a))
	}
	return r.do("exec_info", r.aboutExec(a))
}

// executes runs a command to its end.
func (r *running) executes(a object) result {
	started := r.do("exec_start", bindingExec(r, a))
	if started.fail != nil {
		return started
	}
	return r.ended(object{"exec": started.value["id"]})
}

// ended waits for the end of an exec: its record and its output, what the
// binding returned for its exit code, and what it failed with.
func (r *running) ended(exec object) result {
	r.Helper()
	end := r.do("exec_wait", exec)
	if end.fail != nil {
		return end
	}
	got := r.do("exec_info", exec)
	if got.fail != nil {
		return got
	}
	for _, stream := range []string{"stdout", "stderr"} {
		bytes, err := base64.StdEncoding.DecodeString(text(end.value[stream], ""))
		must(r, err)
		got.value[stream] = string(bytes)
	}
	got.value["returned"], got.value["failure"] = end.value["exit_code"], end.value["failure"]
	r.agree(got.value)
	return got
}

// agree wants what a binding returned to be what the exec's record says.
func (r *running) agree(exec object) {
	r.Helper()
	returned, ok := exec["returned"].(float64)
	if !ok {
		return
	}
	if returned < 0 {
		returned = 128 - returned
	}
	if exec["exit_code"] != returned {
		r.Errorf("the binding returned %v of %s", exec["returned"], brief(exec))
	}
}

// bindingExec returns the members of exec_start.
func bindingExec(r *running, a object) object {
	members := r.about(a)
	args := []any{}
	for _, arg := range argv(a) {
		args = append(args, arg)
	}
	members["cmd"] = args
	if a["env"] != nil {
		members["env"] = sortedPairs(a["env"])
	}
	if stdin, ok := a["stdin"].(string); ok {
		members["stdin"] = base64.StdEncoding.EncodeToString([]byte(stdin))
	}
	return members
}

// bindingOptions returns the members of create.
func bindingOptions(r *running, a object) object {
	members := r.request(a)
	if _, said := a["auto_remove"]; !said {
		members["auto_remove"] = false
	}
	if a["env"] != nil {
		members["env"] = sortedPairs(a["env"])
	}
	return members
}

// sortedPairs returns a map as an array of pairs.
func sortedPairs(env any) []any {
	if list, ok := env.([]any); ok {
		return list
	}
	members := env.(object)
	all := []any{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		all = append(all, []any{name, members[name]})
	}
	return all
}

// octalMode returns members whose mode is a number, which cases write as REST does.
func octalMode(r *running, members object) object {
	if mode, ok := members["mode"].(string); ok {
		bits, err := strconv.ParseInt(mode, 8, 32)
		must(r, err)
		members["mode"] = bits
	}
	return members
}

// watchesFiles returns the events of a watch while a command runs that ends it.
func (r *running) watchesFiles(a object) result {
	begun := r.do("watch_start", r.about(without(a, "cmd", "reads")))
	if begun.fail != nil || a["cmd"] == nil {
		return begun
	}
	if ran := r.executes(without(a, "path", "recursive", "reads", "user")); ran.fail != nil {
		return ran
	}
	events := []any{}
	for range a["reads"].(int) {
		got := r.do("watch_read", object{"watch": begun.value["watch"]})
		if got.fail != nil {
			return got
		}
		events = append(events, got.value)
	}
	return result{value: object{"events": events}}
}

// source makes a file with the content on this host, in a directory of its own, and
// returns the path of what is to be copied: the file or, of a tree, the directory.
func (r *running) source(a object) string {
	r.Helper()
	dir := r.TempDir()
	file := filepath.Join(dir, text(a["filename"], "file"))
	must(r, os.WriteFile(file, []byte(text(a["content"], "")), 0o600))
	if a["tree"] == true {
		return dir
	}
	return file
}

// copiesIn copies a file or a directory into the box.
func (r *running) copiesIn(a object) result {
	return r.do("copy_in", object{"box": r.box(a), "host_path": r.source(a), "box_path": text(a["dest"], ""), "user": a["user"]})
}

// copiesOut copies a file out of the box and returns its content.
func (r *running) copiesOut(a object) result {
	to := filepath.Join(r.TempDir(), "file")
	got := r.do("copy_out", object{"box": r.box(a), "box_path": text(a["path"], ""), "host_path": to, "user": a["user"]})
	if got.fail != nil {
		return got
	}
	content, err := os.ReadFile(to)
	must(r, err)
	return result{value: object{"content": string(content)}}
}
