//! The known networks: sizes, names and values, weights of others, and decoders that generate.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod batches;
mod decoders;
mod hub;
#[cfg(feature = "download")]
mod hub_download;
mod networks;
#[cfg(feature = "tokenizers")]
mod tokens;
mod weights;
