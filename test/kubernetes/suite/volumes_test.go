//go:build kubernetes

package suite

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// claim makes a claim of the class of the tests' disks.
func claim(t testing.TB, namespace, name string, more ...string) {
	t.Helper()
	apply(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": %q, "namespace": %q}, "spec": {"storageClassName": "disks",
		"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}%s}}`, name, namespace, strings.Join(more, "")))
}

// volumes has a box have volumes.
func volumes(all ...options.Volume) func(*options.Box) {
	return func(o *options.Box) { o.Volumes = all }
}

// as runs a script in a box as a user, and returns what it has printed.
func as(t *testing.T, e *kubernetes.Engine, id, user, script string) string {
	t.Helper()
	p, err := e.Exec(t.Context(), id, options.Exec{Cmd: []string{"sh", "-c", "exec 2>&1; " + script}, User: user})
	if err != nil {
		t.Fatal(err)
	}
	x := core.NewExec(p)
	defer x.Close()
	var out strings.Builder
	if _, err := x.Stream(t.Context(), make([]byte, 4096), func(_ bool, b []byte) error {
		out.Write(b)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestClaim has two boxes share a claim, and users of both have files in it. The claim stays
// when its boxes have gone.
func TestClaim(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	claim(t, ns, "data")
	e := open(t, ns, func(c *kubernetes.Config) { c.Pool = 1 })
	first := made(t, e, volumes(options.Volume{Claim: "data", GuestPath: "/mnt/data"}, options.Volume{Claim: "data", GuestPath: "/mnt/data/again/", ReadOnly: true}))
	in(t, e, first.ID, "cd /mnt/data && echo of root > root && mkdir mine && chown 1234:99 mine && chmod 700 mine && cat again/root", "of root\n")
	if out := as(t, e, first.ID, "1234", "echo of a user > /mnt/data/mine/f && stat -c %u:%g /mnt/data/mine /mnt/data/mine/f"); out != "1234:99\n1234:0\n" {
		t.Errorf("a user of the box: %s", out)
	}
	in(t, e, first.ID, "(echo x > /mnt/data/again/root) 2>/dev/null || echo no", "no\n")
	second := made(t, e, volumes(options.Volume{Claim: "data", GuestPath: "/srv", ReadOnly: true}), func(o *options.Box) { o.User = "1234" })
	in(t, e, second.ID, "cat /srv/root /srv/mine/f; id -u; (touch /srv/mine/g) 2>/dev/null || echo no", "of root\nof a user\n1234\nno\n")
	if out := as(t, e, second.ID, "4321", "cat /srv/mine/f || echo no"); !strings.HasSuffix(out, "no\n") {
		t.Errorf("another user of the box: %s", out)
	}
	if got := must(e.Get(t.Context(), first.ID))(t).Options.Volumes; len(got) != 2 || got[1] != (options.Volume{Claim: "data", GuestPath: "/mnt/data/again/", ReadOnly: true}) {
		t.Errorf("its record has the volumes %+v", got)
	}
	if err := e.Remove(t.Context(), second.ID, true); err != nil {
		t.Error(err)
	}
	leavesNothing(t, e, ns, first.ID, true)
	if phase := kubectl(t, "get", "persistentvolumeclaim", "data", "--namespace", ns, "--output=jsonpath={.status.phase}"); phase != "Bound" {
		t.Errorf("the claim is %s", phase)
	}
}

// TestClaimDisk stops and starts a box that has a disk and a claim: the disk is put back,
// and the claim is what others have made of it.
func TestClaimDisk(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	claim(t, ns, "data")
	e := open(t, ns, withDisks)
	shared := volumes(options.Volume{Claim: "data", GuestPath: "/data"})
	box, other := made(t, e, shared), made(t, e, shared)
	in(t, e, box.ID, "echo kept > /kept; echo one > /data/one; echo two > /data/two", "")
	stopped(t, e, box.ID)
	in(t, e, other.ID, "rm /data/one; echo changed > /data/two", "")
	started(t, e, box.ID)
	in(t, e, box.ID, "cat /kept; cd /data; cat *", "kept\nchanged\n")
	stopped(t, e, box.ID)
	if err := e.Remove(t.Context(), other.ID, true); err != nil {
		t.Error(err)
	}
	kubectl(t, "delete", "persistentvolumeclaim", "data", "--namespace", ns)
	_, err := e.Start(t.Context(), box.ID)
	says(t, err, fault.InvalidArgument, "volumes[0].claim", "data names no claim")
	leavesNothing(t, e, ns, box.ID, false)
}

// TestClaimFails makes boxes with claims that they can't have. They say why, and leave
// nothing.
func TestClaimFails(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	claim(t, ns, "data")
	claim(t, ns, "alone")
	claim(t, ns, "classless", `, "storageClassName": "none-such"`)
	claim(t, ns, "elsewhere", `, "storageClassName": "", "volumeName": "`+ns+`"`)
	apply(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": %[1]q}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
		"claimRef": {"namespace": %[1]q, "name": "elsewhere"}, "hostPath": {"path": "/nowhere"},
		"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["another"]}]}]}}}}`, ns))
	t.Cleanup(func() { kubectl(t, "delete", "persistentvolume", ns, "--wait=false") })
	e := open(t, ns, withDisks, func(c *kubernetes.Config) { c.ScheduleTimeout = 10 * time.Second })
	disk := made(t, e)
	for name, c := range map[string]struct {
		volume options.Volume
		kind   fault.Kind
		words  []string
	}{
		"missing":            {options.Volume{Claim: "none", GuestPath: "/data"}, fault.InvalidArgument, []string{"volumes[0].claim", "none names no claim of the namespace " + ns}},
		"of another box":     {options.Volume{Claim: pod(disk.ID), GuestPath: "/data"}, fault.InvalidArgument, []string{"volumes[0].claim", "is the disk of a box"}},
		"of no class":        {options.Volume{Claim: "classless", GuestPath: "/data"}, fault.ResourceExhausted, []string{"with the claim classless", "PersistentVolumeClaim"}},
		"bound elsewhere":    {options.Volume{Claim: "elsewhere", GuestPath: "/data"}, fault.ResourceExhausted, []string{"with the claim elsewhere", "node"}},
		"over init":          {options.Volume{Claim: "data", GuestPath: "/.sandbox/x"}, fault.InvalidArgument, []string{"volumes[0].guest_path", "/.sandbox"}},
		"over its disk":      {options.Volume{Claim: "data", GuestPath: "//.sandbox-disk"}, fault.InvalidArgument, []string{"volumes[0].guest_path"}},
		"a colon":            {options.Volume{Claim: "data", GuestPath: "/a:b"}, fault.InvalidArgument, []string{"volumes[0].guest_path", "colon"}},
		"over a file":        {options.Volume{Claim: "data", GuestPath: "/etc/passwd"}, fault.InvalidArgument, []string{"guest_path \"/etc/passwd\" can't be mounted", "one is a directory"}},
		"a path of one host": {options.Volume{HostPath: "/srv", GuestPath: "/data"}, fault.Unsupported, []string{"volumes[0].host_path", "--host-root"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := createBox(t.Context(), e, volumes(c.volume), func(o *options.Box) { o.AutoRemove, o.Name = name == "of no class", "one" })
			says(t, err, c.kind, c.words...)
		})
	}
	leavesNothing(t, e, ns, disk.ID, true)
}

// TestClaimOverInit has a link in a claim lead another claim to where the init of a box is.
// Process 1 is the box's init all the same.
func TestClaimOverInit(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	claim(t, ns, "data")
	claim(t, ns, "other")
	e := open(t, ns)
	both := []options.Volume{{Claim: "data", GuestPath: "/data"}, {Claim: "other", GuestPath: "/other"}}
	first := made(t, e, volumes(both...))
	in(t, e, first.ID, "ln -s /.sandbox /data/link; printf '#!/bin/sh\nsleep 100' > /other/sandbox-pod; chmod 755 /other/sandbox-pod", "")
	both[1].GuestPath = "/data/link"
	second := made(t, e, volumes(both...))
	in(t, e, second.ID, "ls /.sandbox; cat /.sandbox/sandbox-pod", "program\nsandbox-pod\n#!/bin/sh\nsleep 100")
	in(t, e, first.ID, "ln -s /proc /data/toproc", "")
	both[1].GuestPath = "/data/toproc"
	_, err := createBox(t.Context(), e, volumes(both...))
	says(t, err, fault.InvalidArgument, `guest_path "/data/toproc"`)
	for _, id := range []string{first.ID, second.ID} {
		if err := e.Remove(t.Context(), id, true); err != nil {
			t.Error(err)
		}
	}
	empty(t, ns)
}

// shared makes a directory of the node that boxes may share, and returns it with the engine
// that shares it. Its files belong to a user.
func shared(t *testing.T, ns string, change ...func(*kubernetes.Config)) (string, *kubernetes.Engine) {
	t.Helper()
	root, outside := t.TempDir(), t.TempDir()
	for _, dir := range []string{"dir/sub", "other"} {
		check(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	for file, text := range map[string]string{root + "/dir/f": "f\n", root + "/file": "file\n", outside + "/secret": "secret\n"} {
		check(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for link, target := range map[string]string{"link": "dir", "absolute": root + "/dir", "out": outside, "up": "../..", "loop": "loop", "dir/up": "../../.."} {
		check(t, os.Symlink(target, filepath.Join(root, link)))
	}
	check(t, unix.Mkfifo(root+"/pipe", 0o600))
	check(t, exec.Command("chown", "-hR", "1234:99", root).Run())
	return root, open(t, ns, append(change, func(c *kubernetes.Config) { c.HostRoots = []string{"/nowhere", root + "/"} })...)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestHostPath has boxes see directories and files of the node. Owners are as the node has
// them, on both sides.
func TestHostPath(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	root, e := shared(t, ns)
	box := made(t, e, volumes(
		options.Volume{HostPath: root + "/dir", GuestPath: "/d"}, options.Volume{HostPath: root + "//link/sub/", GuestPath: "/sub"},
		options.Volume{HostPath: root + "/file", GuestPath: "/etc/new/file", ReadOnly: true}, options.Volume{HostPath: root, GuestPath: "/all", ReadOnly: true},
	), func(o *options.Box) { o.User = "1234" })
	in(t, e, box.ID, "cat /d/f /etc/new/file /all/file; stat -c %u:%g /d/f; echo mine > /d/mine; echo sub > /sub/f; cat /d/sub/f; (echo x > /etc/new/file) 2>/dev/null || echo no; (echo x > /all/x) 2>/dev/null || echo no",
		"f\nfile\nfile\n1234:99\nsub\nno\nno\n")
	if out := as(t, e, box.ID, "4321", "cat /d/f"); !strings.Contains(out, "denied") {
		t.Errorf("another user: %s", out)
	}
	if out := as(t, e, box.ID, "0", "echo of root > /d/root; ls /d/up /all/out/"); strings.Contains(out, "secret") {
		t.Errorf("the box's root: %s", out)
	}
	for name, owner := range map[string]uint32{"dir/mine": 1234, "dir/root": 0} {
		info, err := os.Stat(filepath.Join(root, name))
		check(t, err)
		if st, is := info.Sys().(*syscall.Stat_t); !is || st.Uid != owner {
			t.Errorf("%s belongs to %+v on the node", name, info.Sys())
		}
	}
	leavesNothing(t, e, ns, box.ID, true)
}

// TestHostPathFails names paths of the node that a box can't have. Nothing is made for them.
func TestHostPathFails(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	root, e := shared(t, ns)
	for name, c := range map[string]struct {
		path, at string
		kind     fault.Kind
		words    string
	}{
		"missing":             {root + "/dir/none/deep", "/d", fault.InvalidArgument, "/dir/none/deep names no file or directory"},
		"a pipe":              {root + "/pipe", "/d", fault.InvalidArgument, "neither a directory nor a file"},
		"a loop":              {root + "/loop", "/d", fault.PermissionDenied, "leads out of the directory " + root},
		"a link out":          {root + "/out", "/d", fault.PermissionDenied, "leads out of the directory " + root},
		"through a link out":  {root + "/out/secret", "/d", fault.PermissionDenied, "leads out of the directory " + root},
		"up":                  {root + "/up", "/d", fault.PermissionDenied, "leads out of a directory that this server shares"},
		"up from below":       {root + "/dir/up/etc", "/d", fault.PermissionDenied, "leads out of the directory " + root},
		"an absolute link":    {root + "/absolute", "/d", fault.PermissionDenied, "leads out of the directory " + root},
		"outside":             {"/etc", "/d", fault.PermissionDenied, "/etc is in no directory of the nodes"},
		"beside":              {root + "x", "/d", fault.PermissionDenied, "is in no directory of the nodes"},
		"above":               {filepath.Dir(root), "/d", fault.PermissionDenied, "is in no directory of the nodes"},
		"a file over another": {root + "/file", "/etc", fault.InvalidArgument, `guest_path "/etc" can't be mounted`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := createBox(t.Context(), e, volumes(options.Volume{HostPath: c.path, GuestPath: c.at}))
			says(t, err, c.kind, c.words)
		})
	}
	t.Cleanup(func() {
		empty(t, ns)
		if made, err := os.ReadDir(root + "/dir"); err != nil || len(made) != 3 {
			t.Errorf("the directory has %v, %v", made, err)
		}
	})
}

// TestHostRootMissing shares a directory that the node does not have.
func TestHostRootMissing(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := open(t, ns, func(c *kubernetes.Config) { c.HostRoots, c.ScheduleTimeout = []string{"/srv/none-such"}, 5*time.Second })
	_, err := createBox(t.Context(), e, volumes(options.Volume{HostPath: "/srv/none-such/x", GuestPath: "/x"}))
	says(t, err, fault.Timeout, "the directory /srv/none-such of the node")
	empty(t, ns)
}

// TestHostPathRace changes a path into a link that leads out when it was looked at already:
// the kubelet does not follow it. A box that is started again is looked at anew.
func TestHostPathRace(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	root, e := shared(t, ns, withDisks)
	box := made(t, e, volumes(options.Volume{HostPath: root + "/other", GuestPath: "/d"}))
	var late map[string]any
	check(t, json.Unmarshal([]byte(kubectl(t, "get", "pod", pod(box.ID), "--namespace", ns, "--output=json")), &late))
	check(t, os.Rename(root+"/other", root+"/before"))
	check(t, os.Rename(root+"/out", root+"/other"))
	late["metadata"], late["status"] = map[string]any{"name": "late", "namespace": ns}, nil
	delete(late["spec"].(map[string]any), "initContainers")
	text, err := json.Marshal(late)
	check(t, err)
	apply(t, string(text))
	if why := kubectl(t, "wait", "pod/late", "--namespace", ns, "--timeout=30s", "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=CreateContainerConfigError", "--output=jsonpath={.status.containerStatuses[0].state.waiting.message}"); !strings.Contains(why, "subPath") {
		t.Errorf("the kubelet says %s", why)
	}
	kubectl(t, "delete", "pod", "late", "--namespace", ns, "--wait=false")
	stopped(t, e, box.ID)
	_, err = e.Start(t.Context(), box.ID)
	says(t, err, fault.PermissionDenied, "volumes[0].host_path", "leads out")
	check(t, os.Remove(root+"/other"))
	check(t, os.Rename(root+"/before", root+"/other"))
	started(t, e, box.ID)
	leavesNothing(t, e, ns, box.ID, true)
}

// TestHostPathUnmapped shares a directory on a file system whose owners can't be mapped for a
// user namespace.
func TestHostPathUnmapped(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	root, err := os.MkdirTemp("/var", "shared-") // an overlay, of the cluster alone
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(root)) })
	e := open(t, ns, func(c *kubernetes.Config) { c.HostRoots = []string{root} })
	_, err = createBox(t.Context(), e, volumes(options.Volume{HostPath: root, GuestPath: "/x"}))
	says(t, err, fault.Unsupported, "can't be id-mapped")
	empty(t, ns)
}

// TestServerVolumes asks servers for boxes with volumes, as root through their sockets.
func TestServerVolumes(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	claim(t, ns, "data")
	root := t.TempDir()
	shares, none := serve(t, ns, newHome(t), "--host-root", root), serve(t, ns, newHome(t))
	box, err := shares.CreateBox(t.Context(), plainWith(options.Volume{HostPath: root, GuestPath: "/host"}, options.Volume{Claim: "data", GuestPath: "/claim", ReadOnly: true}))
	check(t, err)
	if v := box.Volumes; len(v) != 2 || v[0] != (api.Volume{HostPath: root, GuestPath: "/host"}) || v[1] != (api.Volume{Claim: "data", GuestPath: "/claim", ReadOnly: true}) {
		t.Errorf("it tells %+v", v)
	}
	_, err = shares.CreateBox(t.Context(), plainWith(options.Volume{HostPath: "/etc", GuestPath: "/host"}))
	says(t, err, fault.PermissionDenied, "volumes[0].host_path")
	_, err = none.CreateBox(t.Context(), plainWith(options.Volume{HostPath: root, GuestPath: "/host"}))
	says(t, err, fault.Unsupported, "volumes[0].host_path", "--host-root")
	_, err = shares.RemoveBox(t.Context(), box.ID, true)
	check(t, err)
	empty(t, ns)
}

func plainWith(all ...options.Volume) options.Box {
	o := plain()
	o.Volumes = all
	return o
}
