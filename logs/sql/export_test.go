package sql

import "strings"

// Functions lists the allow-list, aggregates included. A star after a name
// means that it is taken in any case.
func Functions() []string {
	var all []string
	for _, g := range append(functions[:len(functions):len(functions)], aggregates...) {
		all = append(all, strings.Fields(g.names)...)
	}
	return all
}
