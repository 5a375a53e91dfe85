//! LSTM, GRU and RNN: Keras's layers with the gates in another order.

use super::call::{Call, Results, Table, unsupported};
use crate::error::{Error, Result, message};
use crate::ops::{
    GruOptions, LstmOptions, Recurrence, SimpleRnnOptions, concat, gru, lstm, simple_rnn, stack,
};
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: Table = &[
    ("GRU", |c| run(c, 3, &["Sigmoid", "Tanh"])),
    ("LSTM", |c| run(c, 4, &["Sigmoid", "Tanh", "Tanh"])),
    ("RNN", |c| run(c, 1, &["Tanh"])),
];

/// The gates of LSTM are i, o, f, c, and Keras's are i, f, c, o; GRU's z, r, h are the same.
fn in_keras_order(x: &Tensor, gates: usize, axis: i64) -> Result<Tensor> {
    if gates != 4 {
        return Ok(x.clone());
    }
    let parts = x.split(4, axis)?;
    concat([&parts[0], &parts[2], &parts[3], &parts[1]], axis)
}

fn run(c: &Call<'_>, gates: usize, default: &[&str]) -> Result<Results> {
    let x = c.tensor(0)?;
    let (weights, recurrent) = (c.tensor(1)?, c.tensor(2)?);
    let ([steps, batch, _], [directions, _, _], [_, _, units]) =
        (x.shape(), weights.shape(), recurrent.shape())
    else {
        return Err(Error::Shape(message!(
            "its input, weights and recurrent weights have the shapes {:?}, {:?} and {:?}, not three axes each.",
            x.shape(),
            weights.shape(),
            recurrent.shape()
        )));
    };
    let (steps, batch, directions, units) = (*steps, *batch, *directions, *units);
    if c.get(4).is_some() && c.ints(4)?.iter().any(|length| *length != steps as i64) {
        return Err(unsupported(format_args!("sequences of different lengths")));
    }
    if c.get(7).is_some() || c.attr_int("layout", 0) != 0 || c.node.attributes.contains_key("clip")
    {
        return Err(unsupported(format_args!("a peephole, a clip, or the layout 1")));
    }
    let activations = c.attr_texts("activations");
    let relu =
        gates == 1 && !activations.is_empty() && activations.iter().all(|name| name == "Relu");
    if !relu
        && activations.iter().zip(default.iter().cycle()).any(|(name, default)| name != default)
    {
        return Err(unsupported(format_args!("the activations {activations:?}")));
    }
    let x = x.transpose([1, 0, 2])?;
    let part = |at: usize, direction: usize| -> Result<Option<Tensor>> {
        match c.get(at) {
            Some(value) => {
                let found = value.tensor()?.unstack(0)?.into_iter().nth(direction);
                let none =
                    || Error::Shape(message!("its input {at} has no direction {direction}."));
                found.ok_or_else(none).map(Some)
            }
            None => Ok(None),
        }
    };
    let (mut outputs, mut hidden, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    for direction in 0..directions {
        let backwards = direction == 1 || c.attr_text("direction", "forward") == "reverse";
        let matrix = |at: usize| -> Result<Tensor> {
            let matrix =
                part(at, direction)?.ok_or_else(|| Error::Data(message!("it lacks weights.")))?;
            in_keras_order(&matrix.transpose([1, 0])?, gates, 1)
        };
        let (kernel, recurrent_kernel) = (matrix(1)?, matrix(2)?);
        let biases = match part(3, direction)? {
            Some(bias) => {
                let both = bias.split(2, 0)?;
                Some([in_keras_order(&both[0], gates, 0)?, in_keras_order(&both[1], gates, 0)?])
            }
            None => None,
        };
        let sum = match &biases {
            Some([a, b]) => Some(a.add(b)?),
            None => None,
        };
        let state = |at: usize| -> Result<Tensor> {
            match part(at, direction)? {
                Some(state) => Ok(state),
                None => Tensor::full_of([batch, units], 0, x.dtype()),
            }
        };
        let (x, w, r) = (&x, &kernel, &recurrent_kernel);
        let Recurrence { output, state: last } = match gates {
            4 => {
                let options = LstmOptions::new()
                    .initial_state([state(5)?, state(6)?])
                    .go_backwards(backwards)
                    .return_sequences(true);
                lstm(x, w, r, sum.as_ref(), options)?
            }
            3 => {
                let after = c.attr_int("linear_before_reset", 0) != 0;
                let bias = match (&biases, after) {
                    (Some(both), true) => Some(stack(both, 0)?),
                    _ => sum,
                };
                let options = GruOptions::new()
                    .initial_state(state(5)?)
                    .go_backwards(backwards)
                    .reset_after(after)
                    .return_sequences(true);
                gru(x, w, r, bias.as_ref(), options)?
            }
            _ => {
                let mut options = SimpleRnnOptions::new()
                    .initial_state(state(5)?)
                    .go_backwards(backwards)
                    .return_sequences(true);
                if relu {
                    let activation: fn(&Tensor) -> Result<Tensor> = Tensor::relu;
                    options = options.activation(activation);
                }
                simple_rnn(x, w, r, sum.as_ref(), options)?
            }
        };
        // Keras leaves the steps of a backward pass in the order in which it took them.
        outputs.push(if backwards { output.reverse(1)? } else { output });
        let mut last = last.into_iter();
        hidden.extend(last.next());
        cells.extend(last.next());
    }
    // [B,T,D,U] to [T,D,B,U].
    let all = stack(&outputs, 2)?.transpose([1, 2, 0, 3])?;
    let mut results = vec![Value::Tensor(all), Value::Tensor(stack(&hidden, 0)?)];
    if gates == 4 {
        results.push(Value::Tensor(stack(&cells, 0)?));
    }
    Ok(results)
}
