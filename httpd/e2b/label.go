package e2b

import "maps"

// The labels of a box that keep what only this dialect has. Clients do not see them
// among the metadata.
const (
	trafficLabel = "e2b.traffic" // who reaches the ports of the box
	public       = "public"      // whoever knows its id
	private      = "private"     // who has its token too

	resumeLabel = "e2b.resume" // what resumes the box when it is paused
	byRequest   = "request"    // any request to it
)

// labels returns the labels of a box that is asked for.
func (n newSandbox) labels() map[string]string {
	labels := metadata(n.Metadata)
	labels[trafficLabel] = public
	if n.Network != nil && n.Network.Public != nil && !*n.Network.Public {
		labels[trafficLabel] = private
	}
	if n.AutoResume.Enabled {
		labels[resumeLabel] = byRequest
	}
	return labels
}

// metadata returns the labels of a box that are its client's own.
func metadata(labels map[string]string) map[string]string {
	own := map[string]string{}
	maps.Copy(own, labels)
	delete(own, trafficLabel)
	delete(own, resumeLabel)
	return own
}
