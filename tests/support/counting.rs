//! An allocator that reports the bytes that are allocated and freed, and otherwise calls the system's.

use std::alloc::{GlobalAlloc, Layout, System};

/// Calls its function with the bytes of an allocation, or with those freed as a negative number.
pub struct Counting(pub fn(i64));

// SAFETY: everything is passed to the system's allocator.
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
        // Both may exist while the bytes are moved.
        (self.0)(bytes as i64);
        (self.0)(-(layout.size() as i64));
        unsafe { System.realloc(at, layout, bytes) }
    }
}
