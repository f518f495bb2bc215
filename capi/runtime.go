package main

// #include <stdlib.h>
// #include "glue.h"
import "C"

import (
	"context"
	"path/filepath"
	"time"
	"unsafe"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/local"
)

// forever is a grace period that no box outlives.
const forever = 100 * 365 * 24 * time.Hour

//export sandbox_runtime_new
func sandbox_runtime_new(home, registries *C.cchar, out **C.CSandboxRuntime, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out")
		}
		*out = nil
		if home != nil && *home == 0 {
			return fault.New(fault.Config, "home_dir is empty; NULL means the default home")
		}
		rt, err := open(optional(home), document(registries))
		if err != nil {
			return err
		}
		h, err := put(rt, 0)
		*out = (*C.CSandboxRuntime)(h.address())
		return err
	})
}

// open opens a home. It reads the environment through C, because Go keeps a
// copy of the environment that the process started with.
func open(home string, registries []byte) (*local.Host, error) {
	if home == "" {
		home = getenv("SANDBOX_HOME")
	}
	return local.Open(local.Config{
		Home: home, Registries: registries, HelperDir: getenv("SANDBOX_HELPER_DIR"), Beside: beside(), Owned: true,
	})
}

func getenv(name string) string {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	return C.GoString(C.getenv(n))
}

// beside returns the directory of the library's own file, with links resolved.
func beside() string {
	path, err := filepath.EvalSymlinks(C.GoString(C.library_file()))
	if err != nil {
		return ""
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return ""
	}
	return filepath.Dir(path)
}

func hostOf(rt *C.CSandboxRuntime) (*local.Host, error) {
	return get[*local.Host](handle(unsafe.Pointer(rt)), "runtime")
}

func runtimeOf(rt *C.CSandboxRuntime) (*core.Runtime, error) {
	h, err := hostOf(rt)
	if err != nil {
		return nil, err
	}
	return h.Runtime, nil
}

//export sandbox_runtime_shutdown
func sandbox_runtime_shutdown(rt *C.CSandboxRuntime, timeout C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		r, err := runtimeOf(rt)
		if err != nil {
			return err
		}
		grace := time.Duration(timeout) * time.Second
		switch {
		case timeout < -1:
			return fault.New(fault.InvalidArgument, "timeout_seconds is %d and must be at least -1", int(timeout))
		case timeout == -1:
			grace = forever
		case timeout == 0:
			grace = core.DefaultGrace
		}
		return r.Shutdown(context.Background(), grace)
	})
}

//export sandbox_runtime_metrics
func sandbox_runtime_metrics(rt *C.CSandboxRuntime, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.RuntimeMetrics, error) {
		r, err := runtimeOf(rt)
		if err != nil {
			return api.RuntimeMetrics{}, err
		}
		return r.Metrics(context.Background())
	})
}

//export sandbox_runtime_free
func sandbox_runtime_free(rt *C.CSandboxRuntime) {
	guard(nil, func() error {
		if r, ok := take[*local.Host](handle(unsafe.Pointer(rt))); ok {
			return r.Close(context.Background())
		}
		return nil
	})
}
