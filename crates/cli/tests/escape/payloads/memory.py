# Takes memory, ARGV[2] MiB, in the way ARGV[1] says.
amount = int(sys.argv[2]) << 20
if sys.argv[1] == "heap":
    kept = bytearray(amount)
    for place in range(0, amount, 4096):
        kept[place] = 1
else:
    with open("/dev/shm/bomb", "wb") as file:
        for _ in range(amount >> 20):
            file.write(b"\1" * (1 << 20))
print("taken", flush=True)
