package httpd

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// checkPorts publishes the ports that name no address on the first address of the
// server. Errors: PermissionDenied, for the first address that r's client may not
// name.
func (s *Server) checkPorts(r *request, o *options.Box, p *document.Problems) (refused error) {
	for i := range o.Ports {
		port, field := &o.Ports[i], fmt.Sprintf("ports[%d].host_ip", i)
		port.HostIP = cmp.Or(port.HostIP, s.Publish[0].String())
		if r.by == ByFile || p.Has(field) { // trusted, or no address at all
			continue
		}
		if ip, err := netip.ParseAddr(port.HostIP); err != nil || !s.publishes(ip.Unmap()) {
			refused = cmp.Or(refused, fault.New(fault.PermissionDenied, "%s %s is not open to clients over TCP: "+
				"use the loopback or one of %v, or have the server run with --publish %s too", field, brief(port.HostIP), s.Publish, brief(port.HostIP)))
		}
	}
	return refused
}

// publishes tells whether clients over TCP may publish ports on an address: the
// loopback, and what the server itself publishes on. There 0.0.0.0 and :: stand
// for all addresses of their kind.
func (s *Server) publishes(ip netip.Addr) bool {
	return ip.IsLoopback() || slices.ContainsFunc(s.Publish, func(a netip.Addr) bool {
		return a == ip || a.IsUnspecified() && a.Is4() == ip.Is4()
	})
}
