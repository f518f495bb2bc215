// Package namespaces keeps the user and network namespaces of the home of a user who is
// not root. The shim of such a home runs in them, as their root:
//
//	sandbox-shim enter       has the namespaces made or finds them, and becomes the shim in them
//	sandbox-shim outside     stays in the host's namespaces for the shim: it runs pasta or
//	                         slirp4netns, which connects the namespaces, and makes sockets for
//	                         published ports
//	sandbox-shim rest        keeps the namespaces while the two others may be killed
package namespaces

import "C" // for the constructor in join.c: only a process with one thread may join a user namespace
