//! Special functions: the WGSL of their rows, fitted by least squares of the relative error, and functions that are
//! composed of others.
//!
//! The texts are here and not in `shaders/prelude.wgsl`, so that a program contains only those of the functions that it
//! calls. `igamma`, `igammac` and `betainc` are left out: their series take a number of terms that depends on the data.

use super::inventory::Values::Within;
use super::inventory::{Entry, OpKind, POSITIVE, one};
use super::{Backward, FLOATS, Grads, Keep, Operation, expect_dtype, same_dtype, select};
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, Spec};
use crate::shape::{Axes, broadcast};
use crate::tensor::{Operand, Tensor, constant};

/// `lgamma(x)`. With `w` from 1 to 2 it is `(w - 1)(w - 2) p(w - 1)`; one step of `gamma(w + 1) = w gamma(w)` leads
/// there from the ranges 0 to 1 and 2 to 3. Stirling's formula is used beyond 3, and the reflection formula below 0.
pub(super) const LGAMMA: &str = "
    let below = x < V(0);
    let w = select(x, 1.0 - x, below);
    let far = w >= V(3);
    let above = w >= V(2);
    let under = w < V(1);
    let t = w - select(select(V(1), V(2), above), V(0), under);
    let near = t * (t - 1.0) * (0.577215672 + t * (-0.245250911 + t * (0.15541862 + t * (-0.114932708
        + t * (0.0907227919 + t * (-0.070929572 + t * (0.0493967384 + t * (-0.0266471133
        + t * (0.00931725558 - t * 0.0015264228)))))))));
    let log_w = log_4(select(select(V(1), w - 1.0, above), w, far | under));
    let z = 1.0 / (w * w);
    let more = (0.0833333358 + z * (-0.00277776481 + z * (0.000792654289 + z * (-0.000567795534 + z * 0.000507279125)))) / w;
    let right = select(near + select(log_w, -log_w, under), (w - 0.5) * (log_w - 1.0) + (0.418938533 + more), far);
    // log |gamma(x)| = log(pi) - log |sin(pi x)| - lgamma(1 - x)
    let r = x - round(x);
    let a = max(r, -r);
    let steep = a > V(0.25);
    let sine = wave_4(3.14159265 * select(a, 0.5 - a, steep), select(vec4<i32>(0), vec4<i32>(1), steep));
    let y = select(right, 1.14472989 - log_4(max(sine, V(0))) - right, below);
    let pole = is_inf_4(x) | (below & (r == V(0)));
    return select(select(y, V(inf()), pole), x, is_nan_4(x));";

/// `digamma(x)`, in the same steps. Near its zero, 1.46163215, it is `(w - 1.46163215) p(w - 1)`.
pub(super) const DIGAMMA: &str = "
    let below = x < V(0);
    let w = select(x, 1.0 - x, below);
    let far = w >= V(3);
    let above = w >= V(2);
    let under = w < V(1);
    let t = w - select(select(V(1), V(2), above), V(0), under);
    let near = (apart_4(t - 0.461632133) - 1.24381499e-8) * (1.25038016 + t * (-0.854692221 + t * (0.752419829
        + t * (-0.713743508 + t * (0.691498935 + t * (-0.655492365 + t * (0.56794095 + t * (-0.407939106
        + t * (0.215793535 + t * (-0.071977295 + t * 0.0111186402))))))))));
    let step = select(select(V(0), 1.0 / (w - 1.0), above), -1.0 / w, under);
    let z = 1.0 / (w * w);
    let more = z * (0.0833333358 + z * (-0.00833320618 + z * (0.00395842874 + z * (-0.00389231718 + z * 0.0041390839))));
    let right = select(near + step, log_4(w) - 0.5 / w - more, far);
    // digamma(x) = digamma(1 - x) - pi / tan(pi x)
    let r = x - round(x);
    let a = max(r, -r);
    let steep = a > V(0.25);
    let angle = 3.14159265 * select(a, 0.5 - a, steep);
    let s = wave_4(angle, vec4<i32>(0));
    let c = wave_4(angle, vec4<i32>(1));
    let turn = 3.14159265 * select(c / s, s / c, steep);
    let y = select(right, right - select(turn, -turn, r < V(0)), below);
    return select(y, V(nan()), ((x <= V(0)) & (r == V(0))) | (is_inf_4(x) & below) | is_nan_4(x));";

/// `w = -log((1 - x)(1 + x))` in two or three ranges; its square root is nearly the inverse (Giles 2012).
macro_rules! inverse_erf {
    ($w:literal, $tail:literal) => {
        concat!(
            "    let w = max(-log_4(",
            $w,
            "), V(0));\n    let u = w - 2.5;
    let near = 1.50140941 + u * (0.246640727 + u * (-0.00417770771 + u * (-0.00125370757 + u * (0.000218602188
        + u * (-4.39678115e-6 + u * (-3.52885945e-6 + u * (3.43727066e-7 + u * 2.85347905e-8)))))));
    let s = sqrt(w) - 3.0;
    let far = 2.83297682 + s * (1.00167406 + s * (0.00943935569 + s * (-0.00762141403 + s * (0.00573647534
        + s * (-0.00367700215 + s * (0.00135589193 + s * (0.000104311097 - s * 0.000204975309)))))));\n",
            $tail
        )
    };
}

pub(super) const ERFINV: &str = concat!(
    inverse_erf!("(1.0 - x) * (1.0 + x)", "    let y = x * select(far, near, w < V(5));\n"),
    "    let known = select(y, signed_4(V(inf()), x), abs(x) == V(1));
    return select(known, V(nan()), (abs(x) > V(1)) | is_nan_4(x));"
);

pub(super) const NDTRI: &str = concat!(
    "    let q = min(x, 1.0 - x);\n",
    inverse_erf!(
        "4.0 * q * (1.0 - q)",
        "    let v = s - 4.0;
    let beyond = 6.86901999 + v * (1.00859642 + v * (-0.000513051928 + v * (5.21151514e-6 + v * (6.28165935e-6
        + v * (-1.25684153e-6 + v * (2.59998529e-7 + v * (-9.69512115e-8 + v * 1.4568533e-8)))))));
    let y = 1.41421356 * (1.0 - 2.0 * q) * select(select(beyond, far, w < V(16)), near, w < V(5));\n"
    ),
    "    let known = select(y, V(inf()), (bitcast<vec4<u32>>(q) << vec4<u32>(1u)) == vec4<u32>(0u));
    let none = (q < V(0)) | is_nan_4(x) | is_inf_4(x);
    return select(select(known, -known, x < V(0.5)), V(nan()), none);"
);

/// The modified Bessel functions of the first kind: a series in `x^2` up to 4, and beyond that one in `1 / x` times
/// `e^|x| / sqrt(|x|)`. `near` and `far` are formulas of the two parts.
macro_rules! bessel {
    ($near:literal, $far:literal, $($how:literal),+) => {
        concat!("    let a = max(x, -x);\n    let z = x * x;\n    let r = 1.0 / a;\n    let near = ", $near,
            ";\n    let far = inverseSqrt(a) * ", $far, ";\n", $($how),+)
    };
}

macro_rules! bessel_i0 {
    ($($how:literal),+) => {
        bessel!(
            "1.0 + z * (0.25 + z * (0.0156249925 + z * (0.000434032234 + z * (6.78041579e-6 + z * (6.80069761e-8
        + z * (4.55608024e-10 + z * 3.02537422e-12))))))",
            "(0.398942292 + r * (0.0498553701 + r * (0.0293067303 + r * (-0.0187392905 + r * (0.928082526
        + r * (-8.47515011 + r * (43.8163452 + r * (-104.058487 + r * 89.3829651))))))))",
            $($how),+
        )
    };
}

macro_rules! bessel_i1 {
    ($($how:literal),+) => {
        bessel!(
            "a * (0.5 + z * (0.0625 + z * (0.00260416605 + z * (5.42537709e-5 + z * (6.78088213e-7 + z * (5.66288261e-9
        + z * (3.27464479e-11 + z * 1.85376928e-13)))))))",
            "(0.398942262 + r * (-0.149588928 + r * (-0.0481884964 + r * (0.0132422466 + r * (-1.04249239
        + r * (9.32339191 + r * (-47.6412849 + r * (111.148064 - r * 93.3139725))))))))",
            $($how),+
        )
    };
}

pub(super) const BESSEL_I0: &str = bessel_i0!(
    "    let y = select(exp_4(a) * far, near, a < V(4));\n",
    "    return select(y, V(nan()), is_nan_4(x) | is_inf_4(x));"
);
pub(super) const BESSEL_I0E: &str = bessel_i0!(
    "    let y = select(far, exp_4(-a) * near, a < V(4));\n",
    "    return select(select(y, V(0), is_inf_4(x)), x, is_nan_4(x));"
);
pub(super) const BESSEL_I1: &str = bessel_i1!(
    "    let y = select(exp_4(a) * far, near, a < V(4));\n",
    "    return select(select(y, -y, x < V(0)), V(nan()), is_nan_4(x) | is_inf_4(x));"
);
pub(super) const BESSEL_I1E: &str = bessel_i1!(
    "    let y = select(select(far, exp_4(-a) * near, a < V(4)), V(0), is_inf_4(x));\n",
    "    return select(select(y, -y, x < V(0)), x, is_nan_4(x));"
);

/// Hurwitz's zeta function of `a` and `b`: nine terms, and the rest by the Euler-Maclaurin formula. If `b` is negative
/// and `a` whole, with the fractional part `f` of `b`: `zeta(a, b) = zeta(a, f) + (-1)^a (zeta(a, 1 - f) - zeta(a, 1 -
/// b))`.
const ZETA: &str = "
    let below = b < V(0);
    let f = select(b, b - floor(b), below);
    let s = min(a, V(200));
    let whole = floor(a) == a;
    let sign = select(V(1), V(-1), a - 2.0 * floor(0.5 * a) == V(1));
    var y = V(0);
    let parts = select(1, 3, any(below));
    for (var part = 0; part < min(parts, 3); part++) {
        let q = select(select(f, select(1.0 - b, floor(b) + 1.0 - b, part == 1), part > 0), V(1), !below & (V(f32(part)) > V(0)));
        var sum = V(0);
        for (var k = 0; k < 9; k++) {
            sum += pow_4(q + f32(k), -a);
        }
        let w = q + 9.0;
        let w2 = 1.0 / (w * w);
        let series = s / w * (0.0833333333 - (s + 1.0) * (s + 2.0) * w2 * (0.00138888889
            - (s + 3.0) * (s + 4.0) * w2 * (3.30687831e-5 - (s + 5.0) * (s + 6.0) * w2 * 8.26719577e-7)));
        sum += pow_4(w, 1.0 - a) * (1.0 / (a - 1.0) + (0.5 + series) / w);
        let share = select(select(-sign, sign, part == 1), V(1), part == 0);
        y += select(share * sum, V(0), !below & (V(f32(part)) > V(0)));
    }
    let pole = (b <= V(0)) & ((floor(b) == b) | is_inf_4(b));
    let known = select(y, V(inf()), pole);
    // From both sides of a pole odd powers come to infinities of two signs.
    let odd = pole & (sign < V(0));
    let none = (a < V(1)) | is_nan_4(a) | is_nan_4(b) | ((below | pole) & !whole) | odd;
    return select(select(known, V(nan()), none), V(inf()), a == V(1));";

/// Like a row of the table, except for its gradient: the first input has none.
#[derive(Debug, Attribute)]
#[op("Zeta")]
pub(crate) struct Zeta;

impl Op for Zeta {
    fn name(&self) -> &'static str {
        "Zeta"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let (a, b) = (inputs[0], inputs[1]);
        same_dtype("Zeta", a, b)?;
        expect_dtype("Zeta", a, FLOATS)?;
        Ok(Spec::new(broadcast("Zeta", &a.shape, &b.shape)?, a.dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let view = |i: usize| View::broadcast(cx.inputs[i], cx.output);
        Elementwise::new("zeta", ZETA).input("a", 0, view(0)).input("b", 1, view(1)).into()
    }
}

impl Operation for Zeta {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    // d/db zeta(a, b) = -a zeta(a + 1, b)
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let a = back.x(0);
        let mut grads = Grads::new();
        grads.push(None);
        grads.push(match back.needs(1) {
            true => Some(back.dy * -a * a.stop_gradient().add(1.0)?.zeta(back.x(1))?),
            false => None,
        });
        Ok(grads)
    }
}

/// Special functions.
impl Tensor {
    /// The Hurwitz zeta function, the sum of `(q + k)^-x` over `k` from 0 on, where `x` is this tensor. The result is
    /// infinity if `x` is 1. If `q` is 0 or a negative whole number, it is infinity for even `x`, otherwise NaN. It is
    /// NaN if `x` is less than 1, and for other negative `q` unless `x` is whole. The exponent has no gradient.
    /// [Within 8 ULP](Tensor#accuracy) for positive `q`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let y = tf::constant([2.0, 4.0])?.zeta(1.0)?.to_vec::<f32>()?;
    /// let pi = std::f32::consts::PI;
    /// assert!((y[0] - pi * pi / 6.0).abs() < 1e-6 && (y[1] - pi.powi(4) / 90.0).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes cannot be broadcast together;
    /// [`Error::DType`](crate::Error::DType) if the dtypes differ or are not float.
    pub fn zeta(&self, q: impl Into<Operand>) -> Result<Tensor> {
        let q = q.into().into_tensor_like("Zeta", self)?;
        dispatch(Zeta, &[self, &q])
    }

    /// The derivative of [`digamma`](Tensor::digamma) of order `self` at `x`: for whole orders `n` from 1 on
    /// `(-1)^(n+1) n! zeta(n + 1, x)`, for 0 `digamma(x)`, otherwise NaN. The order has no gradient.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let y = tf::constant([1.0, 2.0])?.polygamma(&tf::constant([1.0, 1.0])?)?;
    /// let want = [std::f32::consts::PI.powi(2) / 6.0, -2.404_113_8];
    /// assert!(y.to_vec::<f32>()?.iter().zip(want).all(|(y, want)| (y - want).abs() < 1e-5));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes cannot be broadcast together;
    /// [`Error::DType`](crate::Error::DType) if the dtypes differ or are not float.
    pub fn polygamma(&self, x: impl Into<Operand>) -> Result<Tensor> {
        let x = x.into().into_tensor_like("Polygamma", self)?;
        let order = self.stop_gradient();
        let next = order.add(1.0)?;
        // (-1)^(n+1): whole orders are even or odd, others have no value.
        let odd = order.floormod(2.0)?;
        let factorial = next.lgamma()?.exp()?.multiply(odd.multiply(2.0)?.subtract(1.0)?)?;
        let whole = order.floor()?.equal(&order)?.logical_and(order.greater(0.0)?)?;
        let series = factorial.multiply(next.zeta(&x)?)?;
        let none = super::fill(
            self.device(),
            "Polygamma",
            Default::default(),
            f64::NAN.into(),
            self.dtype(),
        )?;
        select(&order.equal(0.0)?, &x.digamma()?, &select(&whole, &series, &none)?)
    }

    /// The inverse of [`erfc`](Tensor::erfc): NaN outside 0 to 2.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) if the dtype is not float.
    pub fn erfcinv(&self) -> Result<Tensor> {
        self.multiply(0.5)?.ndtri()?.multiply(-std::f64::consts::FRAC_1_SQRT_2)
    }

    /// `log |beta(x)|` along the last axis: `sum(lgamma(x)) - lgamma(sum(x))`. For an empty axis the result is
    /// -infinity, the logarithm of 0, as in TensorFlow.
    ///
    /// # Errors
    /// [`Error::Index`](crate::Error::Index) if the tensor is a scalar; [`Error::DType`](crate::Error::DType) if the
    /// dtype is not float.
    pub fn lbeta(&self) -> Result<Tensor> {
        let last = Axes::from(-1);
        self.lgamma()?.reduce_sum(&last)?.subtract(self.reduce_sum(&last)?.lgamma()?)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "zeta", &["tf.math.zeta"], |c| one(c.x()?.zeta(c.arg("q")?)))
        .cases(|cases| {
            cases.add("zeta", &[(&[3, 5], Within(1.0, 3.0))], |x| {
                constant([1.3, 2.0, 2.5, 3.0, 4.2])?.zeta(&x[0])
            });
            cases.add("zeta of one exponent", &[(&[3, 5], Within(1.0, 3.0))], |x| {
                Tensor::scalar(2.5f32)?.zeta(&x[0])
            });
        })
        .kernels(&[|make, dtype| {
            Ok(vec![make(&[2, 5], dtype).zeta(make(&[5], dtype))?, make(&[8], dtype).zeta(2.0)?])
        }]),
    Entry::new(OpKind::Composed, "polygamma", &["tf.math.polygamma"], |c| {
        one(c.arg("a")?.polygamma(c.x()?))
    })
    .cases(|cases| {
        for order in [0.0f32, 1.0, 2.0, 3.0] {
            let name = format!("polygamma {order}");
            cases.add(name, &[(&[3, 5], Within(1.5, 3.0))], move |x| {
                Tensor::scalar(order)?.polygamma(&x[0])
            });
        }
        cases.add("polygamma below 0", &[(&[7], Within(-0.6, -0.4))], |x| {
            Tensor::scalar(1f32)?.polygamma(&x[0])?.multiply(0.1)
        });
    }),
    Entry::new(OpKind::Composed, "erfcinv", &["tf.math.erfcinv"], |c| one(c.x()?.erfcinv()))
        .cases(|cases| cases.of_one("erfcinv", Within(0.3, 1.7), Tensor::erfcinv)),
    Entry::new(OpKind::Composed, "lbeta", &["tf.math.lbeta"], |c| one(c.x()?.lbeta()))
        .cases(|cases| cases.of_one("lbeta", POSITIVE, Tensor::lbeta)),
];
