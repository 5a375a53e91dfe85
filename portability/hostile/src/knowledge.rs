//! What a compiler knows of the values of a function: which are equal, of which terms a sum is made, of which factors a
//! product.

use std::collections::HashMap;

use naga::{AddressSpace, Expression, Handle, LocalVariable, StorageAccess};

use crate::builder::Builder;
use crate::error::Result;

type One = Handle<Expression>;

/// A value is made of at most so many terms or factors; a longer one counts as one.
const MOST: usize = 12;

/// Terms, each with whether it is taken away; or factors, each with whether it divides.
pub(crate) type Parts = Vec<(One, bool)>;

#[derive(Clone, Default)]
enum Form {
    #[default]
    Atom,
    Sum(Parts),
    Product(Parts),
}

#[derive(Clone, Default)]
struct Value {
    /// Equal for equal expressions; 0 if nothing is known.
    id: u64,
    form: Form,
    /// The operands of the multiplication that gave it.
    multiplied: Option<[One; 2]>,
    /// The result of an operation on floats, not read from memory.
    computed: bool,
}

#[derive(Default)]
pub(crate) struct Knowledge {
    values: Vec<Value>,
    /// What variables hold now.
    variables: HashMap<Handle<LocalVariable>, One>,
}

/// Mixes a number into a hash, as FNV-1a does, with a shift so that low bits matter to high ones.
pub(crate) fn mixed(hash: u64, with: u64) -> u64 {
    let next = (hash ^ with).wrapping_mul(0x0000_0100_0000_01b3);
    next ^ (next >> 29)
}

/// The hash of a name.
pub(crate) fn named(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| mixed(hash, u64::from(byte)))
}

impl Knowledge {
    fn value(&mut self, of: One) -> &mut Value {
        if self.values.len() <= of.index() {
            self.values.resize_with(of.index() + 1, Value::default);
        }
        &mut self.values[of.index()]
    }

    /// Equal for equal expressions.
    pub(crate) fn id(&self, of: One) -> u64 {
        match self.values.get(of.index()).map_or(0, |value| value.id) {
            0 => mixed(named("itself"), of.index() as u64),
            id => id,
        }
    }

    /// The id of an operation on values.
    pub(crate) fn id_of(&self, operation: &str, operands: &[One]) -> u64 {
        operands.iter().fold(named(operation), |hash, &operand| mixed(hash, self.id(operand)))
    }

    pub(crate) fn is_computed(&self, of: One) -> bool {
        self.values.get(of.index()).is_some_and(|value| value.computed)
    }

    /// Notes that `of` is the result of an operation on floats.
    pub(crate) fn computed(&mut self, of: One, id: u64) {
        let value = self.value(of);
        (value.id, value.computed) = (id, true);
    }

    pub(crate) fn multiplied(&mut self, of: One, operands: [One; 2]) {
        self.value(of).multiplied = Some(operands);
    }

    /// The operands of the multiplication that gave `of`.
    pub(crate) fn factors_of(&self, of: One) -> Option<[One; 2]> {
        self.values.get(of.index())?.multiplied
    }

    /// The terms of a value; itself, if it is no sum.
    pub(crate) fn terms(&self, of: One) -> Parts {
        match self.values.get(of.index()).map(|value| &value.form) {
            Some(Form::Sum(terms)) => terms.clone(),
            _ => vec![(of, false)],
        }
    }

    /// The factors of a value; itself, if it is no product.
    pub(crate) fn factors(&self, of: One) -> Parts {
        match self.values.get(of.index()).map(|value| &value.form) {
            Some(Form::Product(factors)) => factors.clone(),
            _ => vec![(of, false)],
        }
    }

    pub(crate) fn is_sum(&mut self, of: One, terms: Parts) {
        if terms == [(of, false)] {
            return;
        }
        let id = self.id_of_parts("sum", &terms);
        let value = self.value(of);
        (value.id, value.computed) = (id, true);
        value.form = if terms.len() > MOST { Form::Atom } else { Form::Sum(terms) };
    }

    pub(crate) fn is_product(&mut self, of: One, factors: Parts) {
        if factors == [(of, false)] {
            return;
        }
        let id = self.id_of_parts("product", &factors);
        let value = self.value(of);
        (value.id, value.computed) = (id, true);
        value.form = if factors.len() > MOST { Form::Atom } else { Form::Product(factors) };
    }

    /// The same in every order.
    fn id_of_parts(&self, what: &str, parts: &Parts) -> u64 {
        if let [(alone, false)] = parts[..] {
            return self.id(alone);
        }
        let mut ids: Vec<u64> =
            parts.iter().map(|part| mixed(self.id(part.0), part.1.into())).collect();
        ids.sort_unstable();
        ids.into_iter().fold(named(what), mixed)
    }

    /// Takes out what is there with either sign, and returns whether there was any.
    pub(crate) fn cancel(&self, parts: &mut Parts) -> bool {
        let before = parts.len();
        let mut left: Parts = Vec::with_capacity(before);
        for &(part, opposite) in parts.iter() {
            let id = self.id(part);
            let other = left.iter().position(|&(p, o)| o != opposite && self.id(p) == id);
            match other {
                Some(at) => drop(left.remove(at)),
                None => left.push((part, opposite)),
            }
        }
        *parts = left;
        parts.len() < before
    }

    /// Adds an expression that is no operation on floats, and notes what is known of it.
    pub(crate) fn add(&mut self, build: &mut Builder, expression: Expression) -> Result<One> {
        let known = self.loaded(build, &expression);
        let id = match known {
            Some(held) => self.id(held),
            None => self.identity(build, &expression),
        };
        let computed = match expression {
            Expression::Select { accept, reject, .. } => {
                self.is_computed(accept) || self.is_computed(reject)
            }
            Expression::Splat { value, .. } => self.is_computed(value),
            Expression::Swizzle { vector, .. } => self.is_computed(vector),
            Expression::AccessIndex { base, .. } => self.is_computed(base),
            Expression::Compose { ref components, .. } => {
                components.iter().any(|component| self.is_computed(*component))
            }
            _ => false,
        };
        let handle = build.add(expression)?;
        let held = known.map(|held| self.value(held).clone());
        let value = self.value(handle);
        *value = held.unwrap_or(Value { computed, ..Value::default() });
        value.id = id;
        Ok(handle)
    }

    /// What a load of a variable gives, if it is known.
    fn loaded(&self, build: &Builder, expression: &Expression) -> Option<One> {
        let &Expression::Load { pointer } = expression else { return None };
        let &Expression::LocalVariable(variable) = build.expression(pointer) else { return None };
        self.variables.get(&variable).copied()
    }

    /// Notes what is stored.
    pub(crate) fn stored(&mut self, build: &Builder, pointer: One, value: One) {
        match root(build, pointer) {
            Expression::LocalVariable(variable) => {
                let whole = matches!(build.expression(pointer), Expression::LocalVariable(_));
                match whole {
                    true => drop(self.variables.insert(*variable, value)),
                    false => drop(self.variables.remove(variable)),
                }
            }
            Expression::GlobalVariable(_) => {}
            _ => self.forget(),
        }
    }

    /// Notes that variables may have changed.
    pub(crate) fn forget(&mut self) {
        self.variables.clear();
    }

    /// A number that equal expressions have in common; 0 for what may differ each time.
    fn identity(&self, build: &Builder, expression: &Expression) -> u64 {
        match expression {
            Expression::Literal(literal) => named(&format!("{literal:?}")),
            Expression::Constant(constant) => mixed(named("constant"), constant.index() as u64),
            Expression::GlobalVariable(variable) => mixed(named("global"), variable.index() as u64),
            Expression::LocalVariable(variable) => mixed(named("local"), variable.index() as u64),
            Expression::FunctionArgument(at) => mixed(named("argument"), u64::from(*at)),
            Expression::ZeroValue(ty) => mixed(named("zero"), ty.index() as u64),
            Expression::Compose { ty, components } => {
                mixed(self.id_of("compose", components), ty.index() as u64)
            }
            Expression::Access { base, index } => self.id_of("access", &[*base, *index]),
            Expression::AccessIndex { base, index } => {
                mixed(self.id_of("member", &[*base]), u64::from(*index))
            }
            Expression::Splat { size, value } => {
                mixed(self.id_of("splat", &[*value]), *size as u64)
            }
            Expression::Swizzle { size, vector, pattern } => {
                let text = format!("swizzle {size:?} {pattern:?}");
                self.id_of(&text, &[*vector])
            }
            Expression::Load { pointer } if is_constant_memory(build, *pointer) => {
                self.id_of("load", &[*pointer])
            }
            Expression::Unary { op, expr } => self.id_of(&format!("{op:?}"), &[*expr]),
            Expression::Binary { op, left, right } => {
                self.id_of(&format!("{op:?}"), &[*left, *right])
            }
            Expression::Select { condition, accept, reject } => {
                self.id_of("select", &[*condition, *accept, *reject])
            }
            Expression::Relational { fun, argument } => {
                self.id_of(&format!("{fun:?}"), &[*argument])
            }
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                let operands: Vec<One> =
                    [Some(*arg), *arg1, *arg2, *arg3].into_iter().flatten().collect();
                self.id_of(&format!("{fun:?}"), &operands)
            }
            Expression::As { expr, kind, convert } => {
                self.id_of(&format!("as {kind:?} {convert:?}"), &[*expr])
            }
            Expression::ArrayLength(array) => self.id_of("length", &[*array]),
            _ => 0,
        }
    }
}

/// The variable or the argument that a pointer leads into.
fn root<'b>(build: &'b Builder, pointer: One) -> &'b Expression {
    let mut at = pointer;
    loop {
        match build.expression(at) {
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => at = *base,
            other => return other,
        }
    }
}

/// Whether nothing writes there while the function runs.
fn is_constant_memory(build: &Builder, pointer: One) -> bool {
    let Expression::GlobalVariable(variable) = root(build, pointer) else { return false };
    match build.module.global_variables[*variable].space {
        AddressSpace::Uniform => true,
        AddressSpace::Storage { access } => !access.contains(StorageAccess::STORE),
        _ => false,
    }
}
