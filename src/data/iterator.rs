//! [`DatasetIter`]: one pass through a dataset, which can be saved and gone on with.

use super::codec::{Reader, Writer};
use super::item::Item;
use super::node::{BoxStream, Pass};
use crate::error::{Error, Result, message};

/// What the bytes of a saved iterator begin with.
const MAGIC: &[u8; 8] = b"wgradit1";

/// The elements of one pass. It ends at `None`; an `Err` is the error of one element, and the pass may go on after it.
///
/// Dropping it stops its threads.
pub struct DatasetIter<T: Item> {
    pass: Pass,
    #[cfg(target_family = "wasm")]
    turn: super::turn::Turn,
    /// The stream, or why the pass did not begin.
    stream: Result<BoxStream<T>>,
    ended: bool,
}

/// Where an iterator stands: its position, its shuffle buffers, its generators.
#[derive(Clone, PartialEq, Eq)]
pub struct IteratorState(Vec<u8>);

impl<T: Item> DatasetIter<T> {
    pub(super) fn new(open: impl FnOnce(&Pass) -> Result<BoxStream<T>>) -> Self {
        let pass = Pass::default().part();
        DatasetIter {
            stream: open(&pass),
            pass,
            #[cfg(target_family = "wasm")]
            turn: super::turn::Turn::default(),
            ended: false,
        }
    }

    pub(super) fn resume(mut self, state: &IteratorState) -> Result<Self> {
        let stream = self.stream.as_mut().map_err(|error| error.clone())?;
        let mut from = Reader::new(&state.0);
        if from.raw(MAGIC.len())? != MAGIC {
            return Err(Error::Data(
                "resume: these bytes are no iterator that this version saved.".into(),
            ));
        }
        self.ended = from.flag()?;
        stream.restore(&mut from)?;
        if from.left() > 0 {
            return Err(Error::Data(message!(
                "resume: {} bytes are left over; the state was saved by another dataset. Resume with the dataset that the \
                 iterator came from.",
                from.left()
            )));
        }
        Ok(self)
    }

    /// The next element. In a browser the page draws and answers in between: the call waits for it where the program has
    /// worked for 8 ms. Natively it is [`Iterator::next`].
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # pollster::block_on(async {
    /// let mut iter = wgrad::data::range(0..3).iter();
    /// let mut sum = 0;
    /// while let Some(number) = iter.next_async().await {
    ///     sum += number?;
    /// }
    /// assert_eq!(sum, 3);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub async fn next_async(&mut self) -> Option<Result<T>> {
        #[cfg(target_family = "wasm")]
        self.turn.give_way().await;
        self.next()
    }

    /// Writes down where the iterator stands, behind the last element that it gave. It can go on afterwards.
    ///
    /// What waits in shuffle and prefetch buffers is part of it: with a buffer of 1,000 pictures it has 1,000 pictures.
    ///
    /// # Errors
    /// Why the pass did not begin, if it did not; and if a part of it cannot say where it stands.
    pub fn save(&mut self) -> Result<IteratorState> {
        let mut out = Writer::new();
        out.raw(MAGIC);
        out.flag(self.ended);
        self.stream.as_mut().map_err(|error| error.clone())?.save(&mut out)?;
        Ok(IteratorState(out.into_bytes()))
    }
}

impl<T: Item> Iterator for DatasetIter<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        if self.ended {
            return None;
        }
        let next = match &mut self.stream {
            Ok(stream) => stream.next(),
            Err(error) => {
                self.ended = true;
                return Some(Err(error.clone()));
            }
        };
        self.ended = next.is_none();
        next
    }
}

impl<T: Item> Drop for DatasetIter<T> {
    fn drop(&mut self) {
        self.pass.stop();
    }
}

impl<T: Item> std::fmt::Debug for DatasetIter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DatasetIter({})", if self.ended { "ended" } else { "under way" })
    }
}

impl IteratorState {
    /// The state as bytes, for a file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A state of bytes from a file; [`Dataset::resume`](super::Dataset::resume) checks them.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        IteratorState(bytes.into())
    }
}

impl std::fmt::Debug for IteratorState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IteratorState({} bytes)", self.0.len())
    }
}
