package e2b

import "maps"

// The label of a box that keeps what only this dialect has. Clients do not see it among
// the metadata.
const (
	trafficLabel = "e2b.traffic" // who reaches the ports of the box
	public       = "public"      // whoever knows its id
	private      = "private"     // who has its token too
)

// labels returns the labels of a box that is asked for.
func (n newSandbox) labels() map[string]string {
	labels := metadata(n.Metadata)
	labels[trafficLabel] = public
	if n.Network != nil && n.Network.Public != nil && !*n.Network.Public {
		labels[trafficLabel] = private
	}
	return labels
}

// metadata returns the labels of a box that are its client's own.
func metadata(labels map[string]string) map[string]string {
	own := map[string]string{}
	maps.Copy(own, labels)
	delete(own, trafficLabel)
	return own
}
