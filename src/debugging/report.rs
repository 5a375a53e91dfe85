//! How a check reports its result.

use std::panic::Location;
use std::sync::Arc;

use crate::eager;
use crate::error::{Error, Message, message};
use crate::tensor::{Element, Tensor};

/// Requests the values of small tensors of one device; `report` makes an error from them, if there is something to
/// report.
pub(super) fn report(
    tensors: &[&Tensor],
    report: impl Fn(&[&[u8]]) -> Option<Message> + Send + Sync + 'static,
) {
    let report = Arc::new(report);
    eager::effect(tensors, move |tensors| {
        let Some(first) = tensors.first() else { return };
        let values = tensors.iter().map(|x| x.value().clone()).collect();
        let report = report.clone();
        let deliver =
            move |bytes: &[&[u8]]| report(bytes).map_or(Ok(()), |text| Err(Error::Check(text)));
        first.device().report(values, Box::new(deliver));
    });
}

/// The first element.
pub(super) fn number<T: Element + Default>(bytes: &[u8]) -> T {
    T::load(bytes).first().copied().unwrap_or_default()
}

/// `x` with a new identity, which no tape knows: the ops of a check are not part of the program.
pub(super) fn aside(x: &Tensor) -> Tensor {
    x.detached()
}

/// The beginning of a message: `op: message: `, or `op: ` if the program passed no message.
pub(super) fn began(op: &str, words: &str) -> String {
    if words.is_empty() { format!("{op}: ") } else { format!("{op}: {words}: ") }
}

pub(super) fn at(place: &Location<'_>) -> Message {
    message!("Called at {}:{}.", place.file(), place.line())
}

/// The index of element `flat` of a shape.
pub(super) fn index(shape: &[usize], mut flat: usize) -> Vec<usize> {
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&size| {
            let at = flat % size.max(1);
            flat /= size.max(1);
            at
        })
        .collect();
    index.reverse();
    index
}
