package clickhouse

import (
	"strings"
	"testing"
)

// BenchmarkDecode decodes an answer of 10,000 rows.
func BenchmarkDecode(b *testing.B) {
	row := "\t\t{\n\t\t\t\"Timestamp\": \"2026-01-02 03:04:05.123456789\",\n\t\t\t\"Body\": \"" + strings.Repeat("hello world ", 25) + "\",\n\t\t\t\"n\": \"1\"\n\t\t}"
	text := []byte("{\n\t\"meta\":\n\t[\n\t\t{\n\t\t\t\"name\": \"v\",\n\t\t\t\"type\": \"UInt8\"\n\t\t}\n\t],\n\n\t\"data\":\n\t[\n" +
		strings.Repeat(row+",\n", 9999) + row + "\n\t],\n\n\t\"rows\": 10000,\n\n\t\"statistics\":\n\t{\n\t\t\"elapsed\": 0.1,\n\t\t\"rows_read\": 1,\n\t\t\"bytes_read\": 1\n\t}\n}\n")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := new(Result).decode(text); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzDecode decodes answers. None may crash the decoder, and what it accepts
// must be an array of rows.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"meta":[{"name":"v","type":"UInt8"}],"data":[{"v":1}],"rows":1,"statistics":{"elapsed":0.1,"rows_read":1,"bytes_read":1}}`))
	f.Add([]byte(`{"meta":[],"data":[],"rows":0}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r Result
		err := r.decode(text)
		if err == nil && (len(r.Rows) < 2 || r.Rows[0] != '[' || r.Rows[len(r.Rows)-1] != ']') {
			t.Errorf("rows are %s", r.Rows)
		}
	})
}
