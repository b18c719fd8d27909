# Every way to change the file ARGV[1], which is the host's, and the folder it lies in.
import mmap
path = sys.argv[1]
folder = os.path.dirname(path)


def through_a_mapping():
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:4] = b"evil"


def through_a_hard_link():
    os.link(path, f"{folder}/hard")
    with open(f"{folder}/hard", "a") as file:
        file.write("evil")


def through_a_soft_link():
    os.symlink(path, f"{folder}/soft")
    with open(f"{folder}/soft", "a") as file:
        file.write("evil")


def through_proc():
    with open(f"/proc/self/root{path}", "a") as file:
        file.write("evil")


attempt("hard link", through_a_hard_link)
attempt("mapping", through_a_mapping)
attempt("soft link", through_a_soft_link)
attempt("/proc/self/root", through_proc)
attempt("chmod", lambda: os.chmod(path, 0o777))
attempt("times", lambda: os.utime(path, (1, 1)))
attempt("attribute", lambda: os.setxattr(path, "user.evil", b"1"))
attempt("new file", lambda: os.close(os.open(f"{folder}/new", os.O_CREAT | os.O_WRONLY)))
attempt("replace", lambda: os.rename(f"{folder}/new", path))
attempt("remove", lambda: os.unlink(path))
