package check

import (
	"slices"
	"strings"
)

// A group is a paragraph of the allow-list. A star after a name means that the
// engine takes it in any case.
type group struct {
	title string
	names string
}

// functions are all that may be called. They compute from their arguments
// alone: none reads a file, a table, a dictionary, a setting or a fact of the
// host, connects anywhere, waits, or runs text as a query. Functions that look
// up a character set, or a time zone which stands in a text, are left out,
// because the engine opens a file of that name. So are those that only an old
// or experimental setting enables.
var functions = []group{
	{"Arithmetic", `plus minus multiply divide intDiv intDivOrZero intDivOrNull modulo moduloOrZero moduloOrNull mod* positiveModulo*
		positive_modulo* pmod* negate abs* gcd lcm divideOrNull divideDecimal multiplyDecimal max2* min2* avg2* midpoint* isFinite isInfinite
		isNaN ifNotFinite byteSwap*`},
	{"Mathematics", `e pi* exp* exp2 exp10 intExp2 intExp10 log* ln* log2* log10* log1p sqrt* cbrt pow* power* erf erfc lgamma tgamma sin* cos* tan* tanh*
		asin* acos* atan* atan2* sinh cosh asinh acosh atanh hypot* sign* sigmoid degrees* radians* factorial* widthBucket width_bucket*
		proportionsZTest minSampleSizeConversion minSampleSizeContinuous`},
	{"Rounding", `round* roundBankers roundToExp2 roundDuration roundAge roundDown floor* ceil* ceiling* trunc* truncate*`},
	{"Comparison and logic", `equals notEquals less greater lessOrEquals greaterOrEquals isDistinctFrom isNotDistinctFrom and or xor not*
		in notIn globalIn globalNotIn nullIn notNullIn globalNullIn globalNotNullIn`},
	{"Conditions and NULL", `if* multiIf caseWithExpression caseWithExpr caseWithoutExpr caseWithoutExpression greatest* least* clamp transform
		isNull* isNotNull isNullable isZeroOrNull coalesce* ifNull* nullIf* assumeNotNull toNullable firstNonDefault*`},
	{"Bits", `bitAnd bitOr bitXor bitNot bitShiftLeft bitShiftRight bitRotateLeft bitRotateRight bitSlice bitTest bitTestAll bitTestAny bitCount
		bitHammingDistance bitmaskToArray bitmaskToList bitPositionsToArray`},
	{"Bitmaps", `bitmapBuild bitmapToArray bitmapCardinality bitmapContains bitmapHasAny bitmapHasAll bitmapMin bitmapMax bitmapAnd bitmapOr bitmapXor
		bitmapAndnot bitmapAndCardinality bitmapOrCardinality bitmapXorCardinality bitmapAndnotCardinality bitmapSubsetInRange
		bitmapSubsetLimit subBitmap bitmapTransform`},
	{"Conversion", `CAST* accurateCast accurateCastOrNull accurateCastOrDefault reinterpret
		toInt8 toInt16 toInt32 toInt64 toInt128 toInt256 toUInt8 toUInt16 toUInt32 toUInt64 toUInt128 toUInt256 toFloat32 toFloat64 toBFloat16
		toInt8OrZero toInt16OrZero toInt32OrZero toInt64OrZero toInt128OrZero toInt256OrZero
		toInt8OrNull toInt16OrNull toInt32OrNull toInt64OrNull toInt128OrNull toInt256OrNull
		toInt8OrDefault toInt16OrDefault toInt32OrDefault toInt64OrDefault toInt128OrDefault toInt256OrDefault
		toUInt8OrZero toUInt16OrZero toUInt32OrZero toUInt64OrZero toUInt128OrZero toUInt256OrZero
		toUInt8OrNull toUInt16OrNull toUInt32OrNull toUInt64OrNull toUInt128OrNull toUInt256OrNull
		toUInt8OrDefault toUInt16OrDefault toUInt32OrDefault toUInt64OrDefault toUInt128OrDefault toUInt256OrDefault
		toFloat32OrZero toFloat64OrZero toBFloat16OrZero toFloat32OrNull toFloat64OrNull toBFloat16OrNull toFloat32OrDefault toFloat64OrDefault
		toDecimal32 toDecimal64 toDecimal128 toDecimal256 toDecimal32OrZero toDecimal64OrZero toDecimal128OrZero toDecimal256OrZero
		toDecimal32OrNull toDecimal64OrNull toDecimal128OrNull toDecimal256OrNull
		toDecimal32OrDefault toDecimal64OrDefault toDecimal128OrDefault toDecimal256OrDefault toDecimalString* isDecimalOverflow countDigits
		toBool toString toStringCutToZero toFixedString toLowCardinality toUUID toUUIDOrZero toUUIDOrNull toUUIDOrDefault
		reinterpretAsInt8 reinterpretAsInt16 reinterpretAsInt32 reinterpretAsInt64 reinterpretAsInt128 reinterpretAsInt256
		reinterpretAsUInt8 reinterpretAsUInt16 reinterpretAsUInt32 reinterpretAsUInt64 reinterpretAsUInt128 reinterpretAsUInt256
		reinterpretAsFloat32 reinterpretAsFloat64 reinterpretAsDate reinterpretAsDateTime reinterpretAsString reinterpretAsFixedString
		reinterpretAsUUID`},
	{"Dates and times", `now* now64* nowInBlock nowInBlock64 today* curdate* current_date* current_timestamp* localtime* localtimestamp* yesterday UTCTimestamp* UTC_timestamp*
		DATE* timestamp* toDate toDate32 toDateTime toDateTime32 toDateTime64 toTime toTime64 toDateOrZero toDateOrNull toDateOrDefault
		toDate32OrZero toDate32OrNull toDate32OrDefault toDateTimeOrZero toDateTimeOrNull toDateTimeOrDefault
		toDateTime64OrZero toDateTime64OrNull toDateTime64OrDefault toTimeWithFixedDate
		makeDate* makeDate32* makeDateTime* makeDateTime64* toTimezone toTimeZone timezoneOf timeZoneOf timezoneOffset timeZoneOffset
		toUTCTimestamp to_utc_timestamp* fromUTCTimestamp from_utc_timestamp*
		toYear YEAR* toQuarter QUARTER* toMonth MONTH* toDayOfYear DAYOFYEAR* toDayOfMonth DAYOFMONTH* DAY* toDayOfWeek DAYOFWEEK* toHour HOUR*
		toMinute MINUTE* toSecond SECOND* toMillisecond MILLISECOND* toMicrosecond MICROSECOND* toNanosecond NANOSECOND* toISOYear toISOWeek toWeek week* toYearWeek yearweek* toDaysInMonth
		toUnixTimestamp toUnixTimestamp64Second toUnixTimestamp64Milli toUnixTimestamp64Micro toUnixTimestamp64Nano
		fromUnixTimestamp FROM_UNIXTIME* fromUnixTimestamp64Second fromUnixTimestamp64Milli fromUnixTimestamp64Micro fromUnixTimestamp64Nano
		fromUnixTimestampInJodaSyntax toStartOfYear toStartOfISOYear toStartOfQuarter toStartOfMonth toStartOfWeek toMonday toStartOfDay
		toStartOfHour toStartOfFifteenMinutes toStartOfTenMinutes toStartOfFiveMinutes toStartOfFiveMinute toStartOfMinute toStartOfSecond
		toStartOfMillisecond toStartOfMicrosecond toStartOfNanosecond toStartOfInterval date_bin* time_bucket* toLastDayOfMonth LAST_DAY*
		toLastDayOfWeek dateTrunc DATE_TRUNC* timeSlot timeSlots toYYYYMM toYYYYMMDD toYYYYMMDDhhmmss YYYYMMDDToDate* YYYYMMDDToDate32*
		YYYYMMDDhhmmssToDateTime* YYYYMMDDhhmmssToDateTime64 toRelativeYearNum toRelativeQuarterNum toRelativeMonthNum toRelativeWeekNum
		toRelativeDayNum toRelativeHourNum toRelativeMinuteNum toRelativeSecondNum toYearNumSinceEpoch toMonthNumSinceEpoch
		toDaysSinceYearZero TO_DAYS* fromDaysSinceYearZero FROM_DAYS* fromDaysSinceYearZero32 toModifiedJulianDay toModifiedJulianDayOrNull
		fromModifiedJulianDay fromModifiedJulianDayOrNull dateDiff* age* timeDiff* dateName* monthName* changeYear changeMonth changeDay
		changeHour changeMinute changeSecond formatDateTime DATE_FORMAT* formatDateTimeInJodaSyntax
		addYears addQuarters addMonths addWeeks addDays addHours addMinutes addSeconds addMilliseconds addMicroseconds addNanoseconds addDate*
		addInterval addTupleOfIntervals subtractYears subtractQuarters subtractMonths subtractWeeks subtractDays subtractHours
		subtractMinutes subtractSeconds subtractMilliseconds subtractMicroseconds subtractNanoseconds subDate* subtractInterval
		subtractTupleOfIntervals toInterval toIntervalYear toIntervalQuarter toIntervalMonth toIntervalWeek toIntervalDay toIntervalHour
		toIntervalMinute toIntervalSecond toIntervalMillisecond toIntervalMicrosecond toIntervalNanosecond
		parseDateTime TO_UNIXTIME* parseDateTimeOrZero parseDateTimeOrNull str_to_date* parseDateTime64 parseDateTime64OrZero parseDateTime64OrNull
		parseDateTimeBestEffort parseDateTimeBestEffortOrZero parseDateTimeBestEffortOrNull
		parseDateTimeBestEffortUS parseDateTimeBestEffortUSOrZero parseDateTimeBestEffortUSOrNull
		parseDateTime32BestEffort parseDateTime32BestEffortOrZero parseDateTime32BestEffortOrNull
		parseDateTime64BestEffort parseDateTime64BestEffortOrZero parseDateTime64BestEffortOrNull
		parseDateTime64BestEffortUS parseDateTime64BestEffortUSOrZero parseDateTime64BestEffortUSOrNull parseTimeDelta`},
	{"Strings", `empty notEmpty length* OCTET_LENGTH* CARDINALITY* lengthUTF8 CHAR_LENGTH* CHARACTER_LENGTH* lower* lcase* upper* ucase* lowerUTF8
		upperUTF8 caseFoldUTF8 initcap* initcapUTF8 reverse* reverseUTF8 concat* concatAssumeInjective concatWithSeparator concat_ws*
		concatWithSeparatorAssumeInjective substring* substr* mid* byteSlice* substringUTF8 substringIndex SUBSTRING_INDEX* substringIndexUTF8
		left* leftUTF8 right* rightUTF8 leftPad lpad* leftPadUTF8 rightPad rpad* rightPadUTF8 trimLeft trimRight trimBoth
		repeat* space* ascii* char* format printf startsWith startsWithUTF8 startsWithCaseInsensitive startsWithCaseInsensitiveUTF8
		endsWith endsWithUTF8 endsWithCaseInsensitive endsWithCaseInsensitiveUTF8 appendTrailingCharIfAbsent firstLine
		isValidUTF8 isValidASCII isASCII toValidUTF8 normalizeUTF8NFC normalizeUTF8NFD normalizeUTF8NFKC normalizeUTF8NFKD
		removeDiacriticsUTF8 compareSubstrings stringBytesUniq stringBytesEntropy soundex* naturalSortKey
		editDistance editDistanceUTF8 levenshteinDistance damerauLevenshteinDistance jaroSimilarity jaroWinklerSimilarity stringJaccardIndex
		stringJaccardIndexUTF8 byteHammingDistance mismatches encodeXMLComponent decodeXMLComponent decodeHTMLComponent extractTextFromHTML
		overlay* overlayUTF8 replace* replaceAll replaceOne replaceRegexpOne replaceRegexpAll REGEXP_REPLACE* regexpQuoteMeta translate
		translateUTF8 bar formatReadableSize FORMAT_BYTES* formatReadableDecimalSize formatReadableQuantity formatReadableTimeDelta
		parseReadableSize parseReadableSizeOrNull parseReadableSizeOrZero normalizeQuery normalizeQueryKeepNames normalizedQueryHash`},
	{"Searching in strings", `position* positionCaseInsensitive positionUTF8 positionCaseInsensitiveUTF8 locate* instr*
		multiSearchAllPositions multiSearchAllPositionsUTF8 multiSearchAllPositionsCaseInsensitive multiSearchAllPositionsCaseInsensitiveUTF8
		multiSearchFirstPosition multiSearchFirstPositionUTF8 multiSearchFirstPositionCaseInsensitive
		multiSearchFirstPositionCaseInsensitiveUTF8 multiSearchFirstIndex multiSearchFirstIndexUTF8 multiSearchFirstIndexCaseInsensitive
		multiSearchFirstIndexCaseInsensitiveUTF8 multiSearchAny multiSearchAnyUTF8 multiSearchAnyCaseInsensitive
		multiSearchAnyCaseInsensitiveUTF8 match REGEXP_MATCHES* multiMatchAny multiMatchAnyIndex multiMatchAllIndices extract extractAll extractGroups extractAllGroups extractAllGroupsHorizontal
		extractAllGroupsVertical regexpExtract REGEXP_EXTRACT* REGEXP_SUBSTR* regexpPosition regexp_instr* regexpInstr* like notLike ilike notILike
		ngramDistance ngramDistanceUTF8 ngramDistanceCaseInsensitive ngramDistanceCaseInsensitiveUTF8
		ngramSearch ngramSearchUTF8 ngramSearchCaseInsensitive ngramSearchCaseInsensitiveUTF8
		countSubstrings* countSubstringsCaseInsensitive countSubstringsCaseInsensitiveUTF8 countMatches countMatchesCaseInsensitive
		hasSubsequence* hasSubsequenceUTF8* hasSubsequenceCaseInsensitive* hasSubsequenceCaseInsensitiveUTF8* hasToken hasTokenOrNull
		hasTokenCaseInsensitive* hasTokenCaseInsensitiveOrNull* hasAnyTokens hasAllTokens`},
	{"Splitting strings", `splitByChar splitByString splitByRegexp splitByWhitespace splitByNonAlpha alphaTokens splitByAlpha tokens ngrams sparseGrams
		sparseGramsUTF8 arrayStringConcat array_to_string* extractKeyValuePairs str_to_map* mapFromString extractKeyValuePairsWithEscaping`},
	{"Arrays", `array range arrayElement arrayElementOrNull has hasAll hasAny hasSubstr indexOf indexOfAssumeSorted countEqual arrayConcat
		arrayCount arrayExists arrayAll arrayFilter arrayMap arrayFirst arrayFirstOrNull arrayFirstIndex arrayLast arrayLastOrNull
		arrayLastIndex arrayMin arrayMax arraySum arrayAvg arrayProduct arrayCumSum arrayCumSumNonNegative arrayDifference arrayDistinct
		arrayUniq arrayCompact arrayEnumerate arrayEnumerateDense arrayEnumerateUniq arrayEnumerateDenseRanked arrayEnumerateUniqRanked
		arrayFill arrayReverseFill arraySplit arrayReverseSplit arrayFold arrayReduce arrayReduceInRanges arrayReverse arrayFlatten flatten*
		arraySlice arraySort arrayReverseSort arrayPartialSort arrayPartialReverseSort arrayShuffle* arrayPartialShuffle* arrayRandomSample
		arrayResize arrayPopBack arrayPopFront arrayPushBack arrayPushFront arrayRemove array_remove* arrayRotateLeft arrayRotateRight
		arrayShiftLeft arrayShiftRight arrayShingles arrayExcept arrayIntersect arrayUnion arraySymmetricDifference arrayJaccardIndex
		arrayLevenshteinDistance arraySimilarity arrayWithConstant arrayZip arrayZipUnaligned arrayTranspose arrayDotProduct
		arrayAutocorrelation arrayAUC arrayROCAUC arrayAUCPR arrayNormalizedGini arrayJoin unnest* replicate emptyArrayToSingle emptyArrayString
		emptyArrayInt8 emptyArrayInt16 emptyArrayInt32 emptyArrayInt64 emptyArrayUInt8 emptyArrayUInt16 emptyArrayUInt32 emptyArrayUInt64
		emptyArrayFloat32 emptyArrayFloat64 emptyArrayDate emptyArrayDateTime`},
	{"Maps", `map mapFromArrays MAP_FROM_ARRAYS mapKeys mapValues mapContains mapContainsKey mapContainsKeyLike mapContainsValue mapContainsValueLike
		mapExtractKeyLike mapExtractValueLike mapFilter mapApply mapExists mapAll mapConcat mapAdd mapSubtract mapPopulateSeries mapUpdate
		mapSort mapReverseSort mapPartialSort mapPartialReverseSort`},
	{"Tuples", `tuple tupleElement flattenTuple tupleConcat tupleNames tupleToNameValuePairs tuplePlus tupleMinus tupleMultiply tupleDivide tupleNegate
		tupleMultiplyByNumber tupleDivideByNumber tupleModulo tupleModuloByNumber tupleIntDiv tupleIntDivOrZero tupleIntDivByNumber
		tupleIntDivOrZeroByNumber tupleHammingDistance dotProduct scalarProduct* vectorSum* vectorDifference*`},
	{"Distances", `L1Norm normL1* L2Norm normL2* L2SquaredNorm normL2Squared* LinfNorm normLinf* LpNorm normLp* L1Distance distanceL1* L2Distance
		distanceL2* L2SquaredDistance distanceL2Squared* LinfDistance distanceLinf* LpDistance distanceLp* cosineDistance distanceCosine*
		L1Normalize normalizeL1* L2Normalize normalizeL2* LinfNormalize normalizeLinf* LpNormalize normalizeLp* greatCircleDistance
		greatCircleAngle geoDistance pointInEllipses pointInPolygon geohashEncode geohashDecode geohashesInBox`},
	{"Hexagons of H3", `h3CellAreaM2 h3CellAreaRads2 h3Distance h3EdgeAngle h3EdgeLengthKm h3EdgeLengthM h3ExactEdgeLengthKm h3ExactEdgeLengthM
		h3ExactEdgeLengthRads h3GetBaseCell h3GetDestinationIndexFromUnidirectionalEdge h3GetFaces h3GetIndexesFromUnidirectionalEdge
		h3GetOriginIndexFromUnidirectionalEdge h3GetPentagonIndexes h3GetRes0Indexes h3GetResolution h3GetUnidirectionalEdge
		h3GetUnidirectionalEdgeBoundary h3GetUnidirectionalEdgesFromHexagon h3HexAreaKm2 h3HexAreaM2 h3HexRing h3IndexesAreNeighbors
		h3IsPentagon h3IsResClassIII h3IsValid h3kRing h3Line h3NumHexagons h3PointDistKm h3PointDistM h3PointDistRads h3PolygonToCells
		h3PolygonToCellsWithContainment h3ToCenterChild h3ToChildren h3ToGeo h3ToGeoBoundary h3ToParent h3ToString
		h3UnidirectionalEdgeIsValid stringToH3 geoToH3`},
	{"JSON", `isValidJSON JSONHas JSONLength JSONArrayLength JSON_ARRAY_LENGTH* JSONType JSONKey JSONExtract JSONExtractCaseInsensitive JSONExtractUInt
		JSONExtractInt JSONExtractFloat JSONExtractBool JSONExtractString JSONExtractRaw JSONExtractArrayRaw JSONExtractKeys
		JSONExtractKeysAndValues JSONExtractKeysAndValuesRaw JSONExtractUIntCaseInsensitive JSONExtractIntCaseInsensitive
		JSONExtractFloatCaseInsensitive JSONExtractBoolCaseInsensitive JSONExtractStringCaseInsensitive JSONExtractRawCaseInsensitive
		JSONExtractArrayRawCaseInsensitive JSONExtractKeysCaseInsensitive JSONExtractKeysAndValuesRawCaseInsensitive
		JSONExtractKeysAndValuesCaseInsensitive JSON_EXISTS JSON_QUERY JSON_VALUE toJSONString JSONMergePatch jsonMergePatch prettyPrintJSON
		simpleJSONHas simpleJSONExtractUInt simpleJSONExtractInt simpleJSONExtractFloat simpleJSONExtractBool simpleJSONExtractRaw
		simpleJSONExtractString visitParamHas visitParamExtractUInt visitParamExtractInt visitParamExtractFloat visitParamExtractBool
		visitParamExtractRaw visitParamExtractString JSONAllPaths JSONAllPathsWithTypes JSONDynamicPaths JSONDynamicPathsWithTypes
		JSONSharedDataPaths JSONSharedDataPathsWithTypes dynamicElement dynamicType variantElement variantType`},
	{"URLs", `protocol domain domainRFC domainWithoutWWW domainWithoutWWWRFC topLevelDomain topLevelDomainRFC firstSignificantSubdomain
		firstSignificantSubdomainRFC cutToFirstSignificantSubdomain cutToFirstSignificantSubdomainRFC
		cutToFirstSignificantSubdomainWithWWW port portRFC path pathFull basename queryString fragment queryStringAndFragment netloc
		extractURLParameter extractURLParameters extractURLParameterNames URLHierarchy URLPathHierarchy encodeURLComponent decodeURLComponent
		encodeURLFormComponent decodeURLFormComponent cutWWW cutQueryString cutFragment cutQueryStringAndFragment cutURLParameter`},
	{"IP addresses and UUIDs", `IPv4NumToString INET_NTOA* IPv4StringToNum INET_ATON* IPv4StringToNumOrNull IPv4StringToNumOrDefault
		IPv4NumToStringClassC IPv6NumToString INET6_NTOA* IPv6StringToNum INET6_ATON* IPv6StringToNumOrNull IPv6StringToNumOrDefault IPv4ToIPv6
		cutIPv6 IPv4CIDRToRange IPv6CIDRToRange toIPv4 toIPv4OrNull toIPv4OrZero toIPv4OrDefault toIPv6 toIPv6OrNull toIPv6OrZero
		toIPv6OrDefault isIPv4String isIPv6String isIPAddressInRange MACNumToString MACStringToNum MACStringToOUI
		generateUUIDv4 generateUUIDv7 dateTimeToUUIDv7 UUIDStringToNum UUIDNumToString UUIDToNum UUIDv7ToDateTime
		dateTimeToSnowflakeID dateTime64ToSnowflakeID snowflakeIDToDateTime snowflakeIDToDateTime64`},
	{"Hashes", `cityHash64 sipHash64 sipHash128 sipHash128Reference xxHash32 xxHash64 xxh3 murmurHash2_32 murmurHash2_64 murmurHash3_32
		murmurHash3_64 murmurHash3_128 gccMurmurHash kafkaMurmurHash farmHash64 farmFingerprint64 metroHash64 javaHash javaHashUTF16LE hiveHash
		intHash32 intHash64 wyHash64 halfMD5 MD4 MD5 RIPEMD160 SHA1 SHA224 SHA256 SHA384 SHA512 SHA512_256 keccak256 URLHash
		jumpConsistentHash kostikConsistentHash yandexConsistentHash ngramSimHash ngramMinHash wordShingleSimHash wordShingleMinHash CRC32* CRC32IEEE* CRC64*`},
	{"Encodings", `hex* unhex* bin* unbin* base32Encode base32Decode tryBase32Decode base58Encode base58Decode tryBase58Decode base64Encode TO_BASE64*
		base64Decode FROM_BASE64* tryBase64Decode base64URLEncode base64URLDecode tryBase64URLDecode conv mortonEncode mortonDecode
		hilbertEncode hilbertDecode sqidEncode sqid sqidDecode`},
	{"Random values", `rand* rand32 rand64 randCanonical randConstant randUniform randNormal randLogNormal randBinomial randNegativeBinomial randPoisson
		randBernoulli randExponential randChiSquared randStudentT randFisherF randomString randomFixedString randomPrintableASCII
		randomStringUTF8`},
	{"Other", `identity ignore materialize toTypeName toColumnTypeName byteSize isConstant grouping* defaultValueOfArgumentType
		defaultValueOfTypeName indexHint finalizeAggregation initializeAggregation rowNumberInBlock rowNumberInAllBlocks seriesDecomposeSTL
		seriesOutliersDetectTukey visibleWidth
		lowCardinalityKeys formatRow throwIf financialNetPresentValue financialInternalRateOfReturn`},
}

// aggregates may carry combinators.
var aggregates = []group{
	{"Aggregates", `count* sum* sumWithOverflow sumKahan sumCount avg* avgWeighted min* max* any any_value* anyLast first_value* last_value* anyHeavy
		argMin min_by* argMax max_by* argAndMin argAndMax uniq uniqExact uniqCombined uniqCombined64 uniqHLL12 uniqUpTo
		any_respect_nulls any_value_respect_nulls* anyLast_respect_nulls first_value_respect_nulls* last_value_respect_nulls* singleValueOrNull
		quantile median quantiles quantileExact medianExact quantilesExact quantileExactLow medianExactLow quantilesExactLow quantileExactHigh
		medianExactHigh quantilesExactHigh quantileExactExclusive quantilesExactExclusive quantileExactInclusive quantilesExactInclusive
		quantileExactWeighted medianExactWeighted quantilesExactWeighted quantileInterpolatedWeighted medianInterpolatedWeighted
		quantilesInterpolatedWeighted quantileTDigest medianTDigest quantilesTDigest quantileTDigestWeighted medianTDigestWeighted
		quantilesTDigestWeighted quantileTiming medianTiming quantilesTiming quantileTimingWeighted medianTimingWeighted
		quantilesTimingWeighted quantileDeterministic medianDeterministic quantilesDeterministic quantileBFloat16 medianBFloat16
		quantilesBFloat16 quantileBFloat16Weighted medianBFloat16Weighted quantilesBFloat16Weighted quantileDD medianDD quantilesDD quantileGK
		medianGK quantilesGK varPop VAR_POP* varSamp VAR_SAMP* varPopStable varSampStable stddevPop STD* STDDEV_POP* stddevSamp STDDEV*
		STDDEV_SAMP* stddevPopStable stddevSampStable covarPop COVAR_POP* covarSamp COVAR_SAMP* covarPopStable covarSampStable covarPopMatrix
		covarSampMatrix corr* corrStable corrMatrix skewPop skewSamp kurtPop kurtSamp entropy boundingRatio simpleLinearRegression
		groupArray array_agg* groupArrayLast groupUniqArray groupArrayInsertAt groupArrayMovingSum groupArrayMovingAvg groupArraySample
		groupArraySorted groupArrayIntersect groupConcat group_concat* string_agg* groupBitAnd BIT_AND* groupBitOr BIT_OR* groupBitXor BIT_XOR*
		groupBitmap groupBitmapAnd groupBitmapOr groupBitmapXor sumMapWithOverflow sumMappedArrays minMappedArrays maxMappedArrays
		sumMapFiltered sumMapFilteredWithOverflow topK topKWeighted approx_top_k* approx_top_count* approx_top_sum* histogram retention
		sequenceMatch sequenceCount sequenceMatchEvents windowFunnel intervalLengthSum maxIntersections maxIntersectionsPosition deltaSum deltaSumTimestamp
		exponentialMovingAverage exponentialTimeDecayedAvg exponentialTimeDecayedCount exponentialTimeDecayedMax exponentialTimeDecayedSum
		rankCorr cramersV cramersVBiasCorrected theilsU contingency categoricalInformationValue mannWhitneyUTest studentTTest
		studentTTestOneSample welchTTest meanZTest kolmogorovSmirnovTest* analysisOfVariance* anova* largestTriangleThreeBuckets lttb
		sparkbar sparkBar`},
	{"Windows", `row_number* rank* dense_rank* denseRank percent_rank* percentRank cume_dist ntile* nth_value* lag* lead* lagInFrame leadInFrame
		nonNegativeDerivative`},
}

// combinators are the endings that names of aggregate functions may have, any
// number of them.
const combinators = `If Array Map ForEach Distinct OrDefault OrNull Resample ArgMin ArgMax Tuple State Merge`

// tableFunctions make rows from their arguments.
const tableFunctions = `numbers numbers_mt zeros zeros_mt generateSeries generate_series values`

// names is a set of names. In folded, which are taken in any case, they are in
// lower case.
type names struct{ exact, folded map[string]bool }

// gather returns the names of all groups.
func gather(groups []group) names {
	n := names{map[string]bool{}, map[string]bool{}}
	for _, g := range groups {
		for _, name := range strings.Fields(g.names) {
			if plain, folded := strings.CutSuffix(name, "*"); folded {
				n.folded[strings.ToLower(plain)] = true
			} else {
				n.exact[name] = true
			}
		}
	}
	return n
}

func (n names) has(name string) bool { return n.exact[name] || n.folded[strings.ToLower(name)] }

var (
	allowedFunctions  = gather(functions)
	allowedAggregates = gather(aggregates)
	allowedTables     = gather([]group{{names: tableFunctions}})
	allowedEndings    = strings.Fields(combinators)
)

// Functions returns the names of the functions that a statement may call,
// aggregate functions included. A star after a name means that it is taken in
// any case.
func Functions() []string {
	var all []string
	for _, g := range slices.Concat(functions, aggregates) {
		all = append(all, strings.Fields(g.names)...)
	}
	return all
}

// isAllowed reports whether a function is on the list. An aggregate function may
// have combinators.
func isAllowed(name string) bool { return allowedFunctions.has(name) || isAggregate(name) }

// isAggregate reports whether a function is an aggregate function of the list, with
// or without combinators.
func isAggregate(name string) bool {
	if allowedAggregates.has(name) {
		return true
	}
	for _, ending := range allowedEndings {
		if base, ok := strings.CutSuffix(name, ending); ok && base != "" && isAggregate(base) {
			return true
		}
	}
	return false
}
