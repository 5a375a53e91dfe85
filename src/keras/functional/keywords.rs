//! How Keras calls layers that accept more than a tensor or a list: attention with masks, recurrent layers with states.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::operation::{Callable, Called, Masked};
use crate::error::Result;
use crate::keras::layers::{AttendCall, AttentionLayer, SequenceLayer};
use crate::keras::{Config, Context, Layer};
use crate::tensor::Tensor;
use crate::trackable::{CallForm, Trackable};

/// With which arguments Keras calls the layer.
pub(super) fn call_form(layer: &(impl Trackable + ?Sized)) -> CallForm {
    layer.class().map_or(CallForm::Inputs, |class| class.call)
}

/// Whether Keras calls such layers with an argument for each tensor.
pub(super) fn takes_arguments(form: CallForm) -> bool {
    matches!(form, CallForm::Heads | CallForm::Recurrent)
}

/// The config of a layer that a model calls: what is an argument of the call is no option, and a layer that is called on a list
/// of states gives its states.
pub(super) fn in_a_call(config: Config, form: CallForm, several: bool) -> Config {
    let class = config.class().to_string();
    let mut options = config.options().clone();
    options.remove("use_causal_mask");
    if several && form == CallForm::Recurrent {
        for key in ["layer", "backward_layer"] {
            if let Some(inner) = options.get_mut(key).and_then(|layer| layer.get_mut("config")) {
                inner["return_state"] = json!(true);
            }
        }
        if class != "Bidirectional" {
            options.insert("return_state".to_string(), json!(true));
        }
    }
    Config::with_options(class, options)
}

/// The arguments with which Keras calls such a layer on `tensors`.
pub(super) fn written(
    form: CallForm,
    several: bool,
    mut tensors: Vec<Value>,
    config: &dyn Fn() -> Result<Config>,
) -> Result<(Value, Map<String, Value>)> {
    let mut kwargs = Map::new();
    let attention = matches!(form, CallForm::Heads | CallForm::Attention);
    if attention && config()?.get::<bool>("use_causal_mask")? == Some(true) {
        kwargs.insert("use_causal_mask".to_string(), json!(true));
    }
    if form == CallForm::Heads && tensors.len() == 1 {
        tensors.push(tensors[0].clone());
    }
    if form == CallForm::Recurrent && tensors.len() > 1 {
        kwargs.insert("initial_state".to_string(), tensors.split_off(1).into());
    }
    let args =
        if several && !takes_arguments(form) { json!([tensors]) } else { Value::Array(tensors) };
    Ok((args, kwargs))
}

/// A call of a recurrent layer that a file describes: on sequences and, optionally, on states.
pub(super) struct RecurrentCall {
    pub(super) layer: Box<dyn SequenceLayer>,
}

impl Callable for RecurrentCall {
    fn call(
        &self,
        inputs: &[Tensor],
        masks: &[Option<Tensor>],
        cx: Context<'_>,
    ) -> Result<Vec<Masked>> {
        let (x, initial) = match inputs {
            [x] => (x, None),
            [x, initial @ ..] => (x, Some(initial)),
            [] => return Ok(Vec::new()),
        };
        let mask = masks.first().and_then(Option::as_ref);
        let results = self.layer.run_all(x, initial, cx.with_mask(mask))?;
        let mut mask = Layer::<Tensor>::compute_mask(&*self.layer, x, mask)?;
        Ok(results.into_iter().map(|y| (y, mask.take())).collect())
    }

    fn part(&self) -> &dyn Trackable {
        &self.layer
    }

    fn called(&self) -> Result<Called> {
        Layer::<Tensor>::get_config(&*self.layer).map(Called::Layer)
    }

    fn arguments(&self, tensors: Vec<Value>) -> Result<(Value, Map<String, Value>)> {
        written(call_form(&self.layer), false, tensors, &|| {
            Layer::<Tensor>::get_config(&*self.layer)
        })
    }
}

/// A call of attention that a file describes.
pub(crate) struct AttentionCall {
    pub(crate) layer: Arc<dyn AttentionLayer>,
    /// The argument that each input belongs to: `query`, `value`, `key`, or a mask: `attention_mask`, `query_mask`,
    /// `value_mask`, `key_mask`.
    pub(crate) names: Vec<&'static str>,
    pub(crate) causal: bool,
    /// Whether the attention scores are a second result.
    pub(crate) scores: bool,
}

/// Keras's names of the inputs of attention, in order.
pub(crate) const QUERIES: [&str; 3] = ["query", "value", "key"];
/// The names of its masks.
pub(crate) const MASKS: [&str; 4] = ["attention_mask", "query_mask", "value_mask", "key_mask"];

impl AttentionCall {
    fn by_name<T>(&self, inputs: &[T], name: &str) -> Option<T>
    where
        T: Clone,
    {
        let at = self.names.iter().position(|known| *known == name)?;
        inputs.get(at).cloned()
    }
}

impl Callable for AttentionCall {
    fn call(
        &self,
        inputs: &[Tensor],
        masks: &[Option<Tensor>],
        cx: Context<'_>,
    ) -> Result<Vec<Masked>> {
        let of: Vec<Tensor> =
            QUERIES.iter().filter_map(|name| self.by_name(inputs, name)).collect();
        let given = ["query_mask", "value_mask", "key_mask"];
        let given = given.map(|name| self.by_name(inputs, name));
        // The masks that the call names, and else those that come with its inputs. Where Keras has one argument for all
        // masks, naming one leaves the others out.
        let heads = call_form(&self.layer) == CallForm::Heads;
        let only_given = !heads && given.iter().any(Option::is_some);
        let own = given.into_iter().zip(QUERIES).map(|(mask, of)| match only_given {
            true => mask,
            false => mask.or_else(|| self.by_name(masks, of).flatten()),
        });
        let own: Vec<Option<Tensor>> = own.collect();
        let call = AttendCall {
            attention_mask: self.by_name(inputs, "attention_mask"),
            causal: self.causal,
            scores: self.scores,
        };
        let (y, scores) = self.layer.attend(&of, call, cx.with_mask(None).with_masks(&own))?;
        let mask = own.into_iter().next().flatten();
        Ok(std::iter::once((y, mask)).chain(scores.map(|scores| (scores, None))).collect())
    }

    fn part(&self) -> &dyn Trackable {
        &self.layer
    }

    fn called(&self) -> Result<Called> {
        self.layer
            .get_config()
            .map(|config| Called::Layer(in_a_call(config, call_form(&self.layer), false)))
    }

    fn arguments(&self, tensors: Vec<Value>) -> Result<(Value, Map<String, Value>)> {
        let mut kwargs = Map::new();
        let of: Vec<Value> =
            QUERIES.iter().filter_map(|name| self.by_name(&tensors, name)).collect();
        if self.causal || self.layer.get_config()?.get::<bool>("use_causal_mask")? == Some(true) {
            kwargs.insert("use_causal_mask".to_string(), json!(true));
        }
        if self.scores {
            kwargs.insert("return_attention_scores".to_string(), json!(true));
        }
        let heads = call_form(&self.layer) == CallForm::Heads;
        let masks = MASKS.iter().map(|name| (*name, self.by_name(&tensors, name)));
        if heads {
            let masks = masks.filter_map(|(name, mask)| Some((name.to_string(), mask?)));
            kwargs.extend(masks);
        } else {
            let list: Vec<Value> =
                masks.skip(1).take(2).map(|(_, mask)| mask.unwrap_or(Value::Null)).collect();
            if list.iter().any(|mask| !mask.is_null()) {
                kwargs.insert("mask".to_string(), list.into());
            }
        }
        Ok((if heads { of.into() } else { json!([of]) }, kwargs))
    }
}
