//! Keras's recurrent layers by the functions behind them, until there are layers. Compared, and listed.

use wgrad::keras::Activation;
use wgrad::{
    GruOptions, LstmOptions, Recurrence, Result, SimpleRnnOptions, Tensor, Variable, concat, gru,
    lstm, simple_rnn,
};

use super::call::{Answer, Call, Stop, to_tensor};

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
        c.only("return_sequences", true)?;
        let name = c.need("layer", c.text("layer")?)?;
        let (ahead, back) = weights.split_at(weights.len() / 2);
        let ahead = run(c, &name, ahead, false)?.output;
        // Each way's outputs stand at their own step.
        let back = run(c, &name, back, true)?.output.reverse(1)?;
        return Ok(vec![concat([ahead, back], -1)?]);
    }
    let name = c.case.op.trim_start_matches("keras.layers.");
    let result = run(c, name, weights, c.flag("go_backwards")?)?;
    let mut results = vec![result.output];
    if c.flag("return_state")? {
        results.extend(result.state);
    }
    Ok(results)
}

fn run(c: &Call, name: &str, weights: &[Variable], backwards: bool) -> Answer<Recurrence> {
    let weights: Vec<Tensor> = weights.iter().map(Variable::read).collect();
    let [kernel, recurrent, bias @ ..] = &weights[..] else {
        return Err(Stop::Lacks("kernel".into()));
    };
    let (x, bias) = (c.x()?, bias.first());
    let given = |key: &str| match c.tensors().iter().any(|(known, _)| known == key) {
        true => c.arg(key).map(|x| Some(x.clone())),
        false => Ok(None),
    };
    let (h, mask) = (given("h0")?, given("mask")?);
    let sequences = c.flag("return_sequences")?;
    let result = match name {
        "LSTM" => {
            let options =
                LstmOptions::new().initial_state(h.zip(given("c0")?).map(|(h, c)| [h, c]));
            let options = options.mask(mask).go_backwards(backwards).return_sequences(sequences);
            lstm(x, kernel, recurrent, bias, options)
        }
        "GRU" => {
            let after = c.value("reset_after")?.is_none() || c.flag("reset_after")?;
            let options = GruOptions::new().initial_state(h).mask(mask).reset_after(after);
            let options = options.go_backwards(backwards).return_sequences(sequences);
            gru(x, kernel, recurrent, bias, options)
        }
        "SimpleRNN" => {
            let activation = c.text("activation")?.unwrap_or_else(|| "tanh".into());
            let activation: Option<fn(&Tensor) -> Result<Tensor>> = match activation.parse() {
                Ok(Activation::Tanh) => None,
                Ok(Activation::Relu) => Some(Tensor::relu),
                Ok(Activation::Sigmoid) => Some(Tensor::sigmoid),
                Ok(Activation::Linear) => Some(|x| Ok(x.clone())),
                _ => return Err(Stop::Lacks("activation".into())),
            };
            let options = SimpleRnnOptions::new().initial_state(h).mask(mask);
            let options = options.activation(activation);
            let options = options.go_backwards(backwards).return_sequences(sequences);
            simple_rnn(x, kernel, recurrent, bias, options)
        }
        _ => return Err(Stop::Lacks("layer".into())),
    };
    Ok(result?)
}
