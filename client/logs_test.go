package client

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"sandbox/core/fault"
)

// TestProblems decodes the failures of log queries, whose format differs from
// that of other failures.
func TestProblems(t *testing.T) {
	t.Parallel()
	for code, tt := range map[string]struct {
		status int
		kind   fault.Kind
	}{
		"malformed": {400, fault.Malformed}, "unauthenticated": {401, fault.Unauthenticated}, "permission_denied": {403, fault.PermissionDenied},
		"too_large": {413, fault.TooLarge}, "sql_rejected": {422, fault.SQLRejected}, "budget_exceeded": {422, fault.BudgetExceeded},
		"rate_limited": {429, fault.RateLimited}, "upstream_error": {502, fault.Upstream}, "unavailable": {503, fault.Unavailable}, "timeout": {504, fault.Timeout},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			_, _ = w.Write([]byte(`{"type":"urn:x","title":"t","status":1,"code":"` + code + `","message":"what is wrong","correlationId":"id","prerequisite":"do this","fields":[{"field":"sql","code":"c","message":"m"}]}`))
		}))
		c, err := New(Options{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.QueryLogs(t.Context(), "SELECT 1", nil)
		if f := fault.Of(err); err == nil || f.Kind != tt.kind || f.Message != "what is wrong" || f.Prerequisite != "do this" || len(f.Fields) != 1 {
			t.Errorf("%s: got %+v", code, f)
		}
		server.CloseClientConnections()
		server.Close()
		c.Close()
	}
}
