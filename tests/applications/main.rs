//! The known networks: sizes, names and values, weights of others, and decoders that generate.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod decoders;
mod networks;
mod weights;
