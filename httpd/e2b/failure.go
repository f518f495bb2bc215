package e2b

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"

	"sandbox/core/fault"
)

// failure is the body of a failure on routes that are no calls of Connect.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// answered writes the failures of the control plane.
func (s *Server) answered(next plain) http.Handler { return s.written(next, statusOf) }

// answeredInside writes the failures of a box's plain routes.
func (s *Server) answeredInside(next plain) http.Handler { return s.written(next, statusInside) }

func (s *Server) written(next plain, status func(fault.Kind) int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &reply{ResponseWriter: w}
		err := next(out, r)
		if err == nil {
			return
		}
		f := s.told(r.Context(), err)
		if out.begun { // only a broken connection can report the failure
			cut(w)
			return
		}
		code := status(f.Kind)
		_ = writeJSON(w, code, failure{code, f.Message})
	})
}

// reply is a http.ResponseWriter that knows whether the reply has begun.
type reply struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader writes the head, or what comes before it.
func (w *reply) WriteHeader(status int) {
	w.begun = w.begun || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a piece.
func (w *reply) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// cut breaks the connection of a reply that can't be finished, so that the client does
// not take it for complete.
func cut(w http.ResponseWriter) {
	control := http.NewResponseController(w)
	if conn, _, err := control.Hijack(); err == nil {
		_ = conn.Close()
		return
	}
	_ = control.SetWriteDeadline(time.Unix(1, 0)) // HTTP/2 can't be hijacked
}

// told returns a failure as clients may see it. What is the server's own fault goes
// to its log.
func (s *Server) told(ctx context.Context, err error) *fault.Error {
	f := fault.Of(err)
	if f.Kind == fault.Internal {
		s.Log.LogAttrs(ctx, slog.LevelError, "a request of E2B's protocol failed", slog.String("error", f.Message), slog.Any("cause", f.Hidden))
		f.Message = "internal error: the server's log has the details"
	}
	return f
}

// statusOf returns the status of a kind of failure on the control plane. E2B has 400
// for all that is wrong with a request.
func statusOf(k fault.Kind) int {
	if status := k.Row().HTTP; status != http.StatusUnprocessableEntity {
		return status
	}
	return http.StatusBadRequest
}

// statusInside returns the status of a kind of failure on a box's own routes. There
// SDKs take 502 for a box that is gone, and 507 for a disk that is full.
func statusInside(k fault.Kind) int {
	switch k {
	case fault.BoxNotFound:
		return http.StatusBadGateway
	case fault.Storage:
		return http.StatusInsufficientStorage
	}
	return statusOf(k)
}

// failed returns a failure as Connect tells it. For nil it returns nil.
func failed(err error) error {
	if err == nil {
		return nil
	}
	var told *connect.Error
	if errors.As(err, &told) {
		return told
	}
	f := fault.Of(err)
	return connect.NewError(codeOf(f.Kind), errors.New(f.Message))
}

// codeOf returns Connect's code for a kind of failure. Unavailable is what SDKs take
// for a box that is gone.
func codeOf(k fault.Kind) connect.Code {
	switch k {
	case fault.BoxNotFound, fault.Engine, fault.Stopped:
		return connect.CodeUnavailable
	case fault.ExecNotFound, fault.FileNotFound, fault.NotFound:
		return connect.CodeNotFound
	case fault.Malformed, fault.InvalidArgument, fault.IsDirectory, fault.TooLarge:
		return connect.CodeInvalidArgument
	case fault.AlreadyExists:
		return connect.CodeAlreadyExists
	case fault.InvalidState:
		return connect.CodeFailedPrecondition
	case fault.PermissionDenied:
		return connect.CodePermissionDenied
	case fault.Unauthenticated:
		return connect.CodeUnauthenticated
	case fault.ResourceExhausted, fault.RateLimited:
		return connect.CodeResourceExhausted
	case fault.Timeout:
		return connect.CodeDeadlineExceeded
	case fault.Canceled:
		return connect.CodeCanceled
	case fault.Unsupported:
		return connect.CodeUnimplemented
	}
	return connect.CodeInternal
}

// refuse writes a failure of a call that has not begun, in the form that its client
// asked for.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	_ = connect.NewErrorWriter().Write(w, r, failed(err)) // a client that has gone is told nothing
}

// recovered answers a panic, so that one request can't end the others.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			s.Log.LogAttrs(r.Context(), slog.LevelError, "panic", slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
			_ = writeJSON(w, http.StatusInternalServerError, failure{http.StatusInternalServerError, "internal error: the server's log has the details"})
		}()
		next.ServeHTTP(w, r)
	})
}
