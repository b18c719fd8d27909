# Prints all about the files of a folder, but for git's own, as JSON: in a sandbox and on the real machine.
import hashlib
import json
import os
import stat
import sys

root = sys.argv[1]
tree = {}


def look(path, name):
    about = os.lstat(path)
    if stat.S_ISREG(about.st_mode):
        with open(path, "rb") as file:
            text = hashlib.sha256(file.read()).hexdigest()
    elif stat.S_ISLNK(about.st_mode):
        text = os.readlink(path)
    else:
        text = ""
    names = [] if stat.S_ISLNK(about.st_mode) else os.listxattr(path)
    tree[name] = {
        "mode": about.st_mode,
        "mtime": about.st_mtime_ns,
        "text": text,
        "attributes": {name: os.getxattr(path, name).hex() for name in names if name.startswith("user.")},
        "inode": about.st_ino if stat.S_ISREG(about.st_mode) else None,
        "names": about.st_nlink if stat.S_ISREG(about.st_mode) else None,
    }
    if stat.S_ISDIR(about.st_mode):
        for child in os.listdir(path):
            if child != ".git":
                look(os.path.join(path, child), child if name == "." else f"{name}/{child}")


look(root, ".")
json.dump(tree, sys.stdout)
