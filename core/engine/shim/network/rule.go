package network

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// part is a condition or a verdict of a rule. Rules are lists of parts.
type part []expr.Any

// reg and reg2 are the first two registers of 4 bytes. Parts that compare use the
// first one.
const (
	reg  = unix.NFT_REG32_00
	reg2 = unix.NFT_REG32_01
)

func compare(op expr.CmpOp, data []byte) expr.Any {
	return &expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: data}
}

// iface compares the beginning of an interface's name with linkPrefix. fromBox,
// toBox and their opposites use it to recognise boxes' interfaces.
func iface(key expr.MetaKey, op expr.CmpOp) part {
	return part{&expr.Meta{Key: key, Register: unix.NFT_REG_1}, compare(op, []byte(linkPrefix))}
}

func fromBox() part    { return iface(expr.MetaKeyIIFNAME, expr.CmpOpEq) }
func notFromBox() part { return iface(expr.MetaKeyIIFNAME, expr.CmpOpNeq) }
func toBox() part      { return iface(expr.MetaKeyOIFNAME, expr.CmpOpEq) }
func notToBox() part   { return iface(expr.MetaKeyOIFNAME, expr.CmpOpNeq) }

// foreignSource matches a packet with a source address to which the host's routes
// would not send an answer through the interface that the packet came from.
func foreignSource() part {
	return part{&expr.Fib{Register: unix.NFT_REG_1, ResultOIF: true, FlagSADDR: true, FlagIIF: true}, compare(expr.CmpOpEq, make([]byte, 4))}
}

// toHost matches a packet whose destination is one of the host's own addresses.
func toHost() part {
	return part{
		&expr.Fib{Register: unix.NFT_REG_1, ResultADDRTYPE: true, FlagDADDR: true},
		compare(expr.CmpOpEq, binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)),
	}
}

// answers matches a packet that belongs to a connection that was let through.
func answers() part {
	return masked(&expr.Ct{Key: expr.CtKeySTATE, Register: unix.NFT_REG_1}, expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED)
}

// published matches a packet that the table itself led to a box.
func published() part {
	const dstNAT = 1 << 5 // IPS_DST_NAT
	return masked(&expr.Ct{Key: expr.CtKeySTATUS, Register: unix.NFT_REG_1}, dstNAT)
}

// tracked matches a packet of a connection that is in the kernel's table already.
func tracked() part {
	const confirmed = 1 << 3 // IPS_CONFIRMED
	return masked(&expr.Ct{Key: expr.CtKeySTATUS, Register: unix.NFT_REG_1}, confirmed)
}

// box loads the index of the interface that a packet came from. This index is the
// key of boxes in sets.
func box() expr.Any { return &expr.Meta{Key: expr.MetaKeyIIF, Register: unix.NFT_REG_1} }

// isFull matches a packet from a box that is in the set.
func isFull(set *nftables.Set) part {
	return part{box(), &expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: set.Name, SetID: set.ID}}
}

// tooMany counts the packet's connection among those of its box in the set, and
// matches if the box has more than maxFlows.
func tooMany(set *nftables.Set) part {
	limit := &expr.Connlimit{Count: maxFlows, Flags: expr.NFT_CONNLIMIT_F_INV}
	return part{box(), &expr.Dynset{SrcRegKey: unix.NFT_REG_1, SetName: set.Name, SetID: set.ID, Operation: unix.NFT_DYNSET_OP_ADD, Exprs: []expr.Any{limit}}}
}

// addTo puts the packet's box into the set, for the duration of pause.
func addTo(set *nftables.Set) part {
	return part{box(), &expr.Dynset{SrcRegKey: unix.NFT_REG_1, SetName: set.Name, SetID: set.ID, Operation: unix.NFT_DYNSET_OP_ADD, Timeout: pause}}
}

// hop loads a packet's box and its next hop, which is the destination itself on
// the host's own links. It matches packets of one family.
func hop(v6 bool) part {
	key := expr.RtNexthop4
	if v6 {
		key = expr.RtNexthop6
	}
	return append(family(v6), &expr.Meta{Key: expr.MetaKeyIIF, Register: reg}, &expr.Rt{Key: key, Register: reg2})
}

// isHop matches a packet from a box to a next hop that are in the set together.
func isHop(set *nftables.Set, v6 bool) part {
	return append(hop(v6), &expr.Lookup{SourceRegister: reg, SetName: set.Name, SetID: set.ID})
}

// addHop puts the packet's box with its next hop into the set, for the duration
// of hopKept.
func addHop(set *nftables.Set, v6 bool) part {
	return append(hop(v6), &expr.Dynset{SrcRegKey: reg, SetName: set.Name, SetID: set.ID, Operation: unix.NFT_DYNSET_OP_ADD, Timeout: hopKept})
}

// tooFast matches if the packet's box comes here more often than it may come to
// other next hops.
func tooFast(set *nftables.Set) part {
	limit := &expr.Limit{Type: expr.LimitTypePkts, Unit: expr.LimitTimeSecond, Rate: hopsPerSecond, Burst: hopsAtOnce, Over: true}
	return part{box(), &expr.Dynset{SrcRegKey: unix.NFT_REG_1, SetName: set.Name, SetID: set.ID, Operation: unix.NFT_DYNSET_OP_UPDATE, Timeout: hopsPause, Exprs: []expr.Any{limit}}}
}

func masked(load expr.Any, bits uint32) part {
	return part{
		load,
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(bits), Xor: make([]byte, 4)},
		compare(expr.CmpOpNeq, make([]byte, 4)),
	}
}

// family matches packets of IPv6, or of IPv4 if v6 is false.
func family(v6 bool) part {
	f := byte(unix.NFPROTO_IPV4)
	if v6 {
		f = unix.NFPROTO_IPV6
	}
	return part{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: unix.NFT_REG_1}, compare(expr.CmpOpEq, []byte{f})}
}

// These are the offsets in bytes of the addresses in the headers of IPv4 and IPv6.
const (
	source4, destination4 = 12, 16
	source6, destination6 = 8, 24
)

func header(base expr.PayloadBase, offset, length, register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: base, Offset: offset, Len: length}
}

// within matches a packet of p's family that has an address in p at the given
// offset of its header. Which offset it uses depends on the family.
func within(p netip.Prefix, offset4, offset6 uint32) part {
	size, offset := uint32(4), offset4
	if p.Addr().Is6() {
		size, offset = 16, offset6
	}
	return append(family(p.Addr().Is6()),
		header(expr.PayloadBaseNetworkHeader, offset, size, unix.NFT_REG_1),
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: size, Mask: ipNet(p).Mask, Xor: make([]byte, size)},
		compare(expr.CmpOpEq, p.Masked().Addr().AsSlice()))
}

func from(p netip.Prefix) part { return within(p, source4, source6) }
func to(p netip.Prefix) part   { return within(p, destination4, destination6) }

// dns matches a packet to port 53 of an address in the set.
func dns(set *nftables.Set, v6 bool) part {
	size, offset := uint32(4), uint32(destination4)
	if v6 {
		size, offset = 16, destination6
	}
	return append(family(v6),
		header(expr.PayloadBaseNetworkHeader, offset, size, unix.NFT_REG_1),
		&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: set.Name, SetID: set.ID},
		// Both protocols of interest, TCP and UDP, have the destination port at
		// this place.
		header(expr.PayloadBaseTransportHeader, 2, 2, unix.NFT_REG_1),
		compare(expr.CmpOpEq, binaryutil.BigEndian.PutUint16(53)))
}

// lead sends a packet whose destination is in the map m to the box's address and
// port that the map has for it. The key has the destination address if byAddress
// is true.
func lead(m *nftables.Set, byAddress bool) part {
	p := family(false)
	r := uint32(reg)
	if byAddress {
		p = append(p, header(expr.PayloadBaseNetworkHeader, destination4, 4, r))
		r++
	}
	return append(p,
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: r},
		header(expr.PayloadBaseTransportHeader, 2, 2, r+1),
		&expr.Lookup{SourceRegister: reg, DestRegister: reg, IsDestRegSet: true, SetName: m.Name, SetID: m.ID},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: reg, RegProtoMin: reg2})
}

func masquerade() part { return part{&expr.Masq{}} }
func accept() part     { return part{&expr.Verdict{Kind: expr.VerdictAccept}} }

// leadTo continues with the rules of another chain.
func leadTo(chain string) part {
	return part{&expr.Verdict{Kind: expr.VerdictJump, Chain: chain}}
}

func drop() part { return part{&expr.Verdict{Kind: expr.VerdictDrop}} }
