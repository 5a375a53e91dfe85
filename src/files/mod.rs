//! Files: reading and replacing them, the folder for files that are kept between runs, and formats that several rooms need.

pub(crate) mod cache_folder;
#[cfg(any(feature = "checkpoint", feature = "tfrecord"))]
pub(crate) mod checksum;
#[cfg(all(feature = "download", not(target_family = "wasm")))]
pub(crate) mod http;
pub mod io;
#[cfg(any(feature = "checkpoint", feature = "summary"))]
pub(crate) mod protobuf;
// A browser has no files, and checkpoints need most of this module.
#[cfg_attr(target_family = "wasm", allow(dead_code))]
mod replacement;
#[cfg(any(feature = "keras-files", feature = "npy"))]
pub(crate) mod zip;

#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
pub(crate) use replacement::replace_folder;
#[cfg(test)]
pub(crate) use replacement::tests;
#[cfg_attr(target_family = "wasm", allow(unused_imports))]
pub(crate) use replacement::{
    Replacement, finish_all, folder_of, is_being_replaced, leftovers, look, make_folder,
    move_aside, read, replace, replace_by_link, sync_folder, temporary_for,
};
