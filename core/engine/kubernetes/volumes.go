package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sandbox/core/document"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/hostpath"
	"sandbox/core/options"
)

// A box sees a host path through the kubelet: the volume of its pod is the directory that
// the server shares, and what lies below it is a subPath, which a kubelet opens so that no
// link leads out, even one that is changed meanwhile. But it makes what is missing. So an
// init container looks first, which can say what is wrong, too.
const checkContainer = "paths"

// checkVolumes refuses volumes that a box can't have. Errors: InvalidArgument, with the
// field, PermissionDenied, and those of failure.
func (e *Engine) checkVolumes(ctx context.Context, volumes []options.Volume) error {
	for i, v := range volumes {
		if strings.HasPrefix(path.Clean(v.GuestPath), programDir) {
			return document.Invalid(member(i, "guest_path"), "reserved", "must not begin with "+programDir+", where the box's init is")
		}
		if strings.Contains(v.GuestPath, ":") {
			return document.Invalid(member(i, "guest_path"), "value", "must not contain a colon in a box of a cluster")
		}
		if v.HostPath != "" && e.rootOf(v.HostPath) == "" {
			return fault.New(fault.PermissionDenied, "%s %.100s is in no directory of the nodes that this server shares with boxes (--host-root)", member(i, "host_path"), v.HostPath)
		}
		if err := e.checkClaim(ctx, member(i, "claim"), v.Claim); err != nil {
			return err
		}
	}
	return nil
}

func member(i int, name string) string { return fmt.Sprintf("volumes[%d].%s", i, name) }

// rootOf returns the shared directory of the nodes that a path lies in by its name, or "".
func (e *Engine) rootOf(hostPath string) string {
	i := slices.IndexFunc(e.config.HostRoots, func(root string) bool {
		_, in := hostpath.Rel(root, hostPath)
		return in
	})
	if i < 0 {
		return ""
	}
	return path.Clean(e.config.HostRoots[i])
}

// checkClaim refuses a claim that no box can be given. What keeps it from a node, the
// scheduler says.
func (e *Engine) checkClaim(ctx context.Context, field, name string) error {
	if name == "" {
		return nil
	}
	claim, err := e.api.disks.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return document.Invalid(field, "missing", name+" names no claim of the namespace "+e.conn.namespace)
	case err != nil:
		return failure(err, "read the claim %s", name)
	case claim.Labels[labelBox] != "":
		return document.Invalid(field, "closed", name+" is the disk of a box, which no other may have")
	case claim.DeletionTimestamp != nil:
		return document.Invalid(field, "missing", name+" names a claim that is being deleted")
	}
	return nil
}

// mount gives a pod the volumes of its box.
func (e *Engine) mount(pod *corev1.Pod, o options.Box) {
	if len(o.Volumes) == 0 {
		return
	}
	c := &pod.Spec.Containers[0]
	for _, v := range o.Volumes {
		at := corev1.VolumeMount{MountPath: path.Clean(v.GuestPath), ReadOnly: v.ReadOnly}
		if v.HostPath != "" {
			root := e.rootOf(v.HostPath)
			at.Name = volume(pod, hostDirectory(root))
			if rest, _ := hostpath.Rel(root, v.HostPath); rest != "." {
				at.SubPath = rest
			}
		} else {
			at.Name = volume(pod, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Claim}})
		}
		if v.ReadOnly { // and what is mounted below it, where the runtime can
			at.RecursiveReadOnly = new(corev1.RecursiveReadOnlyIfPossible)
		}
		c.VolumeMounts = append(c.VolumeMounts, at)
	}
	e.checkPaths(pod, o)
	moveProgram(c)
}

// volume returns the name of the volume of a pod that has a source. There is one for each
// source, however often that is mounted: kubelets don't expect two of a claim.
func volume(pod *corev1.Pod, source corev1.VolumeSource) string {
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return reflect.DeepEqual(v.VolumeSource, source) })
	if i < 0 {
		i = len(pod.Spec.Volumes)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("volume-%d", i), VolumeSource: source})
	}
	return pod.Spec.Volumes[i].Name
}

// hostDirectory returns the source of a volume that is a directory of the node.
func hostDirectory(dir string) corev1.VolumeSource {
	return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: new(corev1.HostPathDirectory)}}
}

// checkPaths has an init container look whether the host paths of a box are there. It has
// the shared directories where the node has them.
func (e *Engine) checkPaths(pod *corev1.Pod, o options.Box) {
	check := e.initContainer(checkContainer, "paths")
	check.SecurityContext.Capabilities.Add = []corev1.Capability{"DAC_OVERRIDE"} // in directories of other users, too
	check.Resources = resources(o)
	for i, v := range o.Volumes {
		if v.HostPath == "" {
			continue
		}
		root := e.rootOf(v.HostPath)
		check.Command = append(check.Command, member(i, "host_path"), root, v.HostPath)
		if !slices.ContainsFunc(check.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == root }) {
			check.VolumeMounts = append(check.VolumeMounts, corev1.VolumeMount{
				Name: volume(pod, hostDirectory(root)), MountPath: root, ReadOnly: true, RecursiveReadOnly: new(corev1.RecursiveReadOnlyIfPossible),
			})
		}
	}
	if check.VolumeMounts != nil {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, check)
	}
}

// unusable returns why the host paths of a pod can't be used, as the init container has said,
// or nil.
func unusable(pod *corev1.Pod) error {
	for _, c := range pod.Status.InitContainerStatuses {
		t := c.State.Terminated
		if c.Name != checkContainer || t == nil || t.ExitCode == 0 {
			continue
		}
		if _, why, is := strings.Cut(t.Message, wire.PathOutside); is {
			return fault.New(fault.PermissionDenied, "%s", why)
		}
		if _, why, is := strings.Cut(t.Message, wire.PathUnusable); is {
			return fault.New(fault.InvalidArgument, "%s", why)
		}
		return unstarted(cmp.Or(t.Message, t.Reason))
	}
	return nil
}

// moveProgram has the program of process 1 mounted after all volumes of a box, and run from
// there. A link, of the image or of a volume, may lead a guest path to where the program
// is: another one in its place would be process 1, without the filter that init sets up.
// Runtimes mount what lies deeper later, and else in this order.
func moveProgram(c *corev1.Container) {
	deepest := 0
	for _, m := range c.VolumeMounts {
		deepest = max(deepest, strings.Count(m.MountPath, "/"))
	}
	program := c.VolumeMounts[0]
	program.MountPath += strings.Repeat("/program", deepest)
	c.VolumeMounts = append(c.VolumeMounts[1:], program)
	c.Command[0] = program.MountPath + "/sandbox-pod"
}

// volumesOf returns a part of a sentence that names the volumes of a pod which may keep it
// from a node, or "".
func volumesOf(pod *corev1.Pod) string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil && v.Name != diskVolume {
			names = append(names, "the claim "+v.PersistentVolumeClaim.ClaimName)
		}
		if v.HostPath != nil {
			names = append(names, "the directory "+v.HostPath.Path+" of the node")
		}
	}
	if names == nil {
		return ""
	}
	return " with " + strings.Join(names, " and ")
}
