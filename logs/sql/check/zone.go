package check

import (
	"slices"
	"strings"

	"sandbox/logs/sql/ast"
)

// zoneArguments are the arguments that may be time zones, by functions in lower
// case. They were found by handing a zone that does not exist to every function.
var zoneArguments = zonesAt(map[int]string{
	0: `current_timestamp localtimestamp now nowInBlock`,
	1: `DATE DAY DAYOFMONTH DAYOFYEAR HOUR LAST_DAY MICROSECOND MILLISECOND MINUTE MONTH NANOSECOND QUARTER SECOND TO_DAYS
		UUIDv7ToDateTime YEAR YYYYMMDDhhmmssToDateTime fromUTCTimestamp fromUnixTimestamp64Micro fromUnixTimestamp64Milli
		fromUnixTimestamp64Nano fromUnixTimestamp64Second from_utc_timestamp now64 nowInBlock64 parseDateTime32BestEffort
		parseDateTime32BestEffortOrNull parseDateTime32BestEffortOrZero parseDateTimeBestEffort parseDateTimeBestEffortOrNull
		parseDateTimeBestEffortOrZero parseDateTimeBestEffortUS parseDateTimeBestEffortUSOrNull parseDateTimeBestEffortUSOrZero timeSlot
		timeZoneOffset toDate toDate32 toDateTime toDateTime32 toDateTimeOrDefault toDateTimeOrNull toDateTimeOrZero toDayOfMonth
		toDayOfYear toDaysInMonth toDaysSinceYearZero toHour toISOWeek toISOYear toLastDayOfMonth toMicrosecond toMillisecond toMinute
		toMonday toMonth toMonthNumSinceEpoch toNanosecond toQuarter toRelativeDayNum toRelativeHourNum toRelativeMinuteNum
		toRelativeMonthNum toRelativeQuarterNum toRelativeSecondNum toRelativeWeekNum toRelativeYearNum toSecond toStartOfDay
		toStartOfFifteenMinutes toStartOfFiveMinute toStartOfFiveMinutes toStartOfHour toStartOfISOYear toStartOfMicrosecond
		toStartOfMillisecond toStartOfMinute toStartOfMonth toStartOfNanosecond toStartOfQuarter toStartOfSecond toStartOfTenMinutes
		toStartOfYear toString toTimeWithFixedDate toTimeZone toUTCTimestamp toUnixTimestamp toYYYYMM toYYYYMMDD toYYYYMMDDhhmmss toYear
		toYearNumSinceEpoch to_utc_timestamp`,
	2: `DATE_FORMAT DATE_TRUNC DAYOFWEEK FROM_UNIXTIME TO_UNIXTIME YYYYMMDDhhmmssToDateTime64 addDays addHours addMicroseconds
		addMilliseconds addMinutes addMonths addNanoseconds addQuarters addSeconds addWeeks addYears dateName dateTrunc date_bin
		formatDateTime formatDateTimeInJodaSyntax fromUnixTimestamp fromUnixTimestampInJodaSyntax parseDateTime parseDateTime64
		parseDateTime64BestEffort parseDateTime64BestEffortOrNull parseDateTime64BestEffortOrZero parseDateTime64BestEffortUS
		parseDateTime64BestEffortUSOrNull parseDateTime64BestEffortUSOrZero parseDateTime64OrNull parseDateTime64OrZero
		parseDateTimeBestEffort parseDateTimeBestEffortOrNull parseDateTimeBestEffortOrZero parseDateTimeOrNull parseDateTimeOrZero
		snowflakeIDToDateTime snowflakeIDToDateTime64 str_to_date subtractDays subtractHours subtractMicroseconds subtractMilliseconds
		subtractMinutes subtractMonths subtractNanoseconds subtractQuarters subtractSeconds subtractWeeks subtractYears time_bucket
		toDateTime toDateTime64 toDateTime64OrDefault toDateTime64OrNull toDateTime64OrZero toDayOfWeek toLastDayOfWeek toStartOfInterval
		toStartOfWeek toWeek toYearWeek week yearweek`,
	3: `DATE_DIFF age dateDiff date_bin time_bucket toStartOfInterval`,
	6: `makeDateTime`,
	8: `makeDateTime64`,
})

func zonesAt(lists map[int]string) map[string][]int {
	all := map[string][]int{}
	for at, names := range lists {
		for _, name := range strings.Fields(names) {
			all[strings.ToLower(name)] = append(all[strings.ToLower(name)], at)
		}
	}
	return all
}

// zones refuses every argument that may be a time zone, unless it is the name of
// one in a plain string: the engine takes file:/any/path for a zone, and opens it.
func (c *checker) zones(f *ast.Call) {
	for _, at := range zoneArguments[strings.ToLower(f.Name)] {
		if at >= len(f.Args) || mayStandForZone(f, at) {
			continue
		}
		if name, ok := textArgument(f, at); !ok || !isZone(name) {
			c.refuse(f.Pos, "%s takes the name of a time zone as a plain string", f.Name)
		}
	}
}

// takesZone reports whether one of the first n arguments of a function may be a
// time zone.
func takesZone(function string, n int) bool {
	return slices.ContainsFunc(zoneArguments[strings.ToLower(function)], func(at int) bool { return at < n })
}

// isZone reports a name such as Europe/Berlin, UTC or Etc/GMT+5. One that
// begins with a slash would be a path.
func isZone(name string) bool {
	plain := strings.NewReplacer("/", "_", "+", "_", "-", "_").Replace(name)
	return ast.IsPlain(plain) && plain[0] == name[0]
}

// mayStandForZone reports whether an argument is a number, an interval or a time by
// its form alone. A function takes such a one in the place of a zone.
func mayStandForZone(f *ast.Call, at int) bool {
	switch x := bare(f.Args[at]).(type) {
	case *ast.Literal:
		return x.Form != ast.Text
	case *ast.Cast:
		return hasPrefix(x.Type.Name, "date", "uint", "int")
	case *ast.Call:
		return hasPrefix(x.Name, "todate", "tostartof", "tointerval", "tomonday", "makedate", "parsedatetime", "touint", "toint", "now", "today")
	default:
		return false
	}
}

func hasPrefix(name string, prefixes ...string) bool {
	name = strings.ToLower(name)
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
