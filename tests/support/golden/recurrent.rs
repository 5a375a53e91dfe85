//! Keras's recurrent layers written out in ops, as a program without them has to. Compared, and listed.

use wgrad::keras::Activation;
use wgrad::{Result, Tensor, Variable, concat, where_};

use super::call::{Answer, Call, Stop, to_tensor};

/// What the layer remembers from step to step: `h`, and the LSTM's `c`.
type State = Vec<Tensor>;

/// The weights of a layer that is written out here; `None` for all other ops.
pub fn weights(c: &Call) -> Result<Option<Vec<Variable>>> {
    let written_out = ["LSTM", "GRU", "SimpleRNN", "Bidirectional"];
    let name = c.case.op.strip_prefix("keras.layers.");
    if !name.is_some_and(|name| written_out.contains(&name)) {
        return Ok(None);
    }
    let variable = |(_, name): &(String, String)| {
        Ok(Variable::new(&to_tensor(&c.golden.tensor(c.case, name))?))
    };
    c.case.weights.iter().map(variable).collect::<Result<Vec<_>>>().map(Some)
}

/// The layer's results: the outputs, and the last state if the case wants it.
pub fn forward(c: &Call, weights: &[Variable]) -> Answer {
    c.composes("");
    // The weights say how many there are, and whether there is a bias.
    c.remark("units");
    c.remark("use_bias");
    if c.case.op == "keras.layers.Bidirectional" {
        c.only("merge_mode", "concat")?;
        let name = c.need("layer", c.text("layer")?)?;
        let (ahead, back) = weights.split_at(weights.len() / 2);
        let (ahead, _) = Cell::new(c, &name, ahead)?.run(c, false)?;
        let (mut back, _) = Cell::new(c, &name, back)?.run(c, true)?;
        // Each way's outputs stand at their own step.
        back.reverse();
        c.only("return_sequences", true)?;
        let both: Result<Vec<Tensor>> =
            ahead.iter().zip(&back).map(|(a, b)| concat([a, b], -1)).collect();
        return Ok(vec![sequence(&both?)?]);
    }
    let name = c.case.op.trim_start_matches("keras.layers.");
    let (outputs, state) = Cell::new(c, name, weights)?.run(c, c.flag("go_backwards")?)?;
    let mut results = match c.flag("return_sequences")? {
        true => vec![sequence(&outputs)?],
        false => vec![c.need("x", outputs.last().cloned())?],
    };
    if c.flag("return_state")? {
        results.extend(state);
    }
    Ok(results)
}

fn sequence(steps: &[Tensor]) -> Result<Tensor> {
    wgrad::stack(steps.iter().collect::<Vec<_>>(), 1)
}

enum Kind {
    Lstm,
    /// Whether the reset comes after the product, and has a bias of its own then.
    Gru(bool),
    Simple(Activation),
}

struct Cell<'a> {
    kind: Kind,
    kernel: &'a Variable,
    recurrent: &'a Variable,
    bias: Option<&'a Variable>,
}

impl<'a> Cell<'a> {
    fn new(c: &Call, name: &str, weights: &'a [Variable]) -> Answer<Self> {
        let kind = match name {
            "LSTM" => Kind::Lstm,
            "GRU" => Kind::Gru(c.value("reset_after")?.is_none() || c.flag("reset_after")?),
            "SimpleRNN" => {
                let name = c.text("activation")?.unwrap_or_else(|| "tanh".into());
                Kind::Simple(name.parse().map_err(|_| Stop::Lacks("activation".into()))?)
            }
            _ => return Err(Stop::Lacks("layer".into())),
        };
        match weights {
            [kernel, recurrent, bias @ ..] => {
                Ok(Cell { kind, kernel, recurrent, bias: bias.first() })
            }
            _ => Err(Stop::Lacks("kernel".into())),
        }
    }

    fn units(&self) -> usize {
        self.recurrent.shape()[0]
    }

    /// The outputs in the order in which they come, and the last state.
    fn run(&self, c: &Call, backwards: bool) -> Answer<(Vec<Tensor>, State)> {
        let x = c.x()?;
        let (rows, inner) = (x.shape()[0], x.shape()[2] as i64);
        let zeros = || Tensor::zeros([rows, self.units()]);
        let mut state: State = Vec::new();
        let given = |key: &str| c.tensors().iter().any(|(known, _)| known == key);
        for key in if matches!(self.kind, Kind::Lstm) { &["h0", "c0"][..] } else { &["h0"] } {
            state.push(if given(key) { c.arg(key)?.clone() } else { zeros()? });
        }
        let mask = if given("mask") { Some(c.arg("mask")?.unstack(1)?) } else { None };

        // All steps' products with the kernel are one.
        let products = x.reshape([-1, inner])?.matmul(self.kernel)?;
        let products = products.reshape([rows as i64, -1, self.kernel.shape()[1] as i64])?;
        let mut order: Vec<usize> = (0..x.shape()[1]).collect();
        if backwards {
            order.reverse();
        }
        let products = products.unstack(1)?;
        let mut outputs = Vec::new();
        for step in order {
            let mut next = self.step(&products[step], &state)?;
            if let Some(mask) = &mask {
                let seen = mask[step].expand_dims(1)?;
                for (next, before) in next.iter_mut().zip(&state) {
                    *next = where_(&seen, next, before)?;
                }
            }
            state = next;
            outputs.push(state[0].clone());
        }
        Ok((outputs, state))
    }

    /// The state after a step whose product with the kernel is `x`.
    fn step(&self, x: &Tensor, state: &[Tensor]) -> Result<State> {
        let h = &state[0];
        match &self.kind {
            Kind::Simple(activation) => {
                let sum = self.biased(x)?.add(h.matmul(self.recurrent)?)?;
                Ok(vec![activation.apply(&sum)?])
            }
            // Gates i f c o.
            Kind::Lstm => {
                let gates = self.biased(x)?.add(h.matmul(self.recurrent)?)?.split(4, 1)?;
                let kept = gates[1].sigmoid()?.multiply(&state[1])?;
                let c = kept.add(gates[0].sigmoid()?.multiply(gates[2].tanh()?)?)?;
                Ok(vec![gates[3].sigmoid()?.multiply(c.tanh()?)?, c])
            }
            // Gates z r h.
            Kind::Gru(true) => {
                let (mut x, mut own) = (x.clone(), h.matmul(self.recurrent)?);
                if let Some(bias) = self.bias {
                    let both = bias.read().unstack(0)?;
                    (x, own) = (x.add(&both[0])?, own.add(&both[1])?);
                }
                let (x, own) = (x.split(3, 1)?, own.split(3, 1)?);
                let z = x[0].add(&own[0])?.sigmoid()?;
                let r = x[1].add(&own[1])?.sigmoid()?;
                let new = x[2].add(r.multiply(&own[2])?)?.tanh()?;
                Ok(vec![z.multiply(h)?.add((1.0 - &z).multiply(new)?)?])
            }
            Kind::Gru(false) => {
                let x = self.biased(x)?.split(3, 1)?;
                let parts = self.recurrent.read().split(3, 1)?;
                let z = x[0].add(h.matmul(&parts[0])?)?.sigmoid()?;
                let r = x[1].add(h.matmul(&parts[1])?)?.sigmoid()?;
                let new = x[2].add(r.multiply(h)?.matmul(&parts[2])?)?.tanh()?;
                Ok(vec![z.multiply(h)?.add((1.0 - &z).multiply(new)?)?])
            }
        }
    }

    fn biased(&self, x: &Tensor) -> Result<Tensor> {
        self.bias.map_or_else(|| Ok(x.clone()), |bias| x.add(bias))
    }
}
