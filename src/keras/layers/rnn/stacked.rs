//! [`StackedRnnCells`]: combines several cells to one.

use super::cell::RnnCell;
#[cfg(feature = "json")]
use super::over_cells::cell_from_config;
use super::walk::Sequence;
use crate::error::{Error, Result, message};
#[cfg(feature = "json")]
use crate::keras::Config;
use crate::keras::Context;
use crate::keras::layers::formats::{Class, Role};
use crate::ops::Recurrence;
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable, snake_case};

/// Several cells stacked into one cell: the output of each is the input of the next. The states are those of all cells,
/// in order.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{INFERENCE, Layer, layers::{GruCell, LstmCell, Rnn, StackedRnnCells}};
/// let layer = Rnn::new(StackedRnnCells::new().add(LstmCell::new(8)).add(GruCell::new(4)));
/// let result = layer.call_with_state(&tf::random::normal([2, 10, 3])?, None, INFERENCE)?;
/// assert_eq!((result.output.shape(), result.state.len()), (&[2, 4][..], 3));
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[doc(alias = "StackedRNNCells")]
pub struct StackedRnnCells {
    cells: Vec<(String, Box<dyn RnnCell>)>,
}

impl std::fmt::Debug for StackedRnnCells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StackedRnnCells")
            .field("cells", &self.cells.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl StackedRnnCells {
    /// Creates an empty stack; add at least one cell.
    pub fn new() -> Self {
        StackedRnnCells::default()
    }

    /// Adds a cell on top.
    #[allow(clippy::should_implement_trait)] // As `Sequential::add`.
    #[must_use]
    pub fn add(mut self, cell: impl RnnCell + 'static) -> Self {
        let base = snake_case(cell.kind());
        let same = |name: &str| {
            name == base || name.strip_prefix(&base).is_some_and(|end| end.starts_with('_'))
        };
        let name = match self.cells.iter().filter(|(name, _)| same(name)).count() {
            0 => base,
            count => format!("{base}_{count}"),
        };
        self.cells.push((name, Box::new(cell)));
        self
    }

    /// Calls `each` with every cell and its part of `states`; returns the last output and all new states.
    fn through<X>(
        &self,
        x: X,
        states: Option<&[Tensor]>,
        mut each: impl FnMut(usize, &dyn RnnCell, X, Option<&[Tensor]>) -> Result<(X, Vec<Tensor>)>,
    ) -> Result<(X, Vec<Tensor>)> {
        if self.cells.is_empty() {
            return Err(Error::Shape(
                "StackedRNNCells: there is no cell. Put one in with add.".into(),
            ));
        }
        let (mut x, mut after, mut at) = (x, Vec::new(), 0);
        for (place, (_, cell)) in self.cells.iter().enumerate() {
            let count = cell.state_sizes().len();
            let own = match states {
                Some(states) => {
                    Some(states.get(at..at + count).ok_or_else(|| self.count_error(states.len()))?)
                }
                None => None,
            };
            at += count;
            let (y, new) = each(place, &**cell, x, own)?;
            x = y;
            after.extend(new);
        }
        Ok((x, after))
    }

    fn count_error(&self, given: usize) -> Error {
        Error::Shape(message!(
            "StackedRNNCells: {given} states were given; the cells have {}.",
            self.state_sizes().len()
        ))
    }
}

impl RnnCell for StackedRnnCells {
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<Config> {
        let cells: Result<Vec<_>> =
            self.cells.iter().map(|(_, cell)| Ok(cell.get_config()?.nested())).collect();
        let mut config = Config::new("StackedRNNCells");
        config.set_json("cells", cells?.into());
        Ok(config)
    }

    fn state_sizes(&self) -> Vec<usize> {
        self.cells.iter().flat_map(|(_, cell)| cell.state_sizes()).collect()
    }

    fn step(
        &self,
        x: &Tensor,
        states: &[Tensor],
        cx: Context<'_>,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        self.through(x.clone(), Some(states), |_, cell, x, own| {
            cell.step(&x, own.unwrap_or_default(), cx)
        })
    }

    fn initial_state(&self, x: &Tensor) -> Result<Vec<Tensor>> {
        let states = self.cells.iter().map(|(_, cell)| cell.initial_state(x));
        Ok(states.collect::<Result<Vec<_>>>()?.concat())
    }

    /// Runs each cell over the whole sequence: the output of a cell at a step does not depend on the cells above it.
    fn sequence(&self, of: Sequence<'_>, cx: Context<'_>) -> Result<Recurrence> {
        let last = self.cells.len().saturating_sub(1);
        let turned = match of.mask {
            Some(mask) if of.how.go_backwards => Some(mask.reverse(1)?),
            _ => None,
        };
        let (output, state) = self.through(of.x.clone(), of.start, |place, cell, x, start| {
            let mut how = of.how.clone();
            how.return_sequences |= place < last;
            // The results of the first cell are already reversed.
            how.go_backwards &= place == 0;
            let mask = if place == 0 { of.mask } else { turned.as_ref().or(of.mask) };
            let result = cell.sequence(Sequence { x: &x, start, mask, how: &how }, cx)?;
            Ok((result.output, result.state))
        })?;
        Ok(Recurrence { output, state })
    }
}

#[cfg(feature = "json")]
impl StackedRnnCells {
    pub(super) fn from_config(config: &Config) -> Result<Self> {
        config.only(&["cells"], &[])?;
        let cells = config.inner_list("cells")?;
        cells
            .iter()
            .try_fold(StackedRnnCells::new(), |stack, cell| Ok(stack.add(cell_from_config(cell)?)))
    }
}

impl Trackable for StackedRnnCells {
    fn track(&self, parts: &mut Parts<'_>) {
        self.cells.iter().for_each(|(name, cell)| parts.add(name, &**cell));
    }

    fn kind(&self) -> &'static str {
        "StackedRNNCells"
    }

    fn class(&self) -> Option<&'static Class> {
        static CLASS: Class = Class::new("StackedRNNCells").role(Role::Cells);
        Some(&CLASS)
    }
}
