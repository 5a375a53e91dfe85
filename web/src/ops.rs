//! The ops of [`Tensor`] that are not part of the page's own build; each calls the corresponding method of `wgrad`.

use wasm_bindgen::prelude::*;
use wgrad::{Axes, Conv2dOptions, CumsumOptions, NanToNumOptions, Pool2dOptions};

use crate::args::{Options, integers};
use crate::config::padding;
use crate::error::{Result, bad_type};
use crate::tensor::{Operand, Tensor};
use crate::values::dtype;

/// Shared by all methods that the macros below generate, as every page would load each copy.
impl Tensor {
    #[inline(never)]
    fn map(&self, op: fn(&wgrad::Tensor) -> wgrad::Result<wgrad::Tensor>) -> Result<Tensor> {
        Ok(Tensor::new(op(&self.get()?)?))
    }

    #[inline(never)]
    fn with(
        &self,
        other: &Operand,
        op: fn(&wgrad::Tensor, wgrad::Operand) -> wgrad::Result<wgrad::Tensor>,
    ) -> Result<Tensor> {
        let tensor = self.get()?;
        let other = other.beside(tensor.dtype())?;
        Ok(Tensor::new(op(&tensor, other)?))
    }

    #[inline(never)]
    fn fold(
        &self,
        name: &str,
        axes: &JsValue,
        keepdims: Option<bool>,
        op: fn(&wgrad::Tensor, Axes) -> wgrad::Result<wgrad::Tensor>,
    ) -> Result<Tensor> {
        let axes = self::axes(name, axes)?.keepdims(keepdims.unwrap_or(false));
        Ok(Tensor::new(op(&self.get()?, axes)?))
    }
}

/// Methods without arguments.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $js:literal;)*) => {
        #[wasm_bindgen]
        impl Tensor {$(
            $(#[$doc])*
            #[wasm_bindgen(js_name = $js)]
            pub fn $name(&self) -> Result<Tensor> {
                self.map(wgrad::Tensor::$name)
            }
        )*}
    };
}
// The first becomes `neg(): Tensor`, which calls `wgrad::Tensor::negative`.
unary! {
    /// `-x`.
    negative = "neg";
    /// The absolute value.
    abs = "abs";
    /// `e^x`.
    exp = "exp";
    /// The natural logarithm.
    log = "log";
    /// `e^x - 1`, exact near 0.
    expm1 = "expm1";
    /// `log(1 + x)`, exact near 0.
    log1p = "log1p";
    /// The square root.
    sqrt = "sqrt";
    /// `1 / sqrt(x)`.
    rsqrt = "rsqrt";
    /// The real cube root, also of negative numbers.
    cbrt = "cbrt";
    /// `x^2`.
    square = "square";
    /// `1 / x`.
    reciprocal = "reciprocal";
    /// The sine.
    sin = "sin";
    /// The cosine.
    cos = "cos";
    /// The tangent.
    tan = "tan";
    /// The angle in radians whose sine is `x`.
    asin = "asin";
    /// The angle in radians whose cosine is `x`.
    acos = "acos";
    /// The angle in radians whose tangent is `x`.
    atan = "atan";
    /// The hyperbolic sine.
    sinh = "sinh";
    /// The hyperbolic cosine.
    cosh = "cosh";
    /// The hyperbolic tangent.
    tanh = "tanh";
    /// The inverse of `sinh`.
    asinh = "asinh";
    /// The inverse of `cosh`.
    acosh = "acosh";
    /// The inverse of `tanh`.
    atanh = "atanh";
    /// `1 / (1 + e^-x)`.
    sigmoid = "sigmoid";
    /// `log(1 + e^x)`.
    softplus = "softplus";
    /// `max(x, 0)`.
    relu = "relu";
    /// `x` above 0, `e^x - 1` below.
    elu = "elu";
    /// `1.0507 x` above 0, `1.7581 (e^x - 1)` below.
    selu = "selu";
    /// `x / (1 + |x|)`.
    softsign = "softsign";
    /// The error function.
    erf = "erf";
    /// `1 - erf(x)`.
    erfc = "erfc";
    /// `log |gamma(x)|`.
    lgamma = "lgamma";
    /// The derivative of `lgamma`.
    digamma = "digamma";
    /// The inverse of `erf`.
    erfinv = "erfinv";
    /// The inverse of the normal distribution.
    ndtri = "ndtri";
    /// The modified Bessel function of order 0.
    bessel_i0 = "besselI0";
    /// `e^-|x|` times the modified Bessel function of order 0.
    bessel_i0e = "besselI0e";
    /// The modified Bessel function of order 1.
    bessel_i1 = "besselI1";
    /// `e^-|x|` times the modified Bessel function of order 1.
    bessel_i1e = "besselI1e";
    /// `1 / x`, 0 where `x` is 0.
    reciprocal_no_nan = "reciprocalNoNan";
    /// All bits inverted.
    invert = "bitwiseNot";
    /// The number of bits that are 1.
    population_count = "populationCount";
    /// The largest whole number that is not above `x`.
    floor = "floor";
    /// The smallest whole number that is not below `x`.
    ceil = "ceil";
    /// The nearest whole number; halves round to the even one.
    round = "round";
    /// The nearest whole number, for floats only; halves round to the even one.
    rint = "rint";
    /// -1, 0 or 1.
    sign = "sign";
    /// Whether elements are NaN.
    is_nan = "isNaN";
    /// Whether elements are infinite.
    is_inf = "isInf";
    /// Whether elements are neither infinite nor NaN.
    is_finite = "isFinite";
    /// The logical negation.
    logical_not = "not";
    /// `min(max(x, 0), 6)`.
    relu6 = "relu6";
    /// `x` times the normal distribution function of `x`.
    gelu = "gelu";
    /// `x sigmoid(x)`, also called swish.
    silu = "silu";
    /// `x tanh(softplus(x))`.
    mish = "mish";
    /// `relu6(x + 3) / 6`.
    hard_sigmoid = "hardSigmoid";
    /// `log(sigmoid(x))`.
    log_sigmoid = "logSigmoid";
    /// Zeros of the same shape and dtype.
    zeros_like = "zerosLike";
    /// Ones of the same shape and dtype.
    ones_like = "onesLike";
}

/// The names of TensorFlow.js for methods that have another name here.
macro_rules! also {
    ($($way:ident $name:ident = $js:literal, $short:literal: $op:ident $(($other:ident))?;)*) => {
        #[wasm_bindgen]
        impl Tensor {$(
            #[doc = concat!("As `", $short, "`.")]
            #[wasm_bindgen(js_name = $js)]
            pub fn $name(&self $(, $other: &Operand)?) -> Result<Tensor> {
                self.$way($($other,)? wgrad::Tensor::$op)
            }
        )*}
    };
}
also! {
    map not_too = "logicalNot", "not": logical_not;
    with and_too = "logicalAnd", "and": logical_and (other);
    with or_too = "logicalOr", "or": logical_or (other);
    with xor_too = "logicalXor", "xor": logical_xor (other);
}

/// Methods of two tensors, broadcast against each other.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident = $js:literal;)*) => {
        #[wasm_bindgen]
        impl Tensor {$(
            $(#[$doc])*
            #[wasm_bindgen(js_name = $js)]
            pub fn $name(&self, other: &Operand) -> Result<Tensor> {
                self.with(other, wgrad::Tensor::$name)
            }
        )*}
    };
}
// The first becomes `add(other: Operand): Tensor`, which calls `wgrad::Tensor::add`.
binary! {
    /// The sum; a number, or a tensor whose shape broadcasts.
    add = "add";
    /// The difference.
    subtract = "sub";
    /// The product, element by element.
    multiply = "mul";
    /// The quotient.
    divide = "div";
    /// The quotient, 0 where `other` is 0.
    divide_no_nan = "divNoNan";
    /// The product, 0 where `other` is 0.
    multiply_no_nan = "mulNoNan";
    /// The quotient, 0 where `x` is 0.
    xdivy = "xdivy";
    /// `x log(1 + other)`, 0 where `x` is 0.
    xlog1py = "xlog1py";
    /// The quotient of integers, rounded towards 0.
    truncatediv = "truncateDiv";
    /// The remainder, with the sign of `x`.
    truncatemod = "truncateMod";
    /// The bits that are 1 in both.
    bitwise_and = "bitwiseAnd";
    /// The bits that are 1 in one or both.
    bitwise_or = "bitwiseOr";
    /// The bits that differ.
    bitwise_xor = "bitwiseXor";
    /// The bits shifted left by `other`.
    left_shift = "leftShift";
    /// The bits shifted right by `other`.
    right_shift = "rightShift";
    /// The quotient, rounded down.
    floordiv = "floorDiv";
    /// `log(e^x + e^other)`, stable for every number.
    logaddexp = "logAddExp";
    /// `x` to the power `other`.
    pow = "pow";
    /// The remainder, with the sign of `other`.
    floormod = "mod";
    /// The larger of two elements.
    maximum = "maximum";
    /// The smaller of two elements.
    minimum = "minimum";
    /// `(x - other)^2`.
    squared_difference = "squaredDifference";
    /// The angle in radians of the point with y coordinate `x` and x coordinate `other`.
    atan2 = "atan2";
    /// `x log(other)`, and 0 where `x` is 0.
    xlogy = "xlogy";
    /// Whether elements are equal.
    equal = "equal";
    /// Whether elements differ.
    not_equal = "notEqual";
    /// Whether elements are larger than the other's.
    greater = "greater";
    /// Whether elements are as large as the other's or larger.
    greater_equal = "greaterEqual";
    /// Whether elements are smaller than the other's.
    less = "less";
    /// Whether elements are as small as the other's or smaller.
    less_equal = "lessEqual";
    /// Whether both are true.
    logical_and = "and";
    /// Whether at least one is true.
    logical_or = "or";
    /// Whether exactly one is true.
    logical_xor = "xor";
}

/// Reductions along axes.
macro_rules! reduce {
    ($($(#[$doc:meta])* $name:ident = $js:literal;)*) => {
        #[wasm_bindgen]
        impl Tensor {$(
            $(#[$doc])*
            #[wasm_bindgen(js_name = $js)]
            pub fn $name(
                &self,
                #[wasm_bindgen(unchecked_optional_param_type = "number | readonly number[] | null")]
                axes: &JsValue,
                #[wasm_bindgen(unchecked_optional_param_type = "boolean")] keepdims: Option<bool>,
            ) -> Result<Tensor> {
                self.fold($js, axes, keepdims, wgrad::Tensor::$name)
            }
        )*}
    };
}
// The first becomes `sum(axes?, keepdims?): Tensor`, which calls `wgrad::Tensor::reduce_sum`.
reduce! {
    /// The sum along axes, by default all of them. `keepdims` keeps them with size 1.
    reduce_sum = "sum";
    /// The largest element along axes.
    reduce_max = "max";
    /// The smallest element along axes.
    reduce_min = "min";
    /// The product along axes.
    reduce_prod = "prod";
    /// The standard deviation along axes.
    reduce_std = "std";
    /// The variance along axes.
    reduce_variance = "variance";
    /// `log(sum(e^x))` along axes.
    reduce_logsumexp = "logSumExp";
    /// The square root of the sum of squares along axes.
    reduce_euclidean_norm = "euclideanNorm";
    /// Whether any element along axes is true.
    reduce_any = "any";
    /// Whether all elements along axes are true.
    reduce_all = "all";
}

#[wasm_bindgen]
impl Tensor {
    /// The mean along axes. For integers and booleans it is a `float32`, as in TensorFlow.js.
    pub fn mean(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "number | readonly number[] | null")]
        axes: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "boolean")] keepdims: Option<bool>,
    ) -> Result<Tensor> {
        self.fold("mean", axes, keepdims, |x, axes| match x.dtype().is_float() {
            true => x.reduce_mean(axes),
            false => x.cast(wgrad::DType::F32)?.reduce_mean(axes),
        })
    }

    /// The index of the largest element along an axis; by default the first axis, whereas `argmax` uses the last.
    #[wasm_bindgen(js_name = argMax)]
    pub fn arg_max(&self, axis: Option<i32>) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.argmax(axis.unwrap_or(0))?))
    }

    /// The index of the smallest element along an axis; by default the first axis, whereas `argmin` uses the last.
    #[wasm_bindgen(js_name = argMin)]
    pub fn arg_min(&self, axis: Option<i32>) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.argmin(axis.unwrap_or(0))?))
    }

    /// `x` above 0, `alpha x` below; by default `alpha` is 0.2.
    #[wasm_bindgen(js_name = leakyRelu)]
    pub fn leaky_relu(&self, alpha: Option<f32>) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.leaky_relu(alpha.unwrap_or(0.2))?))
    }

    /// `x`, with 0 in place of NaN and the largest and the lowest numbers in place of the infinities, or other numbers.
    #[wasm_bindgen(js_name = nanToNum)]
    pub fn nan_to_num(
        &self,
        nan: Option<f32>,
        posinf: Option<f32>,
        neginf: Option<f32>,
    ) -> Result<Tensor> {
        let options = NanToNumOptions::new().nan(nan.unwrap_or(0.0)).posinf(posinf).neginf(neginf);
        Ok(Tensor::new(self.get()?.nan_to_num_with(options)?))
    }

    /// `log softmax(x)` along an axis; by default the last.
    #[wasm_bindgen(js_name = logSoftmax)]
    pub fn log_softmax(&self, axis: Option<i32>) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.log_softmax(axis.unwrap_or(-1))?))
    }

    /// The index of the smallest element along an axis; by default the last.
    pub fn argmin(&self, axis: Option<i32>) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.argmin(axis.unwrap_or(-1))?))
    }

    /// The cumulative sums along an axis; by default the first.
    pub fn cumsum(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "number | null")] axis: Option<i32>,
        #[wasm_bindgen(
            unchecked_optional_param_type = "{ exclusive?: boolean; reverse?: boolean }"
        )]
        options: &JsValue,
    ) -> Result<Tensor> {
        let sums = sums("cumsum", options)?;
        Ok(Tensor::new(self.get()?.cumsum_with(axis.unwrap_or(0), sums)?))
    }

    /// The matrix product along the last two axes; either side can be transposed first.
    pub fn matmul(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Tensor | Variable")] other: &Operand,
        #[wasm_bindgen(
            unchecked_optional_param_type = "{ transposeA?: boolean; transposeB?: boolean }"
        )]
        options: &JsValue,
    ) -> Result<Tensor> {
        let options = Options::new("matmul", options, &["transposeA", "transposeB"])?;
        let flag = |key| Ok::<_, crate::error::Thrown>(options.bool(key)?.unwrap_or(false));
        let (a, b) = (flag("transposeA")?, flag("transposeB")?);
        Ok(Tensor::new(self.get()?.matmul_with(
            other.get()?,
            wgrad::MatmulOptions::new().transpose_a(a).transpose_b(b),
        )?))
    }

    /// Permutes the axes; by default reverses them.
    pub fn transpose(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "readonly number[]")] perm: &JsValue,
    ) -> Result<Tensor> {
        let perm = match perm.is_undefined() {
            true => Vec::new(),
            false => integers("transpose", perm)?,
        };
        Ok(Tensor::new(self.get()?.transpose(&perm)?))
    }

    /// Converts the elements to another dtype.
    pub fn cast(
        &self,
        #[wasm_bindgen(unchecked_param_type = "DType")] dtype: &str,
    ) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.cast(self::dtype(dtype)?)?))
    }

    /// The part that begins at `begin` and has the size `size`; -1 extends to the end of an axis.
    pub fn slice(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] begin: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] size: &JsValue,
    ) -> Result<Tensor> {
        let begin = crate::args::sizes("slice", "begin", begin)?;
        Ok(Tensor::new(self.get()?.slice(&begin, &integers("slice", size)?)?))
    }

    /// The slices with these `indices` along an axis; by default the first.
    pub fn gather(&self, indices: &Tensor, axis: Option<i32>) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.gather(&indices.get()?, axis.unwrap_or(0))?))
    }

    /// The elements of `a` where this tensor is true, and those of `b` elsewhere.
    pub fn select(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Tensor | Variable")] a: &Operand,
        #[wasm_bindgen(unchecked_param_type = "Tensor | Variable")] b: &Operand,
    ) -> Result<Tensor> {
        Ok(Tensor::new(wgrad::where_(&self.get()?, &a.get()?, &b.get()?)?))
    }

    /// One row per element, with a 1 at the index that the element specifies and 0 elsewhere.
    #[wasm_bindgen(js_name = oneHot)]
    pub fn one_hot(&self, depth: usize) -> Result<Tensor> {
        Ok(Tensor::new(wgrad::one_hot(&self.get()?, depth)?))
    }

    /// Convolves images `[N,H,W,C]` with filters `[h,w,C,F]`.
    pub fn conv2d(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Tensor | Variable")] filters: &Operand,
        #[wasm_bindgen(
            unchecked_optional_param_type = "{ strides?: Pair; padding?: Padding; dilations?: Pair }"
        )]
        options: &JsValue,
    ) -> Result<Tensor> {
        let options = Options::new("conv2d", options, &["strides", "padding", "dilations"])?;
        let options = Conv2dOptions::new()
            .strides(options.pair("strides")?.unwrap_or([1, 1]))
            .padding(padding(&options)?)
            .dilations(options.pair("dilations")?.unwrap_or([1, 1]));
        Ok(Tensor::new(self.get()?.conv2d(filters.get()?, options)?))
    }

    /// The largest sum of an element and its tap in each window of images `[N,H,W,C]`, for filters `[h,w,C]`.
    pub fn dilation2d(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Tensor | Variable")] filters: &Operand,
        #[wasm_bindgen(
            unchecked_optional_param_type = "{ strides?: Pair; padding?: Padding; dilations?: Pair }"
        )]
        options: &JsValue,
    ) -> Result<Tensor> {
        let options = Options::new("dilation2d", options, &["strides", "padding", "dilations"])?;
        let options = Conv2dOptions::new()
            .strides(options.pair("strides")?.unwrap_or([1, 1]))
            .padding(padding(&options)?)
            .dilations(options.pair("dilations")?.unwrap_or([1, 1]));
        Ok(Tensor::new(self.get()?.dilation2d(&filters.get()?, options)?))
    }

    /// The largest element of each window and channel of images `[N,H,W,C]`; by default in windows of 2 by 2.
    #[wasm_bindgen(js_name = maxPool2d)]
    pub fn max_pool2d(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "Omit<PoolingOptions, keyof LayerOptions>")]
        options: &JsValue,
    ) -> Result<Tensor> {
        let (window, options) = pooling("maxPool2d", options)?;
        Ok(Tensor::new(self.get()?.max_pool2d(window, options)?))
    }

    /// The mean of each window and channel of images `[N,H,W,C]`; by default in windows of 2 by 2.
    #[wasm_bindgen(js_name = avgPool2d)]
    pub fn avg_pool2d(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "Omit<PoolingOptions, keyof LayerOptions>")]
        options: &JsValue,
    ) -> Result<Tensor> {
        let (window, options) = pooling("avgPool2d", options)?;
        Ok(Tensor::new(self.get()?.avg_pool2d(window, options)?))
    }

    /// `-log softmax(x)[label]` of each row of logits `[N,C]`, for labels `[N]`.
    #[wasm_bindgen(js_name = sparseSoftmaxCrossEntropy)]
    pub fn sparse_softmax_cross_entropy(&self, labels: &Tensor) -> Result<Tensor> {
        let losses = wgrad::sparse_softmax_cross_entropy_with_logits(&labels.get()?, &self.get()?)?;
        Ok(Tensor::new(losses))
    }

    /// The same value; no gradient flows through it.
    #[wasm_bindgen(js_name = stopGradient)]
    pub fn stop_gradient(&self) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.stop_gradient()))
    }
}

/// The options of cumulative sums and products.
pub(crate) fn sums(op: &'static str, options: &JsValue) -> Result<CumsumOptions> {
    let options = Options::new(op, options, &["exclusive", "reverse"])?;
    let flag = |key| Ok::<_, crate::error::Thrown>(options.bool(key)?.unwrap_or(false));
    Ok(CumsumOptions::new().exclusive(flag("exclusive")?).reverse(flag("reverse")?))
}

pub(crate) fn axes(op: &str, value: &JsValue) -> Result<Axes> {
    if value.is_undefined() || value.is_null() {
        return Ok(Axes::ALL);
    }
    match value.as_f64() {
        Some(axis) if axis as i64 as f64 == axis => Ok((axis as i64).into()),
        Some(axis) => Err(bad_type(format!("{op}: {axis} is not an axis."))),
        None => Ok(integers(op, value)?.as_slice().into()),
    }
}

fn pooling(op: &'static str, value: &JsValue) -> Result<([usize; 2], Pool2dOptions)> {
    let options = Options::new(op, value, &["poolSize", "strides", "padding"])?;
    let window = options.pair("poolSize")?.unwrap_or([2, 2]);
    let strides = options.pair("strides")?.unwrap_or(window);
    Ok((window, Pool2dOptions::new().strides(strides).padding(padding(&options)?)))
}
