package conformance_test

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

var surfaceNames = append([]string{"core", "c", "c-remote", "rest", "socket", "cli"}, expand([]string{"bindings", "remotes"})...)

// surfaces holds the verbs of each surface.
var surfaces = withBuild(withCode(withBindings(map[string]map[string]func(*running, object) result{
	"core": inCore(), "c": inC(), "c-remote": inC(), "rest": overLogs(true, overREST(true)), "socket": overLogs(false, overREST(false)),
	"cli": onLogsCommandLine(onCommandLine()),
})))

func withBindings(all map[string]map[string]func(*running, object) result) map[string]map[string]func(*running, object) result {
	for _, b := range bindings {
		all[b.name] = inBinding()
	}
	return all
}

// box returns the box that a verb is about: the last one if it names none.
func (r *running) box(a object) string {
	if ref, ok := a["box"].(string); ok {
		return ref
	}
	return r.vars["box"]
}

// request returns the body of a create, with a small root file system unless it
// names another.
func (r *running) request(a object) object {
	o := object{"network": "None"}
	if a["image"] == nil && a["rootfs_path"] == nil {
		o["rootfs_path"] = r.rootfs
	}
	for name, v := range a {
		o[name] = v
	}
	return o
}

// given makes a result of what Go returns.
func given(v any, err error) result {
	if err != nil {
		f := fault.Of(err)
		return result{fail: &failure{func(row fault.Row) bool { return f.Kind.Row() == row }, f.Kind.String() + ": " + f.Message}}
	}
	return result{value: toObject(v)}
}

func inCore() map[string]func(*running, object) result {
	return map[string]func(*running, object) result{
		"create": func(r *running, a object) result {
			doc, err := json.Marshal(r.request(a))
			must(r, err)
			o, err := options.DecodeCreate(doc)
			if err != nil {
				return given(nil, err)
			}
			box, _, err := r.core.Create(r.ctx, o)
			if err != nil {
				return given(nil, err)
			}
			return shown(r, box)
		},
		"get": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result { return shown(r, b) })
		},
		"list": func(r *running, _ object) result {
			recs, err := r.core.List(r.ctx)
			boxes := []api.Box{}
			for _, rec := range recs {
				boxes = append(boxes, rec.Summary())
			}
			return given(map[string]any{"boxes": boxes}, err)
		},
		"start": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result { rec, err := b.Start(r.ctx); return given(rec.Info(), err) })
		},
		"stop": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result { rec, err := b.Stop(r.ctx, graceOf(a)); return given(rec.Info(), err) })
		},
		"pause": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				rec, err := b.Pause(r.ctx, a["reclaim"] == true)
				return given(rec.Info(), err)
			})
		},
		"resume": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result { rec, err := b.Resume(r.ctx); return given(rec.Info(), err) })
		},
		"update": func(r *running, a object) result {
			u, err := options.DecodeUpdate([]byte(word(without(a, "box"))))
			if err != nil {
				return given(nil, err)
			}
			return withBox(r, a, func(b *core.Box) result { rec, err := b.Update(r.ctx, u); return given(rec.Info(), err) })
		},
		"snapshot": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				taken, err := b.Snapshot(r.ctx, text(a["name"], ""))
				return given(taken, err)
			})
		},
		"rollback": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				rec, err := b.Rollback(r.ctx, text(a["snapshot"], ""))
				return given(rec.Info(), err)
			})
		},
		"clone": func(r *running, a object) result {
			c, err := options.DecodeClone([]byte(word(without(a, "box"))))
			if err != nil {
				return given(nil, err)
			}
			return withBox(r, a, func(b *core.Box) result {
				made, err := b.Clone(r.ctx, c)
				clones := api.Clones{}
				for _, rec := range made {
					clones.Boxes = append(clones.Boxes, rec.Info())
				}
				return given(clones, err)
			})
		},
		"snapshots": func(r *running, a object) result {
			all, err := r.core.Snapshots(r.ctx, text(a["box"], ""))
			return given(api.Snapshots{Snapshots: all}, err)
		},
		"diff": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				page, err := b.Diff(r.ctx, options.Diff{From: text(a["from"], "")})
				return given(page, err)
			})
		},
		"remove": func(r *running, a object) result {
			return given(object{"ok": true}, r.core.Remove(r.ctx, r.box(a), a["force"] == true))
		},
		"exec": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result { return streamed(r, b, a) })
		},
		"execs": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				recs, err := b.Execs(r.ctx)
				return given(map[string]any{"execs": recs}, err)
			})
		},
		"upload": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				u := core.Upload{Dest: a["dest"].(string), Name: text(a["filename"], "file")}
				got, err := b.Upload(r.ctx, u, strings.NewReader(text(a["content"], "")))
				return given(got, err)
			})
		},
		"stat_file": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				return given(b.StatFile(r.ctx, options.StatFile{Path: text(a["path"], ""), User: text(a["user"], "")}))
			})
		},
		"list_files": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				o := options.ListFiles{Path: text(a["path"], ""), PageToken: text(a["page_token"], ""), User: text(a["user"], "")}
				o.Depth, _ = a["depth"].(int)
				o.PageSize, _ = a["page_size"].(int)
				return given(b.ListFiles(r.ctx, o))
			})
		},
		"make_directory": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				o := options.MakeDirectory{Path: text(a["path"], ""), User: text(a["user"], "")}
				if mode, err := strconv.ParseInt(text(a["mode"], ""), 8, 0); err == nil {
					bits := int(mode)
					o.Mode = &bits
				}
				return given(b.MakeDirectory(r.ctx, o))
			})
		},
		"move_file": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				return given(b.MoveFile(r.ctx, options.MoveFile{From: text(a["from"], ""), To: text(a["to"], ""), User: text(a["user"], "")}))
			})
		},
		"remove_file": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				return given(b.RemoveFile(r.ctx, options.RemoveFile{Path: text(a["path"], ""), Recursive: a["recursive"] == true, User: text(a["user"], "")}))
			})
		},
		"watch_files": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				w, err := b.WatchFiles(r.ctx, options.WatchFiles{Path: text(a["path"], ""), Recursive: a["recursive"] == true, User: text(a["user"], "")})
				if err != nil {
					return given(nil, err)
				}
				defer w.Close()
				_, err = b.Run(r.ctx, argv(a)...)
				must(r, err)
				events := []api.FileEvent{}
				for err == nil {
					var e api.FileEvent
					if e, err = w.Next(r.ctx); err == nil {
						events = append(events, e)
					}
				}
				if errors.Is(err, io.EOF) {
					err = nil
				}
				return given(object{"events": events}, err)
			})
		},
		"download": func(r *running, a object) result {
			return withBox(r, a, func(b *core.Box) result {
				d, err := b.Download(r.ctx, options.Download{Path: text(a["path"], ""), Tar: a["archive"] != nil, User: text(a["user"], "")})
				if err != nil {
					return given(nil, err)
				}
				defer d.Close()
				content, err := io.ReadAll(d)
				return given(object{"content": string(content)}, err)
			})
		},
	}
}

func withBox(r *running, a object, do func(*core.Box) result) result {
	box, err := r.core.Get(r.ctx, r.box(a))
	if err != nil {
		return given(nil, err)
	}
	return do(box)
}

func shown(r *running, box *core.Box) result {
	rec, err := box.Record(r.ctx)
	return given(rec.Info(), err)
}

// graceOf returns the grace period of a stop: none unless it says so, or each
// would take 10 s where a shell ignores SIGTERM.
func graceOf(a object) time.Duration {
	seconds, _ := a["timeout_seconds"].(int)
	return time.Duration(seconds) * time.Second
}

// streamed runs a command to its end.
func streamed(r *running, box *core.Box, a object) result {
	doc, err := json.Marshal(without(a, "box"))
	must(r, err)
	asked, err := options.DecodeExec(doc)
	if err != nil {
		return given(nil, err)
	}
	x, err := box.Exec(r.ctx, asked.Exec)
	if err != nil {
		return given(nil, err)
	}
	defer x.Close()
	if asked.Exec.Stdin {
		go func() {
			_, _ = io.WriteString(x.Stdin(), asked.Input)
			_ = x.CloseStdin(r.ctx)
		}()
	}
	var texts [2]strings.Builder
	end, err := x.Stream(r.ctx, make([]byte, core.OutputBuffer), func(stderr bool, p []byte) error {
		i := 0
		if stderr {
			i = 1
		}
		texts[i].Write(p)
		return nil
	})
	got := given(x.Record().Ended(end), err)
	if got.fail == nil {
		got.value["stdout"], got.value["stderr"] = texts[0].String(), texts[1].String()
	}
	return got
}

func without(a object, names ...string) object {
	o := object{}
	for name, v := range a {
		o[name] = v
	}
	for _, name := range names {
		delete(o, name)
	}
	return o
}

// text returns v, or what stands for it where it was left out.
func text(v any, absent string) string {
	if s, ok := v.(string); ok {
		return s
	}
	return absent
}
