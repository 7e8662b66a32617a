//! Settings of the operating system. They ensure that a truncated mapped file, or exhausted memory, causes a single
//! clear error. They also keep freed memory in the process.

use std::alloc::{GlobalAlloc, Layout, System};
#[cfg(target_os = "linux")]
use std::io::Write;

/// Installs signal handlers that concern files. If a page is missing, the signal is converted to an error with exit
/// code 3. If a file exceeds `ulimit -f`, the signal is converted to a failed write. The caller of the write reports
/// the failure and removes its temporary file.
#[cfg(target_os = "linux")]
pub fn catch_signals_of_files() {
    // SAFETY: `report_fault` calls nothing but `write` and `_exit`, which signal handlers may, and never returns to the
    // read that cannot be made. The action is all zeros but for the handler: no flags, an empty mask. An ignored signal
    // runs no code.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = report_fault as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Does nothing. On other operating systems, these signals end the process.
#[cfg(not(target_os = "linux"))]
pub fn catch_signals_of_files() {}

/// Keeps freed memory for later allocations. Every step of a fit allocates and frees blocks of a mebibyte. In a fit
/// with a few hundred coordinates, returning these blocks to the operating system and clearing them took a seventh of
/// the time.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn keep_memory() {
    // The largest value that the C library accepts for the first setting. The second setting is half a gibibyte.
    const LARGEST: libc::c_int = 32 << 20;
    const KEPT: libc::c_int = 512 << 20;
    // SAFETY: the calls set two numbers, before there is another thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
    }
}

/// Does nothing, because other operating systems have no such setting.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_memory() {}

#[cfg(target_os = "linux")]
extern "C" fn report_fault(_: libc::c_int) {
    const MESSAGE: &str = "error: another process shortened a file while Jensen read it: run again, and replace \
                           files by renaming\n";
    // SAFETY: the message has the stated length, and signal handlers may make both calls.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(crate::failure::Exit::Input as libc::c_int);
    }
}

/// The allocator of the operating system. If memory is exhausted, it reports one error and ends the process with exit
/// code 2. The default behaviour of Rust would be to end the process by a signal.
pub struct Memory;

// SAFETY: every call is the system's own, and its result is passed on unchanged, or not at all.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller satisfies the contract of `alloc`.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller satisfies the contract of `alloc_zeroed`.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller satisfies the contract of `realloc`.
        given(unsafe { System.realloc(old, layout, size) }, size)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller satisfies the contract of `dealloc`.
        unsafe { System.dealloc(old, layout) }
    }
}

#[inline]
fn given(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        no_memory(size);
    }
    memory
}

/// Reports the requested size without allocating memory, and ends the process. The run can be continued with
/// `--resume`, like a run that was killed.
#[cfg(target_os = "linux")]
#[cold]
fn no_memory(size: usize) {
    let mut room = [0; 256];
    let left = {
        let mut rest = room.as_mut_slice();
        // The buffer is longer than the message, so this cannot fail.
        let _ = writeln!(
            rest,
            "error: the system refused {size} bytes of memory: use a smaller --memory-limit or fewer --threads, \
             or raise `ulimit -v` or the container's limit"
        );
        rest.len()
    };
    // SAFETY: the message is within the buffer. `_exit` runs no code that could allocate.
    unsafe {
        libc::write(libc::STDERR_FILENO, room.as_ptr().cast(), room.len() - left);
        libc::_exit(crate::failure::Exit::Usage as libc::c_int);
    }
}

#[cfg(not(target_os = "linux"))]
fn no_memory(_: usize) {}
