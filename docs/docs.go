// Package docs holds those documents of this directory that programs serve.
package docs

import _ "embed"

// OpenAPI describes every route of the service, in YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte
