//! Sorts along an axis: the elements, or their indices.

use super::inventory::{Answer, Args, Entry, Gradient, KernelCall, OpKind, Stop, Values, one};
use super::radix::{Give, Keys, Sorting};
use super::rearrange::{inverse, rearrange};
use super::{Backward, Grads, Keep, NUMERIC, Operation, expect_dtype, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::{Axis, Shape, axis_index};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// Options of [`Tensor::sort_with`] and [`Tensor::argsort_with`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct SortOptions {
        /// Whether the largest element is first; `false` by default.
        descending: bool = false,
    }
}

impl Tensor {
    /// Sorts the elements along `axis`, the smallest first.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[3.0, 1.0, 2.0], [0.0, -1.0, 5.0]])?;
    /// assert_eq!(x.sort(-1)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, -1.0, 0.0, 5.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// NaN counts as larger than every number, as in TensorFlow on GPUs. The gradient flows to the elements' original
    /// positions; equal elements keep their order.
    ///
    /// # Errors
    /// [`Error::Index`](crate::Error::Index) if the axis does not exist; [`Error::DType`](crate::Error::DType) if the
    /// dtype is not numeric.
    pub fn sort(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        self.sort_with(axis, SortOptions::new())
    }

    /// Like [`Tensor::sort`], with options.
    ///
    /// # Errors
    /// As [`Tensor::sort`].
    pub fn sort_with(&self, axis: impl Into<Axis>, options: SortOptions) -> Result<Tensor> {
        sorted(self, axis.into(), options, false)
    }

    /// The indices (`i32`) that sort the elements along `axis`: `x[argsort(x)]` is sorted. Equal elements keep their
    /// order.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([2.0, 1.0, 2.0, 0.0])?;
    /// assert_eq!(x.argsort(0)?.to_vec::<i32>()?, [3, 1, 0, 2]);
    /// let down = tf::SortOptions::new().descending(true);
    /// assert_eq!(x.argsort_with(0, down)?.to_vec::<i32>()?, [0, 2, 1, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sort`].
    pub fn argsort(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        self.argsort_with(axis, SortOptions::new())
    }

    /// Like [`Tensor::argsort`], with options.
    ///
    /// # Errors
    /// As [`Tensor::sort`].
    pub fn argsort_with(&self, axis: impl Into<Axis>, options: SortOptions) -> Result<Tensor> {
        sorted(self, axis.into(), options, true)
    }
}

fn sorted(x: &Tensor, axis: Axis, options: SortOptions, places: bool) -> Result<Tensor> {
    let sort = Sort { descending: options.descending, places };
    expect_dtype(sort.name(), x.spec(), NUMERIC)?;
    let axis = axis_index(sort.name(), axis, x.rank())?;
    along_last(x, axis, |rows| dispatch(sort, &[rows]))
}

/// Calls `f` with the tensor as `[rows, n]`, where `n` is the size of `axis`, and reshapes its result to the tensor's
/// shape, with the new size of the axis.
pub(super) fn along_last(
    x: &Tensor,
    axis: usize,
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let last = x.rank() - 1;
    let mut order: Vec<usize> = (0..=last).collect();
    order.swap(axis, last);
    let turned = if axis == last { x.clone() } else { x.transpose(&order)? };
    let mut sizes = turned.shape().to_vec();
    let rows = Shape::new(&sizes[..last]).elements();
    let y = f(&turned.reshape_to([rows, sizes[last]].into())?)?;
    sizes[last] = y.shape()[1];
    let y = y.reshape_to(sizes.into())?;
    if axis == last { Ok(y) } else { y.transpose(&order) }
}

/// Sorts the rows of `[rows, n]`.
#[derive(Debug, Attribute)]
#[op("Sort")]
pub(crate) struct Sort {
    descending: bool,
    places: bool,
}

impl Op for Sort {
    fn name(&self) -> &'static str {
        if self.places { "ArgSort" } else { "Sort" }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let dtype = if self.places { DType::I32 } else { inputs[0].dtype };
        Ok(Spec::new(inputs[0].shape.clone(), dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let x = cx.inputs[0];
        if x.shape[1] == 1 && !self.places {
            return Lowering::Alias;
        }
        let keys = Keys::Of { dtype: x.dtype, descending: self.descending };
        let sorting = Sorting { rows: x.shape[0], len: x.shape[1], keys };
        let give = if self.places { Give::Places } else { Give::Values };
        let mut work = Kernels::default();
        let Kernels { temps, kernels } = &mut work;
        sorting.kernels(cx.caps, give, Bind::Input(0), Bind::Output, temps, kernels);
        Lowering::Kernels(work)
    }
}

impl Operation for Sort {
    fn keep(&self) -> Keep {
        if self.places { Keep::NoGradient("ArgSort: an index") } else { Keep::Inputs }
    }

    // y[i] = x[places[i]], so dx[places[i]] = dy[i]. The indices are computed when a gradient is requested.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let x = back.x(0);
        let (rows, n) = (x.shape()[0], x.shape()[1]);
        let places = dispatch(Sort { places: true, ..*self }, &[&x.stop_gradient()])?;
        let to = inverse(&places, n)?;
        let dy = back.dy.reshape_to([rows, n, 1].into())?;
        only(rearrange(&dy, &to, &places)?.reshape_to([rows, n].into())?)
    }
}

fn options(c: &Args) -> Answer<SortOptions> {
    let descending = match c.text("direction")?.as_deref() {
        None | Some("ASCENDING") => false,
        Some("DESCENDING") => true,
        Some(_) => return Err(Stop::Lacks("direction".into())),
    };
    Ok(SortOptions::new().descending(descending))
}

/// Rows that are sorted by ranks and by digits, of one chunk and of several.
const KERNELS: &[KernelCall] = &[|make, dtype| {
    let down = SortOptions::new().descending(true);
    let mut results = Vec::new();
    for shape in [&[9][..], &[3, 5], &[2, 3, 4], &[300, 70], &[9_000], &[3, 5_000]] {
        let x = make(shape, dtype);
        results.extend([
            x.sort(-1)?,
            x.argsort(-1)?,
            x.sort_with(0, down)?,
            x.argsort_with(0, down)?,
        ]);
    }
    Ok(results)
}];

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "sort", &["tf.sort"], |c| {
        one(c.arg("x")?.sort_with(c.int("axis")?.unwrap_or(-1), options(c)?))
    })
    .forms(&["sort_with"])
    .takes(NUMERIC)
    .cases(|cases| {
        cases.of_one("sort", Values::Distinct(0.0), |x| x.sort(-1));
        cases.of_one("sort_with", Values::Distinct(0.0), |x| {
            x.sort_with(0, SortOptions::new().descending(true))
        });
    })
    .kernels(KERNELS)
    .loops(&[|make, n| {
        let x = make(&[n], DType::F32);
        Ok(vec![x.sort(0)?, x.argsort(0)?, make(&[3, n / 2], DType::I32).argsort(1)?])
    }]),
    Entry::new(OpKind::Kernel, "argsort", &["tf.argsort"], |c| {
        // Every sort is stable.
        c.flag("stable")?;
        one(c.arg("x")?.argsort_with(c.int("axis")?.unwrap_or(-1), options(c)?))
    })
    .forms(&["argsort_with"])
    .takes(NUMERIC)
    .gradient(Gradient::None("ArgSort: an index")),
];

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::runtime::Device;

    /// Numbers with ties, zeros of both signs, infinities and NaN.
    fn numbers(n: usize) -> Vec<f32> {
        let mut state = 7u32;
        let special = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-42, -1e-42];
        (0..n)
            .map(|i| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                match state >> 28 {
                    0 => special[i % special.len()],
                    1..6 => (state >> 24) as f32 - 128.0,
                    _ => f32::from_bits(state ^ (i as u32) << 3) % 1e30,
                }
            })
            .collect()
    }

    fn order(x: &[f32], descending: bool) -> Vec<i32> {
        let mut places: Vec<i32> = (0..x.len() as i32).collect();
        let up = |a: f32, b: f32| match (a.is_nan(), b.is_nan()) {
            (false, false) => a.partial_cmp(&b).unwrap(),
            (a, b) => a.cmp(&b),
        };
        places.sort_by(|&a, &b| {
            let (a, b) = (x[a as usize], x[b as usize]);
            if descending { up(b, a) } else { up(a, b) }
        });
        places
    }

    /// Devices that choose kernels for a CPU, for a GPU, and for a GPU whose workgroups have slightly less memory.
    pub(in crate::ops) fn devices() -> [Device; 3] {
        let gpu = |bytes| {
            let gpu = Device::new().unwrap();
            gpu.change_caps(|caps| {
                caps.cpu = false;
                caps.workgroup[1] = bytes;
            });
            gpu
        };
        [Device::current().unwrap(), gpu(16384), gpu(16352)]
    }

    #[test]
    fn rows_of_all_lengths_are_sorted_as_std_sorts_them() {
        devices().iter().for_each(|device| device.scope(rows_of_all_lengths));
    }

    fn rows_of_all_lengths() {
        for (rows, n) in [
            (1, 1),
            (3, 2),
            (5, 47),
            (700, 48),
            (90, 130),
            (7, 1025),
            (3, 2048),
            (3, 2049),
            (2, 4999),
            (1, 100_003),
        ] {
            let x = numbers(rows * n);
            let tensor = Tensor::from_slice(&x, [rows, n]).unwrap();
            for descending in [false, true] {
                let options = SortOptions { descending };
                let places = tensor.argsort_with(1, options).unwrap().to_vec::<i32>().unwrap();
                let values = tensor.sort_with(1, options).unwrap().to_vec::<f32>().unwrap();
                for (row, x) in x.chunks(n).enumerate() {
                    let want = order(x, descending);
                    assert_eq!(places[row * n..][..n], want, "[{rows}, {n}] {descending}");
                    for (got, &at) in values[row * n..][..n].iter().zip(&want) {
                        let want = x[at as usize];
                        assert!(*got == want || got.is_nan() && want.is_nan(), "{got} for {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn integers_of_either_kind_are_sorted() {
        for n in [30_000, 1500] {
            devices().iter().for_each(|device| device.scope(|| integers(n)));
        }
    }

    fn integers(n: usize) {
        let x: Vec<u32> = numbers(n).iter().map(|x| x.to_bits()).collect();
        let mut want = x.clone();
        want.sort_unstable();
        let tensor = Tensor::from_slice(&x, [n]).unwrap();
        assert_eq!(tensor.sort(0).unwrap().to_vec::<u32>().unwrap(), want);
        let x: Vec<i32> = x.iter().map(|&x| x as i32).collect();
        let mut want = x.clone();
        want.sort_unstable_by(|a, b| b.cmp(a));
        let tensor = Tensor::from_slice(&x, [n]).unwrap();
        let down = SortOptions { descending: true };
        assert_eq!(tensor.sort_with(0, down).unwrap().to_vec::<i32>().unwrap(), want);
    }

    #[test]
    fn halves_are_sorted() {
        for n in [1500, 5000] {
            halves(n);
        }
    }

    fn halves(n: usize) {
        for device in devices().iter().filter(|device| device.caps().f16) {
            let x: Vec<half::f16> =
                numbers(2 * n).iter().map(|x| half::f16::from_f32(*x)).collect();
            let wide: Vec<f32> = x.iter().map(|x| x.to_f32()).collect();
            let sorted = |descending| {
                let tensor = Tensor::from_slice(&x, [2, n]).unwrap();
                let options = SortOptions { descending };
                let values = tensor.sort_with(1, options).unwrap().cast(DType::F32).unwrap();
                let places = tensor.argsort_with(1, options).unwrap().to_vec::<i32>().unwrap();
                (values.to_vec::<f32>().unwrap(), places)
            };
            for descending in [false, true] {
                let (values, places) = device.scope(|| sorted(descending));
                for (row, x) in wide.chunks(n).enumerate() {
                    let want = order(x, descending);
                    assert_eq!(places[row * n..][..n], want);
                    for (got, &at) in values[row * n..][..n].iter().zip(&want) {
                        let want = x[at as usize];
                        assert!(*got == want || got.is_nan() && want.is_nan(), "{got} for {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_sort_in_other_axes_and_of_nothing() {
        let x = Tensor::from_slice(&[3.0f32, 1.0, 2.0, 0.0, 5.0, 4.0], [3, 1, 2]).unwrap();
        assert_eq!(x.sort(0).unwrap().to_vec::<f32>().unwrap(), [2.0, 0.0, 3.0, 1.0, 5.0, 4.0]);
        assert_eq!(x.argsort(1).unwrap().to_vec::<i32>().unwrap(), [0; 6]);
        assert_eq!(Tensor::zeros([0]).unwrap().sort(0).unwrap().shape(), [0]);
        assert_eq!(Tensor::zeros([2, 0]).unwrap().argsort(0).unwrap().shape(), [2, 0]);
    }
}
