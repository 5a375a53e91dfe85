//! [`ItemSpec`]: the type and the shape of a dataset's elements.

use std::fmt;

/// The sizes of an array's axes, as far as they are known.
type Sizes = Vec<Option<usize>>;

/// The specification of an element: an array, or several of them.
///
/// It prints as types and shapes; `_` is a size that varies and `...` an unknown number of axes.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data::Dataset;
/// let dataset = Dataset::from_tensor_slices((vec![[1.0f32, 2.0]; 5], vec![7i64; 5]))?;
/// assert_eq!(dataset.element_spec().to_string(), "(f32[2], i64)");
/// assert_eq!(dataset.batch(2).element_spec().to_string(), "(f32[_, 2], i64[_])");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemSpec {
    /// An array.
    Array {
        /// The element type's name, such as `f32`.
        dtype: &'static str,
        /// The sizes of the axes, as far as they are known; `None` if not even their number is
        /// known.
        shape: Option<Vec<Option<usize>>>,
    },
    /// A tuple.
    Tuple(Vec<ItemSpec>),
    /// A struct's name, and its fields.
    Struct(&'static str, Vec<(&'static str, ItemSpec)>),
}

impl ItemSpec {
    /// An array of a known shape.
    pub fn array(dtype: &'static str, shape: &[usize]) -> Self {
        ItemSpec::Array { dtype, shape: Some(shape.iter().map(|size| Some(*size)).collect()) }
    }

    /// The number of arrays.
    pub(crate) fn arrays(&self) -> usize {
        match self {
            ItemSpec::Array { .. } => 1,
            ItemSpec::Tuple(items) => items.iter().map(ItemSpec::arrays).sum(),
            ItemSpec::Struct(_, fields) => fields.iter().map(|(_, item)| item.arrays()).sum(),
        }
    }

    /// The size of the first axis, if it is known for an array.
    pub(crate) fn rows(&self) -> Option<usize> {
        match self {
            ItemSpec::Array { shape, .. } => shape.as_ref()?.first().copied().flatten(),
            ItemSpec::Tuple(items) => items.iter().find_map(ItemSpec::rows),
            ItemSpec::Struct(_, fields) => fields.iter().find_map(|(_, item)| item.rows()),
        }
    }

    /// Each array transformed by `rule`.
    #[must_use]
    pub(crate) fn map(self, rule: &dyn Fn(Option<Sizes>) -> Option<Sizes>) -> Self {
        match self {
            ItemSpec::Array { dtype, shape } => ItemSpec::Array { dtype, shape: rule(shape) },
            ItemSpec::Tuple(items) => {
                ItemSpec::Tuple(items.into_iter().map(|item| item.map(rule)).collect())
            }
            ItemSpec::Struct(name, fields) => {
                let fields = fields.into_iter().map(|(name, item)| (name, item.map(rule)));
                ItemSpec::Struct(name, fields.collect())
            }
        }
    }

    /// With one more axis in front.
    #[must_use]
    pub(crate) fn batched(self, size: Option<usize>) -> Self {
        self.map(&|shape| shape.map(|shape| std::iter::once(size).chain(shape).collect()))
    }

    /// The common part of two specifications; `None` if their types differ.
    pub(crate) fn merge(self, other: Self) -> Option<Self> {
        match (self, other) {
            (ItemSpec::Array { dtype, shape }, ItemSpec::Array { dtype: b, shape: other }) => {
                let shape = match (shape, other) {
                    (Some(a), Some(b)) if a.len() == b.len() => {
                        let sizes = a.into_iter().zip(b);
                        Some(sizes.map(|(a, b)| if a == b { a } else { None }).collect())
                    }
                    _ => None,
                };
                (dtype == b).then_some(ItemSpec::Array { dtype, shape })
            }
            (ItemSpec::Tuple(a), ItemSpec::Tuple(b)) if a.len() == b.len() => {
                let items: Option<_> = a.into_iter().zip(b).map(|(a, b)| a.merge(b)).collect();
                items.map(ItemSpec::Tuple)
            }
            (ItemSpec::Struct(name, a), ItemSpec::Struct(same, b))
                if name == same && a.len() == b.len() =>
            {
                let fields: Option<_> = a
                    .into_iter()
                    .zip(b)
                    .map(|((name, a), (_, b))| a.merge(b).map(|spec| (name, spec)))
                    .collect();
                fields.map(|fields| ItemSpec::Struct(name, fields))
            }
            _ => None,
        }
    }
}

impl fmt::Display for ItemSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ItemSpec::Array { dtype, shape: None } => write!(f, "{dtype}[...]"),
            ItemSpec::Array { dtype, shape: Some(shape) } if shape.is_empty() => f.write_str(dtype),
            ItemSpec::Array { dtype, shape: Some(shape) } => {
                let sizes: Vec<String> = shape
                    .iter()
                    .map(|size| size.map_or("_".to_string(), |size| size.to_string()))
                    .collect();
                write!(f, "{dtype}[{}]", sizes.join(", "))
            }
            ItemSpec::Tuple(items) => {
                let items: Vec<String> = items.iter().map(ItemSpec::to_string).collect();
                write!(f, "({})", items.join(", "))
            }
            ItemSpec::Struct(name, fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, item)| format!("{name}: {item}")).collect();
                write!(f, "{name} {{ {} }}", fields.join(", "))
            }
        }
    }
}
