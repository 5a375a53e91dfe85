//! Tests that every variant of the product computes the same as the plain sum, on shapes that do not fill a tile.

#![allow(clippy::unwrap_used)]

use super::super::{Backward, Conv2dOptions, Grads, Keep, Operation, no_grads};
use super::Product;
use super::variants::Variant;
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::{Attribute, OpAttributes, Value, Visitor};
use crate::graph::lower::{Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::runtime::Device;
use crate::tensor::Tensor;

/// Computes a product by one variant.
#[derive(Debug)]
struct Fixed {
    product: Product,
    variant: Variant,
}

impl Attribute for Fixed {
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        visitor.int(name, crate::support::mixer::hash_bytes(format!("{self:?}").as_bytes()) as i64);
    }

    fn read(_: &Value) -> std::result::Result<Self, String> {
        Err("it is in no file".into())
    }
}

impl OpAttributes for Fixed {
    const KIND: &'static str = "FixedMatMul";
}

impl Op for Fixed {
    fn name(&self) -> &'static str {
        "Fixed"
    }

    fn infer(&self, _: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new([self.product.batch, self.product.m, self.product.n], DType::F32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        self.product.gemm("fixed", DType::F32, cx.caps).lower_with(self.variant, cx.caps)
    }
}

impl Operation for Fixed {
    fn keep(&self) -> Keep {
        Keep::NoGradient("Fixed: a test")
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        no_grads(back)
    }
}

/// Small whole numbers, so that every order of the sum has the same result.
fn numbers(count: usize, step: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * step) % 11) as f32 - 5.0).collect()
}

#[test]
fn variants_agree_with_the_plain_sum() {
    let mut variants = vec![
        Variant::Registers { tm: 8, tn4: 2, wx: 8, wy: 8 },
        Variant::Registers { tm: 4, tn4: 1, wx: 2, wy: 32 },
        Variant::Registers { tm: 1, tn4: 1, wx: 8, wy: 8 },
        Variant::Registers { tm: 4, tn4: 2, wx: 16, wy: 16 },
        Variant::Registers { tm: 2, tn4: 1, wx: 64, wy: 1 },
        Variant::Tiled,
        Variant::Sliced,
        Variant::Gathered,
        Variant::Dots { tm4: 1, tn: 4, wx: 64 },
        Variant::Dots { tm4: 2, tn: 4, wx: 8 },
    ];
    let caps = Device::current().unwrap().caps().clone();
    if let Some([least, most]) = caps.subgroups {
        // Subgroups as large as the workgroup, several in one, and larger than the kernels assume.
        for (lanes, wx) in [(least.min(8), most), (least.min(8), 64.max(most)), (4, 32.max(most))] {
            let (lanes, wx) = (lanes as usize, wx as usize);
            let sizes = [(1, 2), (2, 1), (4, 1)];
            variants.extend(sizes.map(|(tm, tn4)| Variant::Lanes { lanes, tm, tn4, wx }));
        }
    }
    // Cooperative matrices of every kind that the device declares; the numbers are exact in f16.
    for kind in &caps.cooperative {
        variants.extend(Variant::of_kind(kind, &caps));
    }
    for (batch, m, k, n) in [
        (1, 1, 1, 1),
        (2, 9, 20, 12),
        (1, 67, 37, 70),
        (3, 65, 16, 5),
        (1, 20, 4100, 36),
        (2, 67, 300, 1),
        (2, 12, 77, 3),
    ] {
        let (a, b) = (numbers(batch * m * k, 7), numbers(batch * k * n, 5));
        for (transpose_a, transpose_b) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let at = |t: usize, i: usize, l: usize| {
                if transpose_a { a[(t * k + l) * m + i] } else { a[(t * m + i) * k + l] }
            };
            let bt = |t: usize, l: usize, j: usize| {
                if transpose_b { b[(t * n + j) * k + l] } else { b[(t * k + l) * n + j] }
            };
            let mut want = Vec::new();
            for (t, i, j) in (0..batch * m * n).map(|e| (e / (m * n), e / n % m, e % n)) {
                want.push((0..k).map(|l| at(t, i, l) * bt(t, l, j)).sum::<f32>());
            }
            let product = Product {
                batch,
                m,
                k,
                n,
                a_batch: m * k,
                b_batch: k * n,
                transpose_a,
                transpose_b,
            };
            let few = (n < 4).then_some(Variant::Dots { tm4: 2, tn: n, wx: 8 });
            for variant in variants.iter().copied().chain(few) {
                let x = Tensor::from_slice(&a, [a.len()]).unwrap();
                let y = Tensor::from_slice(&b, [b.len()]).unwrap();
                let got = dispatch(Fixed { product, variant }, &[&x, &y]).unwrap();
                assert_eq!(got.to_vec::<f32>().unwrap(), want, "{variant:?} {product:?}");
            }
        }
    }
}

/// So few filters that threads share the sums, over more channels than the threads process at once.
#[test]
fn few_filters_agree_with_the_plain_sum() {
    let (size, c) = (5, 516);
    for o in [1, 3, 4] {
        let (x, w) = (numbers(size * size * c, 7), numbers(4 * c * o, 5));
        let mut want = Vec::new();
        for e in 0..(size - 1) * (size - 1) * o {
            let (i, j, o_at) = (e / o / (size - 1), e / o % (size - 1), e % o);
            let term = |t: usize| {
                let (u, v, l) = (t / c / 2, t / c % 2, t % c);
                x[((i + u) * size + j + v) * c + l] * w[((u * 2 + v) * c + l) * o + o_at]
            };
            want.push((0..4 * c).map(term).sum::<f32>());
        }
        let x = Tensor::from_slice(&x, [1, size, size, c]).unwrap();
        let w = Tensor::from_slice(&w, [2, 2, c, o]).unwrap();
        let got = x.conv2d(&w, Conv2dOptions::default()).unwrap();
        assert_eq!(got.to_vec::<f32>().unwrap(), want, "{o} filters");
    }
}

/// Random numbers show the rounding: how far each kind of variant is from the sums in `f64`.
#[test]
fn rounding_is_what_a_variant_says() {
    let (m, k, n) = (70, 301, 67);
    let mut random = fastrand::Rng::with_seed(3);
    let mut numbers =
        |count: usize| -> Vec<f32> { (0..count).map(|_| random.f32() * 2.0 - 1.0).collect() };
    let (a, b) = (numbers(m * k), numbers(k * n));
    let at = |e: usize, l: usize| f64::from(a[e / n * k + l]) * f64::from(b[l * n + e % n]);
    let want: Vec<f64> = (0..m * n).map(|e| (0..k).map(|l| at(e, l)).sum()).collect();
    let scale = (want.iter().map(|x| x * x).sum::<f64>() / want.len() as f64).sqrt();
    let caps = Device::current().unwrap().caps().clone();
    let mut variants =
        vec![Variant::Registers { tm: 4, tn4: 1, wx: 8, wy: 8 }, Variant::Tiled, Variant::Sliced];
    for kind in &caps.cooperative {
        variants.extend(Variant::of_kind(kind, &caps));
    }
    let product = Product { batch: 1, m, k, n, ..Product::default() };
    for variant in variants {
        let x = Tensor::from_slice(&a, [m, k]).unwrap();
        let y = Tensor::from_slice(&b, [k, n]).unwrap();
        let got = dispatch(Fixed { product, variant }, &[&x, &y]).unwrap().to_vec::<f32>().unwrap();
        let errors = got.iter().zip(&want).map(|(g, w)| (f64::from(*g) - w).abs() / scale);
        let worst = errors.fold(0.0, f64::max);
        println!("{variant:?}: {worst:.1e} of the root mean square");
        match variant {
            // Each of the two factors is rounded to 11 bits: at most 7e-4 per product, and less for sums of many.
            Variant::Cooperative { half: true, .. } => assert!((1e-5..2e-3).contains(&worst)),
            _ => assert!(worst < 3e-6, "{variant:?}: {worst:e}"),
        }
    }
}

#[test]
fn only_little_products_take_small_tiles() {
    use super::variants::{Problem, candidates};
    use crate::device::Caps;
    let caps = Caps { cpu: true, subgroups: Some([8, 8]), ..Caps::portable() };
    let first = |n, runs: usize| {
        candidates(Problem { batch: 1, m: 25, n, inner: 28, products: runs * 25 * n * 28 }, &caps)
            [0]
    };
    assert!(matches!(first(32, 1), Variant::Lanes { tm: 2, tn4: 1, .. }));
    assert!(matches!(first(4, 1), Variant::Registers { tm: 4, tn4: 1, .. }));
    // The gradient of a convolution's filters has many short runs.
    assert!(matches!(first(32, 64 * 28), Variant::Lanes { tm: 4, .. }));
}
