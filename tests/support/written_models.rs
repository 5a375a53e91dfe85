//! Models of every family of layers and ops, which tests write as SavedModels and others read.

use std::path::Path;

use wgrad as tf;
use wgrad::keras::Activation;
use wgrad::keras::layers::{
    AveragePooling2D, BatchNormalization, Bidirectional, Conv1D, Conv2D, Conv2DTranspose, Conv3D,
    ConvLstm1D, Dense, DepthwiseConv2D, Dropout, Embedding, Flatten, GlobalAveragePooling1D,
    GlobalAveragePooling2D, GroupNormalization, Gru, GruCell, Layer, LayerNormalization, Lstm,
    LstmCell, MaxPooling2D, MultiHeadAttention, Rnn, SeparableConv2D, SimpleRnn, StackedRnnCells,
    UpSampling2D,
};
use wgrad::keras::{INFERENCE, Sequential};
use wgrad::onnx::OnnxSaveOptions;
use wgrad::saved_model::{self, Signature};
use wgrad::{DType, HostArray, Padding, Tensor, TensorSpec, Trackable, Variable};

/// What a model's function computes.
type Body = Box<dyn Fn(&[Tensor]) -> tf::Result<Vec<Tensor>>>;

/// A model with one function.
pub struct Written {
    pub name: &'static str,
    pub root: Box<dyn Trackable>,
    pub inputs: Vec<TensorSpec>,
    pub body: Body,
    /// Whether its gradients are compared: it has variables, and changes none.
    pub trains: bool,
    /// The least and the most of random inputs.
    pub range: (f32, f32),
}

fn f32s(sizes: &[Option<usize>]) -> TensorSpec {
    TensorSpec::new(sizes, DType::F32)
}

/// Images of a batch of any size.
fn batch(sizes: &[usize]) -> TensorSpec {
    let all: Vec<Option<usize>> =
        [None].into_iter().chain(sizes.iter().copied().map(Some)).collect();
    f32s(&all)
}

fn sequential(name: &'static str, input: TensorSpec, model: Sequential) -> Written {
    let model = std::sync::Arc::new(model);
    let own = model.clone();
    Written {
        name,
        root: Box::new(model),
        inputs: vec![input],
        body: Box::new(move |x| Ok(vec![own.call(&x[0], INFERENCE)?])),
        trains: true,
        range: (-1.0, 1.0),
    }
}

fn function(
    name: &'static str,
    inputs: &[TensorSpec],
    body: impl Fn(&[Tensor]) -> tf::Result<Vec<Tensor>> + 'static,
) -> Written {
    Written {
        name,
        root: Box::new(Vec::<Variable>::new()),
        inputs: inputs.to_vec(),
        body: Box::new(body),
        trains: false,
        range: (-1.0, 1.0),
    }
}

fn ids(sizes: &[Option<usize>]) -> TensorSpec {
    TensorSpec::new(sizes, DType::I32)
}

/// All models; each call makes the same ones.
pub fn all() -> Vec<Written> {
    tf::random::set_seed(5);
    let same = Padding::Same;
    let mut models = vec![
        sequential(
            "mlp",
            batch(&[6]),
            Sequential::new()
                .add(Dense::new(8).activation(Activation::Gelu))
                .add(Dropout::new(0.4))
                .add(Dense::new(3).activation(Activation::Softmax)),
        ),
        sequential(
            "cnn",
            batch(&[12, 12, 3]),
            Sequential::new()
                .add(Conv2D::new(4, [3, 3]).padding(same).activation(Activation::Relu))
                .add(BatchNormalization::new())
                .add(MaxPooling2D::new([2, 2]))
                .add(Conv2D::new(6, [3, 3]).strides([2, 2]))
                .add(AveragePooling2D::new([2, 2]))
                .add(Flatten::new())
                .add(Dense::new(5)),
        ),
        sequential(
            "mobile",
            batch(&[9, 9, 4]),
            Sequential::new()
                .add(SeparableConv2D::new(6, [3, 3]).padding(same).activation(Activation::Silu))
                .add(DepthwiseConv2D::new([3, 3]).depth_multiplier(2).padding(same))
                .add(DepthwiseConv2D::new([3, 3]).dilation_rate([2, 2]).padding(same))
                .add(GlobalAveragePooling2D::new())
                .add(Dense::new(3)),
        ),
        // Images of any size.
        sequential(
            "unet",
            f32s(&[None, None, None, Some(2)]),
            Sequential::new()
                .add(Conv2D::new(4, [3, 3]).padding(same).activation(Activation::LeakyRelu(0.2)))
                .add(GroupNormalization::new().groups(2))
                .add(UpSampling2D::new([2, 2]))
                .add(Conv2D::new(1, [1, 1]).activation(Activation::Sigmoid)),
        ),
        // Images of any size, whose mean is over a rounded number of places.
        sequential(
            "strided",
            f32s(&[None, None, None, Some(3)]),
            Sequential::new()
                .add(Conv2D::new(4, [3, 3]).strides([2, 2]).padding(same).use_bias(false))
                .add(BatchNormalization::new())
                .add(MaxPooling2D::new([3, 3]).strides([2, 2]).padding(same))
                .add(DepthwiseConv2D::new([2, 2]).strides([2, 2]).activation(Activation::Silu))
                .add(GlobalAveragePooling2D::new())
                .add(Dense::new(3)),
        ),
        sequential(
            "transposed",
            batch(&[5, 5, 2]),
            Sequential::new()
                .add(Conv2DTranspose::new(3, [3, 3]).strides([2, 2]).padding(same))
                .add(Conv2DTranspose::new(2, [2, 2])),
        ),
        sequential(
            "conv1d",
            batch(&[12, 3]),
            Sequential::new()
                .add(Conv1D::new(4, 3).padding(Padding::Same).activation(Activation::Tanh))
                .add(LayerNormalization::new())
                .add(GlobalAveragePooling1D::new())
                .add(Dense::new(2)),
        ),
        sequential(
            "conv3d",
            batch(&[5, 6, 6, 2]),
            Sequential::new().add(Conv3D::new(3, [2, 2, 2])).add(Flatten::new()).add(Dense::new(2)),
        ),
        sequential(
            "lstm",
            batch(&[7, 5]),
            Sequential::new()
                .add(Bidirectional::new(Lstm::new(4).return_sequences(true)))
                .add(Lstm::new(3))
                .add(Dense::new(2)),
        ),
        sequential(
            "gru",
            f32s(&[None, None, Some(5)]),
            Sequential::new().add(Gru::new(4).return_sequences(true)).add(SimpleRnn::new(3)),
        ),
        sequential(
            "cells",
            f32s(&[None, None, Some(5)]),
            Sequential::new()
                .add(
                    Rnn::new(StackedRnnCells::new().add(LstmCell::new(4)).add(GruCell::new(3)))
                        .return_sequences(true),
                )
                .add(Lstm::new(3).activation(Activation::Relu).go_backwards(true).unroll(false)),
        ),
        sequential(
            "films",
            f32s(&[None, Some(3), Some(5), Some(2)]),
            Sequential::new().add(ConvLstm1D::new(3, [2]).padding(Padding::Same)),
        ),
    ];
    let text = Sequential::new()
        .add(Embedding::new(11, 6).mask_zero(true))
        .add(Bidirectional::new(Gru::new(4).return_sequences(true)))
        .add(Lstm::new(4))
        .add(Dense::new(1));
    models.push(sequential("text", ids(&[None, None]), text));
    models.push(transformer());
    models.extend(functions());
    models
}

fn transformer() -> Written {
    #[derive(Trackable)]
    struct Block {
        embedding: Embedding,
        attention: MultiHeadAttention,
        norm: LayerNormalization,
        wide: Dense,
        narrow: Dense,
    }
    let block = std::sync::Arc::new(Block {
        embedding: Embedding::new(11, 8),
        attention: MultiHeadAttention::new(2, 4).use_causal_mask(true),
        norm: LayerNormalization::new(),
        wide: Dense::new(16).activation(Activation::Relu),
        narrow: Dense::new(8),
    });
    let own = block.clone();
    let body = move |x: &[Tensor]| {
        let x = own.embedding.call(&x[0], INFERENCE)?;
        let seen = own.attention.call(&[x.clone(), x.clone()][..], INFERENCE)?;
        let x = own.norm.call(&x.add(&seen)?, INFERENCE)?;
        let more = own.narrow.call(&own.wide.call(&x, INFERENCE)?, INFERENCE)?;
        Ok(vec![x.add(&more)?])
    };
    Written {
        name: "transformer",
        root: Box::new(block),
        // Sequences of any length.
        inputs: vec![ids(&[None, None])],
        body: Box::new(body),
        trains: true,
        range: (0.0, 10.0),
    }
}

/// Images of any size after windows with strides: their places in one axis, means over them, numbers of rows, and a crop.
fn windows(x: &[Tensor]) -> tf::Result<Vec<Tensor>> {
    let x = &x[0];
    let filters = tf::linspace(-0.4, 0.6, 54)?.reshape([3, 3, 2, 3])?;
    let options = tf::Conv2dOptions::new().strides([3, 2]).padding(tf::Padding::Same);
    let y = x.conv2d(&filters, options)?;
    let [n, h, w] = [y.shape()[0], y.shape()[1], y.shape()[2]];
    let tokens = y.reshape([n, h * w, 3])?;
    let scores = tokens.matmul_with(&tokens, tf::MatmulOptions::new().transpose_a(true))?;
    let small = y.avg_pool2d([2, 2], tf::Pool2dOptions::new())?;
    let twice = UpSampling2D::new([2, 2]).call(&small, INFERENCE)?;
    // What is left over at the edges, if the sizes are odd, and one more: no padding would be no call.
    let edges = [(0, 0), (0, h + 1 - twice.shape()[1]), (0, w + 1 - twice.shape()[2]), (0, 0)];
    let places = tf::Tensor::ones([h])?.cumsum(0)?.reshape([1, h, 1, 1])?;
    Ok(vec![
        tokens.matmul(scores.softmax(-1)?)?,
        twice.pad(&edges)?.add(y.pad(&[(0, 0), (0, 1), (0, 1), (0, 0)])?)?,
        y.slice(&[0, 0, 0, 0], &[-1, small.shape()[1] as i64, -1, 1])?,
        y.reduce_variance([1, 2])?,
        small.reduce_mean([1, 2])?.multiply((h * w) as f32)?,
        y.add(&places)?.reduce_mean([0, 1])?,
        tf::Tensor::ones([small.shape()[1] + 1, 2])?,
    ])
}

fn functions() -> Vec<Written> {
    let rows = batch(&[4]);
    let count = Variable::untrainable(tf::constant(0).unwrap());
    let sums = count.clone();
    vec![
        function("rows", &[batch(&[6])], |x| {
            let x = &x[0];
            let (largest, places) = x.top_k(3)?;
            Ok(vec![
                x.sort(-1)?,
                largest,
                places,
                x.argsort_with(-1, tf::SortOptions::new().descending(true))?,
                x.cumsum(1)?,
                x.argmax(-1)?,
                x.reverse([1])?,
                x.roll(&[2], 1)?,
                x.reduce_mean(0)?,
                x.reduce_variance(())?,
            ])
        }),
        function("slices", &[batch(&[6, 5])], |x| {
            let x = &x[0];
            use wgrad::ndarray::s;
            Ok(vec![
                x.strided_slice(s![.., 1..;2, ..;-1])?,
                x.strided_slice(s![-1, .., 2])?,
                x.pad(&[(0, 0), (2, 1), (0, 3)])?,
                tf::concat([x, &x.multiply(2.0)?], 0)?,
                tf::stack(&[x.clone(), x.square()?], 1)?,
                x.transpose([2, 0, 1])?,
                x.gather(&tf::constant([4, 0, 4])?, 2)?,
                x.expand_dims(1)?.broadcast_to([x.shape()[0], 2, 6, 5])?,
                x.reshape([-1, 10])?,
            ])
        }),
        function("math", &[rows.clone(), rows.clone()], |x| {
            let (a, b) = (&x[0], &x[1]);
            Ok(vec![
                a.exp()?.add(b.log1p()?.abs()?)?,
                a.pow(2.0)?.divide(b.add(3.0)?)?,
                a.erf()?.multiply(b.tanh()?)?,
                a.maximum(b)?.subtract(a.minimum(b)?)?,
                a.floordiv(b.add(2.0)?)?,
                a.less(b)?.logical_xor(a.greater(0.0)?)?,
                tf::where_(&a.greater(b)?, a, b)?,
                a.cbrt()?,
                a.softplus()?.rsqrt()?,
                a.cast(DType::I32)?.floormod(3)?,
                a.clip_by_value(-0.5, 0.5)?,
            ])
        }),
        function("matrices", &[batch(&[4, 4])], |x| {
            let x = &x[0];
            let square = x.matmul_with(x, tf::MatmulOptions::new().transpose_b(true))?;
            let positive = square.add(tf::Tensor::eye(4)?.multiply(3.0)?)?;
            let root = tf::linalg::cholesky(&positive)?;
            Ok(vec![
                root.clone(),
                tf::linalg::triangular_solve(&root, x)?,
                tf::linalg::band_part(x, 1, 0)?,
                tf::linalg::tril(x, -1)?,
                tf::linalg::diag_part(x)?,
                tf::einsum("bij,bjk->bik", [x, x])?,
            ])
        }),
        function("segments", &[batch(&[3]), ids(&[None])], |x| {
            Ok(vec![
                x[0].unsorted_segment_sum(&x[1], 4)?,
                x[0].unsorted_segment_max(&x[1], 4)?,
                tf::one_hot(&x[1], 4)?,
            ])
        }),
        function("sums", &[batch(&[3]), ids(&[None])], |x| {
            Ok(vec![
                x[0].unsorted_segment_sum(&x[1], 4)?,
                x[0].sort(-1)?.searchsorted(
                    &tf::constant([0.0, 0.5])?
                        .expand_dims(0)?
                        .broadcast_to([x[0].shape()[0], 2])?,
                    wgrad::Side::Left,
                )?,
            ])
        }),
        function("resized", &[batch(&[6, 5, 3])], |x| {
            use wgrad::image::{ResizeMethod, ResizeOptions, resize, resize_with};
            let cubic = ResizeOptions::new().method(ResizeMethod::Bicubic);
            let nearest = ResizeOptions::new().method(ResizeMethod::NearestNeighbor);
            Ok(vec![
                resize(&x[0], [9, 8])?,
                resize_with(&x[0], [9, 7], cubic)?,
                resize_with(&x[0], [4, 9], nearest)?,
            ])
        }),
        function("windows", &[f32s(&[None, None, None, Some(2)])], windows),
        function("triangles", &[batch(&[4, 4])], |x| {
            let x = &x[0];
            Ok(vec![
                tf::linalg::band_part(x, 1, 0)?,
                tf::linalg::tril(x, -1)?,
                tf::linalg::diag_part(x)?,
                tf::linalg::diag(&x.reduce_sum(-1)?)?,
                tf::einsum("bij,bjk->bik", [x, x])?,
                tf::linalg::det(x)?,
            ])
        }),
        function("signals", &[batch(&[8])], |x| {
            let spectrum = tf::signal::rfft(&x[0])?;
            Ok(vec![spectrum.clone(), tf::signal::fft(&spectrum)?, tf::signal::frame(&x[0], 4, 2)?])
        }),
        function("images", &[batch(&[6, 5, 3])], |x| {
            use wgrad::image::{ResizeMethod, ResizeOptions, resize, resize_with};
            let small = ResizeOptions::new().method(ResizeMethod::Lanczos3).antialias(true);
            Ok(vec![
                resize(&x[0], [9, 8])?,
                resize_with(&x[0], [3, 4], small)?,
                resize_with(
                    &x[0],
                    [4, 9],
                    ResizeOptions::new().method(ResizeMethod::NearestNeighbor),
                )?,
            ])
        }),
        function("cond", &[f32s(&[None])], |x| {
            let x = &x[0];
            let positive = x.reduce_sum(())?.greater(0.0)?;
            let chosen = tf::cond(&positive, || x.multiply(2.0), || x.subtract(1.0))?;
            Ok(vec![chosen])
        }),
        function("cases", &[f32s(&[None]), ids(&[])], |x| {
            let values = x[0].clone();
            let values = &values;
            let scaled = |factor: f32| -> tf::Branch<'_, Tensor> {
                Box::new(move || values.multiply(factor))
            };
            let branches = vec![scaled(1.0), scaled(2.0), scaled(3.0)];
            let chosen = tf::switch_case(&x[1], branches)?;
            Ok(vec![chosen])
        }),
        function("nested", &[f32s(&[None]), ids(&[])], |x| {
            let (values, turns) = (x[0].clone(), x[1].clone());
            let limit = tf::WhileLoopOptions::new().maximum_iterations(3);
            let inner = move |y: &Tensor| -> tf::Result<Tensor> {
                let start = (tf::constant(0)?, y.clone());
                let (_, y) = tf::while_loop(
                    |(i, _): &(Tensor, Tensor)| i.less(2),
                    |(i, y): (Tensor, Tensor)| Ok((i.add(1)?, y.add(1.0)?)),
                    start,
                )?;
                Ok(y)
            };
            let (_, y) = tf::while_loop_with(
                move |(i, _): &(Tensor, Tensor)| i.less(turns.add(5)?),
                move |(i, y): (Tensor, Tensor)| Ok((i.add(1)?, inner(&y)?.multiply(0.5)?)),
                (tf::constant(0)?, values),
                limit,
            )?;
            Ok(vec![y])
        }),
        function("loop", &[f32s(&[None]), ids(&[])], |x| {
            let (values, turns) = (x[0].clone(), x[1].clone());
            let start = (tf::constant(0)?, values.clone());
            let (_, grown) = tf::while_loop(
                move |(i, _): &(Tensor, Tensor)| i.less(&turns),
                move |(i, y): (Tensor, Tensor)| Ok((i.add(1)?, y.multiply(0.5)?.add(&values)?)),
                start,
            )?;
            Ok(vec![grown])
        }),
        Written {
            name: "counter",
            root: Box::new(vec![count]),
            inputs: vec![ids(&[])],
            body: Box::new(move |x| {
                let before = sums.read();
                sums.assign_add(&x[0])?;
                Ok(vec![before, sums.read()])
            }),
            trains: false,
            range: (1.0, 4.0),
        },
    ]
}

impl Written {
    /// Random inputs, with `size` for open sizes.
    pub fn random(&self, size: usize, seed: u64) -> Vec<Tensor> {
        let mut random = fastrand::Rng::with_seed(seed);
        let (low, high) = self.range;
        let array = |spec: &TensorSpec| {
            let own = |(axis, own): (usize, &Option<usize>)| match own {
                Some(own) => *own,
                // Images need room for windows with strides.
                None if axis > 0 && ["strided", "windows"].contains(&self.name) => 5 * size + axis,
                None => size,
            };
            let sizes: Vec<usize> = spec.shape().iter().enumerate().map(own).collect();
            let count: usize = sizes.iter().product();
            let mut number = || low + (high - low) * random.f32();
            let values: Vec<f32> = (0..count).map(|_| number()).collect();
            let tensor = tf::Tensor::from_slice(&values, sizes).unwrap();
            match spec.dtype() {
                DType::I32 if self.trains || self.name == "counter" => tensor
                    .abs()
                    .unwrap()
                    .multiply(if self.name == "text" { 10.0 } else { 1.0 })
                    .unwrap()
                    .cast(DType::I32)
                    .unwrap(),
                DType::I32 => {
                    tensor.add(1.0).unwrap().multiply(1.9).unwrap().cast(DType::I32).unwrap()
                }
                _ => tensor,
            }
        };
        self.inputs.iter().map(array).collect()
    }

    /// The names of the inputs.
    pub fn names(&self) -> Vec<String> {
        (0..self.inputs.len()).map(|at| format!("x{at}")).collect()
    }

    /// Writes it.
    pub fn save(&self, folder: &Path) -> tf::Result<()> {
        let inputs = self.names().into_iter().zip(self.inputs.clone());
        let signature = Signature::new("serving_default", inputs, |x| (self.body)(x));
        saved_model::save(&*self.root, folder, &[signature.function_name("serve")])
    }

    /// Writes it in ONNX's format.
    pub fn save_onnx(&self, path: &Path, external_data: bool) -> tf::Result<()> {
        let inputs = self.names().into_iter().zip(self.inputs.clone());
        let signature = Signature::new(self.name, inputs, |x| (self.body)(x));
        let options = OnnxSaveOptions::new().external_data(external_data);
        tf::onnx::save_with(&*self.root, path, &signature, options)
    }

    /// An op of the file that this crate writes and does not read.
    pub fn lacks_here(&self) -> Option<&'static str> {
        (self.name == "signals").then_some("Complex")
    }

    /// What ONNX lacks of it, as a part of the error.
    pub fn onnx_lacks(&self) -> Option<&'static str> {
        match self.name {
            "counter" => Some("it assigns a variable"),
            "matrices" => {
                Some("Cholesky -> f32[2, 4, 4] has no counterpart in ONNX; MatrixTriangularSolve")
            }
            "segments" => Some("UnsortedSegmentMax -> f32[4, 3] has no counterpart in ONNX"),
            _ => None,
        }
    }

    /// The results of a call before which the variables have the values that they were saved with.
    pub fn restored(&self, inputs: &[Tensor]) -> Vec<HostArray<'static>> {
        let named = self.root.named_variables();
        let before: Vec<Tensor> = named.iter().map(|(_, variable)| variable.read()).collect();
        let results = self.call(inputs);
        for ((_, variable), value) in named.iter().zip(before) {
            variable.assign(value).unwrap();
        }
        results
    }

    pub fn call(&self, inputs: &[Tensor]) -> Vec<HostArray<'static>> {
        let results = (self.body)(inputs).unwrap();
        results.iter().map(|y| HostArray::from_tensor(y).unwrap()).collect()
    }
}
