package check

import (
	"strings"

	"sandbox/logs/sql/ast"
)

// types are the data types that a statement may name, in any case. States of
// aggregates are left out: reading one from bytes trusts the bytes.
var types = []group{
	{"Numbers", `Int8* Int16* Int32* Int64* Int128* Int256* UInt8* UInt16* UInt32* UInt64* UInt128* UInt256* Float32* Float64* BFloat16* Decimal*
		Decimal32* Decimal64* Decimal128* Decimal256* Bool* Boolean* Tinyint* Smallint* Mediumint* Int* Integer* Bigint* Int1* Signed* Unsigned*
		Float* Single* Double* Real* Numeric* Dec* Fixed* Byte* Bit*`},
	{"Text", `String* FixedString* UUID* IPv4* IPv6* Inet4* Inet6* Enum* Enum8* Enum16* Char* Character* Varchar* Varchar2* Nchar* Nvarchar* Text*
		Tinytext* Mediumtext* Longtext* Blob* Tinyblob* Mediumblob* Longblob* Clob* Bytea* Binary* Varbinary*`},
	{"Times", `Date* Date32* DateTime* DateTime32* DateTime64* Time* Time64* Timestamp* Year* IntervalYear* IntervalQuarter* IntervalMonth*
		IntervalWeek* IntervalDay* IntervalHour* IntervalMinute* IntervalSecond* IntervalMillisecond* IntervalMicrosecond*
		IntervalNanosecond*`},
	{"Compound", `Array* Tuple* Map* Nested* Nullable* LowCardinality* Variant* Dynamic* JSON* Nothing* Point* Ring* LineString* Polygon*
		MultiLineString* MultiPolygon*`},
}

var allowedTypes = gather(append(types, group{names: foldedNames(ast.WordyTypes)}))

// foldedNames lists names of several words as one field each.
func foldedNames(all []string) string {
	var b strings.Builder
	for _, name := range all {
		b.WriteString(strings.ReplaceAll(name, " ", "_") + "* ")
	}
	return b.String()
}

// isAllowedType reports whether a statement may name a type, in any case.
func isAllowedType(name string) bool { return allowedTypes.has(strings.ReplaceAll(name, " ", "_")) }
