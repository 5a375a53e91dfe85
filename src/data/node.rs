//! The parts of a dataset: a [`Node`] describes a stage, a [`Stream`] is one pass through it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::cardinality::Cardinality;
use super::codec::{Reader, Writer};
use super::item::{Item, ItemSpec};
use crate::error::{Error, Result, message};

/// A source or a stage.
pub(crate) trait Node<T: Item>: Any + Send + Sync {
    /// Begins a pass. Reading and threads start only when the first element is requested.
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>>;

    /// The number of elements in a pass.
    fn cardinality(&self) -> Cardinality;

    /// The specification of the elements.
    fn spec(&self) -> ItemSpec {
        T::type_spec()
    }
}

/// One pass through a source or a stage.
pub(crate) trait Stream<T>: Send {
    /// The next element. After an error the caller may request another one: the stream continues with the next element if
    /// it can, otherwise it returns `None`. After `None` it returns `None`.
    fn next(&mut self) -> Option<Result<T>>;

    /// Writes the position of the pass, after the stage's name: first its own state, then the input's.
    fn save(&mut self, out: &mut Writer) -> Result<()>;

    /// Moves a pass that has just begun to the position that [`Stream::save`] wrote.
    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()>;
}

pub(crate) type BoxStream<T> = Box<dyn Stream<T>>;

impl<T> Stream<T> for BoxStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        (**self).next()
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        (**self).save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        (**self).restore(from)
    }
}

/// The state that the streams of a pass share: whether its iterator was dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pass {
    /// This pass's flag, and those of the passes that it is part of.
    flags: Vec<Arc<AtomicBool>>,
}

impl Pass {
    /// A pass that can be stopped separately, and stops with this one.
    pub(crate) fn part(&self) -> Pass {
        let mut flags = self.flags.clone();
        flags.push(Arc::default());
        Pass { flags }
    }

    /// Stops this pass and its parts: no more elements will be requested.
    pub(crate) fn stop(&self) {
        if let Some(flag) = self.flags.last() {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// True if no more elements will be requested. A stream whose `next` may run long without an element checks this and
    /// returns `None`.
    pub(crate) fn stopped(&self) -> bool {
        self.flags.iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Writes a stage's name before its state.
pub(crate) fn write_name(name: &str, out: &mut Writer) {
    out.block(name.as_bytes());
}

/// Rejects the state of another stage.
pub(crate) fn expect_name(name: &str, from: &mut Reader<'_>) -> Result<()> {
    let found = from.text()?;
    if found == name {
        return Ok(());
    }
    Err(Error::Data(message!(
        "resume: the state was saved by a dataset that has `{found}` where this one has `{name}`. Resume with the dataset \
         that the iterator came from."
    )))
}
