//! [`pad_sequences`]: sequences of different lengths as one tensor, whose length is one of a few.

use crate::error::{Error, Result, message};
use crate::support::options::options;
use crate::tensor::{Element, Tensor};

/// An end of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// Before the first element.
    Pre,
    /// After the last element.
    Post,
}

options! {
    /// How [`pad_sequences`] pads or truncates sequences to one length.
    #[derive(Debug, Clone)]
    pub struct PadSequencesOptions {
        /// The length. Default: that of the longest sequence.
        maxlen: Option<usize> as impl Into<Option<usize>> = None,
        /// Where zeros are added. Default: [`End::Pre`], as in Keras.
        padding: End = End::Pre,
        /// Where a sequence longer than `maxlen` is truncated. Default: [`End::Pre`], as in Keras.
        truncating: End = End::Pre,
        /// Without `maxlen`, the length is rounded up to a multiple of this number. Default: 1.
        bucket: usize = 1,
    }
}

/// Converts sequences to the rows of one tensor `[N, length]`, padded with zeros.
///
/// Each length needs a separate plan, which is compiled at its first batch, and a recurrent layer also runs kernels for padded
/// steps. If lengths vary from batch to batch, round them up to a few: `bucket(8)` reduces the lengths 5 to 40 to 5. A mask
/// excludes the padding: `x.not_equal(0)`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::{End, PadSequencesOptions, pad_sequences};
/// let words = [vec![7, 8, 9], vec![5]];
/// let x = pad_sequences(&words, PadSequencesOptions::new())?;
/// assert_eq!(x.to_vec::<i32>()?, [7, 8, 9, 0, 0, 5]);
/// let x = pad_sequences(&words, PadSequencesOptions::new().padding(End::Post).bucket(4))?;
/// assert_eq!(x.to_vec::<i32>()?, [7, 8, 9, 0, 5, 0, 0, 0]);
/// let x = pad_sequences(&words, PadSequencesOptions::new().maxlen(2))?;
/// assert_eq!(x.to_vec::<i32>()?, [8, 9, 0, 5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if `bucket` is 0 or the tensor would have too many elements; [`Error::Device`] if there is no device or no
/// memory.
pub fn pad_sequences<T: Element + Default, S: AsRef<[T]>>(
    sequences: &[S],
    options: PadSequencesOptions,
) -> Result<Tensor> {
    let longest = sequences.iter().map(|sequence| sequence.as_ref().len()).max().unwrap_or(0);
    let rounded = longest.checked_next_multiple_of(options.bucket);
    let length = options.maxlen.or(rounded);
    let count = length.and_then(|length| length.checked_mul(sequences.len()));
    let (Some(length), Some(count)) = (length, count) else {
        return Err(Error::Shape(message!(
            "pad_sequences: {} sequences, the longest of {longest} elements, cannot be padded to multiples of {}; \
             bucket must be at least 1.",
            sequences.len(),
            options.bucket
        )));
    };
    let mut values = Vec::with_capacity(count);
    for sequence in sequences {
        let sequence = sequence.as_ref();
        let more = sequence.len().saturating_sub(length);
        let kept = match options.truncating {
            End::Pre => &sequence[more..],
            End::Post => &sequence[..sequence.len() - more],
        };
        let zeros = std::iter::repeat_n(T::default(), length - kept.len());
        match options.padding {
            End::Pre => values.extend(zeros.chain(kept.iter().copied())),
            End::Post => values.extend(kept.iter().copied().chain(zeros)),
        }
    }
    Tensor::from_slice(&values, [sequences.len(), length])
}
