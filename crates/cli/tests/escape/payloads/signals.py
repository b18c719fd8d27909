# Every signal at process 1, in every way, but not the ones in ARGV. Prints a line per way that it outlives.
left_out = {int(number) for number in sys.argv[1:]}
numbers = [number for number in range(1, 65) if number not in left_out]


def quietly(action):
    try:
        action()
    except OSError:
        pass


for number in numbers:
    quietly(lambda: os.kill(1, number))
print("kill: alive", flush=True)
handle = os.pidfd_open(1)
for number in numbers:
    quietly(lambda: signal.pidfd_send_signal(handle, number))
print("pidfd_send_signal: alive", flush=True)
for number in numbers:
    # si_code SI_QUEUE, as if by process 0.
    quietly(lambda: call("rt_sigqueueinfo", 1, number, ctypes.create_string_buffer(struct.pack("<iii", number, 0, -1), 128)))
print("rt_sigqueueinfo: alive", flush=True)
