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

// content returns the words of curl for the body: the first kind of body that the
// operation takes.
func (o operation) content() []string {
	kinds := slices.Sorted(maps.Keys(o.Body.Content))
	switch {
	case kinds == nil:
		return nil
	case kinds[0] == "application/json":
		return []string{"-H 'Content-Type: application/json'", "-d '" + o.Body.Content[kinds[0]].sample() + "'"}
	case strings.HasPrefix(kinds[0], "multipart/"):
		return []string{"-F dest=/root/", "-F file=@FILE"}
	}
	return []string{"-H 'Content-Type: " + kinds[0] + "'", "--data-binary @FILE"}
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
