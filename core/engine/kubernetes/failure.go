package kubernetes

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/net"

	"sandbox/core/fault"
)

// away is how long a client should wait before it asks again when the API server is away.
const away = 2 * time.Second

// failure classifies a failure of the API server. The format says what was being done.
func failure(err error, format string, args ...any) error {
	if err == nil || fault.Classified(err) {
		return err
	}
	what := fmt.Sprintf(format, args...)
	var expired x509.CertificateInvalidError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.Of(fmt.Errorf("%s: %w", what, err))
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return fault.Wrap(fault.ResourceExhausted, err, "%s: the namespace's quota is used up", what)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fault.Wrap(fault.Engine, err, "%s: the namespace is being deleted", what)
	case apierrors.IsForbidden(err):
		// The API server names the verb, the resource and the user.
		return fault.Wrap(fault.Engine, err, "%s: a right is missing, which docs/kubernetes.md lists", what)
	case apierrors.IsUnauthorized(err):
		return fault.Wrap(fault.Engine, err, "%s: the cluster does not know these credentials, or they have expired", what)
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		return fault.Wrap(fault.Engine, err, "%s: a certificate has expired, or the clocks differ", what)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fault.Wrap(fault.InvalidArgument, err, "%s", what)
	case apierrors.IsNotFound(err):
		return fault.Wrap(fault.Engine, err, "%s", what)
	case isAway(err):
		f := fault.Of(fault.Wrap(fault.Unavailable, err, "%s: the API server does not answer", what))
		f.RetryAfter = away
		return f
	}
	return fault.Wrap(fault.Engine, err, "%s", what)
}

// isAway reports whether err says that the API server could not be asked, or is too busy.
func isAway(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		net.IsConnectionRefused(err) || net.IsConnectionReset(err) || net.IsProbableEOF(err) || net.IsTimeout(err) || net.IsHTTP2ConnectionLost(err) ||
		strings.Contains(err.Error(), "connect: ")
}
