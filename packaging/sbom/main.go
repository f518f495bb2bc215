// Sbom prints what the project ships of others as a bill of materials, CycloneDX 1.6 in
// JSON:
//
//	sbom -top DIR -version VERSION -chdb VERSION -chdb-sha512 HEX -chdb-package NAME
//
// SOURCE_DATE_EPOCH is its time. The same sources give the same bytes.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"sandbox/packaging/parts"
)

type bill struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber,omitempty"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type        string    `json:"type"`
	Ref         string    `json:"bom-ref"`
	Name        string    `json:"name"`
	Version     string    `json:"version"`
	Description string    `json:"description,omitempty"`
	Scope       string    `json:"scope,omitempty"`
	Hashes      []hash    `json:"hashes,omitempty"`
	Licences    []licence `json:"licenses,omitempty"`
	PURL        string    `json:"purl,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type licence struct {
	Licence struct {
		ID string `json:"id"`
	} `json:"license"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

func main() {
	top := flag.String("top", ".", "the directory of the project")
	version := flag.String("version", "", "its version")
	engine := parts.Part{Licences: []string{"Apache-2.0"}}
	flag.StringVar(&engine.Name, "chdb-package", "", "the package of libchdb")
	flag.StringVar(&engine.Version, "chdb", "", "its version")
	flag.StringVar(&engine.SHA512, "chdb-sha512", "", "its SHA-512, in hex")
	flag.Parse()
	if err := write(*top, *version, engine); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(top, version string, engine parts.Part) error {
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	components, err := list(top, engine)
	if err != nil {
		return err
	}
	b := bill{Format: "CycloneDX", Spec: "1.6", Version: 1, Components: components, Metadata: metadata{
		Timestamp: time.Unix(epoch, 0).UTC().Format(time.RFC3339),
		Component: component{Type: "application", Ref: "sandbox", Name: "sandbox", Version: version, Licences: licences([]string{"Apache-2.0"})},
	}}
	on := dependency{Ref: "sandbox"}
	for _, c := range components {
		on.On = append(on.On, c.Ref)
	}
	b.Dependencies = []dependency{on}
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	b.Serial = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceOID, text).String() // of another content it is another
	if text, err = json.MarshalIndent(b, "", "  "); err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(text, '\n'))
	return err
}

// list returns what is shipped: what is linked, what the page is made of, and the log
// engine, which is fetched by itself.
func list(top string, engine parts.Part) ([]component, error) {
	notice, err := os.ReadFile(filepath.Join(top, "NOTICE"))
	if err != nil {
		return nil, err
	}
	modules, err := parts.Modules(top, string(notice))
	if err != nil {
		return nil, err
	}
	std := parts.Part{Name: "std", Version: strings.TrimPrefix(runtime.Version(), "go"), Licences: []string{"BSD-3-Clause"}}
	var all []component
	for _, m := range append([]parts.Part{std}, modules...) {
		all = append(all, of(m, "pkg:golang/"+m.Name))
	}
	lock, err := os.ReadFile(filepath.Join(top, "console/web/package-lock.json"))
	if err != nil {
		return nil, err
	}
	packages, err := parts.Packages(lock)
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		all = append(all, of(p, npm(p.Name)))
	}
	chdb := of(engine, npm(engine.Name))
	chdb.Scope, chdb.Description = "optional", "libchdb, the embedded log engine: make deps-logs fetches it"
	return append(all, chdb), nil
}

func npm(name string) string { return "pkg:npm/" + strings.Replace(name, "@", url.QueryEscape("@"), 1) }

func of(p parts.Part, purl string) component {
	purl += "@" + url.PathEscape(p.Version)
	c := component{Type: "library", Ref: purl, Name: p.Name, Version: p.Version, PURL: purl, Licences: licences(p.Licences)}
	if p.SHA512 != "" {
		c.Hashes = []hash{{"SHA-512", p.SHA512}}
	}
	return c
}

func licences(ids []string) (all []licence) {
	for _, id := range ids {
		var l licence
		l.Licence.ID = id
		all = append(all, l)
	}
	return all
}
