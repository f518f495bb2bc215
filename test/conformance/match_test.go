package conformance_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// absent is what a path leads to where nothing is.
type absent struct{}

// at returns what a path like state.running or volumes.0.host_path leads to.
func at(v any, path string) any {
	for token := range strings.SplitSeq(path, ".") {
		switch here := v.(type) {
		case object:
			item, ok := here[token]
			if !ok {
				return absent{}
			}
			v = item
		case []any:
			i, err := strconv.Atoi(token)
			if token == "length" {
				v = float64(len(here))
				continue
			}
			if err != nil || i >= len(here) {
				return absent{}
			}
			v = here[i]
		default:
			return absent{}
		}
	}
	return v
}

// matches tells whether got is as want says; see the package's comment.
func matches(want, got any) bool {
	if pattern, ok := want.(string); ok {
		if pattern == "" && got != nil { // of says that was left out
			return got == "" || reflect.TypeOf(got).Kind() == reflect.String
		}
		if pattern == "(absent)" {
			return got == absent{}
		}
		if rest, ok := strings.CutPrefix(pattern, "~"); ok {
			return got != nil && got != absent{} && regexp.MustCompile(rest).MatchString(fmt.Sprint(got))
		}
	}
	return reflect.DeepEqual(plain(want), plain(got))
}

// plain returns v as JSON would.
func plain(v any) any {
	doc, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var p any
	_ = json.Unmarshal(doc, &p)
	return p
}

func toObject(v any) object {
	o, _ := plain(v).(object)
	return o
}

// brief shows v in a message.
func brief(v any) string {
	doc, err := json.Marshal(v)
	if err != nil || len(doc) == 0 {
		return fmt.Sprint(v)
	}
	if len(doc) > 700 {
		return string(doc[:700]) + "..."
	}
	return string(doc)
}
