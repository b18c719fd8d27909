# The classic way out of a chroot: hold the old folder, chroot below it, climb. Says where it ends.
def climb():
    os.makedirs("/tmp/below", exist_ok=True)
    held = os.open("/", os.O_RDONLY)
    os.chroot("/tmp/below")
    os.fchdir(held)
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")
    return here("/")


def here(path):
    stat = os.stat(path)
    return f"{stat.st_dev}:{stat.st_ino}"


inside = here("/")
try:
    end = apart(climb)
    print("climbed to", "the sandbox's root" if end == inside else f"{end} from {inside}")
except OSError as error:
    print("climbed to", errno.errorcode[error.errno])
print("above the root:", "nothing" if here("/..") == inside else "something")
roots = [line for line in open("/proc/self/mountinfo") if line.split()[4] == "/"]
print("mounts at the root:", len(roots))
