//! The identity of an op: its type and its attributes, which are the fields of its struct. The identity is derived from
//! the fields, so that none can be forgotten.

use std::any::{Any, TypeId};
use std::hash::{Hash, Hasher};

use super::attributes::{Attribute, IdentityWriter, OpAttributes, Value, Visitor};

/// An op's identity and attributes, which every struct with `#[derive(Attribute)]` and `#[op("Name")]` has.
pub(crate) trait Identity: Any {
    /// The op's declared name.
    fn kind(&self) -> &'static str;

    /// Passes the attributes to `visitor`.
    fn attributes(&self, visitor: &mut dyn Visitor);

    /// Feeds the op's type and its attributes to `state`, but those that may change from call to call. The hasher
    /// collects the bytes of a key, which are compared one by one, so equal bytes must mean equal ops.
    fn identify(&self, state: &mut dyn Hasher);
}

impl<T: Any + OpAttributes> Identity for T {
    fn kind(&self) -> &'static str {
        T::KIND
    }

    fn attributes(&self, visitor: &mut dyn Visitor) {
        self.visit("", visitor);
    }

    fn identify(&self, mut state: &mut dyn Hasher) {
        TypeId::of::<T>().hash(&mut state);
        self.visit("", &mut IdentityWriter(state));
    }
}

/// A field that may change from call to call without new code, so it is not part of the op's identity. The op passes it
/// to the plan with [`Op::runtime_scalars`](super::Op::runtime_scalars).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Runtime<T>(pub(crate) T);

impl<T: Attribute> Attribute for Runtime<T> {
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        visitor.runtime(name, &self.0);
    }

    fn read(value: &Value) -> Result<Self, String> {
        T::read(value).map(Runtime)
    }
}

/// The bytes of an op in a key.
#[cfg(test)]
pub(crate) fn bytes(op: &dyn super::Op) -> Vec<u8> {
    let mut writer = super::key::KeyWriter(Vec::new());
    op.identify(&mut writer);
    writer.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::graph::attributes::{Attribute, Value};
    use crate::graph::lower::{Lowering, LoweringContext};
    use crate::graph::{Op, Spec};

    #[derive(Debug, Clone, Default, Attribute)]
    #[op("Attributes")]
    struct Attributes {
        axes: Vec<usize>,
        more: Vec<usize>,
        mode: Mode,
        unit: Mode,
        depth: Option<u32>,
        seed: Runtime<u32>,
    }

    #[derive(Debug, Clone, Default, Attribute)]
    enum Mode {
        #[default]
        A,
        Ab,
        B(bool),
    }

    impl Op for Attributes {
        fn name(&self) -> &'static str {
            "Attributes"
        }

        fn infer(&self, _: &[&Spec]) -> Result<Spec> {
            unreachable!("only its identity is asked for")
        }

        fn lower(&self, _: &LoweringContext) -> Lowering {
            unreachable!("only its identity is asked for")
        }
    }

    #[test]
    fn every_field_is_in_the_key_and_no_two_run_together() {
        let none = Attributes::default();
        let all = [
            none.clone(),
            Attributes { axes: vec![1], ..none.clone() },
            Attributes { axes: vec![1, 0], ..none.clone() },
            Attributes { more: vec![1], ..none.clone() },
            Attributes { axes: vec![1], more: vec![0], ..none.clone() },
            Attributes { mode: Mode::Ab, ..none.clone() },
            Attributes { unit: Mode::Ab, ..none.clone() },
            Attributes { mode: Mode::B(true), ..none.clone() },
            Attributes { unit: Mode::B(false), ..none.clone() },
            Attributes { depth: Some(0), ..none.clone() },
        ];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(bytes(a) == bytes(b), i == j, "{a:?} and {b:?}");
                let values = [a, b].map(|op| Value::of_identity(op));
                assert_eq!(values[0] == values[1], i == j, "{a:?} and {b:?}");
            }
        }
        // No key is a prefix of another, so the bytes that follow it cannot be mistaken for part of it.
        for a in &all {
            let longer = all.iter().filter(|b| bytes(*b) != bytes(a));
            assert!(longer.clone().all(|b| !bytes(b).starts_with(&bytes(a))), "{a:?}");
        }
    }

    #[test]
    fn numbers_of_a_call_are_not_in_the_key() {
        let of = |seed| Attributes { seed: Runtime(seed), ..Attributes::default() };
        assert_eq!(bytes(&of(1)), bytes(&of(2)));
        assert_eq!(Value::of_identity(&of(1)), Value::of_identity(&of(2)));
        assert_ne!(Value::from_op(&of(1)), Value::from_op(&of(2)));
    }

    #[test]
    fn an_op_is_made_from_its_attributes() {
        let op = Attributes {
            axes: vec![2, 1],
            mode: Mode::B(true),
            unit: Mode::Ab,
            depth: Some(4),
            seed: Runtime(9),
            ..Attributes::default()
        };
        let value = Value::from_op(&op);
        let text = "{axes: [2, 1], more: [], mode: [B, true], unit: Ab, depth: 4, seed: 9}";
        assert_eq!(value.to_string(), text);
        let again = Attributes::read(&value).unwrap();
        assert_eq!(Value::from_op(&again), value);
        assert_eq!(again.seed.0, 9);
        // What is wrong is named.
        let wrong = |name: &str, wrong: Value| {
            let Value::Fields(mut fields) = value.clone() else { panic!() };
            fields
                .iter_mut()
                .filter(|(known, _)| known == name)
                .for_each(|(_, v)| *v = wrong.clone());
            Attributes::read(&Value::Fields(fields)).unwrap_err()
        };
        assert_eq!(wrong("axes", Value::List(vec![Value::Int(-1)])), "'axes': -1 is not a usize");
        assert_eq!(wrong("mode", Value::Text("C".into())), "'mode': C is not a Mode");
        assert_eq!(wrong("unit", Value::Int(1)), "'unit': 1 is not a name");
        assert_eq!(Attributes::read(&Value::None).unwrap_err(), "none has no 'axes'");
        assert_eq!(Attributes::read(&Value::Fields(Vec::new())).unwrap_err(), "'axes' is missing");
    }
}
