package logs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
)

// printRows prints the rows of a result's document.
func printRows(pieces [][]byte) {
	var doc struct {
		Rows []map[string]any `json:"rows"`
	}
	if err := json.Unmarshal(bytes.Join(pieces, nil), &doc); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(doc.Rows), "rows:", doc.Rows)
}

// Query runs one SELECT over the log table. Values are passed as parameters.
// The examples share the embedded engine of the tests; a program passes its own
// to logs.New.
func ExampleService_Query() {
	service, err := engines["now"]()
	if err != nil {
		log.Fatal(err)
	}
	result, err := service.Query(context.Background(), []byte(`{
		"sql": "SELECT count() AS n FROM otel.otel_logs WHERE ServiceName = {service:String}",
		"parameters": {"service": "no such service"}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	defer result.Free()
	document, err := result.Document()
	if err != nil {
		log.Fatal(err)
	}
	printRows(document)
	// Output: 1 rows: [map[n:0]]
}

// Search returns the newest rows that match a filter.
func ExampleService_Search() {
	service, err := engines["now"]()
	if err != nil {
		log.Fatal(err)
	}
	result, err := service.Search(context.Background(), []byte(`{
		"from": "2026-01-31T10:00:00Z", "to": "2026-01-31T11:00:00Z",
		"service": "no such service", "severity": "ERROR"
	}`))
	if err != nil {
		log.Fatal(err)
	}
	defer result.Free()
	document, err := result.Document()
	if err != nil {
		log.Fatal(err)
	}
	printRows(document)
	// Output: 0 rows: []
}
