//! [`Heaps`]: the global heaps of a file, in which attributes store strings of any length.

use std::collections::HashMap;

use super::bytes::{Broken, Cursor, part};

/// The strings to which elements refer; each heap is read once.
pub(super) struct Heaps<'a> {
    file: &'a [u8],
    /// By heap and index.
    known: HashMap<u64, HashMap<u64, &'a [u8]>>,
    /// The number of strings that may still be stored: nested heaps have no more than the file has bytes.
    left: usize,
}

impl<'a> Heaps<'a> {
    /// Without any heap.
    pub(super) fn new(file: &'a [u8]) -> Self {
        Heaps { file, known: HashMap::new(), left: file.len() }
    }

    pub(super) fn file_size(&self) -> usize {
        self.file.len()
    }

    /// The string to which an element refers.
    pub(super) fn text(&mut self, element: &[u8]) -> Result<&'a [u8], Broken> {
        let mut from = Cursor::new(element, "a reference to a text");
        let (length, heap, index) = (from.number(4)?, from.number(8)?, from.number(4)?);
        if length == 0 {
            return Ok(&[]);
        }
        if !self.known.contains_key(&heap) {
            let texts = self.read(heap)?;
            self.known.insert(heap, texts);
        }
        let Some(text) = self.known.get(&heap).and_then(|texts| texts.get(&index)) else {
            return Err(Broken(format!("a heap of texts has no text {index}")));
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        text.get(..length).ok_or_else(|| Broken("a text is longer than its slot".into()))
    }

    fn read(&mut self, heap: u64) -> Result<HashMap<u64, &'a [u8]>, Broken> {
        let mut from =
            Cursor::new(part(self.file, heap, 16, "a heap of texts")?, "a heap of texts");
        from.expect(b"GCOL")?;
        from.take(4)?;
        let size = from.number(8)?;
        let whole = part(self.file, heap, size.max(16), "a heap of texts")?;
        let mut from = Cursor::new(&whole[16..], "a heap of texts");
        let mut texts = HashMap::new();
        while from.rest.len() >= 16 {
            let (found, _, size) = (from.number(2)?, from.number(6)?, from.number(8)?);
            if found == 0 {
                break;
            }
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            if size > from.rest.len() {
                return Err(Broken("a heap of texts ends too early".into()));
            }
            self.left = self
                .left
                .checked_sub(16)
                .ok_or_else(|| Broken("its heaps of texts overlap".into()))?;
            let text = from.padded(size)?;
            texts.entry(found).or_insert(text);
        }
        Ok(texts)
    }
}
