//! The identity of an op: its type and its attributes, which are the fields of its struct. The identity is derived from
//! the fields, so that none can be forgotten.

use std::any::{Any, TypeId};
use std::hash::{Hash, Hasher};

/// An op's identity, which every struct with `#[derive(Hash, PartialEq, Eq)]` has.
///
/// The hasher collects the bytes of a key, which are compared one by one, so equal bytes must mean equal fields. A
/// derived `Hash` ensures this: integers have a fixed width, lists begin with their length, strings end with a byte
/// that cannot occur in text, and variants of an enum begin with their number. `f32` has no `Hash`: an op stores such
/// an attribute as its bits.
pub(crate) trait Identity: Any {
    /// Feeds the op's type and all its attributes to `state`.
    fn identify(&self, state: &mut dyn Hasher);

    /// Whether `other` is the same op with the same attributes.
    #[cfg(test)]
    fn is_same(&self, other: &dyn Any) -> bool;
}

impl<T: Any + Hash + Eq> Identity for T {
    fn identify(&self, mut state: &mut dyn Hasher) {
        TypeId::of::<T>().hash(&mut state);
        self.hash(&mut state);
    }

    #[cfg(test)]
    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }
}

/// A field that may change from call to call without new code, so it is not part of the op's identity: all its values
/// are equal, and it hashes nothing. The op passes it to the plan with
/// [`Op::runtime_scalars`](super::Op::runtime_scalars).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Runtime<T>(pub(crate) T);

impl<T> PartialEq for Runtime<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Runtime<T> {}

impl<T> Hash for Runtime<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The bytes of an op in a key.
#[cfg(test)]
pub(crate) fn bytes(op: &dyn super::Op) -> Vec<u8> {
    let mut writer = super::key::KeyWriter(Vec::new());
    op.identify(&mut writer);
    writer.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::graph::lower::{Lowering, LoweringContext};
    use crate::graph::{Op, Spec};

    #[derive(Debug, Clone, Default, Hash, PartialEq, Eq)]
    struct Attributes {
        axes: Vec<usize>,
        more: Vec<usize>,
        mode: &'static str,
        unit: &'static str,
        depth: Option<u32>,
        seed: Runtime<u32>,
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
            Attributes { mode: "ab", ..none.clone() },
            Attributes { unit: "ab", ..none.clone() },
            Attributes { mode: "a", unit: "b", ..none.clone() },
            Attributes { depth: Some(0), ..none.clone() },
        ];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(bytes(a) == bytes(b), i == j, "{a:?} and {b:?}");
                assert_eq!(a.is_same(b), i == j, "{a:?} and {b:?}");
            }
        }
        // No key is a prefix of another, so the bytes that follow it cannot be mistaken for part of it.
        for a in &all {
            let longer = all.iter().filter(|b| *b != a);
            assert!(longer.clone().all(|b| !bytes(b).starts_with(&bytes(a))), "{a:?}");
        }
    }

    #[test]
    fn numbers_of_a_call_are_not_in_the_key() {
        let of = |seed| Attributes { seed: Runtime(seed), ..Attributes::default() };
        assert_eq!(bytes(&of(1)), bytes(&of(2)));
        assert_eq!(of(1), of(2));
    }
}
