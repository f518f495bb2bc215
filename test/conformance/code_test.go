package conformance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/code"
	"sandbox/core/options"
)

// verb is what a surface does with the arguments of a step.
type verb = func(*running, object) result

// codeSurface is how a surface runs code, and uses contexts.
type codeSurface struct {
	// run runs code to its end, and gives its events the name "events".
	run verb
	// context does one of create, list, interrupt, restart and remove. A list has
	// the name "contexts".
	context func(r *running, op string, a object) result
}

// with adds the verbs of code to those of a surface.
func (c codeSurface) with(verbs map[string]verb) map[string]verb {
	verbs["code"] = func(r *running, a object) result { return outcome(c.run(r, a)) }
	for _, op := range []string{"create", "list", "interrupt", "restart", "remove"} {
		verbs[op+"_context"] = func(r *running, a object) result { return c.context(r, op, a) }
	}
	return verbs
}

// outcome parts the events of a run by what they tell: start, stdout, stderr, results,
// error and end.
func outcome(ran result) result {
	if ran.fail != nil {
		return ran
	}
	told := object{"stdout": "", "stderr": "", "results": []any{}}
	for _, v := range toObject(ran.value)["events"].([]any) {
		e := v.(object)
		switch kind := e["type"].(string); kind {
		case "stdout", "stderr":
			told[kind] = told[kind].(string) + e["text"].(string)
		case "result":
			told["results"] = append(told["results"].([]any), e["result"])
		case "error":
			told["error"] = e["error"]
		default:
			told[kind] = e
		}
	}
	return result{value: told}
}

// contexts are those of the core's cases.
var contexts = code.New()

func codeInCore() codeSurface {
	return codeSurface{
		run: func(r *running, a object) result {
			o, err := options.DecodeCode([]byte(word(without(a, "box"))))
			if err != nil {
				return given(nil, err)
			}
			return withBox(r, a, func(b *core.Box) result {
				run, err := contexts.Run(r.ctx, b, o)
				if err != nil {
					return given(nil, err)
				}
				defer run.Close()
				events := []api.CodeEvent{}
				for {
					e, err := run.Next(r.ctx)
					if errors.Is(err, io.EOF) {
						return given(object{"events": events}, nil)
					}
					must(r, err)
					events = append(events, e)
				}
			})
		},
		context: func(r *running, op string, a object) result {
			return withBox(r, a, func(b *core.Box) result { return contextInCore(r, b, op, a) })
		},
	}
}

func contextInCore(r *running, b *core.Box, op string, a object) result {
	id := text(a["context"], "")
	switch op {
	case "create":
		o, err := options.DecodeCodeContext([]byte(word(without(a, "box"))))
		if err != nil {
			return given(nil, err)
		}
		return given(contexts.Create(r.ctx, b, o))
	case "list":
		all, err := contexts.List(r.ctx, b)
		return given(object{"contexts": all}, err)
	case "interrupt":
		return given(contexts.Interrupt(r.ctx, b, id))
	case "restart":
		return given(contexts.Restart(r.ctx, b, id))
	}
	return given(object{}, contexts.Remove(r.ctx, b, id))
}

func codeInC() codeSurface {
	return codeSurface{
		run: func(r *running, a object) result {
			return onBox(r, a, "code", word(without(a, "box"))).renamed("boxes", "events")
		},
		context: func(r *running, op string, a object) result {
			switch op {
			case "create":
				return onBox(r, a, "context_create", word(without(a, "box")))
			case "list":
				return onBox(r, a, "context_list").renamed("boxes", "contexts")
			}
			return onBox(r, a, "context_"+op, word(a["context"]))
		},
	}
}

// renamed gives a member of a result another name.
func (got result) renamed(from, to string) result {
	if got.fail == nil {
		got.value = object{to: got.value[from]}
	}
	return got
}

func codeInBinding() codeSurface {
	return codeSurface{
		run: func(r *running, a object) result { return r.do("code", r.about(a)).called("events") },
		context: func(r *running, op string, a object) result {
			got := r.do("context_"+op, r.about(a))
			if op == "list" {
				return got.called("contexts")
			}
			return got
		},
	}
}

func codeOverREST(tcp bool) codeSurface {
	return codeSurface{
		run: func(r *running, a object) result {
			got := r.client(tcp).send(r, "POST", r.path(a)+"/code", bytes.NewReader([]byte(word(without(a, "box")))), http.Header{"Content-Type": {"application/json"}})
			if got.status != http.StatusOK {
				return got.result(r)
			}
			return eventsIn(r, string(got.body), "data: ")
		},
		context: func(r *running, op string, a object) result {
			c, at := r.client(tcp), r.path(a)+"/contexts"
			switch op {
			case "create":
				return c.ask(r, "POST", at, without(a, "box"))
			case "list":
				return c.ask(r, "GET", at, nil)
			case "remove":
				return c.ask(r, "DELETE", at+"/"+text(a["context"], ""), nil)
			}
			return c.ask(r, "POST", at+"/"+text(a["context"], "")+":"+op, nil)
		},
	}
}

// eventsIn returns the documents of the lines that begin so.
func eventsIn(r *running, lines, begin string) result {
	events := []any{}
	for line := range strings.SplitSeq(lines, "\n") {
		doc, ok := strings.CutPrefix(line, begin)
		if !ok || doc == "" {
			continue
		}
		var e object
		must(r, json.Unmarshal([]byte(doc), &e))
		events = append(events, e)
	}
	return result{value: object{"events": events}}
}

func codeOnCommandLine() codeSurface {
	return codeSurface{
		run: func(r *running, a object) result {
			args := append([]string{"code", "-o", "json"}, flags(a, "language", "-l", "context", "--context")...)
			args = append(append(args, execFlags(a)...), pairs(a, "env", "-e")...)
			l := r.line(text(a["code"], ""), append(args, r.box(a), "-")...)
			if l.stdout == "" {
				return l.result(false)
			}
			return eventsIn(r, l.stdout, "")
		},
		context: func(r *running, op string, a object) result {
			name, args := op, []string{r.box(a)}
			switch op {
			case "create":
				args = append(args, append(flags(a, "language", "-l", "working_dir", "-w", "user", "-u"), pairs(a, "env", "-e")...)...)
			case "list":
				name = "ls"
			case "remove":
				name = "rm"
				fallthrough
			default:
				args = append(args, text(a["context"], ""))
			}
			return r.ask(append([]string{"contexts", name}, args...)...)
		},
	}
}

// withCode adds the verbs of code to those of all surfaces.
func withCode(all map[string]map[string]verb) map[string]map[string]verb {
	ways := map[string]codeSurface{
		"core": codeInCore(), "c": codeInC(), "c-remote": codeInC(),
		"rest": codeOverREST(true), "socket": codeOverREST(false), "cli": codeOnCommandLine(),
	}
	for _, b := range bindings {
		ways[b.name] = codeInBinding()
	}
	for name := range maps.Keys(ways) {
		all[name] = ways[name].with(all[name])
	}
	return all
}
