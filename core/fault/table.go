package fault

// The kinds, in the order of the contract's table (sections 8 and 9).
const (
	Internal Kind = iota
	Malformed
	InvalidArgument
	IsDirectory
	IdempotencyMismatch
	BoxNotFound
	ExecNotFound
	FileNotFound
	ImageNotFound
	KeyNotFound
	ContextNotFound
	NotFound
	MethodNotAllowed
	AlreadyExists
	Ambiguous
	InvalidState
	Config
	Storage
	Image
	PortInUse
	PortUnreachable
	Upstream
	Execution
	Stopped
	Engine
	Unsupported
	ResourceExhausted
	RateLimited
	Timeout
	Canceled
	Unauthenticated
	PermissionDenied
	Unavailable
	TooLarge

	// Only log queries fail with these kinds (section 9).
	InvalidInterval
	SQLRejected
	SQLError
	ResultTooLarge
	BudgetExceeded
)

// table is the table of section 8 of the contract, with the codes of section 9.
// It is the only place where the numbers of a failure are written down; tests
// compare the C header, docs/ERRORS.md and the command line with it. The exit
// code of Execution is 127 or 126: the command line takes the exit code of the
// exec, and that of this row where there is none.
var table = [...]Row{
	Internal:            {"internal", 1, 500, 1, "an error inside the service or library", ""},
	Malformed:           {"malformed", 5, 400, 2, "a request or a JSON document that can't be read", "The request can't be read"},
	InvalidArgument:     {"invalid_argument", 5, 422, 2, "a value that is not allowed; a rootfs_path or host_path that is missing or not a directory", ""},
	IsDirectory:         {"is_directory", 5, 422, 2, "a directory where a file was asked for", ""},
	IdempotencyMismatch: {"idempotency_mismatch", 5, 422, 2, "an Idempotency-Key that was used with another body", ""},
	BoxNotFound:         {"box_not_found", 2, 404, 5, "no such box", ""},
	ExecNotFound:        {"exec_not_found", 2, 404, 5, "no such exec", ""},
	FileNotFound:        {"file_not_found", 2, 404, 5, "no such file in the box", ""},
	ImageNotFound:       {"image_not_found", 2, 404, 5, "no such image in the store", ""},
	KeyNotFound:         {"key_not_found", 2, 404, 5, "no such API key", ""},
	ContextNotFound:     {"context_not_found", 2, 404, 5, "no such context of a box", ""},
	NotFound:            {"not_found", 2, 404, 5, "no such route", "No such route"},
	MethodNotAllowed:    {"method_not_allowed", 5, 405, 2, "a route that has no such method", "The route has no such method"},
	AlreadyExists:       {"already_exists", 3, 409, 6, "the name is taken", ""},
	Ambiguous:           {"ambiguous", 3, 409, 6, "an id prefix of several boxes", ""},
	InvalidState:        {"invalid_state", 4, 409, 6, "the box or exec is in the wrong state for this, or the image is in use", ""},
	Config:              {"config_error", 6, 500, 2, "a configuration, registries_json or profile that is invalid", ""},
	Storage:             {"storage_error", 7, 503, 7, "the home, disk or store is full, read-only or damaged", ""},
	Image:               {"image_error", 8, 422, 7, "the image of a box can't be fetched or read", ""},
	PortInUse:           {"port_in_use", 9, 409, 6, "the port is taken", ""},
	PortUnreachable:     {"port_unreachable", 9, 502, 7, "nothing listens on the port of the box", ""},
	Upstream:            {"upstream_error", 9, 502, 7, "a registry, the log engine, the set-up of the network or a program behind a port of a box failed", "The log engine answered wrongly"},
	Execution:           {"execution_failed", 10, 422, 127, "the command can't be started", ""},
	Stopped:             {"stopped", 11, 503, 7, "the runtime was shut down", ""},
	Engine:              {"engine_error", 12, 503, 7, "a shim is missing, of another version or dead, or a box's init died", ""},
	Unsupported:         {"unsupported", 13, 501, 3, "the kernel, build or platform does not support it", ""},
	ResourceExhausted:   {"resource_exhausted", 20, 429, 7, "a host limit or quota is reached", ""},
	RateLimited:         {"rate_limited", 20, 429, 7, "too many requests", "Too many queries"},
	Timeout:             {"timeout", 32, 504, 7, "the deadline or budget has passed", "The query took too long"},
	Canceled:            {"canceled", 33, 503, 130, "ended by the caller", ""},
	Unauthenticated:     {"unauthenticated", 34, 401, 4, "the key is missing, unknown or expired", "No valid API key"},
	PermissionDenied:    {"permission_denied", 35, 403, 4, "the key lacks the permission or environment", "The API key may not do this"},
	Unavailable:         {"unavailable", 36, 503, 7, "not available now", "The log engine is not available"},
	TooLarge:            {"too_large", 5, 413, 2, "a body or statement that is too large", "The statement or the body is too large"},
	InvalidInterval:     {"invalid_interval", 5, 422, 2, "an interval that ends before it begins, or is too long", "The interval is not allowed"},
	SQLRejected:         {"sql_rejected", 5, 422, 2, "a statement that is not one SELECT of what log queries may use", "The statement is not allowed"},
	SQLError:            {"sql_error", 5, 422, 2, "a statement that the log engine refuses", "The statement is wrong"},
	ResultTooLarge:      {"result_too_large", 5, 422, 2, "a result of more rows or bytes than a log query may have", "The result is too large"},
	BudgetExceeded:      {"budget_exceeded", 5, 422, 2, "a log query that reads or needs more than it may", "The query is over its budget"},
}
