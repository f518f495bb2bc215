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
	"sandbox/backend"
	"sandbox/client"
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
		host, err := open(optional(home), document(registries))
		if err != nil {
			return err
		}
		return giveRuntime(backend.OnHost(host), out)
	})
}

//export sandbox_runtime_new_remote
func sandbox_runtime_new_remote(url, key, prefix *C.cchar, out **C.CSandboxRuntime, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out")
		}
		*out = nil
		address, err := required(url, "url")
		if err != nil {
			return err
		}
		c, err := client.New(client.Options{
			URL: address, Credential: client.NewApiKeyCredential(optional(key)), PathPrefix: optional(prefix),
		})
		if err != nil {
			return err
		}
		return giveRuntime(backend.OnServer(c, true), out)
	})
}

//export sandbox_runtime_open
func sandbox_runtime_open(profile *C.cchar, out **C.CSandboxRuntime, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out")
		}
		*out = nil
		if profile != nil && *profile == 0 {
			return fault.New(fault.Config, "profile is empty; NULL means that the environment decides")
		}
		t := backend.Target{Profile: optional(profile), Getenv: getenv}
		on, err := t.Open(context.Background(), true, func(bool) (*local.Host, error) { return open("", nil) })
		if err != nil {
			return err
		}
		return giveRuntime(on, out)
	})
}

// giveRuntime stores a handle on boxes in out.
func giveRuntime(on backend.Boxes, out **C.CSandboxRuntime) error {
	h, err := put(on, 0)
	*out = (*C.CSandboxRuntime)(h.address())
	return err
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

func runtimeOf(rt *C.CSandboxRuntime) (backend.Boxes, error) {
	return get[backend.Boxes](handle(unsafe.Pointer(rt)), "runtime")
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
		if r, ok := take[backend.Boxes](handle(unsafe.Pointer(rt))); ok {
			return r.Close(context.Background())
		}
		return nil
	})
}
