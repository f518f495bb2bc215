package shim

import (
	"strings"

	"sandbox/core/engine/record"
	"sandbox/core/engine/shim/network"
	"sandbox/core/options"
)

// reservePorts takes the ports of a new box; nil for one without a network.
func (l launcher) reservePorts(o options.Box) (*network.Box, error) {
	if o.Network == options.NetworkNone {
		return nil, nil
	}
	return l.network.Reserve(o.Ports)
}

// connect gives a new box its network.
func connect(net *network.Box, pid, base int) error {
	if net == nil {
		return nil
	}
	return net.Connect(pid, (base-firstID)/idsPerBox)
}

func closeNetwork(net *network.Box) error {
	if net == nil {
		return nil
	}
	return net.Close()
}

// takeOverNetwork adopts the network of a box that runs. What of its ports
// can't be held is noted: they lead to the box all the same.
func (k *keeper) takeOverNetwork(rec *record.Box) *network.Box {
	if rec.Link == "" {
		return nil
	}
	net, err := k.launcher.network.Adopt(rec.Link, rec.Options.Ports)
	if err != nil {
		k.log.Error("take over a box's network", "box", rec.ID, "error", err)
	}
	return net
}

// etc returns the files that the box's /etc has to hold. The names of hosts are
// the box's own once it has begun; its resolvers follow the host's.
func etc(b record.Box, net *network.Box) (map[string]string, error) {
	files := map[string]string{}
	if b.StartedAt == nil {
		name := hostname(b)
		files["hostname"] = name + "\n"
		files["hosts"] = strings.Join([]string{
			"127.0.0.1\tlocalhost", "127.0.1.1\t" + name,
			"::1\tlocalhost ip6-localhost ip6-loopback", "",
		}, "\n")
	}
	if net == nil {
		return files, nil
	}
	text, err := net.Resolvers()
	if text != "" {
		files["resolv.conf"] = text
	}
	return files, err
}
