//! HDF5 files of the kind that Keras writes: groups in symbol tables, datasets in one piece, attributes of texts.
//!
//! Source: the HDF5 File Format Specification of The HDF Group (superblock 0, object headers 1, B-trees 1). `reader` walks the
//! objects, `object` reads their headers, `links` the links of groups with names beyond ASCII, `texts` what attributes say, `types`
//! the types of elements, `writer` writes. Of the crates for this format those that write need a newer Rust than this one does, and
//! reading this subset takes less than the smallest of them.

mod bytes;
mod links;
mod object;
mod reader;
mod texts;
mod types;
mod writer;

pub(crate) use reader::{File, Node};
pub(crate) use writer::{Group, write};

/// What every file begins with.
pub(crate) const MAGIC: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
