//! Buffers and workgroup memory, and what their words remember of accesses.

use crate::finding::Kind as Found;
use crate::races::{Access, Mark, Now};

/// A buffer of the device.
#[derive(Debug, Clone, Default)]
pub struct Buffer {
    /// Its contents.
    pub words: Vec<u32>,
    marks: Vec<Mark>,
}

impl Buffer {
    /// A buffer with these contents.
    pub fn new(words: Vec<u32>) -> Self {
        Buffer { words, marks: Vec::new() }
    }

    /// A buffer with these bytes, filled up to a whole word.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let word = |part: &[u8]| {
            let mut word = [0; 4];
            word[..part.len()].copy_from_slice(part);
            u32::from_le_bytes(word)
        };
        Buffer::new(bytes.chunks(4).map(word).collect())
    }

    /// So many bytes of it, from the begin.
    pub fn bytes(&self, count: usize) -> Vec<u8> {
        let words = self.words.iter().take(count.div_ceil(4));
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(count);
        bytes
    }
}

/// All buffers, and the clock by which accesses are distinguished.
#[derive(Debug, Default)]
pub struct Memory {
    /// The buffers; bindings name them by their numbers.
    pub buffers: Vec<Buffer>,
    /// The last phase that has begun.
    pub(crate) clock: u32,
}

impl Memory {
    /// These buffers, which nobody has accessed.
    pub fn new(buffers: Vec<Buffer>) -> Self {
        Memory { buffers, clock: 0 }
    }

    /// Begins a phase.
    pub(crate) fn tick(&mut self) -> u32 {
        self.clock += 1;
        self.clock
    }
}

/// A part of a buffer, as a dispatch binds it.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// The buffer's number.
    pub buffer: usize,
    /// Where the part begins, in bytes: a multiple of four.
    pub offset: usize,
    /// Its bytes.
    pub bytes: usize,
}

impl Memory {
    /// Reads so many bytes (2 or 4) at a place of a binding.
    pub(crate) fn read(&self, bound: Bound, at: usize, bytes: u32) -> u32 {
        let at = bound.offset + at;
        let word = self.buffers[bound.buffer].words.get(at / 4).copied().unwrap_or(0);
        match bytes {
            2 => word >> (8 * (at & 2)) & 0xffff,
            _ => word,
        }
    }

    pub(crate) fn write(&mut self, bound: Bound, at: usize, bytes: u32, value: u32) {
        let at = bound.offset + at;
        let Some(word) = self.buffers[bound.buffer].words.get_mut(at / 4) else { return };
        *word = match bytes {
            2 => {
                let shift = 8 * (at & 2);
                (*word & !(0xffff << shift)) | (value & 0xffff) << shift
            }
            _ => value,
        };
    }

    /// Lets the words of a buffer remember accesses, each half by itself if `halves`.
    pub(crate) fn remember(&mut self, buffer: usize) {
        let buffer = &mut self.buffers[buffer];
        // Two marks for each word: another kernel may store halves.
        buffer.marks.resize(2 * buffer.words.len(), Mark::default());
    }

    /// Notes an access of so many bytes.
    pub(crate) fn note(
        &mut self,
        bound: Bound,
        at: usize,
        bytes: u32,
        halves: bool,
        (now, access): (Now, Access),
    ) -> Option<Found> {
        let at = bound.offset + at;
        let marks = &mut self.buffers[bound.buffer].marks;
        let first = if halves { at / 2 } else { at / 4 * 2 };
        let mut found = marks.get_mut(first)?.access(now, access);
        // Where kernels store halves, a word is two of them.
        if halves && bytes == 4 {
            found = found.or(marks.get_mut(first + 1)?.access(now, access));
        }
        found
    }
}

/// What the invocations of a workgroup share: a word for each scalar.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) words: Vec<u32>,
    pub(crate) marks: Vec<Mark>,
}

impl Shared {
    /// Memory with what somebody left in it.
    pub(crate) fn new(count: u32, seed: u64) -> Self {
        let mut state = seed | 1;
        let mut garbage = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        Shared {
            words: (0..count).map(|_| garbage()).collect(),
            marks: vec![Mark::default(); count as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_lie_in_words() {
        let mut memory = Memory::new(vec![Buffer::from_bytes(&[1, 2, 3, 4, 5, 6])]);
        let bound = Bound { buffer: 0, offset: 0, bytes: 6 };
        assert_eq!(memory.read(bound, 2, 2), 0x0403);
        assert_eq!(memory.read(bound, 4, 2), 0x0605);
        memory.write(bound, 2, 2, 0xabcd);
        assert_eq!(memory.buffers[0].bytes(6), [1, 2, 0xcd, 0xab, 5, 6]);
        let second = Bound { buffer: 0, offset: 4, bytes: 2 };
        assert_eq!(memory.read(second, 0, 4), 0x0605);
    }
}
