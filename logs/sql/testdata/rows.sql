INSERT INTO otel.otel_logs (Timestamp, TraceId, SpanId, TraceFlags, SeverityText, SeverityNumber, ServiceName, Body, ResourceSchemaUrl, ResourceAttributes, ScopeSchemaUrl, ScopeName, ScopeVersion, ScopeAttributes, LogAttributes, EventName)
WITH
    cityHash64(number) AS h,
    ['api', 'db', 'web', 'auth', 'worker'][1 + h % 5] AS service,
    [1, 5, 9, 9, 9, 9, 13, 13, 17, 21][1 + h % 10] AS severity,
    transform(severity, [1, 5, 9, 13, 17, 21], ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'], '') AS name,
    toString(intDiv(h, 7) % 400) AS ms
SELECT
    toDateTime64('2035-01-01 00:00:00', 9, 'UTC') + toIntervalMillisecond(number * 30017) + toIntervalNanosecond(h % 1000),
    lower(hex(MD5(toString(intDiv(number, 8))))), lower(hex(number)), h % 2, name, severity, service,
    multiIf(
        h % 7 = 0, concat('GET /api/v', toString(h % 3), '/items/', toString(h % 50), ' 200 ', ms, 'ms'),
        h % 7 = 1, concat('user ', toString(h % 40), ' logged in from 10.0.', toString(h % 4), '.', toString(h % 9)),
        h % 7 = 2, concat('timeout after ', ms, 'ms: connection refused'),
        h % 7 = 3, concat('{"level":"', lower(name), '","took":', ms, ',"tags":["a","b"]}'),
        h % 7 = 4, concat('disk usage 100% on a_b key=', toString(h % 5)),
        h % 7 = 5, concat('POST /api/v1/orders ', toString(200 + h % 3 * 100)),
        'Ошибка: файл не найден'),
    '', map('host.name', concat('host-', toString(h % 3)), 'k8s.pod.name', concat(service, '-', toString(h % 2))),
    '', 'app', '1.0', if(h % 2, map(), map('lib', 'x')),
    if(h % 3 = 0, map('duration_ms', ms, 'http.status', toString(200 + h % 4 * 100)), map('duration_ms', ms, 'user', concat('u', toString(h % 6)))),
    if(h % 11 = 0, 'event', '')
FROM numbers(2000)
