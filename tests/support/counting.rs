//! An allocator that tells how many bytes are taken and given back, and leaves all else to the system's.

use std::alloc::{GlobalAlloc, Layout, System};

/// Calls its function with the bytes that an allocation takes, and with those that one gives back, below zero.
pub struct Counting(pub fn(i64));

// SAFETY: all is left to the system's allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        (self.0)(layout.size() as i64);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        (self.0)(layout.size() as i64);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        (self.0)(-(layout.size() as i64));
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // Both may be there while the bytes move.
        (self.0)(bytes as i64);
        (self.0)(-(layout.size() as i64));
        unsafe { System.realloc(at, layout, bytes) }
    }
}
