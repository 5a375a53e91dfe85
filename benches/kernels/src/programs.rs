//! The programs whose kernels are compiled: single ops at the sizes of models, and training steps.

use wgrad as tf;
use wgrad::keras::layers::{
    BatchNormalization, Conv2D, Dense, Embedding, Flatten, Lstm, MaxPooling2D,
};
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Layer, Loss, Sequential, TRAINING};
use wgrad::{
    Conv2dOptions, DType, GradientTape, GruOptions, LstmOptions, NormalizationOptions, Padding,
    Result, Tensor,
};

/// A program and its name; its results are held while its plan is made.
pub struct Program {
    /// Its name in the table.
    pub name: String,
    /// Calls the ops.
    pub run: Box<dyn Fn() -> Result<Vec<Tensor>>>,
}

fn program(name: impl Into<String>, run: impl Fn() -> Result<Vec<Tensor>> + 'static) -> Program {
    Program { name: name.into(), run: Box::new(run) }
}

/// A value in memory, as the input of a program.
fn value(shape: &[usize]) -> Result<Tensor> {
    let x = Tensor::ones(shape.to_vec())?;
    x.device().flush()?;
    Ok(x)
}

fn indices(shape: &[usize]) -> Result<Tensor> {
    let x = Tensor::zeros(shape.to_vec())?.cast(DType::I32)?;
    x.device().flush()?;
    Ok(x)
}

/// The results of `f` and the gradients of its inputs, given a gradient of its result as from the next layer.
fn with_gradients(
    inputs: &[Tensor],
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let dy = value(f(inputs)?.shape())?;
    let tape = GradientTape::new();
    inputs.iter().try_for_each(|x| tape.watch(x))?;
    let y = f(inputs)?;
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let grads = tape.gradient_from(&y, Some(&[&dy]), inputs.as_slice())?;
    Ok(std::iter::once(Some(y)).chain(grads).flatten().collect())
}

/// All programs, in the order of the table.
pub fn all() -> Vec<Program> {
    let mut all = products();
    all.extend(convolutions());
    all.extend(attention());
    all.extend(rows());
    all.extend(movement());
    all.extend(sequences());
    all.extend(steps());
    all
}

fn matmul(name: &str, a: &'static [usize], b: &'static [usize]) -> Program {
    program(format!("matmul {name}"), move || Ok(vec![value(a)?.matmul(&value(b)?)?]))
}

fn products() -> Vec<Program> {
    let mut all = vec![
        matmul("256", &[256, 256], &[256, 256]),
        matmul("512", &[512, 512], &[512, 512]),
        matmul("1024", &[1024, 1024], &[1024, 1024]),
        matmul("2048", &[2048, 2048], &[2048, 2048]),
        matmul("50 x 784 x 100", &[50, 784], &[784, 100]),
        matmul("64 x 512 x 2048", &[64, 512], &[512, 2048]),
        matmul("a token, 4096 x 4096", &[1, 4096], &[4096, 4096]),
        matmul("four tokens, 4096 x 4096", &[4, 4096], &[4096, 4096]),
        matmul("batch of 32, 128 x 64 x 128", &[32, 128, 64], &[32, 64, 128]),
        matmul("a column, 4096", &[4096, 4096], &[4096, 1]),
    ];
    all.push(program("dense 512 with gelu and gradients, batch 256", || {
        let inputs = [value(&[256, 512])?, value(&[512, 512])?, value(&[512])?];
        with_gradients(&inputs, |x| x[0].matmul(&x[1])?.add(&x[2])?.gelu())
    }));
    all.push(program("matmul 1024 in f16", || {
        let a = value(&[1024, 1024])?.cast(DType::F16)?;
        a.device().flush()?;
        Ok(vec![a.matmul(&a)?])
    }));
    all
}

/// A convolution with both gradients.
fn convolution(name: &str, x: [usize; 4], filters: [usize; 4], stride: usize) -> Program {
    program(format!("conv2d {name}, gradients"), move || {
        let options = Conv2dOptions::new().padding(Padding::Same).strides([stride, stride]);
        with_gradients(&[value(&x)?, value(&filters)?], |x| x[0].conv2d(&x[1], options))
    })
}

fn convolutions() -> Vec<Program> {
    let mut all = vec![
        convolution("MNIST 5x5x1, 32", [50, 28, 28, 1], [5, 5, 1, 32], 1),
        convolution("MNIST 5x5x32, 64", [50, 14, 14, 32], [5, 5, 32, 64], 1),
        convolution("ResNet50 7x7x3, 64, /2", [16, 224, 224, 3], [7, 7, 3, 64], 2),
        convolution("ResNet50 1x1x64, 256 at 56", [16, 56, 56, 64], [1, 1, 64, 256], 1),
        convolution("ResNet50 3x3x64, 64 at 56", [16, 56, 56, 64], [3, 3, 64, 64], 1),
        convolution("ResNet50 3x3x128, 128 at 28", [16, 28, 28, 128], [3, 3, 128, 128], 1),
        convolution("ResNet50 3x3x256, 256 at 14", [16, 14, 14, 256], [3, 3, 256, 256], 1),
        convolution("ResNet50 3x3x512, 512 at 7", [16, 7, 7, 512], [3, 3, 512, 512], 1),
        convolution("batch 2, 3x3x512, 512 at 7", [2, 7, 7, 512], [3, 3, 512, 512], 1),
        convolution("CIFAR 3x3x3, 16 at 32", [128, 32, 32, 3], [3, 3, 3, 16], 1),
    ];
    all.push(program("depthwise 3x3x128 at 28, gradients", || {
        let options = Conv2dOptions::new().padding(Padding::Same);
        let inputs = [value(&[16, 28, 28, 128])?, value(&[3, 3, 128, 1])?];
        with_gradients(&inputs, |x| x[0].depthwise_conv2d(&x[1], options))
    }));
    all.push(program("max pooling 2x2 of 50 x 28 x 28 x 32, gradient", || {
        let options = tf::Pool2dOptions::new().strides([2, 2]);
        with_gradients(&[value(&[50, 28, 28, 32])?], |x| x[0].max_pool2d([2, 2], options))
    }));
    all
}

fn attention() -> Vec<Program> {
    let of = |depth: usize, causal: bool| {
        let kind = if causal { ", causal" } else { "" };
        program(format!("attention of heads of {depth}{kind}, gradients"), move || {
            let x = value(&[4, 8, 1024, depth])?;
            let options = tf::AttentionOptions::new().is_causal(causal);
            let inputs = [x.clone(), x.multiply(1.0)?, x.multiply(1.0)?];
            x.device().flush()?;
            with_gradients(&inputs, |x| {
                tf::scaled_dot_product_attention(&x[0], &x[1], &x[2], options.clone())
            })
        })
    };
    vec![
        of(32, false),
        of(64, false),
        of(64, true),
        of(80, false),
        of(96, false),
        of(128, false),
        of(256, false),
    ]
}

fn normalized_by(gamma: &Tensor, beta: &Tensor) -> NormalizationOptions {
    NormalizationOptions::new().scale(gamma.clone()).offset(beta.clone())
}

/// Reductions of rows, and normalizations based on them.
fn rows() -> Vec<Program> {
    let one = |name: &'static str, shape: &'static [usize], f: fn(&Tensor) -> Result<Tensor>| {
        program(name, move || Ok(vec![f(&value(shape)?)?]))
    };
    let layer = |name: &'static str, shape: &'static [usize]| {
        program(name, move || {
            let width = &shape[shape.len() - 1..];
            let inputs = [value(shape)?, value(width)?, value(width)?];
            with_gradients(&inputs, |x| x[0].layer_normalization(-1, normalized_by(&x[1], &x[2])))
        })
    };
    vec![
        one("softmax 4096 x 128", &[4096, 128], |x| x.softmax(-1)),
        one("softmax 4096 x 1024", &[4096, 1024], |x| x.softmax(-1)),
        one("softmax 32 x 50257", &[32, 50_257], |x| x.softmax(-1)),
        one("softmax 1 x 50257", &[1, 50_257], |x| x.softmax(-1)),
        one("sum of 4096 x 1024", &[4096, 1024], |x| x.reduce_sum(())),
        one("sum of rows 4096 x 1024", &[4096, 1024], |x| x.reduce_sum(1)),
        one("sum of columns 4096 x 1024", &[4096, 1024], |x| x.reduce_sum(0)),
        one("argmax of rows 1024 x 1024", &[1024, 1024], |x| x.argmax(1)),
        one("argmax of columns 1024 x 1024", &[1024, 1024], |x| x.argmax(0)),
        one("argmax 1 x 50257", &[1, 50_257], |x| x.argmax(1)),
        one("argmax 32 x 50257", &[32, 50_257], |x| x.argmax(1)),
        one("cumsum of rows 2048 x 2048", &[2048, 2048], |x| x.cumsum(1)),
        layer("layer normalization 4096 x 1024, gradients", &[4096, 1024]),
        program("cross-entropy 512 x 50257, gradient", || {
            let labels = indices(&[512])?;
            with_gradients(&[value(&[512, 50_257])?], |x| {
                tf::sparse_softmax_cross_entropy_with_logits(&labels, &x[0])?.reduce_mean(())
            })
        }),
        program("batch normalization 16 x 28 x 28 x 128, gradients", || {
            let layer = BatchNormalization::new();
            let x = value(&[16, 28, 28, 128])?;
            layer.call(&x, TRAINING)?;
            x.device().flush()?;
            with_gradients(&[x], |x| layer.call(&x[0], TRAINING))
        }),
    ]
}

/// Ops that move elements.
fn movement() -> Vec<Program> {
    vec![
        program("tanh(a*b+c) * sigmoid(a) on 4 M", || {
            let [a, b, c] = [value(&[1 << 22])?, value(&[1 << 22])?, value(&[1 << 22])?];
            Ok(vec![a.multiply(&b)?.add(&c)?.tanh()?.multiply(a.sigmoid()?)?])
        }),
        program("transpose 2048 x 2048", || {
            let x = value(&[2048, 2048])?.transpose(())?;
            Ok(vec![x.add(1.0)?])
        }),
        program("transpose 32 x 128 x 8 x 64 to heads", || {
            Ok(vec![value(&[32, 128, 8, 64])?.transpose([0, 2, 1, 3])?.multiply(1.0)?])
        }),
        program("concat of two 4096 x 512", || {
            let x = value(&[4096, 512])?;
            Ok(vec![tf::concat([&x, &x.multiply(2.0)?], 1)?])
        }),
        program("embedding of 32 x 128 in 50257 x 512, gradient", || {
            let ids = indices(&[32, 128])?;
            with_gradients(&[value(&[50_257, 512])?], |x| x[0].gather(&ids, 0))
        }),
        program("sort of 2^18", || Ok(vec![value(&[1 << 18])?.sort(0)?])),
        program("sort of 2^20", || Ok(vec![value(&[1 << 20])?.sort(0)?])),
        program("argsort of 1024 x 1024", || Ok(vec![value(&[1024, 1024])?.argsort(1)?])),
        program("top 5 of 1024 x 1000", || {
            let (values, places) = value(&[1024, 1000])?.top_k(5)?;
            Ok(vec![values, places])
        }),
        program("top 100 of 1 M", || {
            let (values, places) = value(&[1 << 20])?.top_k(100)?;
            Ok(vec![values, places])
        }),
        program("normal numbers, 4 M", || Ok(vec![tf::random::normal([1 << 22])?])),
    ]
}

/// Recurrent layers; those of training steps are below.
fn sequences() -> Vec<Program> {
    let wide = program("LSTM of 64 x 32 x 128 to 512 units, gradients", || {
        let inputs = [value(&[64, 32, 128])?, value(&[128, 2048])?, value(&[512, 2048])?];
        with_gradients(&inputs, |x| {
            Ok(tf::lstm(&x[0], &x[1], &x[2], None, LstmOptions::new())?.output)
        })
    });
    let gru = program("GRU of 128 x 50 x 64 to 128 units, gradients", || {
        let inputs = [value(&[128, 50, 64])?, value(&[64, 384])?, value(&[128, 384])?];
        with_gradients(&inputs, |x| {
            Ok(tf::gru(&x[0], &x[1], &x[2], None, GruOptions::new())?.output)
        })
    });
    vec![wide, gru]
}

/// The third step of a model's training.
fn step(name: &'static str, make: fn() -> Sequential, x: &'static [usize], words: bool) -> Program {
    program(name, move || {
        let model = make();
        let x = if words { indices(x)? } else { value(x)? };
        let labels = indices(&x.shape()[..1])?;
        let loss = SparseCategoricalCrossentropy::new().from_logits(true);
        let adam = Adam::new(1e-3);
        for _ in 0..3 {
            let tape = GradientTape::new();
            let value = loss.call(&labels, &model.call(&x, TRAINING)?)?;
            adam.minimize(&value, tape, &model)?;
        }
        Ok(Vec::new())
    })
}

fn steps() -> Vec<Program> {
    vec![
        step(
            "MLP step, 784-100-10, batch 50, Adam",
            || {
                Sequential::new()
                    .add(Dense::new(100).activation(Activation::Relu))
                    .add(Dense::new(10))
            },
            &[50, 784],
            false,
        ),
        step(
            "MLP step, 784-512-512-10, batch 128, Adam",
            || {
                let dense = || Dense::new(512).activation(Activation::Relu);
                Sequential::new().add(dense()).add(dense()).add(Dense::new(10))
            },
            &[128, 784],
            false,
        ),
        step(
            "CNN step, MNIST, batch 50, Adam",
            || {
                let conv = |filters| {
                    Conv2D::new(filters, [5, 5]).padding(Padding::Same).activation(Activation::Relu)
                };
                Sequential::new()
                    .add(conv(32))
                    .add(MaxPooling2D::new([2, 2]))
                    .add(conv(64))
                    .add(MaxPooling2D::new([2, 2]))
                    .add(Flatten::new())
                    .add(Dense::new(1024).activation(Activation::Relu))
                    .add(Dense::new(10))
            },
            &[50, 28, 28, 1],
            false,
        ),
        step(
            "LSTM step, 64 x 28 x 28 to 128 units, Adam",
            || Sequential::new().add(Lstm::new(128)).add(Dense::new(10)),
            &[64, 28, 28],
            false,
        ),
        step(
            "text step, 32 x 128 words, LSTM 128, Adam",
            || {
                Sequential::new()
                    .add(Embedding::new(10_000, 64))
                    .add(Lstm::new(128))
                    .add(Dense::new(2))
            },
            &[32, 128],
            true,
        ),
        program("transformer block, 16 x 128 x 256, 8 heads, gradients", || {
            let x = value(&[16, 128, 256])?;
            let w: Vec<Tensor> = (0..4).map(|_| value(&[256, 256])).collect::<Result<_>>()?;
            let (up, down) = (value(&[256, 1024])?, value(&[1024, 256])?);
            let (gamma, beta) = (value(&[256])?, value(&[256])?);
            let mut inputs = vec![x, up, down, gamma, beta];
            inputs.extend(w);
            with_gradients(&inputs, |i| {
                let heads = |x: &Tensor| x.reshape([16, 128, 8, 32])?.transpose([0, 2, 1, 3]);
                let x = i[0].layer_normalization(-1, normalized_by(&i[3], &i[4]))?;
                let [q, k, v] = [&i[5], &i[6], &i[7]].map(|w| heads(&x.matmul(w)?));
                let y =
                    tf::scaled_dot_product_attention(&q?, &k?, &v?, tf::AttentionOptions::new())?;
                let y = y.transpose([0, 2, 1, 3])?.reshape([16, 128, 256])?.matmul(&i[8])?;
                let x = i[0].add(&y)?;
                let y = x.layer_normalization(-1, normalized_by(&i[3], &i[4]))?;
                x.add(y.matmul(&i[1])?.gelu()?.matmul(&i[2])?)
            })
        }),
        program("Adam over 1 M weights", || {
            let w = tf::Variable::new(&value(&[1 << 20])?);
            let adam = Adam::new(1e-3);
            for _ in 0..3 {
                let grad = value(&[1 << 20])?;
                adam.apply_gradients(&[Some(grad)], &w)?;
            }
            Ok(Vec::new())
        }),
    ]
}
