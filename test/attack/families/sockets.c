// class: sockets and netlink
// order: 7
// A box has sockets of its own network, and none of families that lead elsewhere.
#include "attack.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>

static enum verdict socket_of(const struct attack *a) { return refused(socket((int)a->args[0], (int)a->args[1], (int)a->args[2])); }

static enum verdict pair_of(const struct attack *a) {
  int pair[2];
  return refused(socketpair((int)a->args[0], (int)a->args[1], (int)a->args[2], pair));
}

// answered sends a request of netlink, which the answer must refuse.
static enum verdict answered(int protocol, const struct attack *a) {
  struct {
    struct nlmsghdr head;
    char body[256];
  } m = {.head = {.nlmsg_len = NLMSG_LENGTH((unsigned)a->args[1]), .nlmsg_type = (uint16_t)a->args[0], .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | a->args[2])}};
  if (a->text) memcpy(m.body, a->text, (size_t)a->args[1]);
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  if (fd < 0) return refused(-1);
  if (send(fd, &m, m.head.nlmsg_len, 0) < 0) return refused(-1);
  char answer[8192];
  if (recv(fd, answer, sizeof answer, MSG_DONTWAIT) < (long)sizeof(struct nlmsghdr)) return told(NOT_RUN, "no answer");
  struct nlmsgerr *e = NLMSG_DATA((struct nlmsghdr *)answer);
  if (((struct nlmsghdr *)answer)->nlmsg_type != NLMSG_ERROR || e->error == 0) return told(GOT, "it was done");
  errno = -e->error;
  return refused(-1);
}

// changed asks rtnetlink for a change.
static enum verdict changed(const struct attack *a) { return answered(NETLINK_ROUTE, a); }

// told_off asks another part of the kernel for one.
static enum verdict told_off(const struct attack *a) {
  struct attack asked = {a->name, 0, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", {a->args[1], 16, 0}};
  return answered((int)a->args[0], &asked);
}

// heard joins a group that hears of others.
static enum verdict heard(const struct attack *a) {
  struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_groups = (unsigned)a->args[1]};
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, (int)a->args[0]);
  return refused(fd < 0 ? -1 : bind(fd, (struct sockaddr *)&to, sizeof to));
}

// overheard asks to hear of each process of the host that begins or ends.
static enum verdict overheard(const struct attack *a) {
  struct {
    struct nlmsghdr head;
    uint32_t id[2], seq, ack;
    uint16_t size, flags;
    uint32_t listen;
  } m = {.head = {.nlmsg_len = sizeof m, .nlmsg_type = NLMSG_DONE}, .id = {1, 1}, .size = 4, .listen = 1};
  struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_groups = 1};
  struct timeval wait = {.tv_usec = 300000};
  char event[256];
  (void)a;
  int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);
  if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof to) || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait)) return refused(-1);
  if (send(fd, &m, sizeof m, 0) < 0) return refused(-1);
  if (fork() == 0) _exit(0);
  return recv(fd, event, sizeof event, 0) > 0 ? told(GOT, "it heard of one") : told(HELD, "it heard nothing");
}

// forged tells a group something in the kernel's name.
static enum verdict forged(const struct attack *a) {
  static const char event[] = "add@/devices/virtual/evil\0ACTION=add\0DEVPATH=/devices/virtual/evil\0SUBSYSTEM=block";
  struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_groups = (unsigned)a->args[1]};
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, (int)a->args[0]);
  return refused(fd < 0 ? -1 : sendto(fd, event, sizeof event, 0, (struct sockaddr *)&to, sizeof to));
}

static enum verdict configured(const struct attack *a) {
  struct ifreq ifr = {.ifr_flags = IFF_UP | IFF_PROMISC};
  int command[4] = {(int)a->args[1]};
  if (a->args[1]) ifr.ifr_data = (char *)command;
  strcpy(ifr.ifr_name, a->text);
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return fd < 0 ? refused(-1) : refused(ioctl(fd, (unsigned long)a->args[0], &ifr));
}

static enum verdict optioned(const struct attack *a) {
  int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return fd < 0 ? told(NOT_RUN, "no socket") : refused(setsockopt(fd, (int)a->args[0], (int)a->args[1], &one, sizeof one));
}

#define FAMILY(name, number)                                                                                            \
  {"stream socket of " name, socket_of, 0, {number, SOCK_STREAM}}, {"datagram socket of " name, socket_of, 0, {number, SOCK_DGRAM}}, \
      {"packet socket of " name, socket_of, 0, {number, SOCK_SEQPACKET}}
#define NETLINK(name, number) {"netlink of " name, socket_of, 0, {AF_NETLINK, SOCK_RAW, number}}

static const struct attack all[] = {
    FAMILY("ax25", 3), FAMILY("ipx", 4), FAMILY("appletalk", 5), FAMILY("netrom", 6), FAMILY("x25", 9), FAMILY("rose", 11), FAMILY("decnet", 12),
    FAMILY("key", 15), FAMILY("rds", 21), FAMILY("pppox", 24), FAMILY("llc", 26), FAMILY("infiniband", 27), FAMILY("can", 29), FAMILY("tipc", 30),
    FAMILY("bluetooth", 31), FAMILY("rxrpc", 33), FAMILY("isdn", 34), FAMILY("phonet", 35), FAMILY("ieee802154", 36), FAMILY("caif", 37),
    FAMILY("alg", 38), FAMILY("nfc", 39), FAMILY("vsock", 40), FAMILY("kcm", 41), FAMILY("qipcrtr", 42), FAMILY("smc", 43), FAMILY("xdp", 44), FAMILY("mctp", 45),
    {"raw packets", socket_of, 0, {AF_PACKET, SOCK_RAW, 0x0300}},
    {"cooked packets", socket_of, 0, {AF_PACKET, SOCK_DGRAM, 0x0300}},
    {"packets by their old name", socket_of, 0, {AF_INET, SOCK_PACKET, 0x0300}},
    {"packets by their old name, not blocking", socket_of, 0, {AF_INET, SOCK_PACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0x0300}},
    {"mptcp", socket_of, 0, {AF_INET, SOCK_STREAM, 262}},
    {"mptcp of IPv6", socket_of, 0, {AF_INET6, SOCK_STREAM, 262}},
    {"sctp", socket_of, 0, {AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP}},
    {"sctp streams", socket_of, 0, {AF_INET, SOCK_STREAM, IPPROTO_SCTP}},
    {"dccp", socket_of, 0, {AF_INET, 6, 33}},
    {"udplite", socket_of, 0, {AF_INET, SOCK_DGRAM, 136}},
    {"smc over tcp", socket_of, 0, {AF_INET, SOCK_STREAM, 256}},
    {"a pair of tipc", pair_of, 0, {30, SOCK_STREAM}},
    {"a pair of inet", pair_of, 0, {AF_INET, SOCK_STREAM}},
    NETLINK("iscsi", NETLINK_ISCSI), NETLINK("scsi", NETLINK_SCSITRANSPORT), NETLINK("ecryptfs", NETLINK_ECRYPTFS), NETLINK("rdma", NETLINK_RDMA),
    NETLINK("crypto", NETLINK_CRYPTO), NETLINK("smc", NETLINK_SMC), NETLINK("dnrtmsg", NETLINK_DNRTMSG),
    {"make a table of nftables", told_off, 0, {NETLINK_NETFILTER, (10 << 8) | 0}},
    {"list the tables of nftables", told_off, 0, {NETLINK_NETFILTER, (10 << 8) | 1}},
    {"list the connections of the host", told_off, 0, {NETLINK_NETFILTER, (1 << 8) | 1}},
    {"make a set of ipset", told_off, 0, {NETLINK_NETFILTER, (6 << 8) | 2}},
    {"take packets by nfqueue", told_off, 0, {NETLINK_NETFILTER, (3 << 8) | 2}},
    {"make an association of ipsec", told_off, 0, {NETLINK_XFRM, 0x10}},
    {"make a policy of ipsec", told_off, 0, {NETLINK_XFRM, 0x13}},
    {"flush the policies of ipsec", told_off, 0, {NETLINK_XFRM, 0x1d}},
    {"set the audit of the host", told_off, 0, {NETLINK_AUDIT, 1001}},
    {"forge a record of the audit", told_off, 0, {NETLINK_AUDIT, 1112}},
    {"hear of all processes", overheard},
    {"hear the audit", heard, 0, {NETLINK_AUDIT, 1}},
    {"forge an event of a device", forged, 0, {NETLINK_KOBJECT_UEVENT, 1}},
    {"forge an event of udev", forged, 0, {NETLINK_KOBJECT_UEVENT, 2}},
    {"make a link", changed, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", {RTM_NEWLINK, 16, NLM_F_CREATE}},
    {"take lo down", changed, "\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0", {RTM_NEWLINK, 16, 0}},
    {"take the network down", changed, "\0\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0", {RTM_NEWLINK, 16, 0}},
    {"remove a link", changed, "\0\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0", {RTM_DELLINK, 16, 0}},
    {"add an address", changed, "\2\x18\0\0\1\0\0\0\x08\0\2\0\x0a\0\0\1", {RTM_NEWADDR, 16, NLM_F_CREATE}},
    {"add a route", changed, "\2\x20\0\0\xfe\3\xfd\1\0\0\0\0", {RTM_NEWROUTE, 12, NLM_F_CREATE}},
    {"add a neighbour", changed, "\2\0\0\0\1\0\0\0\x80\0\0\0", {RTM_NEWNEIGH, 12, NLM_F_CREATE}},
    {"add a rule", changed, "\2\0\0\0\xfe\0\0\1\0\0\0\0", {RTM_NEWRULE, 12, NLM_F_CREATE}},
    {"add a queue", changed, "\0\0\0\0\1\0\0\0\0\0\1\0\xff\xff\xff\xff\0\0\0\0", {RTM_NEWQDISC, 20, NLM_F_CREATE}},
    {"name a network namespace", changed, "\0\0\0\0", {RTM_NEWNSID, 4, NLM_F_CREATE}},
    {"make lo promiscuous", configured, "lo", {0x8914}},
    {"set an address of lo", configured, "lo", {0x8916}},
    {"set the hardware address", configured, "lo", {0x8924}},
    {"rename lo", configured, "lo", {0x8923}},
    {"set the size of packets", configured, "lo", {0x8922}},
    {"reset the device by ethtool", configured, "lo", {0x8946, 0x34}},
    {"start the device anew by ethtool", configured, "lo", {0x8946, 9}},
    {"make a bridge", configured, "bridge", {0x89a0}},
    {"make a vlan", configured, "lo", {0x8983}},
    {"force a buffer", optioned, 0, {SOL_SOCKET, SO_RCVBUFFORCE}},
    {"debug a socket", optioned, 0, {SOL_SOCKET, SO_DEBUG}},
    {"rules of iptables", optioned, 0, {0, 64}},
    {"repair a connection", optioned, 0, {IPPROTO_TCP, 19}},
    {"another TLS under TCP", optioned, 0, {IPPROTO_TCP, 31}},
};

int main(void) { return ATTACK_ALL(all); }
