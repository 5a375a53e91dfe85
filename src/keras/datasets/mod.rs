//! Keras's `datasets`: arrays that are read from files, which are downloaded if they are missing.

pub mod cifar10;
pub mod fashion_mnist;
mod files;
pub mod mnist;

pub use files::LoadDataOptions;

#[cfg(test)]
mod tests;
