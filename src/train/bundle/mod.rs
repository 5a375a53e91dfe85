//! TensorFlow's TensorBundle: tensors by name in one or more data files, and an index of their locations.
//!
//! The format is that of TensorFlow's `core/util/tensor_bundle`. `PREFIX.index` is a sorted table (`table.rs`). Its first
//! key, the empty one, maps to a header, and each other key to the type, shape, location and checksum of a tensor
//! (`proto.rs`). `PREFIX.data-00000-of-00001` and further shards contain only the bytes. [`BundleFiles`] writes both to
//! the disk so that no data are lost; a browser has them as bytes.

#[cfg(not(target_family = "wasm"))]
mod disk;
#[cfg(all(test, not(target_family = "wasm")))]
mod judge_tests;
mod proto;
mod reader;
#[cfg(test)]
#[path = "../../../tests/support/root.rs"]
mod root;
mod slices;
mod strings;
mod table;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};

#[cfg(not(target_family = "wasm"))]
pub(crate) use disk::{BundleFiles, remove};
pub(crate) use reader::BundleReader;
pub(crate) use writer::BundleWriter;

/// The version of the format that is written and read.
const VERSION: i32 = 1;

/// The file with the location of each tensor.
pub(crate) fn index_path(prefix: &Path) -> PathBuf {
    with_ending(prefix, ".index")
}

/// The file of one shard.
pub(crate) fn data_path(prefix: &Path, shard: u32, shards: u32) -> PathBuf {
    with_ending(prefix, &format!(".data-{shard:05}-of-{shards:05}"))
}

/// The path with `ending` appended to its name, whatever dots the name has.
fn with_ending(prefix: &Path, ending: &str) -> PathBuf {
    let mut path = prefix.as_os_str().to_os_string();
    path.push(ending);
    PathBuf::from(path)
}

/// The number of elements of a shape; none if it overflows.
fn elements(shape: &[usize]) -> Option<usize> {
    // A tensor without elements may have axes whose product overflows.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size))
}
