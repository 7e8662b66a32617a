//! The exports of the WebAssembly module, and its imports from the page.
//!
//! A text is passed as its address and its number of bytes. The page allocates memory with `allocate`, fills it, and
//! calls `check` or `fit`, which then own the memory and store their answer at `answer` with `answer_length` bytes.

use std::cell::RefCell;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::Task;

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Returns the seconds since an arbitrary moment.
    fn seconds() -> f64;
    /// Receives a progress message of a run, as JSON.
    fn tell(text: *const u8, length: usize);
    /// Receives the message of a panic before the module ends.
    fn panicked(text: *const u8, length: usize);
}

thread_local! {
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

fn now() -> f64 {
    // SAFETY: the function that the page provides has no preconditions.
    unsafe { seconds() }
}

/// Allocates memory for a text of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    let room = vec![0u8; length].into_boxed_slice();
    Box::into_raw(room).cast()
}

/// Parses the task in memory from `allocate`.
///
/// # Safety
/// `text` must come from `allocate(length)`, and this call frees it.
unsafe fn task(text: *mut u8, length: usize) -> Result<Task, serde_json::Error> {
    // SAFETY: `allocate` made this memory, and no other code has it now.
    let bytes = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(text, length)) };
    serde_json::from_slice(&bytes)
}

fn answer_with(answer: &Value) {
    ANSWER.set(answer.to_string());
}

/// Checks a task.
///
/// # Safety
/// `text` must come from `allocate(length)`, and this call frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn check(text: *mut u8, length: usize) {
    // SAFETY: by the contract of this function.
    let task = unsafe { task(text, length) };
    answer_with(&match task {
        Ok(task) => crate::check(&task, Arc::new(now)),
        Err(error) => json!({ "error": error.to_string() }),
    });
}

/// Fits a task.
///
/// # Safety
/// `text` must come from `allocate(length)`, and this call frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fit(text: *mut u8, length: usize) {
    std::panic::set_hook(Box::new(|panic| {
        let words = panic.to_string();
        // SAFETY: the text remains valid until the page has read it.
        unsafe { panicked(words.as_ptr(), words.len()) };
    }));
    // SAFETY: by the contract of this function.
    let task = unsafe { task(text, length) };
    answer_with(&match task {
        Ok(task) => crate::fit(&task, &now, &mut |word| {
            let word = word.to_string();
            // SAFETY: the text remains valid until the page has read it.
            unsafe { tell(word.as_ptr(), word.len()) };
        }),
        Err(error) => json!({ "error": error.to_string() }),
    });
}

/// Returns the address of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// Returns the number of bytes of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_length() -> usize {
    ANSWER.with_borrow(String::len)
}
