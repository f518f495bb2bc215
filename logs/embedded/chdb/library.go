package chdb

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "library.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// load loads libchdb into the process. It is called once, and the library stays
// loaded until the process ends.
func load(path string) error {
	cpath := C.CString(path)
	defer C.free(unsafe.Pointer(cpath))
	if text := C.library_load(cpath); text != nil {
		return errors.New(C.GoString(text))
	}
	return nil
}

// connection is a session of the engine. It runs one statement at a time. A
// statement that failed may leave output behind for the next, so a connection
// is closed after each statement.
type connection struct{ c **C.library_connection }

// connect opens a session with these options, each "--name=value". The engine
// silently ignores an option whose name is no setting. If it can't read a
// value, it fails without saying why.
func connect(options []string) (connection, error) {
	argv := make([]*C.char, 0, len(options)+2)
	for _, option := range append([]string{"clickhouse"}, options...) {
		argv = append(argv, C.CString(option))
	}
	defer func() {
		for _, arg := range argv {
			C.free(unsafe.Pointer(arg))
		}
	}()
	argc := C.int(len(argv))
	argv = append(argv, nil)
	c := C.library_connect(argc, &argv[0])
	if c == nil {
		return connection{}, errors.New("the engine opens no connection")
	}
	return connection{c}, nil
}

func (c connection) close() { C.library_close(c.c) }

// Kinds of statements, as the engine's parser reports them.
const (
	kindRead    = 0
	kindUnknown = 4 // it can't be parsed
)

// analyze parses text with the engine's own parser and runs nothing.
func (c connection) analyze(sql string) (statements, kind int, err error) {
	var a C.library_analysis
	if C.library_analyze(*c.c, chars(sql), C.size_t(len(sql)), &a) != 0 {
		return 0, 0, errors.New("the engine can't analyze the statement")
	}
	return int(a.statements), int(a.kind), nil
}

// query runs a statement. If it fails, the error is an *exception. The caller
// frees the result.
func (c connection) query(sql, format string, params []parameter) (result, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	p := pinned(&pin, params)
	return newResult(C.library_query(*c.c, chars(sql), C.size_t(len(sql)), chars(format), C.size_t(len(format)), &p))
}

// parameter is the value of a placeholder {name:Type}.
type parameter struct{ name, value string }

// pinned returns the parameters in the form that C reads. They are valid until
// the pin is released.
func pinned(pin *runtime.Pinner, params []parameter) C.library_parameters {
	if len(params) == 0 {
		return C.library_parameters{}
	}
	n := len(params)
	texts, lengths := make([]*C.char, 2*n), make([]C.size_t, 2*n)
	for i, p := range params {
		for at, text := range map[int]string{i: p.name, n + i: p.value} {
			texts[at], lengths[at] = chars(text), C.size_t(len(text))
			pin.Pin(texts[at])
		}
	}
	pin.Pin(&texts[0])
	pin.Pin(&lengths[0])
	return C.library_parameters{
		names: &texts[0], values: &texts[n], name_lengths: &lengths[0], value_lengths: &lengths[n], count: C.size_t(n),
	}
}

// none stands for the bytes of an empty string, which have no address.
var none byte

// chars returns the address of the bytes of s. C must neither change nor keep
// them.
func chars(s string) *C.char {
	if s == "" {
		return (*C.char)(unsafe.Pointer(&none))
	}
	return (*C.char)(unsafe.Pointer(unsafe.StringData(s)))
}

// insertion is an INSERT whose data are being sent. Its connection runs nothing
// else until it ends.
type insertion struct{ i *C.library_insertion }

// insert begins an INSERT whose data are sent in the given format.
func (c connection) insert(sql, format string, params []parameter) (insertion, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	p := pinned(&pin, params)
	i := insertion{C.library_insert(*c.c, chars(sql), C.size_t(len(sql)), chars(format), C.size_t(len(format)), &p)}
	if text := C.library_insertion_error(i.i); text != nil {
		defer i.free()
		return insertion{}, newException(C.GoString(text))
	}
	return i, nil
}

// Write sends data to the insertion. It waits while the engine has enough. If
// the engine takes no more, done returns the reason.
func (i insertion) Write(p []byte) (int, error) {
	if len(p) > 0 && C.library_append(i.i, unsafe.Pointer(&p[0]), C.size_t(len(p))) != 0 {
		return 0, errRefused
	}
	return len(p), nil
}

var errRefused = errors.New("the engine accepts no more data")

// done ends the data and waits until they are stored.
func (i insertion) done() (result, error) { return newResult(C.library_done(i.i)) }

// cancel ends the insertion. Data that are not stored yet are dropped.
func (i insertion) cancel() { C.library_cancel(i.i) }

func (i insertion) free() { C.library_insertion_free(i.i) }

// result is the outcome of a statement, in the engine's memory.
type result struct{ r *C.library_result }

func newResult(r *C.library_result) (result, error) {
	if r == nil {
		return result{}, errors.New("the engine returned neither a result nor an error")
	}
	if text := C.library_result_error(r); text != nil {
		defer C.library_result_free(r)
		return result{}, newException(C.GoString(text))
	}
	return result{r}, nil
}

// bytes returns the output. It is in the engine's memory and is valid until r
// is freed.
func (r result) bytes() []byte {
	n := C.library_result_length(r.r)
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(C.library_result_data(r.r))), int(n))
}

// summary returns the statement's figures in the format of ClickHouse's header
// for them.
func (r result) summary() string {
	return fmt.Sprintf(`{"read_rows":"%d","read_bytes":"%d","written_rows":"%d","written_bytes":"%d","elapsed_ns":"%d"}`,
		uint64(C.library_rows_read(r.r)), uint64(C.library_bytes_read(r.r)),
		uint64(C.library_rows_written(r.r)), uint64(C.library_bytes_written(r.r)),
		uint64(float64(C.library_result_elapsed(r.r))*1e9))
}

func (r result) free() { C.library_result_free(r.r) }
