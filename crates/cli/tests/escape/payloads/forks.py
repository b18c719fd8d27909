# Forks until it is refused, with `users` as ARGV[1] as ever other users. All stay until the end, at most ARGV[2].
users, most = sys.argv[1] == "users", int(sys.argv[2])
children = []
why = "none"
for number in range(most):
    try:
        read_end, write_end = os.pipe()
        child = os.fork()
    except OSError as error:
        why = errno.errorcode[error.errno]
        break
    if child == 0:
        try:
            if users:
                os.setgid(1000 + number)
                os.setuid(1000 + number)
            os.write(write_end, b"+")
            time.sleep(120)
        finally:
            os._exit(0)
    os.close(write_end)
    # A process over its new user's limit may run, but not fork.
    os.read(read_end, 1)
    os.close(read_end)
    children.append(child)
print(f"processes: {len(children)}")
print(f"refusal: {why}", flush=True)
for child in children:
    os.kill(child, signal.SIGKILL)
