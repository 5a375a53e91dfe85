//! The attributes of ops by name: how they are read from an op, and how an op is made from them.
//!
//! An op derives [`Attribute`] from its fields. The op's identity, which finds plans, the text of a graph, and `ops::registry`,
//! which makes an op from its name and attributes, all use it. A field that may change from call to call is a
//! [`Runtime`](super::Runtime): its value is an attribute, but not part of the identity.

#![cfg_attr(not(test), allow(dead_code))] // Programs that read graphs read attributes; so far only tests do.

use std::fmt;
use std::hash::Hasher;

use smallvec::SmallVec;

use super::Op;
use crate::dtype::DType;
use crate::graph::Spec;
use crate::shape::Shape;
pub(crate) use wgrad_derive::Attribute;

/// Receives attributes in the order of an op's fields.
///
/// Each call reports one value, called `name`; within a list, the name is empty. The next `len` values after
/// [`list`](Visitor::list) or [`fields`](Visitor::fields) belong to it.
pub(crate) trait Visitor {
    fn none(&mut self, name: &'static str);
    fn bool(&mut self, name: &'static str, value: bool);
    fn int(&mut self, name: &'static str, value: i64);
    fn text(&mut self, name: &'static str, value: &'static str);
    fn list(&mut self, name: &'static str, len: usize);
    fn fields(&mut self, name: &'static str, len: usize);
    /// An op within the op.
    fn op(&mut self, name: &'static str, op: &dyn Op);
    /// A value that is not part of the identity.
    fn runtime(&mut self, name: &'static str, value: &dyn Attribute);
}

/// What can be an attribute.
pub(crate) trait Attribute {
    /// Passes the value to `visitor`, as `name`.
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor);

    /// The value that [`visit`](Attribute::visit) passed on; or what is wrong with `value`.
    fn read(value: &Value) -> Result<Self, String>
    where
        Self: Sized;
}

/// An op's declared name. It names the struct in files, so it never changes.
pub(crate) trait OpAttributes: Attribute {
    const KIND: &'static str;
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// No value.
    None,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// A word.
    Text(String),
    /// Values without names.
    List(Vec<Value>),
    /// Values with names.
    Fields(Vec<(String, Value)>),
}

impl Value {
    /// The attributes of an op.
    pub(crate) fn from_op(op: &dyn Op) -> Value {
        let mut collector = Collector { open: Vec::new(), done: Value::None, runtime: true };
        op.attributes(&mut collector);
        collector.done
    }

    /// The attributes of an op that are part of its identity.
    #[cfg(any(test, all(feature = "saved-plans", not(target_family = "wasm"))))]
    pub(crate) fn of_identity(op: &dyn Op) -> Value {
        let mut collector = Collector { open: Vec::new(), done: Value::None, runtime: false };
        op.attributes(&mut collector);
        collector.done
    }

    /// The field `name`, read.
    pub(crate) fn field<T: Attribute>(&self, name: &str) -> Result<T, String> {
        let Value::Fields(fields) = self else { return Err(format!("{self} has no '{name}'")) };
        let found = fields.iter().find(|(known, _)| known == name);
        let (_, value) = found.ok_or_else(|| format!("'{name}' is missing"))?;
        T::read(value).map_err(|words| format!("'{name}': {words}"))
    }

    /// The name of an enum's variant, and the values of its fields.
    pub(crate) fn variant(&self) -> Result<(&str, &[Value]), String> {
        match self {
            Value::Text(name) => Ok((name, &[])),
            Value::List(list) => match list.split_first() {
                Some((Value::Text(name), rest)) => Ok((name, rest)),
                _ => Err(format!("{self} does not begin with a name")),
            },
            _ => Err(format!("{self} is not a name")),
        }
    }

    fn elements(&self) -> Result<&[Value], String> {
        if let Value::List(list) = self { Ok(list) } else { Err(format!("{self} is not a list")) }
    }
}

/// `{axis: 1, keepdims: true}`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("none"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Text(value) => f.write_str(value),
            Value::List(list) => {
                f.write_str("[")?;
                for (at, value) in list.iter().enumerate() {
                    write!(f, "{}{value}", if at == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Value::Fields(fields) if fields.is_empty() => Ok(()),
            Value::Fields(fields) => {
                f.write_str("{")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{name}: {value}", if at == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Writes values so that no two lists of values have equal bytes: each begins with its kind, lists with their lengths.
pub(super) struct IdentityWriter<'a>(pub(super) &'a mut dyn Hasher);

impl Visitor for IdentityWriter<'_> {
    fn none(&mut self, _: &'static str) {
        self.0.write_u8(0);
    }

    fn bool(&mut self, _: &'static str, value: bool) {
        self.0.write_u8(1 + u8::from(value));
    }

    fn int(&mut self, _: &'static str, value: i64) {
        self.0.write_u8(3);
        self.0.write_i64(value);
    }

    fn text(&mut self, _: &'static str, value: &'static str) {
        self.0.write_u8(4);
        self.0.write_u32(value.len() as u32);
        self.0.write(value.as_bytes());
    }

    fn list(&mut self, _: &'static str, len: usize) {
        self.0.write_u8(5);
        self.0.write_u32(len as u32);
    }

    // A type has the same fields in each of its values.
    fn fields(&mut self, _: &'static str, _: usize) {}

    fn op(&mut self, _: &'static str, op: &dyn Op) {
        op.identify(self.0);
    }

    fn runtime(&mut self, _: &'static str, _: &dyn Attribute) {}
}

/// Collects values into a tree.
struct Collector {
    /// The lists and fields that wait for more values, each with its name and the number of values to come.
    open: Vec<(&'static str, Value, usize)>,
    done: Value,
    /// Whether it collects values that are not part of the identity.
    runtime: bool,
}

impl Collector {
    fn push(&mut self, name: &'static str, value: Value) {
        let (mut name, mut value) = (name, value);
        // A value may complete the list that holds it, and this one the next.
        while let Some((_, holder, left)) = self.open.last_mut() {
            match holder {
                Value::List(list) => list.push(value),
                Value::Fields(fields) => fields.push((name.to_string(), value)),
                _ => {}
            }
            *left -= 1;
            if *left > 0 {
                return;
            }
            let Some((holder_name, holder, _)) = self.open.pop() else { return };
            (name, value) = (holder_name, holder);
        }
        self.done = value;
    }

    fn begin(&mut self, name: &'static str, empty: Value, len: usize) {
        match len {
            0 => self.push(name, empty),
            _ => self.open.push((name, empty, len)),
        }
    }
}

impl Visitor for Collector {
    fn none(&mut self, name: &'static str) {
        self.push(name, Value::None);
    }

    fn bool(&mut self, name: &'static str, value: bool) {
        self.push(name, Value::Bool(value));
    }

    fn int(&mut self, name: &'static str, value: i64) {
        self.push(name, Value::Int(value));
    }

    fn text(&mut self, name: &'static str, value: &'static str) {
        self.push(name, Value::Text(value.to_string()));
    }

    fn list(&mut self, name: &'static str, len: usize) {
        self.begin(name, Value::List(Vec::with_capacity(len)), len);
    }

    fn fields(&mut self, name: &'static str, len: usize) {
        self.begin(name, Value::Fields(Vec::with_capacity(len)), len);
    }

    fn op(&mut self, name: &'static str, op: &dyn Op) {
        let mut inner = Collector { open: Vec::new(), done: Value::None, runtime: self.runtime };
        op.attributes(&mut inner);
        self.push(name, Value::List(vec![Value::Text(op.kind().to_string()), inner.done]));
    }

    fn runtime(&mut self, name: &'static str, value: &dyn Attribute) {
        match self.runtime {
            true => value.visit(name, self),
            false => self.none(name),
        }
    }
}

// ---- values that ops have ---------------------------------------------------------------------------------------

impl Attribute for bool {
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        visitor.bool(name, *self);
    }

    fn read(value: &Value) -> Result<Self, String> {
        if let Value::Bool(yes) = value { Ok(*yes) } else { Err(format!("{value} is not a bool")) }
    }
}

macro_rules! integers {
    ($($int:ty),*) => {$(
        impl Attribute for $int {
            fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
                // No size or count of a program has 64 bits.
                visitor.int(name, *self as i64);
            }

            fn read(value: &Value) -> Result<Self, String> {
                let number = if let Value::Int(number) = value { (*number).try_into().ok() } else { None };
                number.ok_or_else(|| format!(concat!("{} is not a ", stringify!($int)), value))
            }
        }
    )*};
}
integers!(usize, u32, i32, i64);

impl<T: Attribute> Attribute for Option<T> {
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        match self {
            Some(value) => value.visit(name, visitor),
            None => visitor.none(name),
        }
    }

    fn read(value: &Value) -> Result<Self, String> {
        if *value == Value::None { Ok(None) } else { T::read(value).map(Some) }
    }
}

fn visit_all<T: Attribute>(list: &[T], name: &'static str, visitor: &mut dyn Visitor) {
    visitor.list(name, list.len());
    list.iter().for_each(|element| element.visit("", visitor));
}

impl<T: Attribute> Attribute for Vec<T> {
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        visit_all(self, name, visitor);
    }

    fn read(value: &Value) -> Result<Self, String> {
        value.elements()?.iter().map(T::read).collect()
    }
}

impl<T: Attribute, const N: usize> Attribute for SmallVec<[T; N]>
where
    [T; N]: smallvec::Array<Item = T>,
{
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        visit_all(self, name, visitor);
    }

    fn read(value: &Value) -> Result<Self, String> {
        value.elements()?.iter().map(T::read).collect()
    }
}

impl<T: Attribute, const N: usize> Attribute for [T; N] {
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        visit_all(self, name, visitor);
    }

    fn read(value: &Value) -> Result<Self, String> {
        let list = Vec::<T>::read(value)?;
        list.try_into().map_err(|list: Vec<T>| format!("{} values are not {N}", list.len()))
    }
}

impl<A: Attribute, B: Attribute> Attribute for (A, B) {
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        visitor.list(name, 2);
        self.0.visit("", visitor);
        self.1.visit("", visitor);
    }

    fn read(value: &Value) -> Result<Self, String> {
        match value.elements()? {
            [a, b] => Ok((A::read(a)?, B::read(b)?)),
            _ => Err(format!("{value} is not a pair")),
        }
    }
}

impl Attribute for Shape {
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        visit_all(self, name, visitor);
    }

    fn read(value: &Value) -> Result<Self, String> {
        Vec::<usize>::read(value).map(Shape::from)
    }
}

impl Attribute for DType {
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        visitor.text(name, self.name());
    }

    fn read(value: &Value) -> Result<Self, String> {
        let (name, _) = value.variant()?;
        let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
        dtype.ok_or_else(|| format!("{value} is not a dtype"))
    }
}

impl Attribute for Spec {
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        visitor.fields(name, 2);
        self.shape.visit("shape", visitor);
        self.dtype.visit("dtype", visitor);
    }

    fn read(value: &Value) -> Result<Self, String> {
        Ok(Spec { shape: value.field("shape")?, dtype: value.field("dtype")? })
    }
}

/// A row of a table as an attribute: its method's name, which occurs once in its table.
macro_rules! attribute_of_rows {
    ($row:ty, $rows:expr, $name:ident) => {
        impl $crate::graph::attributes::Attribute for &'static $row {
            fn visit(
                &self,
                name: &'static str,
                visitor: &mut dyn $crate::graph::attributes::Visitor,
            ) {
                visitor.text(name, self.$name);
            }

            fn read(
                value: &$crate::graph::attributes::Value,
            ) -> ::std::result::Result<Self, String> {
                let rows: &[&'static $row] = $rows;
                let (name, _) = value.variant()?;
                let found = rows.iter().copied().find(|row| row.$name == name);
                found.ok_or_else(|| format!("there is no op '{name}'"))
            }
        }
    };
}
pub(crate) use attribute_of_rows;
