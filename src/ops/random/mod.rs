//! Counter-based random numbers: Philox 4x32, with TensorFlow's numbering of streams.
//!
//! Key and counter are runtime scalars, so a new draw needs no new plan. Words and uniform numbers have the same bits
//! on every adapter; numbers computed from them agree up to the adapters' rounding. In rejection sampling
//! (`bodies.rs`), rounding may make an adapter accept another try: about one number in a million then differs, with the
//! same distribution.

mod bodies;
pub(super) mod multinomial;

pub(crate) use multinomial::multinomial;

use super::{Backward, Grads, Keep, Operation, expect_dtype, refuse};
use crate::dtype::DType;
use crate::eager::{self, Owner};
use crate::error::{Error, Result, message};
use crate::graph::attributes::{Attribute, attribute_of_rows};
use crate::graph::lower::{Arg, Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, Runtime, RuntimeScalars, Spec};
use crate::runtime::Device;
use crate::shape::{Shape, broadcast};
use crate::tensor::Tensor;

/// A distribution of numbers. A program contains only the formulas of the distributions that it uses.
pub(crate) struct Distribution {
    /// The formula's name among kernels.
    kernel: &'static str,
    /// TensorFlow's name of the op.
    name: &'static str,
    /// The names of the parameters, which are `f32` and broadcast to the shape that is drawn.
    pub(crate) parameters: &'static [&'static str],
    /// The numbers of four elements, from the key `k0, k1`, the counter `c0` to `c3` and their indices `i`.
    body: fn() -> String,
}

/// Four neighbouring elements use one counter.
const WORDS: &str = "philox(advance(vec4<u32>(c0, c1, c2, c3), i.x / 4u), vec2<u32>(k0, k1))";

impl Distribution {
    /// `f32` in [0, 1), of 2^23 values.
    pub(crate) const UNIFORM: &'static Self =
        &Self::plain("random_uniform", "StatelessRandomUniformV2", || {
            format!("unit_floats({WORDS})")
        });
    /// 32 random bits, as `u32`.
    pub(crate) const BITS: &'static Self =
        &Self::plain("random_bits", "StatelessRandomUniformFullIntV2", || WORDS.to_string());
    /// Mean 0, standard deviation 1.
    pub(crate) const NORMAL: &'static Self =
        &Self::plain("random_normal", "StatelessRandomNormalV2", || {
            format!(
                "    let u = unit_floats({WORDS});\n    \
                 return box_muller_4(u);"
            )
        });
    /// Normal; numbers beyond two standard deviations are drawn again. Each four elements have 256 counters. Half of
    /// 2^-8 draws need a second one; the probability that 64 are not enough is 1e-80.
    pub(crate) const TRUNCATED_NORMAL: &'static Self = &Self::plain(
        "truncated_normal",
        "StatelessTruncatedNormalV2",
        || {
            "    var y = vec4<f32>(0.0);\n    var found = 0u;\n    \
             let start = advance_256(vec4<u32>(c0, c1, c2, c3), i.x / 4u);\n    \
             for (var n = 0u; n < 64u && found < 4u; n++) {\n        \
             let u = unit_floats(philox(advance(start, n), vec2<u32>(k0, k1)));\n        \
             let z = box_muller_4(u);\n        \
             for (var k = 0u; k < 4u; k++) {\n            \
             if (found < 4u && abs(z[k]) < 2.0) {\n                \
             y = select(y, vec4<f32>(z[k]), vec4<u32>(0u, 1u, 2u, 3u) == vec4<u32>(found));\n                \
             found += 1u;\n            }\n        \
             }\n    }\n    return y;"
                .to_string()
        },
    );
    /// Gamma of scale 1.
    pub(crate) const GAMMA: &'static Self = &Distribution {
        kernel: "random_gamma",
        name: "StatelessRandomGammaV3",
        parameters: &["alpha"],
        body: || bodies::gamma(false),
    };
    /// The logarithm of such numbers, which small `alpha` make too small for a float.
    pub(crate) const LOG_GAMMA: &'static Self = &Distribution {
        kernel: "random_log_gamma",
        name: "StatelessRandomGammaV3",
        parameters: &["alpha"],
        body: || bodies::gamma(true),
    };
    /// Whole numbers as `f32`.
    pub(crate) const POISSON: &'static Self = &Distribution {
        kernel: "random_poisson",
        name: "StatelessRandomPoisson",
        parameters: &["mean"],
        body: bodies::poisson,
    };
    /// Whole numbers as `f32`; the parameters are the number of trials and the probability of success.
    pub(crate) const BINOMIAL: &'static Self = &Distribution {
        kernel: "random_binomial",
        name: "StatelessRandomBinomial",
        parameters: &["counts", "probs"],
        body: bodies::binomial,
    };

    const fn plain(kernel: &'static str, name: &'static str, body: fn() -> String) -> Self {
        Distribution { kernel, name, parameters: &[], body }
    }
}

impl std::fmt::Debug for Distribution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kernel)
    }
}

attribute_of_rows!(
    Distribution,
    &[
        Distribution::UNIFORM,
        Distribution::BITS,
        Distribution::NORMAL,
        Distribution::TRUNCATED_NORMAL,
        Distribution::GAMMA,
        Distribution::LOG_GAMMA,
        Distribution::POISSON,
        Distribution::BINOMIAL,
    ],
    kernel
);

/// As [`philox_random`], for a distribution with parameters.
pub(crate) fn philox_random_of(
    distribution: &'static Distribution,
    shape: Shape,
    words: RuntimeScalars,
    owner: Option<Owner<Result<RuntimeScalars>>>,
    parameters: &[&Tensor],
) -> Result<Tensor> {
    let spec = Spec { shape, dtype: DType::F32 };
    let random = Random { spec, distribution, words: Runtime(words) };
    eager::dispatch_varying(random, parameters, owner)
}

/// Draws a tensor of `shape` at the key and counter in `words`; `owner` provides those of the next draw.
pub(crate) fn philox_random(
    device: Option<&Device>,
    distribution: &'static Distribution,
    shape: Shape,
    words: RuntimeScalars,
    owner: Option<Owner<Result<RuntimeScalars>>>,
) -> Result<Tensor> {
    let dtype =
        if distribution.kernel == Distribution::BITS.kernel { DType::U32 } else { DType::F32 };
    let words = Runtime(words);
    eager::create(Random { spec: Spec { shape, dtype }, distribution, words }, device, owner)
}

#[derive(Debug, Attribute)]
#[op("Random")]
pub(crate) struct Random {
    spec: Spec,
    distribution: &'static Distribution,
    /// The key's two words, and the counter's four.
    words: Runtime<RuntimeScalars>,
}

impl Op for Random {
    fn name(&self) -> &'static str {
        self.distribution.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let shape = &self.spec.shape;
        for (name, input) in self.distribution.parameters.iter().zip(inputs) {
            let op = self.name();
            expect_dtype(op, input, &[DType::F32])?;
            let fits = broadcast(op, &input.shape, shape).is_ok_and(|all| all == *shape);
            if !fits {
                return Err(Error::Shape(message!(
                    "{op}: {name} is {} and cannot be broadcast to {shape}, the shape of the numbers. Give the whole \
                     shape, whose last axes are those of {name}.",
                    input.shape
                )));
            }
        }
        Ok(self.spec.clone())
    }

    fn runtime_scalars(&self) -> RuntimeScalars {
        self.words.0.clone()
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let Distribution { kernel, parameters, body, .. } = self.distribution;
        let place = if parameters.is_empty() { Arg::Quad } else { Arg::Index };
        let mut elementwise = Elementwise::new(kernel, body());
        for (at, name) in parameters.iter().enumerate() {
            elementwise = elementwise.input(*name, at, View::broadcast(cx.inputs[at], cx.output));
        }
        elementwise = elementwise.arg("i", place);
        for (word, name) in ["k0", "k1", "c0", "c1", "c2", "c3"].into_iter().enumerate() {
            elementwise = elementwise.arg(name, Arg::RuntimeScalar(word));
        }
        elementwise.into()
    }
}

impl Operation for Random {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    // The derivative of the numbers with respect to a parameter, which TensorFlow has for alpha, would need a separate
    // kernel.
    fn grad(&self, _: &Backward) -> Result<Grads> {
        let which = self.distribution.parameters.join(" and ");
        let why = format!("how the numbers that are drawn depend on {which} is not known");
        refuse(self.name(), &why, "draw with parameters that do not depend on a source")
    }
}
