//! Ops beyond the oracle's cases.

#![allow(clippy::unwrap_used)]

mod attention;
mod convolutions;
mod dropout;
mod image;
mod linalg;
mod long_loops;
mod random;
mod segments;
mod signal;
