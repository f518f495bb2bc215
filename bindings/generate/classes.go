package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// Class is a code of the C header: what callers can tell failures apart by.
type Class struct {
	Name string // of the enumerator without SANDBOX_, such as NOT_FOUND
	C    int
	Doc  string
}

var enumerator = regexp.MustCompile(`(?m)^  SANDBOX_([A-Z_]+) = (\d+),? +/\* (.*) \*/$`)

// classes reads the codes of failures from the C header. SANDBOX_OK, which has
// no comment, is none.
func classes(header string) ([]Class, error) {
	text, err := os.ReadFile(header)
	if err != nil {
		return nil, err
	}
	var all []Class
	for _, m := range enumerator.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "EXIT" { // the header's other enumeration
			continue
		}
		number, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, err
		}
		all = append(all, Class{Name: m[1], C: number, Doc: m[3]})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no codes", header)
	}
	return all, nil
}
