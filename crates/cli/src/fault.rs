//! A file that is cut short while it is mapped: one clear error.

/// Turns the signal of pages that are gone into an error and exit code 3.
#[cfg(target_os = "linux")]
pub fn catch_lost_pages() {
    // SAFETY: `told` calls nothing but `write` and `_exit`, which signal handlers may, and never returns to the read that
    // cannot be made. The action is all zeros but for the handler: no flags, an empty mask.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = told as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

/// Elsewhere the signal ends the process.
#[cfg(not(target_os = "linux"))]
pub fn catch_lost_pages() {}

#[cfg(target_os = "linux")]
extern "C" fn told(_: libc::c_int) {
    const MESSAGE: &str = "error: a file was cut short while it was read: run again, and put new versions of a file in its \
                           place by renaming\n";
    // SAFETY: the message is as long as it says, and both calls may be made within a signal handler.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(crate::failure::Exit::Input as libc::c_int);
    }
}
