//go:build kubernetes

package suite

import (
	"testing"

	"sandbox/api"
	"sandbox/core/options"
)

// TestExpiryOfSeveral has the times of two boxes end, one after the other. The processes of
// the first heed no signal, so its end takes the whole grace. The second does not wait for that.
func TestExpiryOfSeveral(t *testing.T) {
	t.Parallel()
	e := open(t, namespace(t))
	slow, quick := made(t, e), made(t, e)
	in(t, e, slow.ID, "trap '' TERM; sleep 100 >/dev/null 2>&1 & echo held", "held\n")
	for i, id := range []string{slow.ID, quick.ID} {
		seconds := i + 1
		if _, err := e.Update(t.Context(), id, options.Update{TTLSeconds: &seconds}); err != nil {
			t.Fatal(err)
		}
	}
	if rec := status(t, e, quick.ID, api.Stopped); rec.Reason != "expired" {
		t.Errorf("the second box: %+v", rec)
	}
	if rec, err := e.Get(t.Context(), slow.ID); err != nil || !rec.Status.Up() {
		t.Errorf("the second box waited for the end of the first: %+v, %v", rec, err)
	}
	status(t, e, slow.ID, api.Stopped)
}
