package kubernetes

import "testing"

// TestPutAfterDelete has an answer of the API server come after the watch has told that its
// object was deleted: it brings nothing back.
func TestPutAfterDelete(t *testing.T) {
	t.Parallel()
	p := newPods(newNews())
	spare := map[string]string{labelSpare: "kind"}
	p.put(podAt("1", spare))
	must(t, p.Delete(podAt("3", spare)))
	p.put(podAt("2", spare))
	if pod := p.at("pod"); pod != nil {
		t.Errorf("version %s of a pod that was deleted is there", pod.ResourceVersion)
	}
	p.put(podAt("4", spare)) // the watch tells the end of what it does not select any more, too
	if p.at("pod") == nil {
		t.Error("a pod that the watch selects again is not there")
	}
}
