//! What the examples of wgrad inside other programs share: their arguments, the times of their frames, and pictures of them.

pub mod arguments;
pub mod frame_times;
pub mod picture;

pub use arguments::Arguments;
pub use frame_times::FrameTimes;
pub use picture::Picture;

/// A result of a program that only reports its errors.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
