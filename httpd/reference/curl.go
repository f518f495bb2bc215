package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Curl returns a command line that does the operation. $URL is the server's
// address and $KEY the key.
func (o operation) Curl() string {
	words := []string{"curl"}
	if o.Method != "GET" {
		words = append(words, "-X", o.Method)
	}
	words = append(words, `"$URL`+o.place()+`"`)
	if len(*o.Security) > 0 {
		words = append(words, `-H "Authorization: Bearer $KEY"`)
	}
	return strings.Join(append(words, o.content()...), " ")
}

// place returns the path with the examples of its parameters, and the parameters
// of the query that are required.
func (o operation) place() string {
	path, query := o.Path, ""
	for _, p := range o.Parameters {
		switch value := p.value(); {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", value)
		case p.In == "query" && p.Required:
			query += "&" + p.Name + "=" + value
		}
	}
	if query != "" {
		query = "?" + query[1:]
	}
	return path + query
}

func (p parameter) value() string {
	if p.Example != nil {
		return fmt.Sprint(p.Example)
	}
	return strings.ToUpper(p.Name)
}

// content returns the words of curl for the body.
func (o operation) content() []string {
	for _, kind := range slices.Sorted(maps.Keys(o.Body.Content)) {
		switch {
		case kind == "application/json":
			return []string{"-H 'Content-Type: application/json'", "-d '" + o.Body.Content[kind].sample() + "'"}
		case strings.HasPrefix(kind, "multipart/"):
			return []string{"-F dest=/root/", "-F file=@FILE"}
		}
		return []string{"-H 'Content-Type: " + kind + "'", "--data-binary @FILE"}
	}
	return nil
}

// sample returns the first example as JSON, quoted for a shell's single quotes.
func (m media) sample() string {
	value := m.Example
	for _, name := range slices.Sorted(maps.Keys(m.Examples)) {
		if value == nil {
			value = m.Examples[name].Value
		}
	}
	doc, err := json.Marshal(value)
	if err != nil || value == nil {
		return "{}"
	}
	return strings.ReplaceAll(string(doc), "'", `'\''`)
}
