//! Recurrent layers: LSTM, GRU and the simple RNN, as functions of a whole sequence and as cells of one step.
//!
//! All steps' inputs are multiplied by the kernel in one product, before the first step. `fused.rs` then computes all
//! steps as one op with custom kernels; if it has none, or on request, `steps.rs` calls the cells of `cells.rs`.

mod cells;
mod check;
pub(super) mod fused;
mod kernels;
mod layout;
mod second_order;
mod steps;
mod team;
#[cfg(test)]
mod tests;

pub use cells::{gru_cell, lstm_cell, simple_rnn_cell};

use self::layout::Cell;
pub(crate) use self::steps::{Step as SequenceStep, Steps};
use super::inventory::{ANY, Answer, Args, Entry, Input, Make, OpKind, Values, one};
use super::{concat, expect_dtype, select};
use crate::dtype::DType;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::support::options::options;
use crate::tape::GradientTape;
use crate::tensor::Tensor;

options! {
    /// Options of [`lstm`].
    #[derive(Debug, Clone)]
    pub struct LstmOptions {
        /// `h` and `c` before the first step, `[B,U]`; zeros by default.
        initial_state: Option<[Tensor; 2]> as impl Into<Option<[Tensor; 2]>> = None,
        /// The steps that count, `[B,T]`, `bool`: at the other steps the state does not change, and the result is that
        /// of the previous step; all by default.
        mask: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// Whether to process the sequence from the last step to the first, and return the results in that order;
        /// `false` by default.
        go_backwards: bool = false,
        /// Whether to return the results of all steps, `[B,T,U]`, instead of the last one, `[B,U]`; `false` by default.
        return_sequences: bool = false,
        /// Whether to compute each step as a cell composed of ordinary ops instead of using custom kernels; `false` by
        /// default. Both have gradients of every order.
        unroll: bool = false,
    }
}

options! {
    /// Options of [`gru`].
    #[derive(Debug, Clone)]
    pub struct GruOptions {
        /// The state before the first step, `[B,U]`; zeros by default.
        initial_state: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// As [`LstmOptions::mask`]; all by default.
        mask: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// As [`LstmOptions::go_backwards`]; `false` by default.
        go_backwards: bool = false,
        /// As [`LstmOptions::return_sequences`]; `false` by default.
        return_sequences: bool = false,
        /// As [`LstmOptions::unroll`]; `false` by default.
        unroll: bool = false,
        /// Whether the reset gate is applied after the product with the recurrent kernel; `true` by default. The bias
        /// is then `[2,3*U]`; otherwise it is `[3*U]`, and each step takes several kernels.
        reset_after: bool = true,
    }
}

options! {
    /// Options of [`simple_rnn`].
    #[derive(Debug, Clone)]
    pub struct SimpleRnnOptions {
        /// The state before the first step, `[B,U]`; zeros by default.
        initial_state: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// As [`LstmOptions::mask`]; all by default.
        mask: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// As [`LstmOptions::go_backwards`]; `false` by default.
        go_backwards: bool = false,
        /// As [`LstmOptions::return_sequences`]; `false` by default.
        return_sequences: bool = false,
        /// As [`LstmOptions::unroll`]; `false` by default.
        unroll: bool = false,
        /// The activation; [`Tensor::tanh`] by default (`None`). With any other function, steps are computed as cells.
        activation: Option<fn(&Tensor) -> Result<Tensor>> as impl Into<Option<fn(&Tensor) -> Result<Tensor>>> = None,
    }
}

/// The results of a recurrent layer: its output and the last state.
#[derive(Debug, Clone)]
pub struct Recurrence {
    /// `[B,T,U]` with `return_sequences`, otherwise `[B,U]`.
    pub output: Tensor,
    /// `h` `[B,U]`, and for an LSTM also `c`.
    pub state: Vec<Tensor>,
}

/// Applies an LSTM to a sequence: `x` `[B,T,F]`, kernel `[F,4*U]`, recurrent kernel `[U,4*U]`, bias `[4*U]`; the gates
/// are in Keras's order i, f, c, o. [`lstm_cell`] has the formula.
///
/// A step is one kernel, and one more with gradients; on a GPU all steps are one kernel if the recurrent kernel has at
/// most 512 KiB. Second-order gradients are composed of ordinary ops.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::Tensor::ones([2, 5, 3])?;
/// let (kernel, recurrent) = (tf::Tensor::zeros([3, 16])?, tf::Tensor::zeros([4, 16])?);
/// let options = tf::LstmOptions::new().return_sequences(true);
/// let result = tf::lstm(&x, &kernel, &recurrent, None, options)?;
/// assert_eq!((result.output.shape(), result.state.len()), (&[2, 5, 4][..], 2));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes are incompatible or there is no step; [`Error::DType`] if the dtypes differ or are
/// not float, or the mask is not `bool`.
pub fn lstm(
    x: &Tensor,
    kernel: &Tensor,
    recurrent_kernel: &Tensor,
    bias: Option<&Tensor>,
    options: LstmOptions,
) -> Result<Recurrence> {
    let start = options.initial_state.map(Vec::from);
    let walk = SequenceRun {
        op: "LSTM",
        cell: Cell::Lstm,
        start,
        mask: options.mask,
        backwards: options.go_backwards,
        sequences: options.return_sequences,
        fused: !options.unroll,
    };
    let units = walk.check(x, [kernel, recurrent_kernel], bias, 1)?;
    let step = |x: &Tensor, state: &[Tensor]| {
        Ok(cells::lstm_step(x, [&state[0], &state[1]], recurrent_kernel)?.to_vec())
    };
    walk.run(cells::project(x, kernel, bias)?, units, recurrent_kernel, None, &step)
}

/// Applies a GRU to a sequence: `x` `[B,T,F]`, kernel `[F,3*U]`, recurrent kernel `[U,3*U]`; the gates are in Keras's
/// order z, r, h. [`gru_cell`] has the formula and the shape of the bias.
///
/// With `reset_after`, steps use the same kind of kernels as [`lstm`].
///
/// # Errors
/// As [`lstm`].
pub fn gru(
    x: &Tensor,
    kernel: &Tensor,
    recurrent_kernel: &Tensor,
    bias: Option<&Tensor>,
    options: GruOptions,
) -> Result<Recurrence> {
    let after = options.reset_after;
    let walk = SequenceRun {
        op: "GRU",
        cell: Cell::Gru,
        start: options.initial_state.map(|h| vec![h]),
        mask: options.mask,
        backwards: options.go_backwards,
        sequences: options.return_sequences,
        fused: !options.unroll && after,
    };
    let units = walk.check(x, [kernel, recurrent_kernel], bias, if after { 2 } else { 1 })?;
    let [own, of_state] = cells::gru_biases(bias, after)?;
    let step = |x: &Tensor, state: &[Tensor]| {
        let h = cells::gru_step(x, &state[0], recurrent_kernel, of_state.as_ref(), after)?;
        Ok(vec![h])
    };
    let products = cells::project(x, kernel, own.as_ref())?;
    walk.run(products, units, recurrent_kernel, of_state.as_ref(), &step)
}

/// Applies a simple recurrent layer to a sequence: `x` `[B,T,F]`, kernel `[F,U]`, recurrent kernel `[U,U]`, bias `[U]`.
/// [`simple_rnn_cell`] has the formula.
///
/// With tanh, steps use the same kind of kernels as [`lstm`].
///
/// # Errors
/// As [`lstm`].
pub fn simple_rnn(
    x: &Tensor,
    kernel: &Tensor,
    recurrent_kernel: &Tensor,
    bias: Option<&Tensor>,
    options: SimpleRnnOptions,
) -> Result<Recurrence> {
    let walk = SequenceRun {
        op: "SimpleRNN",
        cell: Cell::Simple,
        start: options.initial_state.map(|h| vec![h]),
        mask: options.mask,
        backwards: options.go_backwards,
        sequences: options.return_sequences,
        fused: !options.unroll && options.activation.is_none(),
    };
    let units = walk.check(x, [kernel, recurrent_kernel], bias, 1)?;
    let activation = options.activation.unwrap_or(Tensor::tanh);
    let step = |x: &Tensor, state: &[Tensor]| {
        Ok(vec![activation(&x.add(state[0].matmul(recurrent_kernel)?)?)?])
    };
    walk.run(cells::project(x, kernel, bias)?, units, recurrent_kernel, None, &step)
}

/// The states after a step, from the step's product of the input and the states before it.
type Step<'a> = &'a dyn Fn(&Tensor, &[Tensor]) -> Result<Vec<Tensor>>;

/// How a layer of any kind processes a sequence.
struct SequenceRun {
    op: &'static str,
    cell: Cell,
    start: Option<Vec<Tensor>>,
    mask: Option<Tensor>,
    backwards: bool,
    sequences: bool,
    fused: bool,
}

impl SequenceRun {
    /// Checks the call and returns the number of units.
    fn check(
        &self,
        x: &Tensor,
        kernels: [&Tensor; 2],
        bias: Option<&Tensor>,
        rows: usize,
    ) -> Result<usize> {
        let op = self.op;
        let &[batch, steps, _] = x.shape() else {
            return Err(Error::Shape(message!(
                "{op}: the input is {:?}; it must be [B, T, F]: batch, steps, features.",
                x.shape()
            )));
        };
        let units = check::kernels_and_bias(op, self.cell.gates(), x, kernels, bias, rows)?;
        if steps == 0 {
            return Err(Error::Shape(message!(
                "{op}: the input is {:?}; a sequence needs at least one step.",
                x.shape()
            )));
        }
        for state in self.start.iter().flatten() {
            check::one_state(op, state, [batch, units], x)?;
        }
        if let Some(mask) = &self.mask {
            expect_dtype("Recurrent layer (the mask)", mask.spec(), &[DType::Bool])?;
            if mask.shape() != [batch, steps] {
                return Err(Error::Shape(message!(
                    "{op}: the mask is {:?} and the input {:?}; the mask must be [B, T].",
                    mask.shape(),
                    x.shape()
                )));
            }
        }
        Ok(units)
    }

    /// `products` `[B,T,G*U]` are those of the inputs with the kernel, plus the bias; `bias` `[G*U]` is the bias of the
    /// state's product.
    fn run(
        &self,
        products: Tensor,
        units: usize,
        recurrent: &Tensor,
        bias: Option<&Tensor>,
        step: Step,
    ) -> Result<Recurrence> {
        let (batch, steps) = (products.shape()[0], products.shape()[1]);
        let start = match &self.start {
            Some(start) => start.clone(),
            None => {
                let zero = || {
                    super::fill(
                        products.device(),
                        self.op,
                        [batch, units].into(),
                        0.into(),
                        products.dtype(),
                    )
                };
                (0..self.cell.states()).map(|_| zero()).collect::<Result<_>>()?
            }
        };
        let masked = self.mask.is_some();
        let caps = products.device().caps();
        // The kernels process four units at once. Up to three additional units, whose state stays 0, cost less than the
        // steps of cells.
        let wide = units.next_multiple_of(4);
        let fused = self.fused && !eager::is_composing();
        if fused && kernels::fits(self.cell, [batch, steps, wide], masked, caps) {
            return self.run_fused(&products, &start, recurrent, bias, wide);
        }
        let steps = Steps {
            x: &products,
            mask: self.mask.as_ref(),
            backwards: self.backwards,
            sequences: self.sequences,
            unroll: !self.fused,
        };
        steps.run(start, &|x, state| {
            let next = step(x, state)?;
            Ok((next[0].clone(), next))
        })
    }

    /// `wide` is the number of units in the kernels.
    fn run_fused(
        &self,
        products: &Tensor,
        start: &[Tensor],
        recurrent: &Tensor,
        bias: Option<&Tensor>,
        wide: usize,
    ) -> Result<Recurrence> {
        let units = recurrent.shape()[0];
        let gates = self.cell.gates();
        let bias = match bias {
            Some(bias) => bias.expand_dims(0)?,
            None => super::fill(
                products.device(),
                self.op,
                [1, gates * units].into(),
                0.into(),
                products.dtype(),
            )?,
        };
        let u = concat(
            [&widen(recurrent, gates, wide, wide - units)?, &widen(&bias, gates, wide, 0)?],
            0,
        )?;
        let first = widen(&concat(start, 1)?, start.len(), wide, 0)?;
        let products = widen(products, gates, wide, 0)?;
        let mask = self.mask.as_ref();
        let mut run = fused::run(self.cell, &products, &u, &first, mask, self.backwards)?;
        if wide > units {
            for x in run.state.iter_mut().chain([&mut run.sequence]) {
                let mut sizes = vec![-1; x.rank()];
                sizes[x.rank() - 1] = units as i64;
                *x = x.slice(&vec![0; x.rank()], &sizes)?;
            }
        }
        let narrow = |x: &Tensor| match products.dtype() {
            DType::F32 => Ok(x.clone()),
            dtype => x.cast(dtype),
        };
        let state: Vec<Tensor> = run.state.iter().map(narrow).collect::<Result<_>>()?;
        let mut output = match self.sequences {
            true => narrow(&run.sequence)?.transpose([1, 0, 2])?,
            false => state[0].clone(),
        };
        if let (Some(mask), Some(_)) = (mask, &self.start) {
            // As long as no step has counted, the state is the initial one, and the result is zeros.
            let counts = mask.cast(DType::I32)?;
            let counts = if self.backwards { counts.reverse(1)? } else { counts };
            let any = match self.sequences {
                true => counts.cumsum(1)?,
                false => counts.reduce_sum(1)?,
            };
            output = select(&any.greater(0)?.expand_dims(-1)?, &output, &output.zeros_like()?)?;
        }
        Ok(Recurrence { output, state })
    }
}

/// `x` `[A,..,G*U]` with zeros after the U units of each part, which pad them to `wide`, and with `rows` more along A.
fn widen(x: &Tensor, parts: usize, wide: usize, rows: usize) -> Result<Tensor> {
    let &[ref lead @ .., columns] = x.shape() else { return Ok(x.clone()) };
    let units = columns / parts;
    if units == wide {
        return Ok(x.clone());
    }
    let apart = x.reshape_to([lead, &[parts, units]].concat().into())?;
    let mut edges = vec![(0, 0); apart.rank()];
    edges[0].1 = rows;
    edges[lead.len() + 1].1 = wide - units;
    let padded = apart.pad(&edges)?;
    padded.reshape_to([&padded.shape()[..lead.len()], &[parts * wide]].concat().into())
}

/// The kernel, the recurrent kernel and the bias, if there is one, by Keras's names.
fn weights(c: &Args) -> Answer<([&Tensor; 2], Option<&Tensor>)> {
    let bias = c.tensors().iter().any(|(name, _)| name == "bias");
    let bias = if bias { Some(c.arg("bias")?) } else { None };
    Ok(([c.arg("kernel")?, c.arg("recurrent_kernel")?], bias))
}

/// A sequence, two states, and the weights of `G` gates: kernel, recurrent kernel, bias.
const fn inputs<const G: usize>(bias: &'static [usize]) -> [Input; 5] {
    const F: [&[usize]; 5] = [&[3, 4], &[], &[3, 12], &[3, 16], &[]];
    const U: [&[usize]; 5] = [&[4, 4], &[], &[4, 12], &[4, 16], &[]];
    let at = if G == 1 { 0 } else { G - 1 };
    // Larger numbers saturate the gates, and the numeric differences lose precision.
    const SMALL: Values = Values::Within(-0.6, 0.6);
    [(&[2, 3, 3], SMALL), (&[2, 4], SMALL), (F[at], SMALL), (U[at], SMALL), (bias, SMALL)]
}

/// Which steps of two sequences of three count.
fn some_steps() -> Result<Tensor> {
    Tensor::from_slice(&[false, true, true, true, false, true], [2, 3])
}

/// The output and all states in one tensor.
fn all_of(result: Recurrence) -> Result<Tensor> {
    let flat = |x: &Tensor| x.reshape([-1]);
    let mut parts = vec![flat(&result.output)?];
    for state in &result.state {
        parts.push(flat(state)?);
    }
    concat(&parts, 0)
}

/// Calls that use every kernel of a layer and of its gradient, with every dtype.
fn kernel_calls(cell: Cell, make: Make, dtype: DType) -> Result<Vec<Tensor>> {
    let gates = cell.gates();
    // Several rows per workgroup, and enough units that each step is a launch on a GPU, because the recurrent kernel is
    // large.
    let wide = (team::MOST_BYTES / (gates * dtype.size())).isqrt() / 4 * 4 + 4;
    let sizes = [[3, 2, 8], [65, 2, 8], [2, 2, 36], [5, 1, wide]];
    let mut results = Vec::new();
    for [batch, steps, units] in sizes {
        let x = make(&[batch, steps, gates * units], dtype);
        let u = make(&[units + 1, gates * units], dtype);
        let start = make(&[batch, cell.states() * units], dtype);
        let mask = make(&[batch, steps], DType::Bool);
        for mask in [None, Some(&mask)] {
            let tape = GradientTape::new();
            [&x, &u, &start].into_iter().try_for_each(|x| tape.watch(x))?;
            let y = fused::run(cell, &x, &u, &start, mask, mask.is_some())?.sequence;
            let grads = tape.gradient(&y, [&x, &u, &start])?;
            results.extend([Some(y)].into_iter().chain(grads).flatten());
        }
    }
    Ok(results)
}

/// The inventory of this folder.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "lstm", &["keras.layers.LSTM"], |c| {
        let ([kernel, recurrent], bias) = weights(c)?;
        let options = LstmOptions::new()
            .go_backwards(c.flag("go_backwards")?)
            .return_sequences(c.flag("return_sequences")?);
        Ok(vec![lstm(c.x()?, kernel, recurrent, bias, options)?.output])
    })
    .cases(|cases| {
        let run = |x: &[Tensor], unroll: bool, backwards: bool| {
            let mask = if backwards { Some(some_steps()?) } else { None };
            let options = LstmOptions::new()
                .initial_state([x[1].clone(), x[1].multiply(0.5)?])
                .mask(mask)
                .go_backwards(backwards)
                .return_sequences(backwards)
                .unroll(unroll);
            all_of(lstm(&x[0], &x[2], &x[3], Some(&x[4]), options)?)
        };
        let inputs = inputs::<4>(&[16]);
        cases.add("lstm", &inputs, move |x| run(x, false, false));
        cases.add("lstm backwards", &inputs, move |x| run(x, false, true));
        cases.add("lstm unrolled", &inputs, move |x| run(x, true, true));
    })
    .kernels(&[|make, dtype| kernel_calls(Cell::Lstm, make, dtype)]),
    Entry::new(OpKind::Kernel, "gru", &["keras.layers.GRU"], |c| {
        let ([kernel, recurrent], bias) = weights(c)?;
        let options = GruOptions::new()
            .go_backwards(c.flag("go_backwards")?)
            .return_sequences(c.flag("return_sequences")?);
        Ok(vec![gru(c.x()?, kernel, recurrent, bias, options)?.output])
    })
    .cases(|cases| {
        let run = |x: &[Tensor], unroll: bool, after: bool, backwards: bool| {
            let mask = if backwards { Some(some_steps()?) } else { None };
            let options = GruOptions::new()
                .initial_state(x[1].clone())
                .mask(mask)
                .go_backwards(backwards)
                .return_sequences(backwards)
                .reset_after(after)
                .unroll(unroll);
            all_of(gru(&x[0], &x[2], &x[3], Some(&x[4]), options)?)
        };
        let after = inputs::<3>(&[2, 12]);
        cases.add("gru", &after, move |x| run(x, false, true, false));
        cases.add("gru backwards", &after, move |x| run(x, false, true, true));
        cases.add("gru unrolled", &after, move |x| run(x, true, true, true));
        cases.add("gru with the reset before", &inputs::<3>(&[12]), move |x| {
            run(x, false, false, true)
        });
    })
    .kernels(&[|make, dtype| kernel_calls(Cell::Gru, make, dtype)]),
    Entry::new(OpKind::Kernel, "simple_rnn", &["keras.layers.SimpleRNN"], |c| {
        let ([kernel, recurrent], bias) = weights(c)?;
        let options = SimpleRnnOptions::new()
            .go_backwards(c.flag("go_backwards")?)
            .return_sequences(c.flag("return_sequences")?);
        Ok(vec![simple_rnn(c.x()?, kernel, recurrent, bias, options)?.output])
    })
    .cases(|cases| {
        let run = |x: &[Tensor], unroll: bool, backwards: bool| {
            let mask = if backwards { Some(some_steps()?) } else { None };
            let options = SimpleRnnOptions::new()
                .initial_state(x[1].clone())
                .mask(mask)
                .go_backwards(backwards)
                .return_sequences(backwards)
                .unroll(unroll);
            all_of(simple_rnn(&x[0], &x[2], &x[3], Some(&x[4]), options)?)
        };
        let inputs = inputs::<1>(&[4]);
        cases.add("simple_rnn", &inputs, move |x| run(x, false, false));
        cases.add("simple_rnn backwards", &inputs, move |x| run(x, false, true));
        cases.add("simple_rnn unrolled", &inputs, move |x| run(x, true, true));
    })
    .kernels(&[|make, dtype| kernel_calls(Cell::Simple, make, dtype)]),
    Entry::new(OpKind::Composed, "lstm_cell", &["keras.layers.LSTMCell"], |c| {
        let ([kernel, recurrent], bias) = weights(c)?;
        Ok(lstm_cell(c.x()?, [c.arg("h")?, c.arg("c")?], kernel, recurrent, bias)?.to_vec())
    })
    .cases(|cases| {
        let inputs: [Input; 4] = [(&[2, 3], ANY), (&[2, 2], ANY), (&[3, 8], ANY), (&[2, 8], ANY)];
        cases.add("lstm_cell", &inputs, |x| {
            let [h, c] = lstm_cell(&x[0], [&x[1], &x[1]], &x[2], &x[3], None)?;
            concat([h, c], 1)
        });
    }),
    Entry::new(OpKind::Composed, "gru_cell", &["keras.layers.GRUCell"], |c| {
        let ([kernel, recurrent], bias) = weights(c)?;
        let before = matches!(c.attribute("reset_after", |v| Some(v.clone()))?, Some(v) if v == false.into());
        one(gru_cell(c.x()?, c.arg("h")?, kernel, recurrent, bias, !before))
    })
    .cases(|cases| {
        for (after, bias) in [(true, &[2, 6][..]), (false, &[6][..])] {
            let inputs: [Input; 5] =
                [(&[2, 3], ANY), (&[2, 2], ANY), (&[3, 6], ANY), (&[2, 6], ANY), (bias, ANY)];
            cases.add(format!("gru_cell {after}"), &inputs, move |x| {
                gru_cell(&x[0], &x[1], &x[2], &x[3], Some(&x[4]), after)
            });
        }
    }),
    Entry::new(OpKind::Composed, "simple_rnn_cell", &["keras.layers.SimpleRNNCell"], |c| {
        let ([kernel, recurrent], bias) = weights(c)?;
        one(simple_rnn_cell(c.x()?, c.arg("h")?, kernel, recurrent, bias, Tensor::tanh))
    })
    .cases(|cases| {
        let inputs: [Input; 4] = [(&[2, 3], ANY), (&[2, 2], ANY), (&[3, 2], ANY), (&[2, 2], ANY)];
        cases.add("simple_rnn_cell", &inputs, |x| {
            simple_rnn_cell(&x[0], &x[1], &x[2], &x[3], None, Tensor::softsign)
        });
    }),
];
