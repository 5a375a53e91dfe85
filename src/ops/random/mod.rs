//! Random numbers from a counter: Philox 4x32, as TensorFlow numbers its streams.
//!
//! Key and counter are runtime scalars, so a new draw needs no new plan. Words and uniform numbers have the same bits on
//! every adapter; what is computed from them agrees as far as the adapters round alike. Where a number is drawn until one
//! is accepted (`bodies.rs`), rounding may let an adapter accept another try: of a million numbers one or so is then
//! another one, of the same distribution.

mod bodies;
mod multinomial;

pub(crate) use multinomial::multinomial;

use super::{Backward, Grads, Keep, Operation, expect_dtype, no_grads};
use crate::dtype::DType;
use crate::eager::{self, Owner};
use crate::error::{Error, Result, message};
use crate::graph::lower::{Arg, Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, Runtime, RuntimeScalars, Spec};
use crate::runtime::Device;
use crate::shape::{Shape, broadcast};
use crate::tensor::Tensor;

/// The distribution of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Distribution {
    /// `f32` in [0, 1), of 2^23 values.
    Uniform,
    /// Mean 0, deviation 1.
    Normal,
    /// Normal; numbers beyond two deviations are drawn again.
    TruncatedNormal,
    /// 32 random bits, as `u32`.
    Bits,
    /// Gamma of scale 1; takes `alpha`.
    Gamma,
    /// The logarithm of such numbers, which small `alpha` make too small for a float.
    LogGamma,
    /// Whole numbers as `f32`; takes the mean.
    Poisson,
    /// Whole numbers as `f32`; takes how many trials there are, and the chance of each.
    Binomial,
}

impl Distribution {
    /// The names of the parameters, which are `f32` and broadcast to the shape that is drawn.
    pub(crate) fn parameters(self) -> &'static [&'static str] {
        match self {
            Distribution::Gamma | Distribution::LogGamma => &["alpha"],
            Distribution::Poisson => &["mean"],
            Distribution::Binomial => &["counts", "probs"],
            _ => &[],
        }
    }
}

/// As [`philox_random`], for a distribution with parameters.
pub(crate) fn philox_random_of(
    distribution: Distribution,
    shape: Shape,
    words: RuntimeScalars,
    owner: Option<Owner<Result<RuntimeScalars>>>,
    parameters: &[&Tensor],
) -> Result<Tensor> {
    let spec = Spec { shape, dtype: DType::F32 };
    let random = Random { spec, distribution, words: Runtime(words) };
    eager::dispatch_varying(random, parameters, owner)
}

/// Draws a tensor of `shape` at the key and counter in `words`; `owner` gives those of the next draw.
pub(crate) fn philox_random(
    device: Option<&Device>,
    distribution: Distribution,
    shape: Shape,
    words: RuntimeScalars,
    owner: Option<Owner<Result<RuntimeScalars>>>,
) -> Result<Tensor> {
    let dtype = if distribution == Distribution::Bits { DType::U32 } else { DType::F32 };
    let words = Runtime(words);
    eager::create(Random { spec: Spec { shape, dtype }, distribution, words }, device, owner)
}

#[derive(Debug, Hash, PartialEq, Eq)]
struct Random {
    spec: Spec,
    distribution: Distribution,
    /// The key's two words, and the counter's four.
    words: Runtime<RuntimeScalars>,
}

impl Op for Random {
    fn name(&self) -> &'static str {
        match self.distribution {
            Distribution::Uniform => "StatelessRandomUniformV2",
            Distribution::Normal => "StatelessRandomNormalV2",
            Distribution::TruncatedNormal => "StatelessTruncatedNormalV2",
            Distribution::Bits => "StatelessRandomUniformFullIntV2",
            Distribution::Gamma | Distribution::LogGamma => "StatelessRandomGammaV3",
            Distribution::Poisson => "StatelessRandomPoisson",
            Distribution::Binomial => "StatelessRandomBinomial",
        }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let shape = &self.spec.shape;
        for (name, input) in self.distribution.parameters().iter().zip(inputs) {
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
        // Four neighbouring elements come from one counter.
        let counter = "advance(vec4<u32>(c0, c1, c2, c3), i.x / 4u)";
        let (name, body) = match self.distribution {
            Distribution::Uniform => {
                ("random_uniform", format!("unit_floats(philox({counter}, vec2<u32>(k0, k1)))"))
            }
            Distribution::Bits => ("random_bits", format!("philox({counter}, vec2<u32>(k0, k1))")),
            Distribution::Normal => (
                "random_normal",
                format!(
                    "    let u = unit_floats(philox({counter}, vec2<u32>(k0, k1)));\n    \
                     return vec4<f32>(box_muller(u.xy), box_muller(u.zw));"
                ),
            ),
            // Each four elements own 256 counters. Half of 2^-8 draws need a second one; 64 never suffice
            // with a chance of 1e-80.
            Distribution::TruncatedNormal => (
                "truncated_normal",
                "    var y = vec4<f32>(0.0);\n    var found = 0u;\n    \
                 let start = advance_256(vec4<u32>(c0, c1, c2, c3), i.x / 4u);\n    \
                 for (var n = 0u; n < 64u && found < 4u; n++) {\n        \
                 let u = unit_floats(philox(advance(start, n), vec2<u32>(k0, k1)));\n        \
                 let z = vec4<f32>(box_muller(u.xy), box_muller(u.zw));\n        \
                 for (var k = 0u; k < 4u; k++) {\n            \
                 if (found < 4u && abs(z[k]) < 2.0) {\n                y[found] = z[k];\n                found += 1u;\n            }\n        \
                 }\n    }\n    return y;"
                    .to_string(),
            ),
            Distribution::Gamma => ("random_gamma", bodies::gamma(false)),
            Distribution::LogGamma => ("random_log_gamma", bodies::gamma(true)),
            Distribution::Poisson => ("random_poisson", bodies::poisson()),
            Distribution::Binomial => ("random_binomial", bodies::binomial()),
        };
        let parameters = self.distribution.parameters();
        let place = if parameters.is_empty() { Arg::Quad } else { Arg::Index };
        let mut elementwise = Elementwise::new(name, body);
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
        Keep::NoGradient("Random: a draw has no gradient")
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        no_grads(back)
    }
}
