#!/usr/bin/env python3
# class: the smaller list of system calls
# order: 10
# box: --seccomp strict
# In a box with `seccomp: strict` Python, bash, threads and connections work, and what they
# do not need is not there.

import ctypes
import errno
import os
import socket
import subprocess
import threading

libc = ctypes.CDLL(None, use_errno=True)
# Numbers of x86-64, of arm64 where they are not those of both, and None where it has none.
CALLS = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "shmget": (29, 194), "shmat": (30, 196), "semget": (64, 190), "semop": (65, 193), "msgget": (68, 186), "msgsnd": (69, 189), "mq_open": (240, 180), "chroot": (161, 51),
    "io_setup": (206, 0), "io_submit": (209, 2), "vmsplice": (278, 75), "remap_file_pages": (216, 234), "mbind": (237, 235), "set_mempolicy": (238, 237), "get_mempolicy": (239, 236), "pkey_alloc": (330, 289), "pkey_mprotect": (329, 288), "personality": (135, 92),
    "sched_setscheduler": (144, 119), "sched_setattr": (314, 274), "ioprio_set": (251, 30), "mlockall": (151, 230), "mlock2": (325, 284), "memfd_secret": (447, 447), "landlock_create_ruleset": (444, 444), "cachestat": (451, 451), "map_shadow_stack": (453, 453), "futex_waitv": (449, 449),
    "futex_wait": (455, 455), "statmount": (457, 457), "listmount": (458, 458), "lsm_get_self_attr": (459, 459), "mseal": (462, 462), "setxattrat": (463, 463), "rt_tgsigqueueinfo": (297, 240), "bpf": (321, 280), "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "perf_event_open": (298, 241),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "keyctl": (250, 219), "iopl": (172, None), "modify_ldt": (154, None), "a later call": (600, 600),
}
SOCKETS = {"a raw socket of ICMP": (2, 3, 1), "a raw socket of TCP": (2, 3, 6), "a raw socket of IPv6": (10, 3, 58), "ICMP of a user": (2, 2, 1), "netlink": (16, 3, 0), "netlink of rules": (16, 3, 12), "packets": (17, 3, 3), "vsock": (40, 1, 0), "MPTCP": (2, 1, 262), "SCTP": (2, 1, 132)}


def call(numbers):
    if numbers is None:
        return "held", "it has none"
    if libc.syscall(numbers, 0, 0, 0, 0, 0, 0) != -1:
        return "GOT THROUGH", "it was done"
    return ("held" if ctypes.get_errno() in (errno.ENOSYS, errno.EPERM) else "GOT THROUGH"), errno.errorcode[ctypes.get_errno()]


def open_socket(how):
    try:
        socket.socket(*how).close()
    except OSError as e:
        return "held", errno.errorcode[e.errno]
    return "GOT THROUGH", "it was opened"


# What must work, or no attack has run.
began = []
thread = threading.Thread(target=began.append, args=(1,))
thread.start(), thread.join()
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
client.close(), server.close()
said = subprocess.run(["bash", "-c", "for i in 1 2; do echo $i | cat; done; mkfifo /tmp/p; (echo x >/tmp/p &) ; cat /tmp/p"], capture_output=True, text=True, check=True).stdout
if began != [1] or said != "1\n2\nx\n":
    raise SystemExit("Python and bash do not work: %r %r" % (began, said))

print("plan\t%d" % (len(CALLS) + len(SOCKETS)))
for name, numbers in CALLS.items():
    print("%s\t%s\t%s" % ((name,) + call(numbers[os.uname().machine == "aarch64"])), flush=True)
for name, how in SOCKETS.items():
    print("%s\t%s\t%s" % ((name,) + open_socket(how)), flush=True)
