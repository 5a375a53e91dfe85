//! Tapes, gradients and their edges.

#![allow(clippy::unwrap_used)]

mod edges;
mod extremes;
mod gradients;
mod second_order;
mod tape_calls;
mod tapes;
