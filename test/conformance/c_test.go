package conformance_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"sandbox/core/fault"
)

// called is what one call of the library gave.
type called struct {
	code        int
	out         string // the result, or the message
	exit        int    // -1000 where it was not written
	text        [2]string
	hasText     bool
	description string
}

// library calls libsandbox, in a process of its own. It begins with a runtime: this
// host's home, or for the surface c-remote the daemon over TCP, with a key.
func (r *running) library(calls ...[]string) []called {
	r.Helper()
	args := []string{"runtime", "NULL", "NULL"}
	if r.on == "c-remote" {
		args = []string{"remote", r.url, r.key, "NULL"}
	}
	for _, call := range calls {
		args = append(append(args, "+"), call...)
	}
	out, err := exec.CommandContext(r.ctx, r.driver, args...).CombinedOutput()
	if err != nil {
		r.Fatalf("the program in C: %v\n%s", err, out)
	}
	records := strings.Split(strings.TrimSuffix(string(out), "\x1e"), "\x1e")
	if len(records) != len(calls)+1 {
		r.Fatalf("the program in C says %q", out)
	}
	all := make([]called, len(calls))
	for i, record := range records[1:] {
		fields := strings.Split(record, "\x1f")
		c := called{out: fields[1], description: calls[i][0]}
		c.code, err = strconv.Atoi(fields[0])
		must(r, err)
		if len(fields) == 5 {
			c.exit, err = strconv.Atoi(fields[2])
			must(r, err)
			c.text, c.hasText = [2]string{fields[3], fields[4]}, true
		}
		all[i] = c
	}
	return all
}

// last returns the last call as a result, or the first that failed.
func last(all []called, value func(called) object) result {
	for _, c := range all {
		if c.code != 0 {
			return result{fail: &failure{func(row fault.Row) bool { return row.C == c.code }, fmt.Sprintf("%s: %d %s", c.description, c.code, c.out)}}
		}
	}
	return result{value: value(all[len(all)-1])}
}

// document reads the JSON of a call.
func document(c called) object {
	var v any
	if json.Unmarshal([]byte(c.out), &v) != nil {
		return object{"text": c.out}
	}
	if list, ok := v.([]any); ok {
		return object{"boxes": list}
	}
	return v.(object)
}

// word returns a string as an argument of the program.
func word(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		return v
	case int, float64:
		return fmt.Sprint(v)
	}
	doc, _ := json.Marshal(v)
	return string(doc)
}

func inC() map[string]func(*running, object) result {
	return map[string]func(*running, object) result{
		"create": func(r *running, a object) result {
			call := []string{"create", word(libraryOptions(r, a))}
			if a["name"] != nil {
				call = []string{"named", word(a["name"]), word(libraryOptions(r, a))}
			}
			return last(r.library(call, []string{"box_info"}), document)
		},
		"get":  func(r *running, a object) result { return last(r.library([]string{"info", r.box(a)}), document) },
		"list": func(r *running, _ object) result { return last(r.library([]string{"list"}), document) },
		"start": func(r *running, a object) result {
			return last(r.library([]string{"get", r.box(a)}, []string{"start"}, []string{"box_info"}), document)
		},
		"stop": func(r *running, a object) result {
			return last(r.library([]string{"get", r.box(a)}, []string{"stop"}), document)
		},
		"pause": func(r *running, a object) result {
			return last(r.library([]string{"get", r.box(a)}, []string{"pause", map[bool]string{true: "1", false: "0"}[a["reclaim"] == true]}, []string{"box_info"}), document)
		},
		"resume": func(r *running, a object) result {
			return last(r.library([]string{"get", r.box(a)}, []string{"resume"}, []string{"box_info"}), document)
		},
		"update": func(r *running, a object) result {
			return last(r.library([]string{"get", r.box(a)}, []string{"update", word(without(a, "box"))}, []string{"box_info"}), document)
		},
		"snapshot": func(r *running, a object) result { return onBox(r, a, "snapshot_take", word(a["name"])) },
		"clone":    func(r *running, a object) result { return onBox(r, a, "snapshot_clone", word(without(a, "box"))) },
		"rollback": func(r *running, a object) result { return onBox(r, a, "snapshot_rollback", word(a["snapshot"])) },
		"diff": func(r *running, a object) result {
			return onBox(r, a, "snapshot_diff", word(a["from"]), word(a["page_size"]), word(a["page_token"]))
		},
		"snapshots": func(r *running, a object) result {
			got := last(r.library([]string{"snapshot_list", word(a["box"])}), document)
			if got.fail == nil { // document calls an array so
				got.value = object{"snapshots": got.value["boxes"]}
			}
			return got
		},
		"remove": func(r *running, a object) result {
			force := "0"
			if a["force"] == true {
				force = "1"
			}
			return last(r.library([]string{"remove", r.box(a), force}), document)
		},
		"exec": executed,
		"stat_file": func(r *running, a object) result {
			return onBox(r, a, "file_stat", word(a["path"]), word(a["user"]))
		},
		"list_files": func(r *running, a object) result {
			return onBox(r, a, "file_list", word(a["path"]), word(a["depth"]), word(a["page_size"]), word(a["page_token"]), word(a["user"]))
		},
		"make_directory": func(r *running, a object) result {
			return onBox(r, a, "file_make_dir", word(a["path"]), word(a["mode"]), word(a["user"]))
		},
		"move_file": func(r *running, a object) result {
			return onBox(r, a, "file_move", word(a["from"]), word(a["to"]), word(a["user"]))
		},
		"watch_files": func(r *running, a object) result {
			recursive := "0"
			if a["recursive"] == true {
				recursive = "1"
			}
			calls := [][]string{{"get", r.box(a)}, {"watch_start", word(a["path"]), recursive, word(a["user"])}}
			if reads, _ := a["reads"].(int); reads > 0 {
				args := argv(a)
				calls = append(calls, []string{"execute", args[0], word(args[1:]), "NULL", "NULL", "NULL", "0"})
				for range reads {
					calls = append(calls, []string{"watch_read", "30"})
				}
			}
			all := r.library(calls...)
			return last(all, func(called) object {
				events := []any{}
				for _, c := range all[min(3, len(all)):] {
					events = append(events, document(c))
				}
				return toObject(object{"events": events})
			})
		},
		"remove_file": func(r *running, a object) result {
			recursive := "0"
			if a["recursive"] == true {
				recursive = "1"
			}
			return onBox(r, a, "file_remove", word(a["path"]), recursive, word(a["user"]))
		},
		"calls": calls,
	}
}

// onBox makes a call on a box, which answers with a document.
func onBox(r *running, a object, call ...string) result {
	return last(r.library([]string{"get", r.box(a)}, call), document)
}

// libraryOptions writes a create of REST as a box options document.
func libraryOptions(r *running, a object) object {
	o := object{"env": []any{}, "volumes": []any{}, "network": "None", "ports": []any{}, "auto_remove": false}
	for name, v := range a {
		if name != "name" && name != "image" && name != "rootfs_path" {
			o[name] = v
		}
	}
	switch {
	case a["image"] != nil:
		o["rootfs"] = object{"Image": a["image"]}
	case a["rootfs_path"] != nil:
		o["rootfs"] = object{"RootfsPath": a["rootfs_path"]}
	default:
		o["rootfs"] = object{"RootfsPath": r.rootfs}
	}
	return o
}

// executed runs a command. Death by signal N is -N in C.
func executed(r *running, a object) result {
	argv := argv(a)
	var env any
	if a["env"] != nil {
		pairs := []any{}
		for name, value := range a["env"].(object) {
			pairs = append(pairs, []any{name, value})
		}
		env = pairs
	}
	timeout := "0"
	if ms, ok := a["timeout_ms"].(int); ok {
		timeout = fmt.Sprint(float64(ms) / 1000)
	}
	all := r.library([]string{"get", r.box(a)},
		[]string{"execute", argv[0], word(argv[1:]), word(env), word(a["working_dir"]), word(a["user"]), timeout})
	got := last(all, func(c called) object {
		o := object{"exit_code": c.exit, "signal": nil, "stdout": c.text[0], "stderr": c.text[1]}
		if c.exit < 0 {
			o["exit_code"], o["signal"] = 128-c.exit, -c.exit
		}
		return o
	})
	if end := all[1]; end.hasText && (end.code == fault.Execution.Row().C || end.code == fault.Timeout.Row().C) {
		got = result{value: object{"exit_code": end.exit, "stdout": end.text[0], "stderr": end.text[1]}}
		if end.code == fault.Timeout.Row().C {
			got.value["reason"] = "timed_out"
		}
	}
	got.only = []string{"exit_code", "signal", "stdout", "stderr"}
	if got.value["reason"] != nil {
		got.only = []string{"reason", "stdout", "stderr"}
	} else if got.value["signal"] == nil && got.value["exit_code"] == 127 || got.value["exit_code"] == 126 {
		got.only = []string{"exit_code"}
	}
	return got
}

// calls makes calls as they stand and returns each by its place: code, out (as
// it is), json, exit, stdout and stderr.
func calls(r *running, a object) result {
	var all [][]string
	for _, call := range a["box"].([]any) {
		var words []string
		for _, v := range call.([]any) {
			words = append(words, word(v))
		}
		all = append(all, words)
	}
	value := object{}
	for i, c := range r.library(all...) {
		one := object{"code": c.code, "out": c.out, "exit": c.exit, "stdout": c.text[0], "stderr": c.text[1]}
		if c.code == 0 {
			one["json"] = document(c)
		}
		value[strconv.Itoa(i)] = one
	}
	return result{value: toObject(value)}
}

// argv returns a command as a list.
func argv(a object) []string {
	if line, ok := a["cmd"].(string); ok {
		return []string{"/bin/sh", "-c", line}
	}
	var args []string
	items, _ := a["cmd"].([]any) // of a run without one: none
	for _, v := range items {
		args = append(args, fmt.Sprint(v))
	}
	return args
}
