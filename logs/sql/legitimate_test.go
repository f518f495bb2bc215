package sql_test

import (
	"testing"

	"sandbox/logs/sql"
)

// TestLegitimate wants every statement of the corpus let through.
func TestLegitimate(t *testing.T) {
	t.Parallel()
	all := corpus(t, "legit")
	if len(all) < 400 {
		t.Errorf("only %d statements", len(all))
	}
	for _, e := range all {
		if _, err := sql.Read(e.sql); err != nil {
			t.Errorf("%s: %s\nrefused: %v", e.name, e.sql, err)
		}
	}
}
