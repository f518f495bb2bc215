package clickhouse_test

import (
	"encoding/json"
	"testing"

	"sandbox/logs/clickhouse"
)

// TestValues pins the JSON of every kind of value, because users' programs
// depend on it.
func TestValues(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"toUInt8(255)":                     `255`,
		"toInt32(-5)":                      `-5`,
		"toUInt32(4294967295)":             `4294967295`,
		"toInt64('-9223372036854775808')":  `"-9223372036854775808"`,
		"toUInt64('18446744073709551615')": `"18446744073709551615"`,
		"toInt128('-170141183460469231731687303715884105728')":                                        `"-170141183460469231731687303715884105728"`,
		"toUInt256('115792089237316195423570985008687907853269984665640564039457584007913129639935')": `"115792089237316195423570985008687907853269984665640564039457584007913129639935"`,
		"1.5":                          `1.5`,
		"toFloat32(0.1)":               `0.1`,
		"nan":                          `"nan"`,
		"-inf":                         `"-inf"`,
		"toDecimal64('12345.6700', 4)": `"12345.67"`,
		"toDecimal256('1.1', 40)":      `"1.1"`,
		"true":                         `true`,
		"toDateTime64('2026-01-02 03:04:05.123456789', 9, 'UTC')": `"2026-01-02 03:04:05.123456789"`,
		"toDateTime64('2026-01-02 03:04:05.1', 9, 'UTC')":         `"2026-01-02 03:04:05.100000000"`,
		"toDateTime('2026-01-02 03:04:05')":                       `"2026-01-02 03:04:05"`,
		"toDateTime('2026-01-02 03:04:05', 'Asia/Tokyo')":         `"2026-01-02 03:04:05"`,
		"toDate('2026-01-02')":                                    `"2026-01-02"`,
		"NULL":                                                    `null`,
		"toNullable(toUInt64(1))":                                 `"1"`,
		"[1, 2]":                                                  `[1,2]`,
		"[toUInt64(1)]":                                           `["1"]`,
		"[NULL, 'a']":                                             `[null,"a"]`,
		"map('a', 1, 'b', 2)":                                     `{"a":1,"b":2}`,
		"map(1, 'x')":                                             `{"1":"x"}`,
		"(1, 'a')":                                                `[1,"a"]`,
		"CAST((1, 'a'), 'Tuple(x UInt64, y String)')":             `{"x":"1","y":"a"}`,
		"toLowCardinality('abc')":                                 `"abc"`,
		"toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')":          `"61f0c404-5cb3-11e7-907b-a6006ad3dba0"`,
		"toIPv4('1.2.3.4')":                                       `"1.2.3.4"`,
		"toIPv6('::1')":                                           `"::1"`,
		"CAST('b', 'Enum8(\\'a\\' = 1, \\'b\\' = 2)')":            `"b"`,
		`'a/b"c\\d\te\nf'`:                                        `"a/b\"c\\d\te\nf"`,
		`'\0\x01'`:                                                `"\u0000\u0001"`,
		`'grüße 漢字 😀'`:                                            `"grüße 漢字 😀"`,
		`unhex('ff41fe')`:                                         `"�A�"`,
		`toFixedString('ab', 4)`:                                  `"ab\u0000\u0000"`,
		"toIntervalHour(3)":                                       `"3"`,
	} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			r, err := engine.Query(t.Context(), clickhouse.Request{SQL: "SELECT " + sql + " AS v"})
			if err != nil {
				t.Fatal(err)
			}
			var rows []struct{ V json.RawMessage }
			if err := json.Unmarshal(r.Rows, &rows); err != nil {
				t.Fatal(err)
			}
			if got := compact(t, rows[0].V); got != want {
				t.Errorf("%s: got %s, want %s (type %s)", sql, got, want, r.Columns[0].Type)
			}
		})
	}
}

func compact(t *testing.T, v json.RawMessage) string {
	t.Helper()
	var x any
	if err := json.Unmarshal(v, &x); err != nil {
		t.Fatal(err)
	}
	if string(v) == "null" {
		return "null"
	}
	b := make([]byte, 0, len(v))
	inString, escapedByte := false, false
	for _, c := range v { // white space outside of strings
		if inString || (c != ' ' && c != '\n' && c != '\t') {
			b = append(b, c)
		}
		switch {
		case escapedByte:
			escapedByte = false
		case inString && c == '\\':
			escapedByte = true
		case c == '"':
			inString = !inString
		}
	}
	return string(b)
}
