# Takes memory, ARGV[2] MiB, in the way ARGV[1] says.
amount = int(sys.argv[2]) << 20
if sys.argv[1] == "heap":
    kept = bytearray(amount)
    for place in range(0, amount, 4096):
        kept[place] = 1
elif sys.argv[1] == "read":
    # Of the file ARGV[3].
    with open(sys.argv[3], "rb", buffering=0) as file:
        left = amount
        while left > 0 and (piece := file.read(1 << 20)):
            left -= len(piece)
    if left > 0:
        sys.exit("the file is too short")
else:
    with open({"tmpfs": "/dev/shm/bomb", "written": "/var/tmp/bomb"}[sys.argv[1]], "wb") as file:
        for _ in range(amount >> 20):
            file.write(b"\1" * (1 << 20))
print("taken", flush=True)
