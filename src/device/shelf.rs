//! Small values that a program holds for long, many of them in one buffer.
//!
//! A separate buffer for a single number costs some kilobytes of host memory, mostly in wgpu. Kernels cannot write into
//! one part of a buffer and read another, so results first get their own buffers; those that are held for long move
//! here, where kernels only read.

use std::sync::Arc;

use super::board::{Board, PLACE, PLACES};
use super::{Buffer, Gpu};
use crate::error::Result;

/// The boards that hold something, or did so recently.
#[derive(Default)]
pub(crate) struct Shelf {
    boards: Vec<Arc<Board>>,
}

impl Shelf {
    /// Releases the empty boards.
    pub(crate) fn trim(&mut self) {
        self.boards.retain(|board| !board.is_empty());
    }

    /// Copies `buffers`, each of one place at most, and returns the copies.
    pub(crate) fn put(&mut self, gpu: &Gpu, buffers: &[Arc<Buffer>]) -> Result<Vec<Arc<Buffer>>> {
        self.trim();
        let mut copies = Vec::with_capacity(buffers.len());
        let mut at = 0;
        while copies.len() < buffers.len() {
            if at == self.boards.len() {
                let buffer = gpu.pool.acquire(u64::from(PLACES) * PLACE, &[])?;
                self.boards.push(Arc::new(Board::new(buffer.raw().clone(), Box::new(buffer))));
            }
            match self.boards[at].take() {
                Some(place) => {
                    copies.push(Arc::new(Buffer::placed(self.boards[at].clone(), place)))
                }
                None => at += 1,
            }
        }
        let pairs = buffers.iter().zip(&copies);
        gpu.copy(pairs.map(|(from, to)| (&**from, &**to)), PLACE)?;
        Ok(copies)
    }
}

impl Gpu {
    /// A separate buffer with the bytes of `placed`.
    pub(crate) fn take_off(&self, placed: &Buffer) -> Result<Arc<Buffer>> {
        let own = self.pool.acquire(PLACE, &[])?;
        self.copy(std::iter::once((placed, &*own)), PLACE)?;
        Ok(own)
    }
}
