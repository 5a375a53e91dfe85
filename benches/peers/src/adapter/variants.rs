//! `wgrad-peers variants`: prints the names of ops of several sizes. With a name as an argument, runs that op, compares all its
//! variants with the plainest and times them (`Device::tune`); prints a line of JSON for each kernel, and one at the end.

use serde_json::{Value, json};
use wgrad::interop::DeviceExt;
use wgrad::{
    Conv2dOptions, DType, Device, GradientTape, MatmulPrecision, Padding, Tensor, TunedOp,
};

use crate::child::answer;
use crate::{Result, inputs};

enum Work {
    /// `[.., M, K] x [.., K, N]`, and which of the two are stored transposed.
    Product { a: &'static [usize], b: &'static [usize], transposed: [bool; 2], dtype: DType },
    /// The same with `f32` inputs that may be rounded to `f16`.
    Rounded { n: usize },
    /// `[N,H,W,C]` and `[H,W,C,O]`, SAME: the result and both gradients.
    Convolution { x: [usize; 4], w: [usize; 4], strides: [usize; 2] },
}

/// Sizes below and above those of tiles and vectors, and those of the training cases.
const ALL: [(&str, Work); 13] = [
    ("product 256", product(&[256, 256], &[256, 256])),
    ("product of odd sizes", product(&[70, 61], &[61, 33])),
    ("product of a batch of 50", product(&[50, 784], &[784, 100])),
    ("product of a row", product(&[1, 512], &[512, 512])),
    ("tall product", product(&[4096, 64], &[64, 64])),
    ("product, a transposed", turned([true, false])),
    ("product, b transposed", turned([false, true])),
    ("product, both transposed", turned([true, true])),
    ("batched product", product(&[8, 64, 48], &[8, 48, 80])),
    (
        "product of f16",
        Work::Product { a: &[256, 128], b: &[128, 256], transposed: [false; 2], dtype: DType::F16 },
    ),
    ("product of inputs rounded to f16", Work::Rounded { n: 256 }),
    (
        "convolution of grey images",
        Work::Convolution { x: [16, 28, 28, 1], w: [5, 5, 1, 32], strides: [1, 1] },
    ),
    (
        "convolution with strides",
        Work::Convolution { x: [8, 14, 14, 32], w: [3, 3, 32, 64], strides: [2, 2] },
    ),
];

const fn product(a: &'static [usize], b: &'static [usize]) -> Work {
    Work::Product { a, b, transposed: [false; 2], dtype: DType::F32 }
}

/// A product of 96 x 130 and 130 x 72.
const fn turned(transposed: [bool; 2]) -> Work {
    let a: &[usize] = if transposed[0] { &[130, 96] } else { &[96, 130] };
    let b: &[usize] = if transposed[1] { &[72, 130] } else { &[130, 72] };
    Work::Product { a, b, transposed, dtype: DType::F32 }
}

pub fn run(arguments: &[String]) -> Result<()> {
    let Some(name) = arguments.first() else {
        return answer(json!({ "names": ALL.map(|(name, _)| name) }));
    };
    let (_, work) =
        ALL.iter().find(|(known, _)| known == name).ok_or(format!("there is no `{name}`"))?;
    super::log_warnings();
    let device = Device::current()?;
    let half = matches!(work, Work::Rounded { .. } | Work::Product { dtype: DType::F16, .. });
    let features = device.wgpu().0.features();
    if half && !features.contains(wgrad::interop::wgpu::Features::SHADER_F16) {
        return answer(json!({ "end": "left out: the adapter has no f16" }));
    }
    compute(&device, work)?;
    let report = device.tune()?;
    for op in report.ops() {
        answer(row(op))?;
    }
    // Checks whether a kernel of the tuned plan uses cooperative matrices.
    compute(&device, work)?;
    let units = device
        .last_plan()
        .is_some_and(|plan| plan.kernels().iter().any(|kernel| kernel.wgsl.contains("coop_mat")));
    answer(json!({ "end": if units { "takes cooperative matrices" } else { "" } }))
}

fn row(op: &TunedOp) -> Value {
    let micros = |name: &str| {
        let variant = op.variants.iter().find(|variant| variant.name == name)?;
        Some(variant.time?.as_secs_f64() * 1e6)
    };
    let first = op.variants.first().map_or("", |variant| variant.name.as_str());
    let wrong: Vec<&str> =
        op.variants.iter().filter(|v| v.wrong).map(|v| v.name.as_str()).collect();
    json!({
        "op": op.op,
        "variants": op.variants.len(),
        "wrong": wrong,
        "chosen": op.chosen,
        "chosen_us": micros(&op.chosen),
        "first": first,
        "first_us": micros(first),
    })
}

fn compute(device: &Device, work: &Work) -> Result<()> {
    let uniform = |shape: &[usize], seed| {
        Tensor::from_slice(&inputs::uniform(shape.iter().product(), seed), shape)
    };
    let held: Vec<Tensor> = match *work {
        Work::Product { a, b, transposed, dtype } => {
            let (a, b) = (uniform(a, 1)?.cast(dtype)?, uniform(b, 2)?.cast(dtype)?);
            vec![a.matmul_with(
                &b,
                wgrad::MatmulOptions::new().transpose_a(transposed[0]).transpose_b(transposed[1]),
            )?]
        }
        Work::Rounded { n } => {
            device.set_matmul_precision(MatmulPrecision::F16Inputs);
            vec![uniform(&[n, n], 1)?.matmul(uniform(&[n, n], 2)?)?]
        }
        Work::Convolution { x, w, strides } => {
            let (x, w) = (uniform(&x, 1)?, uniform(&w, 2)?);
            let options = Conv2dOptions::new().padding(Padding::Same).strides(strides);
            let tape = GradientTape::new();
            tape.watch(&x)?;
            tape.watch(&w)?;
            let y = x.conv2d(&w, options)?;
            let loss = y.square()?.reduce_sum(())?;
            let [dx, dw] = tape.required_gradient(&loss, [&x, &w])?;
            vec![y, dx, dw]
        }
    };
    device.synchronize()?;
    drop(held);
    Ok(())
}
