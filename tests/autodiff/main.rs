//! Tapes, gradients and their edges.

#![allow(clippy::unwrap_used)]

mod edges;
mod extremes;
#[cfg(feature = "op-cases")]
mod gradients;
mod second_order;
#[cfg(feature = "op-cases")]
mod tape_calls;
mod tapes;
