// Package shim makes, keeps and removes the boxes of one home. It is the part of
// the engine that works with privileges, and runs in a process of its own,
// cmd/sandbox-shim: libcontainer starts its own program again and has a C
// constructor, so it may not be linked into a host's process.
//
// [Serve] is the only entry point. Behind it are
//
//   - the keeper, which knows the boxes and their records and answers the
//     engine's clients over the home's socket (messages: core/engine/wire);
//   - the launcher, which makes one box: its cgroups (groups), user ids
//     (idRange), root file system (tree), volumes and network, and then, through
//     libcontainer, its init;
//   - the sweep, which removes what a killed shim or a crash has left.
//
// A record is written before the first kernel object of a box is made and
// removed after the last one is gone, so that the next shim always knows what to
// look for. Boxes keep running when their shim dies; the next shim adopts them.
package shim
