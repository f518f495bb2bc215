// The functions of libchdb that are used, found at run time: the library is
// 500 MB, and what does not serve logs must not need it.
#include <stddef.h>
#include <stdint.h>

typedef struct library_connection library_connection;
typedef struct library_result library_result;
typedef struct library_insertion library_insertion;

// The kind of a statement, as the engine's parser sees it. The layout is libchdb's.
typedef struct {
	uint32_t size, statements, flags, kind;
} library_analysis;

// Parameters of a statement: count names and values, with their lengths.
typedef struct {
	const char **names, **values;
	size_t *name_lengths, *value_lengths;
	size_t count;
} library_parameters;

// Loads the library, once. Returns NULL, or a message that says what is wrong.
const char *library_load(const char *path);

// The first connection starts the engine, the last one must stay open.
library_connection **library_connect(int argc, char **argv);
void library_close(library_connection **c);
int library_analyze(library_connection *c, const char *sql, size_t length, library_analysis *a);

library_result *library_query(library_connection *c, const char *sql, size_t length,
	const char *format, size_t format_length, const library_parameters *p);

// An insertion is fed until its end, and freed in any case.
library_insertion *library_insert(library_connection *c, const char *sql, size_t length,
	const char *format, size_t format_length, const library_parameters *p);
const char *library_insertion_error(library_insertion *i);
int library_append(library_insertion *i, const void *data, size_t length);
library_result *library_done(library_insertion *i);
void library_cancel(library_insertion *i);
void library_insertion_free(library_insertion *i);

const char *library_result_error(library_result *r);
char *library_result_data(library_result *r);
size_t library_result_length(library_result *r);
double library_result_elapsed(library_result *r);
uint64_t library_rows_read(library_result *r);
uint64_t library_bytes_read(library_result *r);
uint64_t library_rows_written(library_result *r);
uint64_t library_bytes_written(library_result *r);
void library_result_free(library_result *r);
