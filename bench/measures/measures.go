// Package measures holds the measurements: what is done, by which contestants,
// how often, and against which bars ours is judged. [All] is the list that
// command bench chooses from.
package measures

import (
	"context"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

// All are the measurements that the command line can choose from, in the order
// in which they run.
var All = []Measurement{
	{"create", "create + start + first output, no pool: from before the request to the first byte of `echo hi`", measureCreate},
	{"create-warm", "the same from a pool of 2 boxes, 100 ms after the last one", measureWarm},
	{"create-unseen", "the same with an image that no box had before", measureUnseen},
	{"create-rootless", "the same by an ordinary user, no pool, beside root", measureRootless},
	{"life", "create, exec `echo hi` to its exit status, removal; 100 ms after the last one", measureLife},
	{"steps", "the steps of ours", measureSteps},
	{"calls", "system calls of a create from nothing: the shim and libcontainer, up to the start of the box's init, without those that only schedule threads", measureCalls},
	{"exec", "exec `echo hi` to its exit status, in a running box", measureExec},
	{"snapshot", "snapshots of a box that has written 100 MB in 1,000 files, beside `cp -a` of the same files, on ext4 and on xfs with reflink", measureSnapshot},
	{"clone", "a box of a snapshot up to its first output, beside one of an image, 100 ms after the last one", measureClone},
	{"clone-batch", "100 boxes of one snapshot, 8 at once, each to its first output, beside 100 of an image: wall time", measureCloneBatch},
	{"pause", "pause and resume of a box of 1 CPU whose commands rest, are busy, or want more than that CPU", measurePause},
	{"stream", "1 GiB of text on stdout, read 64 KiB at a time", measureStream},
	{"memory", "50 idle boxes, each used once: proportional set size of all processes of ours / 50", measureMemory},
	{"thousand", "1,000 idle boxes, each used once: memory, what is done among them, and their removal, 4 at once", measureThousand},
	{"files", "copies by `sandbox cp` into a box and out of it, beside tar through a pipe on the host: wall time", measureFiles},
	{"unpack", "import + unpack of Debian as one gzip layer of 69 MiB, into an empty store: wall time", measureUnpack},
	{"export", "export of an image of 500 MiB and import of it into an empty store, of one digest: wall time", measureExport},
	{"build", "`sandbox build` and `podman build` of one recipe of 10 steps, 5 of which run a command and 2 copy files, with nothing cached and with everything: wall time", measureBuild},
	{"pull", "pull of an image of 1 GiB in 8 layers from a registry on loopback: peak memory of all processes of ours, above idle", measurePull},
	{"batch", "100 creates, 8 at once, each to its first output: wall time", measureBatch},
	{"network", "create + start + first output: image of 5 layers, network with a way out, one volume, one port", measureNetwork},
	{"tcp", "TCP between a box and a server behind a veth pair: 1 GiB over 2 connections, out, and in through a published port", measureTCP},
	{"traces", "50 boxes with network, port, volume and disk made and removed, 8 at once: wall time, and what is left", measureTraces},
	{"hammer", "200 boxes created, used and removed from 8 threads of one C program: wall time", measureHammer},
	{"neighbour", "exec `echo hi` in a default box while another runs a fork bomb, a memory bomb and a write loop", measureNeighbour},
	{"rest-exec", "exec `echo hi` over REST in a running box: POST, events to the exit, through the Unix socket", measureRestExec},
	{"rest-run", "`POST /v1/run` of `echo hi` with a cached image of 5 layers, and the same life in process: create, exec, removal", measureRestRun},
	{"rest-e2b", "create + `echo hi` in the box, with a key: by E2B's own SDK for Python, unmodified, and by our own routes", measureE2B},
	{"rest-reads", "GET /v1/boxes with 50 boxes, and GET /v1/boxes/{id}: 4 connections over TCP, with a key", measureRestReads},
	{"rest-list", "GET files:list of 10,000 files over TCP, with a key, and the same of each file from `find` and `stat` of the box", measureRestList},
	{"rest-stream", "512 MiB out of a box and into one over TCP, with a key, read 64 KiB at a time, alone and beside one busy process; the file that is read is in memory", measureRestStream},
	{"rest-port", "1 GiB over HTTP from a program in a box, with a key: through the service, and through a published port of the same box", measureRestPort},
	{"rest-terminal", "32 MiB of text on a terminal over TCP, with a key, alone and beside one busy process", measureRestTerminal},
	{"rest-files", "upload and download of 4 GiB: growth of the daemon's resident memory at its peak", measureRestFiles},
	{"rest-crowd", "500 readers of events and 200 terminals at once, 256 KiB for each: peak of the daemon's resident memory", measureRestCrowd},
	{"rest-idle", "100 boxes made over REST, each used once: resident memory of the daemon", measureRestIdle},
}

// Measurement is one part of the report.
type Measurement struct {
	Name, What string
	Run        func(context.Context, *contestants.Field) ([]harness.Row, error)
}
