//! The difference between two programs: whether code does the same each time that it is traced.

use std::sync::Arc;

use super::program::{At, Call, Control, Entry, GradientRule, Program};
use crate::error::Result;
use crate::graph::attributes::Value as Attributes;
use crate::graph::identity_bytes;
use crate::variable::Variable;

impl Program {
    /// What `other` does differently, if anything. Numbers that vary from run to run by an owner make no difference.
    ///
    /// # Errors
    /// Those of reads of captured tensors.
    pub(super) fn difference(&self, other: &Program) -> Result<Option<String>> {
        let ids =
            |program: &Program| program.variables.iter().map(Variable::id).collect::<Vec<_>>();
        if ids(self) != ids(other) {
            return Ok(Some("its calls use different variables.".to_string()));
        }
        if self.gradients != other.gradients {
            return Ok(Some("a tape computed gradients in a different place.".to_string()));
        }
        different_entries(&self.entries, &self.outputs, &other.entries, &other.outputs)
    }
}

fn different_entries(
    entries: &[Entry],
    outputs: &[At],
    other: &[Entry],
    other_outputs: &[At],
) -> Result<Option<String>> {
    for (at, (one, two)) in entries.iter().zip(other).enumerate() {
        if let Some(difference) = one.difference(two)? {
            return Ok(Some(format!("call {at} {difference}")));
        }
    }
    Ok(match entries.len() == other.len() && outputs == other_outputs {
        true => None,
        false => {
            let counts = (entries.len(), other.len());
            Some(format!("one trace has {} calls, the next {}.", counts.0, counts.1))
        }
    })
}

impl Entry {
    /// How `other` differs, if at all.
    fn difference(&self, other: &Entry) -> Result<Option<String>> {
        let same = match (self, other) {
            (Entry::Captured(one), Entry::Captured(two)) => {
                let same_value = Arc::ptr_eq(one.value(), two.value());
                if !same_value && (one.spec() != two.spec() || one.to_bytes()? != two.to_bytes()?) {
                    let (one, two) = (one.spec(), two.spec());
                    return Ok(Some(format!(
                        "uses the tensor {one} in one trace, and {two} with other values in the next."
                    )));
                }
                true
            }
            (Entry::Call(one), Entry::Call(two)) => {
                let scalars = |call: &Call| match call.owner {
                    Some(_) => None,
                    None => Some(call.op.runtime_scalars()),
                };
                if identity_bytes(&*one.op) != identity_bytes(&*two.op) {
                    let text = |call: &Call| {
                        format!("{}{}", call.op.kind(), Attributes::from_op(&*call.op))
                    };
                    let (one, two) = (text(one), text(two));
                    return Ok(Some(format!("is {one} in one trace, and {two} in the next.")));
                }
                if scalars(one) != scalars(two) {
                    let kind = one.op.kind();
                    return Ok(Some(format!("is {kind} with other numbers in the next trace.")));
                }
                let (rule, other) = (one.rule.as_ref(), two.rule.as_ref());
                let program = |rule: &'_ GradientRule| rule.program.clone().ok();
                if let (Some(own), Some(other)) = (rule.and_then(program), other.and_then(program))
                {
                    if let Some(difference) = own.difference(&other)? {
                        return Ok(Some(format!("has a custom gradient in which {difference}")));
                    }
                }
                let captures = |rule: Option<&GradientRule>| rule.map(|rule| rule.captures.clone());
                let rules = captures(rule) == captures(other);
                one.inputs == two.inputs && one.spec == two.spec && rules
            }
            (Entry::Control(one), Entry::Control(two)) => {
                for (one, two) in one.blocks().into_iter().zip(two.blocks()) {
                    let (own, other) = (&one.outputs, &two.outputs);
                    let found = different_entries(&one.entries, own, &two.entries, other)?;
                    if let Some(difference) = found {
                        return Ok(Some(format!("has a branch in which {difference}")));
                    }
                }
                // A closure on the host cannot be compared.
                let same_kind = match (one, two) {
                    (Control::Repeat { most, .. }, Control::Repeat { most: other, .. }) => {
                        most == other
                    }
                    _ => std::mem::discriminant(one) == std::mem::discriminant(two),
                };
                same_kind
                    && one.blocks().len() == two.blocks().len()
                    && one.inputs() == two.inputs()
            }
            (
                Entry::Gradient { of, seeds, variables },
                Entry::Gradient { of: other, seeds: other_seeds, variables: other_variables },
            ) => of == other && seeds == other_seeds && variables == other_variables,
            (Entry::Argument(one), Entry::Argument(two))
            | (Entry::Read(one), Entry::Read(two))
            | (Entry::Outer(one), Entry::Outer(two)) => one == two,
            (Entry::Stopped(one), Entry::Stopped(two)) | (Entry::Same(one), Entry::Same(two)) => {
                one == two
            }
            (
                Entry::Assign { variable, value },
                Entry::Assign { variable: other, value: other_value },
            ) => variable == other && value == other_value,
            (Entry::Effect { inputs, .. }, Entry::Effect { inputs: other, .. }) => inputs == other,
            (Entry::Count(_), Entry::Count(_)) => true,
            (Entry::Result { of, index }, Entry::Result { of: other, index: other_index }) => {
                of == other && index == other_index
            }
            _ => false,
        };
        Ok(match same {
            true => None,
            false => Some("does something else in the next trace.".to_string()),
        })
    }
}
