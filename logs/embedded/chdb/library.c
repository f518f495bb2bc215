#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <signal.h>

// Every function of libchdb: its type, its name here, its name in the library.
#define FUNCTIONS(X) \
	X(library_connection **, connect, chdb_connect, (int, char **)) \
	X(void, close, chdb_close_conn, (library_connection **)) \
	X(int, classify, chdb_classify_query_n, \
		(library_connection *, const char *, size_t, const char *, size_t, library_analysis *)) \
	X(library_result *, query, chdb_query_with_params_n, \
		(library_connection *, const char *, size_t, const char *, size_t, \
		 const char *const *, const size_t *, const char *const *, const size_t *, size_t)) \
	X(library_insertion *, insert, chdb_stream_insert_with_params_n, \
		(library_connection *, const char *, size_t, const char *, size_t, \
		 const char *const *, const size_t *, const char *const *, const size_t *, size_t)) \
	X(const char *, insert_error, chdb_stream_insert_error, (library_insertion *)) \
	X(int, append, chdb_stream_append, (library_insertion *, const void *, size_t)) \
	X(library_result *, done, chdb_stream_done, (library_insertion *)) \
	X(void, cancel, chdb_stream_cancel_insert, (library_insertion *)) \
	X(void, insertion_free, chdb_destroy_insert_stream, (library_insertion *)) \
	X(const char *, error, chdb_result_error, (library_result *)) \
	X(char *, data, chdb_result_buffer, (library_result *)) \
	X(size_t, length, chdb_result_length, (library_result *)) \
	X(double, elapsed, chdb_result_elapsed, (library_result *)) \
	X(uint64_t, rows_read, chdb_result_storage_rows_read, (library_result *)) \
	X(uint64_t, bytes_read, chdb_result_storage_bytes_read, (library_result *)) \
	X(uint64_t, rows_written, chdb_result_rows_written, (library_result *)) \
	X(uint64_t, bytes_written, chdb_result_bytes_written, (library_result *)) \
	X(void, result_free, chdb_destroy_query_result, (library_result *)) \
	X(void, set_handlers, chdb_set_signal_handlers_enabled, (int))

static struct {
#define MEMBER(type, name, symbol, arguments) type (*name) arguments;
	FUNCTIONS(MEMBER)
} lib;

// libchdb puts the handlers of signals back to their defaults, also those that
// Go's runtime set. They are kept over the calls that do so.
static struct sigaction kept[NSIG];

static void keep_signals(void) {
	for (int s = 1; s < NSIG; s++)
		sigaction(s, NULL, &kept[s]);
}

static void restore_signals(void) {
	for (int s = 1; s < NSIG; s++)
		sigaction(s, &kept[s], NULL); // fails for those that can't be changed
}

const char *library_load(const char *path) {
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return dlerror();
#define FIND(type, name, symbol, arguments) \
	if (!(lib.name = (type (*) arguments)dlsym(handle, #symbol))) \
		return dlerror();
	FUNCTIONS(FIND)
	keep_signals();
	lib.set_handlers(0);
	restore_signals();
	return NULL;
}

library_connection **library_connect(int argc, char **argv) {
	static int started; // the first call is made alone
	if (started)
		return lib.connect(argc, argv);
	keep_signals();
	library_connection **c = lib.connect(argc, argv);
	restore_signals();
	started = 1;
	return c;
}

void library_close(library_connection **c) { lib.close(c); }

int library_analyze(library_connection *c, const char *sql, size_t length, library_analysis *a) {
	a->size = sizeof *a;
	return lib.classify(c, sql, length, NULL, 0, a);
}

library_result *library_query(library_connection *c, const char *sql, size_t length,
	const char *format, size_t format_length, const library_parameters *p) {
	return lib.query(c, sql, length, format, format_length,
		p->names, p->name_lengths, p->values, p->value_lengths, p->count);
}

library_insertion *library_insert(library_connection *c, const char *sql, size_t length,
	const char *format, size_t format_length, const library_parameters *p) {
	return lib.insert(c, sql, length, format, format_length,
		p->names, p->name_lengths, p->values, p->value_lengths, p->count);
}

const char *library_insertion_error(library_insertion *i) { return lib.insert_error(i); }
int library_append(library_insertion *i, const void *data, size_t length) { return lib.append(i, data, length); }
library_result *library_done(library_insertion *i) { return lib.done(i); }
void library_cancel(library_insertion *i) { lib.cancel(i); }
void library_insertion_free(library_insertion *i) { lib.insertion_free(i); }

const char *library_result_error(library_result *r) { return lib.error(r); }
char *library_result_data(library_result *r) { return lib.data(r); }
size_t library_result_length(library_result *r) { return lib.length(r); }
double library_result_elapsed(library_result *r) { return lib.elapsed(r); }
uint64_t library_rows_read(library_result *r) { return lib.rows_read(r); }
uint64_t library_bytes_read(library_result *r) { return lib.bytes_read(r); }
uint64_t library_rows_written(library_result *r) { return lib.rows_written(r); }
uint64_t library_bytes_written(library_result *r) { return lib.bytes_written(r); }
void library_result_free(library_result *r) { lib.result_free(r); }
