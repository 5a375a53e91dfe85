//! Running sums along an axis: `y[o,i,n] = sum over j <= i of x[o,j,n]`.

use super::inventory::{ANY, Entry, Kind, one};
use super::{Backward, Grads, Keep, NUMERIC, Operation, expect_dtype, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::options::options;
use crate::shape::{Axis, Shape, axis_index};
use crate::tensor::Tensor;
use crate::wgsl::shader;

options! {
    /// Which elements a running sum includes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct CumsumOptions {
        /// Whether a sum leaves out the element at its own place; `false`.
        exclusive: bool = false,
        /// Whether the sums run from the end of the axis to its beginning; `false`.
        reverse: bool = false,
    }
}

impl Tensor {
    /// Sums the elements up to each one along `axis`; the result has the tensor's shape and dtype.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])?;
    /// assert_eq!(x.cumsum(1)?.to_vec::<f32>()?, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Integers wrap; `f16` is summed in `f32`.
    ///
    /// # Errors
    /// [`Error::Index`](crate::Error::Index) if the axis does not exist; [`Error::DType`](crate::Error::DType) if the
    /// dtype is not numeric.
    pub fn cumsum(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        self.cumsum_with(axis, CumsumOptions::new())
    }

    /// As [`Tensor::cumsum`], with options.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([1.0, 2.0, 3.0])?;
    /// let left = x.cumsum_with(0, tf::CumsumOptions::new().exclusive(true).reverse(true))?;
    /// assert_eq!(left.to_vec::<f32>()?, [5.0, 3.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::cumsum`].
    pub fn cumsum_with(&self, axis: impl Into<Axis>, options: CumsumOptions) -> Result<Tensor> {
        let axis = axis_index("Cumsum", axis, self.rank())?;
        dispatch(Cumsum { axis, options }, &[self])
    }
}

#[derive(Debug, Hash, PartialEq, Eq)]
pub(super) struct Cumsum {
    pub(super) axis: usize,
    pub(super) options: CumsumOptions,
}

/// One thread goes through an axis that is short, or through a longer one where so many lines lie beside it that they
/// fill a device.
const SHORT: usize = 64;
const MANY: usize = 4096;

impl Op for Cumsum {
    fn name(&self) -> &'static str {
        "Cumsum"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        expect_dtype("Cumsum", inputs[0], NUMERIC)?;
        Ok(inputs[0].clone())
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let x = cx.inputs[0];
        let product = |sizes: &[usize]| Shape::new(sizes).elements();
        let (outer, inner) = (product(&x.shape[..self.axis]), product(&x.shape[self.axis + 1..]));
        let (len, lines, most) = (x.shape[self.axis].max(1), outer * inner, cx.caps.loop_piece());
        let CumsumOptions { exclusive, reverse } = self.options;
        let walk = |len, chunk| Walk { len, chunk, inner, lines, exclusive, reverse };
        if len <= SHORT.min(most) || (lines >= MANY && len <= most) {
            return walk(len, len)
                .kernel(x.dtype, Bind::Input(0), None, Write::Running(Bind::Output))
                .into();
        }
        // There are as many chunks as a chunk has elements: one thread for each line goes through the sums of the
        // chunks.
        let chunk = len.isqrt().max(len.div_ceil(most));
        let chunks = len.div_ceil(chunk);
        let (sums, carries) = (Bind::Temp(0), Bind::Temp(1));
        let sum = sum_dtype(x.dtype);
        // The chunks are in the order of the walk already.
        let between = Walk { exclusive: true, reverse: false, ..walk(chunks, chunks) };
        let kernels = vec![
            walk(len, chunk).kernel(x.dtype, Bind::Input(0), None, Write::Sums(sums)),
            between.kernel(sum, sums, None, Write::Running(carries)),
            walk(len, chunk).kernel(
                x.dtype,
                Bind::Input(0),
                Some(carries),
                Write::Running(Bind::Output),
            ),
        ];
        let temp = sum.bytes(lines * chunks);
        Lowering::Kernels(Kernels { temps: vec![temp, temp], kernels })
    }
}

/// A kernel carries float sums from chunk to chunk as `f32`.
fn sum_dtype(dtype: DType) -> DType {
    if dtype == DType::F16 { DType::F32 } else { dtype }
}

/// How threads go through the lines of the axis.
#[derive(Clone, Copy)]
struct Walk {
    len: usize,
    chunk: usize,
    inner: usize,
    lines: usize,
    exclusive: bool,
    reverse: bool,
}

impl Walk {
    /// The kernel that goes through the chunks of `x` and writes the running sums, or the sum of each chunk. With
    /// `carries` each chunk starts from the sum of those before it.
    fn kernel(&self, dtype: DType, x: Bind, carries: Option<Bind>, what: Write) -> Kernel {
        let (y, store, finish) = match what {
            Write::Running(y) => (y, "y[at] = T(sum);", ""),
            Write::Sums(y) => (y, "", "y[e] = sum;"),
        };
        let stored = if let Write::Sums(_) = what { "A" } else { "T" };
        let at = 1 + usize::from(carries.is_some());
        let mut kernel = Kernel::new("cumsum", shader!(include_str!("../../shaders/cumsum.wgsl")))
            .alias("T", dtype)
            .alias("A", sum_dtype(dtype))
            .constant("WG", 64)
            .declare(format!("const EXCLUSIVE = {};", self.exclusive))
            .declare(format!("fn put(at: u32, sum: A) {{ {store} }}"))
            .declare(format!("fn finish(e: u32, sum: A) {{ {finish} }}"))
            .declare(format!(
                "@group(0) @binding({at}) var<storage, read_write> y: array<{stored}>;\n\
                 @group(0) @binding({}) var<uniform> p: Params;",
                at + 1
            ))
            .read(x);
        kernel = match carries {
            None => kernel.declare("fn start(e: u32) -> A { return A(0); }"),
            Some(carries) => kernel
                .declare(
                    "@group(0) @binding(1) var<storage, read> carries: array<A>;\n\
                     fn start(e: u32) -> A { return carries[e]; }",
                )
                .read(carries),
        };
        let chunks = self.len.div_ceil(self.chunk);
        let (first, step) = if self.reverse { (self.len - 1, -1) } else { (0, 1) };
        kernel
            .write(y)
            .param("len", self.len)
            .param("inner", self.inner)
            .param("chunk", self.chunk)
            .param("chunks", chunks)
            .param("first", first)
            .signed("step", step * self.inner as i64)
            .param("total", self.lines * chunks)
            .workgroups((self.lines * chunks).div_ceil(64), self.chunk)
    }
}

/// What a kernel writes, and where.
enum Write {
    Running(Bind),
    Sums(Bind),
}

impl Operation for Cumsum {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    // dx[j] = the sum of dy over the results that x[j] is in: those from j on.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let CumsumOptions { exclusive, reverse } = self.options;
        let options = CumsumOptions { exclusive, reverse: !reverse };
        only(back.dy.cumsum_with(self.axis, options)?)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(Kind::Kernel, "cumsum", &["tf.math.cumsum"], |c| {
        let options =
            CumsumOptions::new().exclusive(c.flag("exclusive")?).reverse(c.flag("reverse")?);
        one(c.x()?.cumsum_with(c.axis()?, options))
    })
    .forms(&["cumsum_with"])
    .takes(NUMERIC)
    .cases(|cases| {
        cases.of_shape("cumsum", &[3, 5], |x| x.cumsum(1));
        cases.of_shape("cumsum in chunks", &[2, 70, 2], |x| x.cumsum(1));
        for (exclusive, reverse) in [(true, false), (false, true), (true, true)] {
            let options = CumsumOptions::new().exclusive(exclusive).reverse(reverse);
            let name = format!("cumsum_with {exclusive} {reverse}");
            cases.add(name, &[(&[3, 4, 2], ANY)], move |x| x[0].cumsum_with(1, options));
        }
    })
    .kernels(&[|make, dtype| {
        let back = CumsumOptions::new().exclusive(true).reverse(true);
        Ok(vec![
            make(&[7], dtype).cumsum(0)?,
            make(&[3, 5, 2], dtype).cumsum_with(1, back)?,
            make(&[9_000], dtype).cumsum(0)?,
            make(&[2, 900, 3], dtype).cumsum_with(1, back)?,
            make(&[70, 5_000], dtype).cumsum(0)?,
        ])
    }])
    .loops(&[|make, n| {
        let back = CumsumOptions::new().exclusive(true).reverse(true);
        Ok(vec![
            make(&[n], DType::F32).cumsum(0)?,
            make(&[n, 3], DType::I32).cumsum_with(0, back)?,
            make(&[2, n / 2], DType::F16).cumsum(1)?,
        ])
    }])];

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole numbers, whose sums are the same in any order.
    #[test]
    fn chunks_come_to_what_one_walk_comes_to() {
        for [outer, len, inner] in [[1, 64, 1], [1, 65, 1], [1, 10_007, 1], [3, 1000, 2], [2, 2, 3]]
        {
            let count = outer * len * inner;
            let x: Vec<i32> = (0..count).map(|i| (i * 7 % 11) as i32 - 5).collect();
            let tensor = Tensor::from_slice(&x, [outer, len, inner]).unwrap();
            for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)]
            {
                let mut want = vec![0; count];
                for line in 0..outer * inner {
                    let mut sum = 0;
                    for i in 0..len {
                        let place = if reverse { len - 1 - i } else { i };
                        let at = (line / inner * len + place) * inner + line % inner;
                        want[at] = if exclusive { sum } else { sum + x[at] };
                        sum += x[at];
                    }
                }
                let options = CumsumOptions { exclusive, reverse };
                let got = tensor.cumsum_with(1, options).unwrap();
                assert_eq!(got.to_vec::<i32>().unwrap(), want, "{len} {exclusive} {reverse}");
                let floats = tensor.cast(DType::F32).unwrap().cumsum_with(1, options).unwrap();
                let want: Vec<f32> = want.iter().map(|&sum| sum as f32).collect();
                assert_eq!(floats.to_vec::<f32>().unwrap(), want, "{len} {exclusive} {reverse}");
            }
        }
    }

    #[test]
    fn an_axis_that_is_not_there_is_refused() {
        let x = Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
        assert!(matches!(x.cumsum(1), Err(crate::Error::Index(_))));
        let none = Tensor::from_slice(&[0f32; 0], [0]).unwrap();
        assert_eq!(none.cumsum(0).unwrap().shape(), [0]);
        let yes = Tensor::from_slice(&[true], [1]).unwrap();
        assert!(matches!(yes.cumsum(0), Err(crate::Error::DType(_))));
    }
}
