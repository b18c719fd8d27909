# Swapping a mount point for a link.
for folder in ("/proc", "/sys", "/dev", "/dev/pts", "/dev/shm"):
    attempt(f"remove {folder}", lambda: os.rmdir(folder))
    attempt(f"move {folder}", lambda: os.rename(folder, "/tmp/moved"))
    attempt(f"link at {folder}", lambda: os.symlink("/etc", folder))
