//! HDF5 files like those of Keras: groups in symbol tables, contiguous datasets, attributes of strings.
//!
//! Source: the HDF5 File Format Specification of The HDF Group (superblock 0, object headers 1, B-trees 1). `reader` walks the
//! objects, `object` reads their headers, `links` the links of groups with names beyond ASCII, `texts` the attributes, `types`
//! the types of elements, `writer` writes. Of the crates for this format, those that write need a newer Rust than this crate
//! does, and reading this subset takes less code than the smallest of them.

mod bytes;
mod links;
mod object;
mod reader;
mod texts;
mod types;
mod writer;

pub(crate) use reader::{File, Node};
pub(crate) use writer::{Group, write};

/// The first bytes of every file.
pub(crate) const MAGIC: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
