//! Reductions over axes: one row of the table each.
//!
//! A row contains: documentation, method, TensorFlow's name of the kernel and its names of the function, for each kind
//! of dtype the start value and the fold in WGSL, what the tape stores, and the gradient. Elements are folded in a
//! fixed order, long reductions in stages, so the result is the same every time.

use std::fmt::Write;

use smallvec::SmallVec;

use super::inventory::Values::{Away, Distinct};
use super::inventory::{ANY, Entry, Gradient, OpKind, one, row_takes};
use super::{Backward, Grads, Keep, Operation, known_by_method, no_grads, not_defined, only};
use crate::dtype::{DType, Register};
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::{Attribute, attribute_of_rows};
use crate::graph::lower::{Kernel, Lowering, LoweringContext, Reduction};
use crate::graph::{Op, Spec};
use crate::shape::{Axes, Shape, axis_list};
use crate::tensor::Tensor;

/// A row of the table.
pub(crate) struct Row {
    method: &'static str,
    name: &'static str,
    /// Start value, and fold of `a` and `b`; `None` if the op is not defined.
    float: Option<(&'static str, &'static str)>,
    int: Option<(&'static str, &'static str)>,
    uint: Option<(&'static str, &'static str)>,
    bool: Option<(&'static str, &'static str)>,
    keep: Keep,
    grad: fn(&Reduce, &Backward) -> Result<Tensor>,
}

macro_rules! reduce {
    ($($(#[$doc:meta])* $method:ident, $name:literal $(= $($tf:literal),+)?, [$($kind:ident $first:literal $fold:literal),+],
       $how:ident $what:tt $(over $values:expr)? $(, |$op:ident, $back:ident| $grad:expr)?;)*) => {
        // Only its method refers to a row, so a program contains only the rows and gradients of the methods that it
        // calls.
        $(#[allow(non_upper_case_globals)]
        static $method: Row = Row {
            method: stringify!($method),
            name: $name,
            float: reduce!(@kind float $($kind $first $fold)+),
            int: reduce!(@kind int $($kind $first $fold)+),
            uint: reduce!(@kind uint $($kind $first $fold)+),
            bool: reduce!(@kind bool $($kind $first $fold)+),
            keep: reduce!(@keep $how $what),
            grad: reduce!(@grad $(|$op, $back| $grad)?),
        };)*

        /// All rows, which files name.
        #[cfg_attr(not(test), allow(dead_code))]
        static ROWS: &[&Row] = &[$(&$method),*];

        /// The rows' entries in the inventory.
        pub(super) const ENTRIES: &[Entry] = &[$(
            Entry::new(OpKind::Row, stringify!($method), &[$($($tf),+)?], |c| one(c.x()?.$method(c.axes("axis")?.keepdims(c.flag("keepdims")?))))
                .takes($method.dtypes())
                .gradient(match $method.keep {
                    Keep::NoGradient(reason) => Gradient::None(reason),
                    _ => Gradient::Checked,
                })
                .cases(|cases| { let _ = &cases; $(cases.of_fold(stringify!($method), $values, |x, axes| x.$method(axes));)? })
        ),*];

        /// Reductions. `axes` is one axis, several, or `()` for all; negative ones count from the end. With
        /// [`Axes::keepdims`] the reduced axes stay, with size 1.
        impl Tensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// [`Error::Index`](crate::Error::Index) if an axis does not exist; [`Error::DType`](crate::Error::DType) if the
            /// op is not defined for the dtype.
            pub fn $method(&self, axes: impl Into<Axes>) -> Result<Tensor> {
                reduce(&$method, self, &axes.into())
            }
        )*}
    };
    (@kind float float $first:literal $fold:literal $($rest:tt)*) => { Some(($first, $fold)) };
    (@kind int int $first:literal $fold:literal $($rest:tt)*) => { Some(($first, $fold)) };
    (@kind uint uint $first:literal $fold:literal $($rest:tt)*) => { Some(($first, $fold)) };
    (@kind bool bool $first:literal $fold:literal $($rest:tt)*) => { Some(($first, $fold)) };
    (@kind $want:ident $kind:ident $first:literal $fold:literal $($rest:tt)*) => { reduce!(@kind $want $($rest)*) };
    (@kind $want:ident) => { None };
    (@keep keep nothing) => { Keep::Nothing };
    (@keep keep both) => { Keep::Both };
    (@keep none $reason:literal) => { Keep::NoGradient($reason) };
    (@grad |$op:ident, $back:ident| $grad:expr) => { |$op: &Reduce, $back: &Backward| $grad };
    (@grad) => { |_: &Reduce, back: &Backward| Ok(back.dy.clone()) };
}

// The first row becomes `static reduce_sum: Row = Row { method: "reduce_sum", ... }` and the method `Tensor::reduce_sum`.
reduce! {
    /// The sum of the elements; 0 if there are none.
    reduce_sum, "Sum" = "tf.math.reduce_sum", [float "0.0" "a + b", int "i32(0)" "a + b", uint "u32(0)" "a + b"],
        keep nothing over ANY, |op, back| op.spread(back.dy, back.spec(0));
    /// The product of the elements; 1 if there are none.
    reduce_prod, "Prod" = "tf.math.reduce_prod", [float "1.0" "a * b", int "i32(1)" "a * b", uint "u32(1)" "a * b"],
        keep both over Away, |op, back| op.product_of_others(back);
    /// The largest element; NaN if any element is NaN, the lowest number if there are none. Equal largest elements
    /// share the gradient.
    reduce_max, "Max" = "tf.math.reduce_max", [float "-inf()" "max_4(a, b)",
                        int "i32(-2147483648)" "max(a, b)", uint "0u" "max(a, b)"],
        keep both over Distinct(0.0), |op, back| op.share_among_equals(back);
    /// The smallest element; NaN if any element is NaN, the highest number if there are none. Equal smallest elements
    /// share the gradient.
    reduce_min, "Min" = "tf.math.reduce_min", [float "inf()" "min_4(a, b)",
                        int "2147483647i" "min(a, b)", uint "4294967295u" "min(a, b)"],
        keep both over Distinct(0.0), |op, back| op.share_among_equals(back);
    /// Whether any element is true.
    reduce_any, "Any" = "tf.math.reduce_any", [bool "false" "a | b"], none "Any: a test";
    /// Whether all elements are true.
    reduce_all, "All" = "tf.math.reduce_all", [bool "true" "a & b"], none "All: a test";
}

fn reduce(row: &'static Row, x: &Tensor, axes: &Axes) -> Result<Tensor> {
    let keepdims = axes.keepdims;
    let axes = axis_list(row.name, axes, x.rank())?;
    dispatch(Reduce { row, axes, keepdims }, &[x])
}

/// A call of a row.
#[derive(Debug, Attribute)]
#[op("Reduce")]
pub(crate) struct Reduce {
    row: &'static Row,
    axes: SmallVec<[usize; 6]>,
    keepdims: bool,
}

impl Reduce {
    /// Repeats a tensor of the result's shape over the reduced axes.
    fn spread(&self, t: &Tensor, x: &Spec) -> Result<Tensor> {
        t.reshape_to(reduced_shape(&x.shape, &self.axes, true))?.broadcast_to(&x.shape)
    }

    // d/dx max = dy / count where x is the largest, otherwise 0
    fn share_among_equals(&self, back: &Backward) -> Result<Tensor> {
        let (x, spec) = (back.x(0), back.spec(0));
        let best = x.equal(self.spread(back.y(), spec)?)?.cast(x.dtype())?;
        let count = best.reduce_sum(Axes::from(&self.axes[..]).keepdims(true))?;
        // A driver's quotient by 1 may be wrong by some units of the last digit.
        let share = super::select(&count.equal(1.0)?, &best, &best.divide(&count)?)?;
        Ok(self.spread(back.dy, spec)? * share)
    }

    // d/dx_i prod = dy * product of the others
    fn product_of_others(&self, back: &Backward) -> Result<Tensor> {
        let (x, spec) = (back.x(0), back.spec(0));
        // The reduced axes become the last one: [rows, n].
        let kept = (0..x.rank()).filter(|a| !self.axes.contains(a));
        let order: Vec<usize> = kept.chain(self.axes.iter().copied()).collect();
        let n: usize = self.axes.iter().map(|&axis| x.shape()[axis]).product();
        if x.is_empty() || n == 0 {
            return x.zeros_like();
        }
        let turned = if order.is_empty() { x.clone() } else { x.transpose(&order)? };
        let rows = turned.reshape_to([x.len() / n, n].into())?;
        let others = products_of_others(&rows)?;
        let mut inverse = vec![0; order.len()];
        for (at, &axis) in order.iter().enumerate() {
            inverse[axis] = at;
        }
        let others = others.reshape_to(turned.spec().shape.clone())?;
        let others = if order.is_empty() { others } else { others.transpose(&inverse)? };
        Ok(self.spread(back.dy, spec)? * others)
    }
}

/// For each element of each row (`[rows, n]`), the product of the row's other elements. It does not divide, so it and
/// its derivatives are correct for zeros. It halves long rows until few elements are left, so the work is proportional
/// to their length.
fn products_of_others(rows: &Tensor) -> Result<Tensor> {
    let (count, n) = (rows.shape()[0], rows.shape()[1]);
    if rows.len().saturating_mul(n).saturating_mul(n) <= MOST_PRODUCTS {
        // A short row is multiplied once for each omitted element.
        let line = super::iota::iota(Some(rows.device()), n, 0.into(), 1.into(), DType::I32)?;
        let own = line.expand_dims(-1)?.equal(&line)?;
        let wide = rows.expand_dims(1)?;
        return super::select(&own, &wide.ones_like()?, &wide)?.reduce_prod(-1);
    }
    match n {
        1 => return rows.ones_like(),
        2 => return rows.reverse([1]),
        _ => {}
    }
    // An element's neighbour in its pair, times the products of the other pairs.
    let half = n.div_ceil(2);
    let even = rows.pad_with(&[(0, 0), (0, 2 * half - n)], super::PadMode::Constant(1.into()))?;
    let pairs = even.reshape_to([count, half, 2].into())?;
    let others = products_of_others(&pairs.reduce_prod(-1)?)?;
    let all = pairs.reverse([2])?.multiply(others.expand_dims(-1)?)?;
    all.reshape_to([count, 2 * half].into())?.slice(&[0, 0], &[-1, n as i64])
}

/// The most elements of the table in which `reduce_prod`'s second derivative omits two factors at a time.
const MOST_PRODUCTS: usize = 1 << 22;

impl Row {
    /// The dtypes that the op is defined for; bytes are storage only.
    pub(super) const fn dtypes(&self) -> &'static [DType] {
        row_takes(self.float.is_some(), self.int.is_some(), self.bool.is_some())
    }

    fn fold_of(&self, register: Register) -> Option<(&'static str, &'static str)> {
        match register {
            Register::F32 => self.float,
            Register::I32 => self.int,
            Register::U32 => self.uint,
            Register::Bool => self.bool,
        }
    }

    fn takes(&self, dtype: DType) -> bool {
        dtype != DType::U8 && self.fold_of(dtype.register()).is_some()
    }
}

known_by_method!(Row);
attribute_of_rows!(Row, ROWS, method);

impl Op for Reduce {
    fn name(&self) -> &'static str {
        self.row.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let x = inputs[0];
        if !self.row.takes(x.dtype) {
            return Err(not_defined(self.row.name, x, &|dtype| self.row.takes(dtype)));
        }
        Ok(Spec::new(reduced_shape(&x.shape, &self.axes, self.keepdims), x.dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        if self.axes.iter().all(|&axis| cx.inputs[0].shape[axis] == 1) {
            return Lowering::Alias;
        }
        let register = cx.output.dtype.register();
        let (first, fold) = self.row.fold_of(register).expect("infer has refused other dtypes");
        Lowering::Reduce(Reduction {
            name: self.row.method,
            axes: self.axes.clone(),
            first: first.into(),
            fold: fold.into(),
        })
    }
}

impl Operation for Reduce {
    fn keep(&self) -> Keep {
        self.row.keep
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        match self.row.keep {
            Keep::NoGradient(_) => no_grads(back),
            _ => only((self.row.grad)(self, back)?),
        }
    }
}

/// Declares `Params` and the functions from a result, and from a position in its fold, to indices.
pub(super) fn walk_functions(mut kernel: Kernel, walk: &ReductionAxes) -> Kernel {
    let mut text = String::new();
    for (function, prefix, axes) in [("base", 'k', &walk.kept), ("offset", 'r', &walk.reduced)] {
        let mut body = String::from("    var rest = i;\n    var at = 0u;\n");
        for (n, axis) in axes.iter().enumerate().rev() {
            let (size, stride) = (format!("{prefix}_size{n}"), format!("{prefix}_stride{n}"));
            kernel = kernel.param(size.clone(), axis.0).signed(stride.clone(), axis.1);
            if n == 0 {
                let _ = writeln!(body, "    at += rest * p.{stride};");
            } else {
                let _ = writeln!(
                    body,
                    "    at += (rest % p.{size}) * p.{stride};\n    rest = rest / p.{size};"
                );
            }
        }
        let _ = write!(text, "fn {function}(i: u32) -> u32 {{\n{body}    return at;\n}}\n");
    }
    let fields: String =
        kernel.params.iter().map(|(name, _)| format!("    {name}: u32,\n")).collect();
    kernel.declare(format!("struct Params {{\n{fields}    row: u32,\n}}\n{text}"))
}

/// The shape of a reduction's result.
pub(super) fn reduced_shape(shape: &Shape, axes: &[usize], keepdims: bool) -> Shape {
    let mut reduced = Shape::default();
    for (axis, &size) in shape.iter().enumerate() {
        match axes.contains(&axis) {
            false => reduced.push(size),
            true if keepdims => reduced.push(1),
            true => {}
        }
    }
    reduced
}

/// How a reduction iterates over its input: the kept and the reduced axes as (size, stride), with neighbouring axes
/// merged.
pub(super) struct ReductionAxes {
    pub(super) outputs: usize,
    pub(super) len: usize,
    kept: Vec<(usize, i64)>,
    reduced: Vec<(usize, i64)>,
}

impl ReductionAxes {
    pub(super) fn new(shape: &Shape, axes: &[usize]) -> Self {
        let strides = shape.strides();
        let side = |wanted: bool| {
            let mut merged: Vec<(usize, i64)> = Vec::new();
            for axis in (0..shape.len()).filter(|a| axes.contains(a) == wanted && shape[*a] != 1) {
                let (size, stride) = (shape[axis], strides[axis]);
                match merged.last_mut() {
                    // An empty tensor may have other axes whose product overflows.
                    Some(outer) if outer.1 == stride.wrapping_mul(size as i64) => {
                        *outer = (outer.0.saturating_mul(size), stride);
                    }
                    _ => merged.push((size, stride)),
                }
            }
            merged
        };
        let (kept, reduced) = (side(false), side(true));
        let product = |axes: &[(usize, i64)]| {
            let sizes: Vec<usize> = axes.iter().map(|(size, _)| *size).collect();
            Shape::from(sizes).elements()
        };
        ReductionAxes { outputs: product(&kept), len: product(&reduced), kept, reduced }
    }

    /// Whether the elements of a result are contiguous.
    pub(super) fn in_rows(&self) -> bool {
        self.reduced.last().is_none_or(|(_, stride)| *stride == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_axes_merge() {
        let walk = ReductionAxes::new(&Shape::from([2, 3, 4, 5]), &[1, 2]);
        assert_eq!((walk.outputs, walk.len), (10, 12));
        assert_eq!(walk.kept, [(2, 60), (5, 1)]);
        assert_eq!(walk.reduced, [(12, 5)]);
        let rows = ReductionAxes::new(&Shape::from([4, 6]), &[1]);
        assert_eq!(rows.reduced, [(6, 1)]);
    }
}
