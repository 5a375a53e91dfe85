//! [`DatasetIter`]: one pass through a dataset, which can be saved and continued.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::codec::{Reader, Writer};
use super::item::Item;
use super::node::{BoxStream, Node, Pass};
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;
use crate::trackable::{HostState, Parts, Trackable};

/// The first bytes of a saved iterator.
const MAGIC: &[u8; 8] = b"wgradit1";

/// The elements of one pass. It ends at `None`; an `Err` is the error of one element, and the pass may continue after it.
///
/// A reference is an iterator, too, so that a `train::Checkpoint` may hold the iterator while a loop runs through it:
/// `for batch in &batches`. Dropping it stops its threads.
pub struct DatasetIter<T: Item> {
    /// What another pass needs to begin, for restoring a state.
    node: Arc<dyn Node<T>>,
    inner: Mutex<Inner<T>>,
    #[cfg(target_family = "wasm")]
    turn: super::turn::Turn,
}

/// A pass, and whether it has ended.
struct Inner<T> {
    pass: Pass,
    /// The stream, or the reason why the pass did not begin.
    stream: Result<BoxStream<T>>,
    ended: bool,
}

/// The position of an iterator: its elements so far, its shuffle buffers, its generators.
#[derive(Clone, PartialEq, Eq)]
pub struct IteratorState(Vec<u8>);

impl<T: Item> DatasetIter<T> {
    pub(super) fn new(node: &Arc<dyn Node<T>>) -> Self {
        DatasetIter::over(node, Inner::new(node))
    }

    fn over(node: &Arc<dyn Node<T>>, inner: Inner<T>) -> Self {
        DatasetIter {
            node: node.clone(),
            inner: Mutex::new(inner),
            #[cfg(target_family = "wasm")]
            turn: super::turn::Turn::default(),
        }
    }

    pub(super) fn resume(node: &Arc<dyn Node<T>>, state: &IteratorState) -> Result<Self> {
        Ok(DatasetIter::over(node, Inner::resume(node, state)?))
    }

    /// The next element. In a browser the page draws and responds in between: the call yields to it once the program has worked
    /// for 8 ms. Natively it is [`Iterator::next`].
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # pollster::block_on(async {
    /// let iter = wgrad::data::range(0..3).iter();
    /// let mut sum = 0;
    /// while let Some(number) = iter.next_async().await {
    ///     sum += number?;
    /// }
    /// assert_eq!(sum, 3);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub async fn next_async(&self) -> Option<Result<T>> {
        #[cfg(target_family = "wasm")]
        self.turn.give_way().await;
        self.inner().next()
    }

    /// Saves the iterator's position, after the last element that it returned. The iterator can continue afterwards.
    ///
    /// The elements in shuffle and prefetch buffers are part of it: with a buffer of 1,000 pictures it contains 1,000 pictures.
    ///
    /// # Errors
    /// The error that kept the pass from beginning, if there is one; and an error if a part of the pass cannot save its
    /// position.
    pub fn save(&self) -> Result<IteratorState> {
        self.inner().save()
    }

    /// Continues at the position of a saved iterator of an equal dataset, also in another process: a loop over this iterator
    /// continues with the elements that the other would have returned.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// let iter = wgrad::data::range(0..6).shuffle(3).iter();
    /// let state = iter.save()?;
    /// let first: Vec<i64> = (&iter).take(4).collect::<wgrad::Result<_>>()?;
    /// iter.restore(&state)?;
    /// let again: Vec<i64> = (&iter).take(4).collect::<wgrad::Result<_>>()?;
    /// assert_eq!(first, again);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if the state is that of another dataset, or was truncated or changed. The iterator then keeps its
    /// position.
    pub fn restore(&self, state: &IteratorState) -> Result<()> {
        let mut inner = self.inner();
        // Passes share the seeds of their dataset, which a state changes before its corruption is detected.
        let before = inner.save();
        match Inner::resume(&self.node, state) {
            Ok(resumed) => {
                *inner = resumed;
                Ok(())
            }
            Err(error) => {
                if let Ok(before) = before {
                    drop(Inner::resume(&self.node, &before));
                }
                Err(error)
            }
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Item> Inner<T> {
    fn new(node: &Arc<dyn Node<T>>) -> Self {
        let pass = Pass::default().part();
        Inner { stream: node.open(&pass), pass, ended: false }
    }

    fn resume(node: &Arc<dyn Node<T>>, state: &IteratorState) -> Result<Self> {
        let mut inner = Inner::new(node);
        let stream = inner.stream.as_mut().map_err(|error| error.clone())?;
        let mut from = Reader::new(&state.0);
        if from.raw(MAGIC.len())? != MAGIC {
            return Err(Error::Data(
                "resume: these bytes are not an iterator that this version saved.".into(),
            ));
        }
        inner.ended = from.flag()?;
        stream.restore(&mut from)?;
        if from.left() > 0 {
            return Err(Error::Data(message!(
                "resume: {} bytes are left over; the state was saved by another dataset. Resume with the dataset that the \
                 iterator came from.",
                from.left()
            )));
        }
        Ok(inner)
    }

    fn save(&mut self) -> Result<IteratorState> {
        let mut out = Writer::new();
        out.raw(MAGIC);
        out.flag(self.ended);
        self.stream.as_mut().map_err(|error| error.clone())?.save(&mut out)?;
        Ok(IteratorState(out.into_bytes()))
    }

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

impl<T: Item> Iterator for DatasetIter<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        // An exclusive reference needs no lock.
        self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).next()
    }
}

impl<T: Item> Iterator for &DatasetIter<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        self.inner().next()
    }
}

impl<T> Drop for Inner<T> {
    fn drop(&mut self) {
        self.pass.stop();
    }
}

impl<T: Item> std::fmt::Debug for DatasetIter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ended = self.inner.try_lock().is_ok_and(|inner| inner.ended);
        write!(f, "DatasetIter({})", if ended { "ended" } else { "under way" })
    }
}

/// A checkpoint continues at the iterator's position.
impl<T: Item> Trackable for DatasetIter<T> {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.state_here(self);
    }
}

impl<T: Item> HostState for DatasetIter<T> {
    fn form(&self) -> (HostDType, Option<&'static [usize]>) {
        (HostDType::U8, None)
    }

    fn get(&self) -> Result<Vec<u8>> {
        self.save().map(|state| state.0)
    }

    fn set(&self, bytes: &[u8]) -> Result<()> {
        self.restore(&IteratorState::from_bytes(bytes))
    }
}

impl IteratorState {
    /// The state as bytes, for a file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A state of bytes from a file; [`DatasetIter::restore`] and [`Dataset::resume`](super::Dataset::resume) check them.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        IteratorState(bytes.into())
    }
}

impl std::fmt::Debug for IteratorState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IteratorState({} bytes)", self.0.len())
    }
}
