//! The golden cases of layers over sequences, whose calls have several tensors: recurrent layers and attention.

use wgrad::keras::layers::{
    AdditiveAttention, AttendOptions, Attention, Bidirectional, Dense, Gru, Lstm, MergeMode,
    MultiHeadAttention, SimpleRnn, TimeDistributed,
};
use wgrad::keras::{Activation, Context, INFERENCE, Layer, TRAINING};
use wgrad::{Error, Recurrence, Tensor, Trackable, Variable};

use super::call::{Answer, Call, Stop, to_tensor};

/// A layer with the case's weights.
pub struct SequenceLayer {
    pub variables: Vec<Variable>,
    run: Run,
}

type Run = Box<dyn Fn(&Call, Context<'_>) -> Answer>;

/// The layer of the case; `None` for all other ops.
pub fn layer(c: &Call) -> Answer<Option<SequenceLayer>> {
    let name = c.case.op.strip_prefix("keras.layers.").unwrap_or_default();
    let (part, run): (Box<dyn Trackable>, Run) = match name {
        "LSTM" => recurrent(c, lstm(c)?, Lstm::call_with_state)?,
        "GRU" => recurrent(c, gru(c)?, Gru::call_with_state)?,
        "SimpleRNN" => recurrent(c, simple_rnn(c)?, SimpleRnn::call_with_state)?,
        "Bidirectional" => plain(bidirectional(c)?),
        "TimeDistributed" => {
            c.only("layer", "Dense")?;
            plain(TimeDistributed::new(Dense::new(c.size("units")?)))
        }
        "MultiHeadAttention" => multi_head(c)?,
        "Attention" => {
            let layer = Attention::new().use_scale(c.flag("use_scale")?);
            of_two(layer)
        }
        "AdditiveAttention" => {
            let layer = AdditiveAttention::new();
            // Keras's default is true.
            let scaled = c.value("use_scale")?.is_none() || c.flag("use_scale")?;
            of_two(layer.use_scale(scaled))
        }
        _ => return Ok(None),
    };
    run(c, INFERENCE)?;
    let variables = part.variables();
    if variables.len() != c.case.weights.len() {
        let (got, want) = (variables.len(), c.case.weights.len());
        return Err(Error::Shape(format!("{got} variables, Keras has {want}").into()).into());
    }
    let named = part.named_variables();
    for ((own, variable), (key, name)) in named.iter().zip(&c.case.weights) {
        let own = own.replace('/', ".");
        // Keras appends numbers to the names of a session's layers.
        let plain = |name: &str| name.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        if plain(&own).replace("_.", ".") != plain(key).replace("_.", ".") {
            return Err(Error::Shape(format!("the variable {own}, Keras has {key}").into()).into());
        }
        variable.assign(&to_tensor(&c.golden.tensor(c.case, name))?)?;
    }
    Ok(Some(SequenceLayer { variables, run }))
}

impl SequenceLayer {
    pub fn call(&self, c: &Call) -> Answer {
        (self.run)(c, if c.flag("training")? { TRAINING } else { INFERENCE })
    }
}

type CallWithState<L> =
    fn(&L, &Tensor, Option<&[Tensor]>, Context<'_>) -> wgrad::Result<Recurrence>;

type Made = (Box<dyn Trackable>, Run);

fn plain<L: Layer + 'static>(layer: L) -> Made {
    let layer = std::sync::Arc::new(layer);
    let own = layer.clone();
    (Box::new(layer), Box::new(move |c, cx| Ok(vec![own.call(c.x()?, cx)?])))
}

fn of_two<L: Layer<[Tensor]> + 'static>(layer: L) -> Made {
    let layer = std::sync::Arc::new(layer);
    let own = layer.clone();
    let run: Run = Box::new(move |c, cx| {
        let inputs = [c.arg("q")?.clone(), c.arg("v")?.clone()];
        Ok(vec![own.call(&inputs[..], cx)?])
    });
    (Box::new(layer), run)
}

fn given(c: &Call, key: &str) -> Answer<Option<Tensor>> {
    match c.tensors().iter().any(|(known, _)| known == key) {
        true => c.arg(key).map(|x| Some(x.clone())),
        false => Ok(None),
    }
}

// ---- recurrent layers ---------------------------------------------------------------------------------------

fn recurrent<L: Trackable + 'static>(c: &Call, layer: L, call: CallWithState<L>) -> Answer<Made> {
    let wants_state = c.flag("return_state")?;
    let layer = std::sync::Arc::new(layer);
    let own = layer.clone();
    let run: Run = Box::new(move |c, cx| {
        let mut states: Vec<Tensor> = given(c, "h0")?.into_iter().collect();
        states.extend(given(c, "c0")?);
        let initial = Some(&states[..]).filter(|states| !states.is_empty());
        let mask = given(c, "mask")?;
        let result = call(&own, c.x()?, initial, cx.with_mask(mask.as_ref()))?;
        let mut results = vec![result.output];
        results.extend(if wants_state { result.state } else { Vec::new() });
        Ok(results)
    });
    Ok((Box::new(layer), run))
}

/// The number of units, from the case's weights.
fn units(c: &Call) -> Answer<usize> {
    c.remark("units");
    let own = c.case.weights.iter().find(|(key, _)| key.ends_with("recurrent_kernel"));
    let (_, name) = c.need("recurrent_kernel", own)?;
    c.need("units", c.golden.tensor(c.case, name).shape().first().copied())
}

fn activation(c: &Call) -> Answer<Activation> {
    let name = c.text("activation")?.unwrap_or_else(|| "tanh".into());
    name.parse().map_err(|_| Stop::Lacks("activation".into()))
}

/// An option that is true in Keras by default.
fn unless_said(c: &Call, key: &str) -> Answer<bool> {
    Ok(c.value(key)?.is_none() || c.flag(key)?)
}

fn lstm(c: &Call) -> Answer<Lstm> {
    Ok(Lstm::new(units(c)?)
        .activation(activation(c)?)
        .use_bias(unless_said(c, "use_bias")?)
        .return_sequences(c.flag("return_sequences")?)
        .go_backwards(c.flag("go_backwards")?))
}

fn gru(c: &Call) -> Answer<Gru> {
    Ok(Gru::new(units(c)?)
        .activation(activation(c)?)
        .use_bias(unless_said(c, "use_bias")?)
        .reset_after(unless_said(c, "reset_after")?)
        .return_sequences(c.flag("return_sequences")?)
        .go_backwards(c.flag("go_backwards")?))
}

fn simple_rnn(c: &Call) -> Answer<SimpleRnn> {
    Ok(SimpleRnn::new(units(c)?)
        .activation(activation(c)?)
        .use_bias(unless_said(c, "use_bias")?)
        .return_sequences(c.flag("return_sequences")?)
        .go_backwards(c.flag("go_backwards")?))
}

fn bidirectional(c: &Call) -> Answer<Bidirectional> {
    let layer = match c.text("layer")?.as_deref() {
        Some("LSTM") => Bidirectional::new(lstm(c)?),
        Some("GRU") => Bidirectional::new(gru(c)?),
        Some("SimpleRNN") => Bidirectional::new(simple_rnn(c)?),
        _ => return Err(Stop::Lacks("layer".into())),
    };
    Ok(layer.merge_mode(match c.text("merge_mode")?.as_deref() {
        None | Some("concat") => MergeMode::Concat,
        Some("sum") => MergeMode::Sum,
        Some("mul") => MergeMode::Mul,
        Some("ave") => MergeMode::Ave,
        Some(_) => return Err(Stop::Lacks("merge_mode".into())),
    }))
}

// ---- attention ----------------------------------------------------------------------------------------------

fn multi_head(c: &Call) -> Answer<Made> {
    let value_dim = c.int("value_dim")?.and_then(|size| usize::try_from(size).ok());
    let layer = MultiHeadAttention::new(c.size("num_heads")?, c.size("key_dim")?)
        .value_dim(value_dim)
        .use_bias(unless_said(c, "use_bias")?);
    let causal = c.flag("use_causal_mask")?;
    c.remark("outputs");
    let wants_scores = c.case.outputs.len() == 2;
    let layer = std::sync::Arc::new(layer);
    let own = layer.clone();
    let run: Run = Box::new(move |c, cx| {
        let (query, value) = match given(c, "x")? {
            Some(x) => (x.clone(), x),
            None => (c.arg("q")?.clone(), c.arg("kv")?.clone()),
        };
        let options =
            AttendOptions::new().attention_mask(given(c, "mask")?).use_causal_mask(causal);
        if !wants_scores {
            return Ok(vec![own.call_with(&query, &value, options, cx)?]);
        }
        let (y, scores) = own.call_with_scores(&query, &value, options, cx)?;
        Ok(vec![y, scores])
    });
    Ok((Box::new(layer), run))
}
