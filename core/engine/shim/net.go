package shim

import (
	"math/rand/v2"
	"strings"

	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/engine/shim/network"
	"sandbox/core/options"
)

// reservePorts reserves the ports of a new box. It returns nil for a box without
// a network.
func (l launcher) reservePorts(o options.Box) (*network.Box, error) {
	if o.Network == options.NetworkNone {
		return nil, nil
	}
	return l.network.Reserve(o.Ports)
}

// connect connects a new box to its network, if it has one.
func connect(net *network.Box, pid, base int) error {
	if net == nil {
		return nil
	}
	number := (base - firstID) / idsPerBox
	if asUser { // boxes share their ids, and no box of another home is in this network
		number = rand.IntN(core.MaxBoxes)
	}
	return net.Connect(pid, number)
}

// publish publishes ports of a box that is connected, if it has a network.
func publish(net *network.Box, ports []options.Port) error {
	if net == nil {
		return nil
	}
	return net.Publish(ports)
}

func closeNetwork(net *network.Box) error {
	if net == nil {
		return nil
	}
	return net.Close()
}

// takeOverNetwork adopts the network of a running box. It logs the ports that
// can't be held by a socket: they lead to the box all the same.
func (k *keeper) takeOverNetwork(rec *record.Box) *network.Box {
	if rec.Link == "" {
		return nil
	}
	net, err := k.launcher.network.Adopt(rec.Link, rec.Options.Ports)
	if err != nil {
		k.log.Error("adopt a box's network", "box", rec.ID, "error", err)
	}
	return net
}

// etc returns the files to write into the box's /etc, by name. hostname and
// hosts are among them only before the box's first start: from then on they are
// the box's own. resolv.conf follows the host's resolvers at each start.
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
