# The other doors to the kernel on x86_64: the x32 numbers, and 32-bit calls from 64-bit code.
import mmap


def thirty_two_bit():
    # mov eax, 20 (getpid); int 0x80; ret
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    code = ctypes.addressof(ctypes.c_char.from_buffer(page))
    answer = ctypes.CFUNCTYPE(ctypes.c_int)(code)()
    if answer < 0:
        raise OSError(-answer, "refused")
    return "a pid"


attempt("x32 getpid", lambda: raw(0x40000000 | 39) and "a pid")
attempt("x32 unshare", lambda: apart(lambda: raw(0x40000000 | 272, 0x10000000)))
attempt("x32 io_uring_setup", lambda: raw(0x40000000 | 425, 1, None))
attempt("int 0x80", lambda: apart(thirty_two_bit))
