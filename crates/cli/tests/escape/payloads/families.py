# Socket families beside the everyday ones, and raw packets.
def icmp(kind):
    with socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP) as s:
        s.sendto(b"\x08\0\xf7\xff\0\0\0\0", ("192.0.2.1", 0))


for name, family in (("packet", 17), ("vsock", 40), ("alg", 38), ("bluetooth", 31), ("can", 29), ("tipc", 30), ("xdp", 44), ("key", 15), ("rds", 21), ("x25", 9)):
    attempt(name, lambda: socket.socket(family, socket.SOCK_RAW if family in (15, 17, 29, 31, 44) else socket.SOCK_SEQPACKET if family in (21, 38, 9) else socket.SOCK_STREAM, 2 if family == 15 else 0).close())
attempt("raw icmp", lambda: icmp(socket.SOCK_RAW))
attempt("icmp without rights", lambda: icmp(socket.SOCK_DGRAM))
print("interfaces:", *[name for _, name in socket.if_nameindex()])
