# Gives the file ARGV[1] a capability, to be had by whoever executes it.
EFFECTIVE, REVISION_2, SYS_ADMIN = 1, 0x02000000, 1 << 21
rights = struct.pack("<IIIII", REVISION_2 | EFFECTIVE, SYS_ADMIN, 0, 0, 0)
attempt("give", lambda: os.setxattr(sys.argv[1], "security.capability", rights))
