//! [`TokenBatch`]: the tokens of several texts, filled up to one length.

use crate::error::Result;
use crate::tensor::Tensor;

/// The tokens of several texts, `[texts, length]`, row after row. Texts shorter than the longest are filled up at their end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenBatch {
    /// The tokens.
    pub ids: Vec<i32>,
    /// The kind of each token: 1 for those of the second text of a pair, 0 for others.
    pub kinds: Vec<i32>,
    /// 1 for tokens, 0 for those that fill up.
    pub mask: Vec<i32>,
    /// The number of texts and the length.
    pub shape: [usize; 2],
}

/// The tokens of a text, and their kinds.
pub(super) struct Row {
    pub(super) ids: Vec<u32>,
    pub(super) kinds: Vec<u32>,
}

impl TokenBatch {
    /// Fills up `rows` with the token `pad` to a multiple of `multiple`.
    pub(super) fn new(rows: &[Row], pad: u32, multiple: usize) -> Self {
        let longest = rows.iter().map(|row| row.ids.len()).max().unwrap_or(0);
        let length = longest.next_multiple_of(multiple.max(1));
        let mut batch = TokenBatch {
            ids: Vec::with_capacity(rows.len() * length),
            kinds: Vec::with_capacity(rows.len() * length),
            mask: Vec::with_capacity(rows.len() * length),
            shape: [rows.len(), length],
        };
        for row in rows {
            let fill = length - row.ids.len();
            let extend = |to: &mut Vec<i32>, from: &[u32], fill_with: u32| {
                to.extend(from.iter().map(|number| *number as i32));
                to.extend(std::iter::repeat_n(fill_with as i32, fill));
            };
            extend(&mut batch.ids, &row.ids, pad);
            extend(&mut batch.kinds, &row.kinds, 0);
            extend(&mut batch.mask, &vec![1; row.ids.len()], 0);
        }
        batch
    }

    /// Returns the tokens, their kinds and the mask as tensors `[texts, length]` of `i32`, on the current device: the inputs of
    /// `keras::applications::Bert`.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if there is no memory.
    pub fn tensors(&self) -> Result<[Tensor; 3]> {
        let tensor = |numbers: &[i32]| Tensor::from_slice(numbers, self.shape);
        Ok([tensor(&self.ids)?, tensor(&self.kinds)?, tensor(&self.mask)?])
    }
}
