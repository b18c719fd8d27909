# What shows the host's kernel and processes: how much of it can be read.
def seen(path):
    if os.path.isdir(path):
        return "empty" if not os.listdir(path) else "something"
    return "something" if read(path) else "empty"


for path in sys.argv[1:]:
    attempt(path, lambda: seen(path))
