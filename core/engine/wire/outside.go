package wire

import "net/netip"

// These are the frames between the shim of a user who is not root and the process that
// stays in the host's namespaces for it. Each request gets one answer.
const (
	TypeNamespaces Type = iota + 128 // no body; answered with TypeDone and descriptors of the user and the network namespace
	TypeUplink                       // no body; connects the network namespace, and is answered with TypeConnected
	TypeConnected                    // Connected
	TypeListen                       // Listen; answered with TypeListening, and a socket if there is one
	TypeListening                    // Listening
	TypeAddresses                    // no body; answered with TypeOwn, at once and whenever the addresses change
	TypeOwn                          // Own
	TypeLeave                        // no body; of a shim that is not needed any more, answered with TypeDone
)

// Connected says how the network namespace is connected.
type Connected struct {
	Pool netip.Prefix `json:"pool"` // no route of the host leads there
	MTU  int          `json:"mtu"`
}

// Listen requests a socket of the host's network that is bound to an address. A port of 0
// stands for any.
type Listen struct {
	Address netip.AddrPort `json:"address"`
	UDP     bool           `json:"udp,omitempty"`
}

// Listening says how a Listen went.
type Listening struct {
	Port  int `json:"port,omitempty"`
	Errno int `json:"errno,omitempty"` // why there is no socket
}

// Own are the addresses of the host.
type Own struct {
	Prefixes []netip.Prefix `json:"prefixes"`
}

// OutsideSocket and OutsideLock are the names of files in the directory "engine" of a home.
const (
	OutsideSocket = "outside.sock"
	OutsideLock   = "outside.lock"
	RestFile      = "rest.json" // which process keeps the namespaces
)
