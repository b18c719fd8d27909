//! Loop devices: a file as a block device.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The number of a loop device that was free a moment ago. `control` is `/dev/loop-control`.
pub(crate) fn free_loop(control: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: this request takes no argument and answers a number.
    let number = super::check(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) }.into())?;
    u32::try_from(number).map_err(io::Error::other)
}

/// Puts a file behind a loop device, which the kernel takes away again when nobody has it open or mounted any more.
pub(crate) fn configure_loop(device: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<()> {
    let config = LoopConfig {
        file: file.as_raw_fd().cast_unsigned(),
        block_size: 0,
        identity: [0; 5],
        numbers: [0, 0, 0, LO_FLAGS_AUTOCLEAR],
        names: [0; 160],
        unused: [0; 2],
        reserved: [0; 8],
    };
    // SAFETY: `config` is laid out as the kernel's `loop_config`, is only read, and outlives the call.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, std::ptr::from_ref(&config)) };
    super::check(done.into())?;
    Ok(())
}

/// `struct loop_config` of linux/loop.h, with the `loop_info64` inside it taken apart.
#[repr(C)]
struct LoopConfig {
    file: u32,
    /// 0: the kernel's own choice.
    block_size: u32,
    /// Device, inode, rdevice, offset, size limit.
    identity: [u64; 5],
    /// Number, encryption type, key size, flags.
    numbers: [u32; 4],
    /// File name, cipher name, key.
    names: [u8; 160],
    unused: [u64; 2],
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopConfig>() == 304, "the size linux/loop.h gives it");

// From linux/loop.h.
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
