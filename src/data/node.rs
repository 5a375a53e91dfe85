//! What a dataset is made of: a [`Node`] describes a stage, a [`Stream`] is one pass through it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::cardinality::Cardinality;
use super::codec::{Reader, Writer};
use super::item::{Item, ItemSpec};
use crate::error::{Error, Result, message};

/// A source or a stage.
pub(crate) trait Node<T: Item>: Any + Send + Sync {
    /// Begins a pass. Nothing is read and no thread runs before the first element is asked for.
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>>;

    /// How many elements a pass has.
    fn cardinality(&self) -> Cardinality;

    /// What the elements are.
    fn spec(&self) -> ItemSpec {
        T::type_spec()
    }
}

/// One pass through a source or a stage.
pub(crate) trait Stream<T>: Send {
    /// The next element. After an error the stream may be asked again: it goes on with the next element if it can, else it
    /// gives `None`. After `None` it gives `None`.
    fn next(&mut self) -> Option<Result<T>>;

    /// Writes where the pass stands, behind the stage's name: the own state, then the input's.
    fn save(&mut self, out: &mut Writer) -> Result<()>;

    /// Puts a pass that has just begun where [`Stream::save`] says.
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

/// What the streams of a pass share: whether its iterator is gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pass {
    /// This pass's flag, and those of the passes that it is a part of.
    flags: Vec<Arc<AtomicBool>>,
}

impl Pass {
    /// A pass that can be stopped without this one, and stops with it.
    pub(crate) fn part(&self) -> Pass {
        let mut flags = self.flags.clone();
        flags.push(Arc::default());
        Pass { flags }
    }

    /// Stops this pass and its parts: nobody will ask for another element.
    pub(crate) fn stop(&self) {
        if let Some(flag) = self.flags.last() {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// True if nobody will ask for another element. A stream whose `next` may run long without an element asks this and
    /// gives `None`.
    pub(crate) fn stopped(&self) -> bool {
        self.flags.iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Writes a stage's name in front of its state.
pub(crate) fn write_name(name: &str, out: &mut Writer) {
    out.block(name.as_bytes());
}

/// Refuses the state of another stage.
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
