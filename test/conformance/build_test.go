package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/build"
	"sandbox/core/build/tree"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// withBuild adds the verb build to those of all surfaces: it builds an image, and gives
// what the commands have printed, the stages of the steps, and the image.
func withBuild(all map[string]map[string]verb) map[string]map[string]verb {
	ways := map[string]verb{
		"core": buildInCore, "c": buildInC, "c-remote": buildInC, "cli": buildOnCommandLine,
		"rest": buildOverREST(true), "socket": buildOverREST(false),
	}
	for _, b := range bindings {
		ways[b.name] = func(r *running, a object) result { return built(r.do("image_build", a).called("events")) }
	}
	for name := range maps.Keys(ways) {
		all[name]["build"] = ways[name]
	}
	return all
}

// built parts the events of a build by what they tell.
func built(ran result) result {
	if ran.fail != nil {
		return ran
	}
	told := object{"stdout": "", "stderr": "", "stages": []any{}}
	for _, v := range toObject(ran.value)["events"].([]any) {
		e := v.(object)
		switch e["type"] {
		case "output":
			o := e["output"].(object)
			stream := o["stream"].(string)
			told[stream] = told[stream].(string) + o["data"].(string)
		case "step":
			told["stages"] = append(told["stages"].([]any), e["step"].(object)["stage"])
		case "end":
			told["image"] = e["image"]
		}
	}
	return result{value: told}
}

func buildInC(r *running, a object) result {
	return built(last(r.library([]string{"build", word(a)}), document).renamed("boxes", "events"))
}

// buildNotes notes the events of a build in the core.
type buildNotes struct{ events []api.BuildEvent }

func (n *buildNotes) Pull(p api.ImageProgress) {
	n.events = append(n.events, api.BuildEvent{Type: api.BuildPulled, Progress: &p})
}

func (n *buildNotes) Step(s api.BuildStep) {
	n.events = append(n.events, api.BuildEvent{Type: api.BuildStepped, Step: &s})
}

func (n *buildNotes) Output(step int, stderr bool, p []byte) error {
	o := api.NewBuildOutput(step, stderr, p)
	n.events = append(n.events, api.BuildEvent{Type: api.BuildPrinted, Output: &o})
	return nil
}

func buildInCore(r *running, a object) result {
	var o build.Options
	asked, err := options.DecodeBuild([]byte(word(a)))
	if err == nil {
		o, err = backend.OpenBuild(r.ctx, asked)
	}
	if err != nil {
		return given(nil, err)
	}
	defer o.Context.Close()
	notes := &buildNotes{}
	o.Report = notes
	img, err := r.core.Builder().Build(r.ctx, o)
	if err != nil {
		return given(nil, err)
	}
	notes.events = append(notes.events, api.BuildEvent{Type: api.BuildEnd, Image: &img})
	return built(given(object{"events": notes.events}, nil))
}

func buildOnCommandLine(r *running, a object) result {
	args := append([]string{"build", "-o", "json", "-f", "-"}, flags(a, "name", "-t", "target", "--target")...)
	args = append(args, pairs(a, "args", "--build-arg")...)
	if ms, ok := a["timeout_ms"]; ok {
		args = append(args, "--timeout", fmt.Sprint(ms, "ms"))
	}
	l := r.line(text(a["recipe"], ""), append(args, text(a["context"], r.share))...)
	if l.exit != 0 {
		l.err = l.err[strings.LastIndex("\n"+l.err, "\n{"):] // behind what the commands have printed
		return l.result(true)
	}
	var img any
	must(r, json.Unmarshal([]byte(l.stdout), &img))
	return result{value: object{"stderr": l.err, "image": img}, only: []string{"image", "stderr"}}
}

func buildOverREST(tcp bool) verb {
	return func(r *running, a object) result {
		files, err := tree.Empty(), error(nil)
		if a["context"] != nil {
			files, err = tree.Open(r.ctx, text(a["context"], ""))
			must(r, err)
		}
		defer files.Close()
		var body bytes.Buffer
		must(r, files.Pack(r.ctx, []byte(text(a["recipe"], "")), &body))
		query := url.Values{}
		for _, name := range []string{"name", "target", "timeout_ms"} {
			if a[name] != nil {
				query.Set(name, fmt.Sprint(a[name]))
			}
		}
		if args, ok := a["args"].(object); ok {
			for name, value := range args {
				query.Add("build_arg", name+"="+text(value, ""))
			}
		}
		got := r.client(tcp).send(r, "POST", "/v1/images:build?"+query.Encode(), &body, http.Header{"Content-Type": {"application/x-tar"}, "Accept": {"text/event-stream"}})
		if got.status != http.StatusOK {
			return got.result(r)
		}
		return streamedBuild(r, string(got.body))
	}
}

// streamedBuild returns what Server-Sent Events tell of a build.
func streamedBuild(r *running, stream string) result {
	events := []any{}
	for message := range strings.SplitSeq(stream, "\n\n") {
		kind, doc, ok := strings.Cut(strings.TrimPrefix(message, "event: "), "\ndata: ")
		if !ok {
			continue
		}
		var v object
		must(r, json.Unmarshal([]byte(doc), &v))
		switch kind {
		case api.PullError:
			code, said := text(at(v, "error.code"), ""), text(at(v, "error.message"), "")
			return result{fail: &failure{is: func(row fault.Row) bool { return row.Code == code }, text: said}}
		case api.PullImage:
			events = append(events, object{"type": "end", "image": v})
		default:
			events = append(events, object{"type": kind, kind: v})
		}
	}
	return built(result{value: object{"events": events}})
}
