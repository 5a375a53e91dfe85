//! [`Stage`]: what a stage with one input defines. The node, the stream and the saved state around it are here.

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::Result;

/// A stage with an input of `T`, as it is before the first element; each pass changes its own copy.
pub(super) trait Stage<T: Item>: Clone + Send + Sync + 'static {
    /// The elements that it makes.
    type Out: Item;

    /// The name before its saved state.
    fn name(&self) -> &'static str;

    /// The copy for a new pass.
    fn begin(&self) -> Self {
        self.clone()
    }

    fn cardinality(&self, input: &Dataset<T>) -> Cardinality {
        input.cardinality()
    }

    /// The specification of its elements, from that of the input's.
    fn spec(&self, _input: ItemSpec) -> ItemSpec {
        Self::Out::type_spec()
    }

    /// As [`Stream::next`].
    fn next(&mut self, input: &mut Input<T>) -> Option<Result<Self::Out>>;

    /// Writes its position in the pass.
    fn save(&mut self, _out: &mut Writer) -> Result<()> {
        Ok(())
    }

    /// Moves the copy for a new pass to a saved position.
    fn restore(&mut self, _from: &mut Reader<'_>) -> Result<()> {
        Ok(())
    }
}

/// The pass through a stage's input.
pub(super) struct Input<T> {
    pass: Pass,
    stream: BoxStream<T>,
}

impl<T> Input<T> {
    pub(super) fn next(&mut self) -> Option<Result<T>> {
        self.stream.next()
    }

    /// As [`Pass::stopped`].
    pub(super) fn stopped(&self) -> bool {
        self.pass.stopped()
    }

    /// Counts `skip` down to 0, an element each; `None` if the pass ends before.
    pub(super) fn skip(&mut self, skip: &mut usize) -> Option<()> {
        while *skip > 0 {
            if self.stopped() {
                return None;
            }
            self.next()?.ok();
            *skip -= 1;
        }
        Some(())
    }
}

impl<T: Item> Dataset<T> {
    /// Adds a stage.
    pub(super) fn stage<S: Stage<T>>(&self, stage: S) -> Dataset<S::Out> {
        Dataset::new(Staged { input: self.clone(), stage })
    }
}

struct Staged<T: Item, S> {
    input: Dataset<T>,
    stage: S,
}

struct StagedStream<T, S> {
    input: Input<T>,
    stage: S,
}

impl<T: Item, S: Stage<T>> Node<S::Out> for Staged<T, S> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<S::Out>> {
        let input = Input { stream: self.input.open(pass)?, pass: pass.clone() };
        Ok(Box::new(StagedStream { input, stage: self.stage.begin() }))
    }

    fn cardinality(&self) -> Cardinality {
        self.stage.cardinality(&self.input)
    }

    fn spec(&self) -> ItemSpec {
        self.stage.spec(self.input.element_spec())
    }
}

impl<T: Item, S: Stage<T>> Stream<S::Out> for StagedStream<T, S> {
    fn next(&mut self) -> Option<Result<S::Out>> {
        self.stage.next(&mut self.input)
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name(self.stage.name(), out);
        self.stage.save(out)?;
        self.input.stream.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name(self.stage.name(), from)?;
        self.stage.restore(from)?;
        self.input.stream.restore(from)
    }
}
