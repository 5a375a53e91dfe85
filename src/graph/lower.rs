//! The data types with which an op describes its code to the planner.
//!
//! Four kinds of code are enough: none at all ([`Lowering::Alias`]), one value for each output element from values of
//! the inputs ([`Elementwise`]), a fold over axes ([`Reduction`]), and kernels with a custom shader ([`Kernel`]). The
//! planner fuses elementwise code and folds with each other, and elementwise code into the end of a shader.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Spec;
use crate::device::{Access, Caps, Cooperative, ShaderSource};
use crate::dtype::DType;
use crate::wgsl::{self, Formula};

/// The information that an op receives when the planner lowers it.
pub(crate) struct LoweringContext<'a> {
    pub(crate) inputs: &'a [&'a Spec],
    pub(crate) output: &'a Spec,
    pub(crate) caps: &'a Caps,
    /// The variant to use, by its name in [`Op::variants`]. Without a name, or with one that the op does not have in
    /// this context, the op chooses.
    ///
    /// [`Op::variants`]: super::Op::variants
    pub(crate) variant: Option<&'a str>,
}

/// The ways in which an op can be computed, which differ in speed and rounding.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variants {
    /// The key, in addition to the shapes, under which findings are stored: the op with all its attributes, in a form
    /// that later versions must not change.
    pub(crate) of: String,
    /// The variants' names, which mean the same in every run. The first is the op's own choice.
    pub(crate) names: Vec<String>,
    /// The simplest variant; measurements compare the others' results with its result.
    pub(crate) plain: usize,
    /// How many products or numbers a result sums: variants differ in the order of these sums.
    pub(crate) terms: usize,
    /// The variants that round factors to `f16` before they multiply them.
    pub(crate) half: Vec<String>,
    /// The variants that have not been verified yet; the tuner may measure them, but no plan may use them.
    pub(crate) unverified: Vec<Unverified>,
}

/// A variant that no plan may use before it has computed a small case as the plain variant does.
#[derive(Debug, Clone)]
#[cfg_attr(target_family = "wasm", allow(dead_code))]
pub(crate) struct Unverified {
    pub(crate) kind: Cooperative,
    pub(crate) op: Arc<dyn super::Op>,
    pub(crate) inputs: Vec<Spec>,
    pub(crate) output: Spec,
    pub(crate) variant: String,
    /// The variant would be the op's own choice.
    pub(crate) wanted: bool,
}

pub(crate) enum Lowering {
    /// The elements of the first input, in the same order: the result shares its buffer.
    Alias,
    Elementwise(Elementwise),
    Reduce(Reduction),
    Kernels(Kernels),
}

/// The name of the function that selects its second argument where its first is true, and else the third.
pub(crate) const SELECT: &str = "select_by";

/// One value for each output element.
pub(crate) struct Elementwise {
    /// Names the WGSL function; two ops may share a name only if they share the formula.
    pub(crate) name: &'static str,
    /// The formula over the arguments' names. All values are vectors of four elements; `V` stands for the vector type
    /// of the first argument.
    pub(crate) formula: Formula,
    pub(crate) args: Vec<(Cow<'static, str>, Arg)>,
}

pub(crate) enum Arg {
    /// The element of an input that `view` maps the output element to.
    Input { input: usize, view: View },
    /// Whether the view of that input has an element there (`vec4<bool>`).
    Inside { input: usize },
    /// The flat indices of the four output elements (`vec4<u32>`).
    Index,
    /// As `Index`, for a formula that relies on four neighbours that begin at a multiple of four.
    Quad,
    /// A runtime scalar of the op (`u32`), by its number.
    RuntimeScalar(usize),
}

/// Which element of an input an output element reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum View {
    /// The element at the same position; the shapes are equal.
    Same,
    Strided(Strided),
}

/// Input index = offset + sum over output axes of stride * coordinate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Strided {
    pub(crate) offset: RuntimeOffset,
    pub(crate) axes: Vec<ViewAxis>,
}

/// A number in a view that may differ from run to run: a constant plus multiples of runtime scalars. The planner's code
/// is correct for each of its values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct RuntimeOffset {
    pub(crate) constant: i64,
    pub(crate) terms: Vec<Term>,
}

/// A runtime scalar times a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    /// The node that carries the scalar, or [`Term::OWN`].
    pub(crate) node: u32,
    /// The scalar's number.
    pub(crate) word: u32,
    pub(crate) factor: i64,
    /// The scalar is between 0 and this.
    pub(crate) most: i64,
    /// The scalar is a multiple of four.
    pub(crate) in_fours: bool,
}

impl Term {
    /// Stands for the node whose view it is, as an op does not know its own node number.
    pub(crate) const OWN: u32 = u32::MAX;

    /// A scalar of the op itself.
    pub(crate) fn own(word: usize, factor: i64, most: i64) -> Self {
        Term { node: Term::OWN, word: word as u32, factor, most, in_fours: false }
    }
}

impl From<i64> for RuntimeOffset {
    fn from(constant: i64) -> Self {
        RuntimeOffset { constant, terms: Vec::new() }
    }
}

impl RuntimeOffset {
    pub(crate) fn is_zero(&self) -> bool {
        self.constant == 0 && self.terms.is_empty()
    }

    /// True if it is a multiple of four in every run.
    pub(crate) fn in_fours(&self) -> bool {
        self.constant % 4 == 0
            && self.terms.iter().all(|term| term.in_fours || term.factor % 4 == 0)
    }

    /// Its least and its largest value.
    pub(crate) fn range(&self) -> (i64, i64) {
        let reach = |term: &Term| term.factor * term.most;
        let low = self.terms.iter().map(|term| reach(term).min(0)).sum::<i64>();
        let high = self.terms.iter().map(|term| reach(term).max(0)).sum::<i64>();
        (self.constant + low, self.constant + high)
    }

    /// Adds `other`, multiplied by `times`.
    pub(crate) fn add(&mut self, other: &RuntimeOffset, times: i64) {
        self.constant += times * other.constant;
        for &term in &other.terms {
            self.add_term(Term { factor: times * term.factor, ..term });
        }
    }

    pub(crate) fn add_term(&mut self, term: Term) {
        let same = |t: &Term| Term { factor: 0, ..*t } == Term { factor: 0, ..term };
        match self.terms.iter_mut().find(|t| same(t)) {
            Some(known) => known.factor += term.factor,
            None => self.terms.push(term),
        }
        self.terms.retain(|term| term.factor != 0);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ViewAxis {
    pub(crate) stride: i64,
    pub(crate) window: Option<Window>,
}

/// The input has elements only where `(coordinate - low)` is one of `0, dilation, ..., (len - 1) * dilation`;
/// its coordinate there is the quotient.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    pub(crate) low: RuntimeOffset,
    pub(crate) len: i64,
    pub(crate) dilation: i64,
}

impl Strided {
    /// The same view with a stride of 0 along the axes selected by `still`, whose only coordinate is 0.
    pub(crate) fn normalized(&self, still: impl Fn(usize) -> bool) -> Self {
        let mut view = self.clone();
        for (at, axis) in view.axes.iter_mut().enumerate() {
            if axis.window.is_none() && still(at) {
                axis.stride = 0;
            }
        }
        view
    }

    /// The same view with `change` applied to each number that may vary.
    pub(crate) fn with_places(&self, change: impl Fn(&mut RuntimeOffset)) -> Self {
        let mut view = self.clone();
        change(&mut view.offset);
        view.axes
            .iter_mut()
            .filter_map(|axis| axis.window.as_mut())
            .for_each(|w| change(&mut w.low));
        view
    }

    /// True if it depends on a runtime scalar.
    pub(crate) fn varies(&self) -> bool {
        let window =
            |axis: &ViewAxis| axis.window.as_ref().is_some_and(|w| !w.low.terms.is_empty());
        !self.offset.terms.is_empty() || self.axes.iter().any(window)
    }
}

impl View {
    /// Reads `from`, by broadcasting, as if it had the shape of `to`.
    pub(crate) fn broadcast(from: &Spec, to: &Spec) -> Self {
        if from.shape == to.shape {
            return View::Same;
        }
        View::strided(0, &from.shape.broadcast_strides(&to.shape))
    }

    pub(crate) fn strided(offset: impl Into<RuntimeOffset>, strides: &[i64]) -> Self {
        let axes = strides.iter().map(|&stride| ViewAxis { stride, window: None }).collect();
        View::Strided(Strided { offset: offset.into(), axes })
    }
}

impl Elementwise {
    pub(crate) fn new(name: &'static str, formula: impl Into<Cow<'static, str>>) -> Self {
        Elementwise { name, formula: Formula::new(formula), args: Vec::new() }
    }

    /// Copies the elements of the first input, which the output reads through `view`.
    pub(crate) fn view(view: View) -> Self {
        Elementwise::new("copy", "x").input("x", 0, view)
    }

    pub(crate) fn arg(self, name: impl Into<Cow<'static, str>>, arg: Arg) -> Self {
        self.add(name.into(), arg)
    }

    fn add(mut self, name: Cow<'static, str>, arg: Arg) -> Self {
        self.args.push((name, arg));
        self
    }

    /// Adds an input read through `view`.
    pub(crate) fn input(
        self,
        name: impl Into<Cow<'static, str>>,
        input: usize,
        view: View,
    ) -> Self {
        self.add(name.into(), Arg::Input { input, view })
    }

    /// True if it is a view of its only input, which costs its reader only index arithmetic.
    pub(crate) fn is_view(&self) -> bool {
        self.formula.is_argument() && matches!(self.args[..], [(_, Arg::Input { .. })])
    }

    /// True if all elements have the same value, which readers can use without a buffer.
    pub(crate) fn is_uniform(&self) -> bool {
        self.args.iter().all(|(_, arg)| matches!(arg, Arg::RuntimeScalar(_)))
    }
}

/// A fold of the elements of the only input over some of its axes.
pub(crate) struct Reduction {
    pub(crate) name: &'static str,
    /// The axes of the input that are folded; the result has the others, in order.
    pub(crate) axes: SmallVec<[usize; 6]>,
    /// The start value of one lane, in WGSL.
    pub(crate) first: Cow<'static, str>,
    /// The fold of two vectors of four, `a` and `b`, lane by lane.
    pub(crate) fold: Cow<'static, str>,
}

impl From<Elementwise> for Lowering {
    fn from(elementwise: Elementwise) -> Self {
        Lowering::Elementwise(elementwise)
    }
}

/// Kernels that run one after another, with temporary buffers between them.
#[derive(Default)]
pub(crate) struct Kernels {
    /// Bytes of each temporary buffer.
    pub(crate) temps: Vec<u64>,
    pub(crate) kernels: Vec<Kernel>,
}

impl Kernels {
    /// True if elementwise work can be appended to the last kernel.
    pub(crate) fn stores(&self) -> bool {
        self.kernels.last().is_some_and(|kernel| kernel.stores)
    }
}

impl From<Kernel> for Lowering {
    fn from(kernel: Kernel) -> Self {
        Lowering::Kernels(Kernels { temps: Vec::new(), kernels: vec![kernel] })
    }
}

/// A binding of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Bind {
    Input(usize),
    Output,
    Temp(usize),
}

/// One dispatch of a shader under `shaders/`.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    label: &'static str,
    file: &'static str,
    declarations: String,
    f16: bool,
    cooperative: bool,
    pub(crate) binds: Vec<(Bind, Access)>,
    pub(crate) params: Vec<(Cow<'static, str>, u32)>,
    workgroups: u64,
    pub(crate) iterations: usize,
    stores: bool,
    /// The epilogue that the planner appends handles single elements, whatever the output's last axis is.
    pub(crate) single: bool,
    pub(crate) flops: u64,
}

/// The most workgroups of a grid along x before it is folded into rows: WebGPU's guaranteed limit.
const ROW: u64 = 65_535;

impl Kernel {
    pub(crate) fn new(label: &'static str, file: &'static str) -> Self {
        Kernel {
            label,
            file,
            declarations: String::new(),
            f16: false,
            cooperative: false,
            binds: Vec::new(),
            params: Vec::new(),
            workgroups: 1,
            iterations: 0,
            stores: false,
            single: false,
            flops: 0,
        }
    }

    /// Declares that the shader writes [`Bind::Output`] only with `c_store(at, count, v)`, once for each element: `v`
    /// holds the `count` results from index `at` on, up to four. The shader declares the type `V` of `v`: four of the
    /// output's register type. `at` is a multiple of four if the size of the output's last axis is. The planner writes
    /// this function, including the epilogue.
    pub(crate) fn stores(mut self) -> Self {
        self.stores = true;
        self
    }

    /// Declares that results are stored one by one even if they form whole vectors of four: the kernel has so little
    /// work that one text for all sizes is worth more.
    pub(crate) fn singly(mut self, single: bool) -> Self {
        self.single = single;
        self
    }

    /// Sets the number of additions and multiplications of the kernel.
    pub(crate) fn flops(mut self, flops: usize) -> Self {
        self.flops = flops as u64;
        self
    }

    /// Adds a WGSL declaration before the shader file's text.
    pub(crate) fn declare(self, wgsl: impl AsRef<str>) -> Self {
        self.declare_text(wgsl.as_ref())
    }

    fn declare_text(mut self, wgsl: &str) -> Self {
        self.declarations.push_str(wgsl);
        self.declarations.push('\n');
        self
    }

    pub(crate) fn constant(self, name: &str, value: u32) -> Self {
        self.declare(format!("const {name}: u32 = {value}u;"))
    }

    /// Declares `name` as the type that stores elements of `dtype`.
    pub(crate) fn alias(mut self, name: &str, dtype: DType) -> Self {
        self.f16 |= dtype == DType::F16;
        let stored = match dtype {
            DType::Bool | DType::U8 => "u32",
            other => other.name(),
        };
        self.declare(format!("alias {name} = {stored};"))
    }

    /// Declares that the shader multiplies cooperative matrices.
    pub(crate) fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    pub(crate) fn read(mut self, bind: Bind) -> Self {
        self.binds.push((bind, Access::Read));
        self
    }

    pub(crate) fn write(mut self, bind: Bind) -> Self {
        self.binds.push((bind, Access::Write));
        self
    }

    pub(crate) fn param(self, name: impl Into<Cow<'static, str>>, value: usize) -> Self {
        self.word(name.into(), value as u32)
    }

    /// As [`Kernel::param`] for a number that may be negative; the shader receives its bits.
    pub(crate) fn signed(self, name: impl Into<Cow<'static, str>>, value: i64) -> Self {
        self.word(name.into(), value as u32)
    }

    fn word(mut self, name: Cow<'static, str>, value: u32) -> Self {
        self.params.push((name, value));
        self
    }

    /// Launches `workgroups` workgroups, in which the loops of each invocation make at most `iterations` in all. The
    /// shader computes its workgroup's index from the last parameter, `row`: the number of workgroups along x.
    pub(crate) fn workgroups(mut self, workgroups: usize, iterations: usize) -> Self {
        self.workgroups = (workgroups as u64).max(1);
        self.iterations = iterations;
        let row = self.grid()[0];
        self.params.push(("row".into(), row));
        self
    }

    pub(crate) fn grid(&self) -> [u32; 3] {
        fold(self.workgroups)
    }

    /// The complete WGSL module.
    pub(crate) fn source(&self) -> ShaderSource {
        let mut accesses: Vec<Access> = self.binds.iter().map(|(_, access)| *access).collect();
        accesses.push(Access::Uniform);
        self.source_with("", false, accesses)
    }

    /// As [`Kernel::source`], with a plain `c_store` in place of the one that the planner would write.
    #[cfg(test)]
    pub(crate) fn source_alone(&self) -> ShaderSource {
        let at = self.binds.iter().position(|(bind, _)| *bind == Bind::Output);
        let (true, Some(at)) = (self.stores, at) else { return self.source() };
        let store = format!(
            "@group(0) @binding({at}) var<storage, read_write> y: array<V>;\n\
             fn c_store(at: u32, count: u32, v: V) {{ y[at / 4u] = v; }}\n"
        );
        let mut accesses: Vec<Access> = self.binds.iter().map(|(_, access)| *access).collect();
        accesses.push(Access::Uniform);
        self.source_with(&store, false, accesses)
    }

    /// The module with `more` declarations, which may need `f16`.
    pub(crate) fn source_with(&self, more: &str, f16: bool, accesses: Vec<Access>) -> ShaderSource {
        let f16 = if self.f16 || f16 { "enable f16;\n" } else { "" };
        let cooperative = if self.cooperative { "enable wgpu_cooperative_matrix;\n" } else { "" };
        let module = format!("{f16}{cooperative}{}\n{more}{}", self.declarations, self.file);
        ShaderSource { label: self.label.to_string(), wgsl: wgsl::link(module), accesses }
    }
}

/// A grid of at least `workgroups` workgroups, within every adapter's limit along each axis.
pub(crate) fn fold(workgroups: u64) -> [u32; 3] {
    let x = workgroups.clamp(1, ROW);
    // The largest binding has fewer than 2^32 bytes (`Caps`), so two axes are enough.
    let y = workgroups.div_ceil(x).clamp(1, ROW);
    [x as u32, y as u32, 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_fold_within_the_limit() {
        assert_eq!(fold(0), [1, 1, 1]);
        assert_eq!(fold(65_535), [65_535, 1, 1]);
        assert_eq!(fold(65_536), [65_535, 2, 1]);
        for workgroups in [1u64, 1000, 70_000, 10_000_000, 4_294_836_225] {
            let [x, y, z] = fold(workgroups);
            assert!(u64::from(x) * u64::from(y) * u64::from(z) >= workgroups);
            assert!(x <= 65_535 && y <= 65_535 && z <= 65_535);
        }
    }
}
