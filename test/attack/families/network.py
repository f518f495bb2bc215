#!/usr/bin/env python3
# class: network
# order: 9
# neighbour: yes
# A box reaches neither the host's own ports nor another box, and nobody in another's name.
# The host and the neighbour listen: what reaches them is what they saw.

import errno
import os
import socket
import struct
from concurrent.futures import ThreadPoolExecutor

PORT = int(os.environ["BOARD_PORT"])
HOSTS = os.environ["BOARD_HOSTS"].split(",")
NEIGHBOUR = os.environ["BOARD_NEIGHBOUR"]
METADATA = ("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192")


def gateway():
    for line in open("/proc/net/route"):
        part = line.split()
        if part[1] == "00000000":
            return socket.inet_ntoa(struct.pack("<I", int(part[2], 16)))
    raise OSError(errno.ENETUNREACH, "no way out")


def own():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((gateway(), 9))
        return s.getsockname()[0]


def connect(address, port=PORT):
    """Connects, which must fail or wait."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM) as s:
        s.settimeout(0.5)
        s.connect((address, port))
    return "connected"


def ask(address, port=PORT):
    """Sends a datagram, whose answer must not come."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.5)
        s.connect((address, port))
        s.send(b"board")
        s.recv(16)
    return "answered"


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def spoof(source, target, device=None, route=b""):
    """Sends a datagram in the name of another, which must not arrive: who listens tells."""
    udp = struct.pack("!HHHH", 4321, PORT, 13, 0) + b"board"
    head = 5 + len(route) // 4
    ip = struct.pack("!BBHHHBBH4s4s", 0x40 | head, 0, head * 4 + len(udp), 7, 0, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(target)) + route
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
        if device:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
        for _ in range(3):
            s.sendto(ip + udp, (target, 0))


def foreign(source, target):
    """Speaks from an address that is not its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_IP, 19, 1)  # IP_TRANSPARENT
        s.bind((source, 0))
        s.settimeout(0.5)
        s.sendto(b"board", (target, PORT))
        s.recv(16)
    return "answered"


def echo(address):
    """Asks for an echo, which must not come."""
    ping = struct.pack("!BBHHH", 8, 0, 0, 1, 1) + b"board"
    ping = ping[:2] + struct.pack("!H", checksum(ping)) + ping[4:]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as s:
        s.settimeout(0.5)
        s.sendto(ping, (address, 0))
        while True:
            answer, (who, _) = s.recvfrom(256)
            if who == address and answer[20] == 0:
                return "echoed"


def redirect(target):
    """Tells the host of a better way, which it must not take."""
    body = struct.pack("!BBH4s", 5, 1, 0, socket.inet_aton(own())) + b"\x45" + b"\0" * 27
    body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as s:
        s.sendto(body, (target, 0))


def advertise():
    """Says that it is the router of everyone."""
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as s:
        s.sendto(struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0), ("ff02::1%eth0", 0, 0, socket.if_nametoindex("eth0")))


def attacks():
    way = gateway()
    for name, address in [("the gateway", way)] + [("the host's " + host, host) for host in HOSTS if host != way] + [("the neighbour", NEIGHBOUR)]:
        yield "connect to " + name, lambda to=address: connect(to)
        yield "ask " + name, lambda to=address: ask(to)
        if ":" not in address:
            yield "ask for an echo of " + name, lambda to=address: echo(to)
            yield "ask %s as 127.0.0.1" % name, lambda to=address: spoof("127.0.0.1", to)
            yield "ask %s as the gateway" % name, lambda to=address: spoof(way, to)
            yield "ask %s as somebody far away" % name, lambda to=address: spoof("198.51.100.7", to)
            yield "speak to %s from an address that is not its own" % name, lambda to=address: foreign("198.51.100.8", to)
            yield "ask %s by a loose route" % name, lambda to=address: spoof(own(), to, route=b"\x83\x07\x04" + socket.inet_aton(way) + b"\0")
    for port in (22, 53, 80, 111, 443, 2375, 2376, 5000, 6443, 9090, 10250):
        yield "connect to port %d of the gateway" % port, lambda port=port: connect(way, port)
    for address in METADATA:
        yield "the metadata of " + address, lambda to=address: connect(to, 80)
    yield "the metadata of fd00:ec2::254", lambda: connect("fd00:ec2::254", 80)
    for device in (b"eth0", b"lo"):
        yield "127.0.0.1 by " + device.decode(), lambda device=device: spoof(own(), "127.0.0.1", device)
        yield "127.0.0.2 of the host by " + device.decode(), lambda device=device: spoof("127.0.0.1", "127.0.0.2", device)
    yield "everyone of the network", lambda: spoof(own(), "255.255.255.255")
    yield "another way for the gateway", lambda: redirect(way)
    yield "another way for the neighbour", lambda: redirect(NEIGHBOUR)
    yield "a router of its own", advertise


def judge(attack):
    """Returns what became of an attack: those that only send are judged by who listens."""
    try:
        got = attack()
    except socket.timeout:
        return "held", "no answer"
    except OSError as e:
        return "NOT RUN" if e.errno in (errno.EADDRINUSE, errno.EINVAL, errno.EBADF) else "held", errno.errorcode.get(e.errno, str(e))
    except Exception as e:
        return "NOT RUN", "%s: %s" % (type(e).__name__, e)
    return ("GOT THROUGH", got) if got else ("held", "sent")


names, tried = zip(*attacks())
print("plan\t%d" % len(names))
with ThreadPoolExecutor(16) as several:
    for name, told in zip(names, several.map(judge, tried)):
        print("%s\t%s\t%s" % ((name,) + told), flush=True)
