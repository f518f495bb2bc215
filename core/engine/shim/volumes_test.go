package shim

import "testing"

// Every id of the box has one on disk, whoever owns the directory: each id is
// mapped exactly once on either side, and the owner is mapped to the box's root.
func TestOwnerAsRoot(t *testing.T) {
	t.Parallel()
	const base = 1 << 20
	for _, owner := range []int{1, 1000, base - 1, base, base + 1, base + 1000, base + idsPerBox - 1, base + idsPerBox, 1 << 30} {
		inside, outside := map[int]bool{}, map[int]bool{}
		for _, r := range ownerAsRoot(owner, base) {
			for i := range r.size {
				if inside[r.inside+i] || outside[r.outside+i] {
					t.Fatalf("owner %d: %+v maps an id twice", owner, r)
				}
				inside[r.inside+i], outside[r.outside+i] = true, true
				if (r.inside+i == owner) != (r.outside+i == base) {
					t.Errorf("owner %d: %d is mapped to %d", owner, r.inside+i, r.outside+i)
				}
			}
		}
		if len(outside) != idsPerBox {
			t.Errorf("owner %d: the box has %d ids", owner, len(outside))
		}
		for id := range outside {
			if id < base || id >= base+idsPerBox {
				t.Fatalf("owner %d: %d is not the box's", owner, id)
			}
		}
	}
}
