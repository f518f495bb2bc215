// Package link stretches connections to the init of a box over the network: it carries
// the frames of package wire and what flows through the descriptors that init passes
// with them, and survives cuts of the network without a byte lost or doubled.
//
// A session is one stretched connection. It has a few reliable streams of bytes: stream
// 0 carries the frames of both ways, and each descriptor that init passes becomes one
// more. A line is one connection between the two ends, verified on both sides. It serves
// one session at a time, and after that the next one, so a command costs no handshake.
//
// Each stream counts its bytes from 0 in each direction. A sender keeps what has not been
// taken yet in a ring, and reads no more from its pipe while the ring is full, so a pipe
// that nobody reads holds the command back as it does on one host. When a line is cut,
// the host end makes another one and both ends say how far they have received: the
// streams go on from there. What is acknowledged has been taken by the caller: it is in
// no pipe any more. So a caller that is killed loses nothing that it had not read; another
// one takes the exec over with an Attach, and says how much it has, if it knows better.
//
// The end of an exec says how much output was in the pipes when init sent it, and reaches
// the caller behind that output. When a caller detaches, or its process dies, the box end
// keeps the session, because init passes the descriptors of an exec to one reader at a
// time.
//
// A window is larger than the largest pipe that a reader makes (spool makes one of 1 MiB):
// the kernel tells when a full pipe has room again, not when one that is not full is read.
// Those who make the TLS connections should set DynamicRecordSizingDisabled, and
// SessionTicketsDisabled at the box end: a line is kept, so its first records may be whole
// and nothing is resumed.
//
// Both ends take what comes from the other for hostile: sizes, offsets and numbers of
// streams are bounded, and a frame that breaks the rules ends the session at that end.
package link
