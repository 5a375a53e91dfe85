//! Small models as in experiments: each is made, trained for three steps, and dropped. A seed determines the model. A test also
//! counts pipelines with them.

use wgrad as tf;
use wgrad::keras::layers::{
    AveragePooling2D, BatchNormalization, Conv2D, Dense, Dropout, Flatten, GlobalAveragePooling2D,
    LayerNormalization, MaxPooling2D,
};
use wgrad::keras::losses::{
    BinaryCrossentropy, Huber, MeanAbsoluteError, MeanSquaredError, SparseCategoricalCrossentropy,
};
use wgrad::keras::optimizers::{Adam, Optimizer, RmsProp, Sgd};
use wgrad::keras::{Activation, Layer, Loss, Sequential, TRAINING};
use wgrad::{GradientTape, Tensor};

/// Pseudorandom numbers.
struct Draw(u64);

impl Draw {
    fn new(seed: u64) -> Self {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1);
        (0..4).for_each(|_| _ = draw.below(2));
        draw
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn numbers(&mut self, shape: &[usize]) -> tf::Result<Tensor> {
        let numbers: Vec<f32> = (0..shape.iter().product::<usize>())
            .map(|_| self.below(1 << 16) as f32 / (1 << 15) as f32 - 1.0)
            .collect();
        Tensor::from_slice(&numbers, shape)
    }

    fn activation(&mut self) -> Activation {
        self.of(&[
            Activation::Relu,
            Activation::Relu,
            Activation::Tanh,
            Activation::Sigmoid,
            Activation::Elu,
            Activation::Gelu,
        ])
    }

    fn optimizer(&mut self) -> Box<dyn Optimizer> {
        match self.below(5) {
            0 | 1 => Box::new(Adam::new(1e-3)),
            2 => Box::new(Sgd::new(1e-2)),
            3 => Box::new(Sgd::new(1e-2).momentum(0.9)),
            _ => Box::new(RmsProp::new(1e-3)),
        }
    }
}

/// A dense network; the losses of its three steps.
pub fn mlp(seed: u64) -> tf::Result<Vec<f32>> {
    let mut draw = Draw::new(seed);
    let batch = draw.of(&[1, 4, 8, 10, 16, 20, 32, 33, 50, 64, 100, 128]);
    let features = draw.of(&[1, 2, 3, 4, 5, 7, 8, 10, 13, 16, 20, 30, 32, 64, 100]);
    let mut model = Sequential::new();
    let same = draw.below(2) == 0;
    let activation = draw.activation();
    for _ in 0..draw.below(5) {
        let width = draw.of(&[2, 3, 4, 5, 8, 10, 12, 16, 20, 24, 25, 32, 50, 64, 100, 128]);
        let own = if same { activation } else { draw.activation() };
        model = model.add(Dense::new(width).activation(own));
        model = match draw.below(20) {
            0 => model.add(Dropout::new(0.2)),
            1 => model.add(BatchNormalization::new()),
            2 => model.add(LayerNormalization::new()),
            _ => model,
        };
    }
    let x = draw.numbers(&[batch, features])?;
    let (model, y, loss) = head(&mut draw, model, batch)?;
    train(&mut draw, &model, &x, &y, &*loss)
}

/// A network with convolutions; the losses of its three steps.
pub fn conv_net(seed: u64) -> tf::Result<Vec<f32>> {
    let mut draw = Draw::new(seed);
    let batch = draw.of(&[1, 2, 4, 8, 10, 16]);
    let (side, channels) = (draw.of(&[8, 10, 12, 14, 16]), draw.of(&[1, 3]));
    let mut model = Sequential::new();
    let activation = draw.activation();
    for _ in 0..1 + draw.below(2) {
        let (filters, size) = (draw.of(&[4, 6, 8, 16]), draw.of(&[3, 3, 5]));
        let mut layer = Conv2D::new(filters, [size, size]).activation(activation);
        if draw.below(2) == 0 {
            layer = layer.padding(tf::Padding::Same);
        }
        model = model.add(layer);
        model = match draw.below(8) {
            0 => model.add(BatchNormalization::new()),
            1 => model.add(AveragePooling2D::new([2, 2])),
            2..6 if size == 3 => model.add(MaxPooling2D::new([2, 2])),
            _ => model,
        };
    }
    model = match draw.below(3) {
        0 => model.add(GlobalAveragePooling2D::new()),
        _ => model.add(Flatten::new()),
    };
    if draw.below(2) == 0 {
        model = model.add(Dense::new(draw.of(&[8, 16, 32])).activation(activation));
    }
    let x = draw.numbers(&[batch, side, side, channels])?;
    let (model, y, loss) = head(&mut draw, model, batch)?;
    train(&mut draw, &model, &x, &y, &*loss)
}

/// The last layer, labels, and the loss.
fn head(
    draw: &mut Draw,
    model: Sequential,
    batch: usize,
) -> tf::Result<(Sequential, Tensor, Box<dyn Loss>)> {
    Ok(match draw.below(6) {
        0..3 => {
            let classes = draw.of(&[2, 3, 5, 10]);
            let labels: Vec<i32> = (0..batch).map(|_| draw.below(classes) as i32).collect();
            let loss = SparseCategoricalCrossentropy::new().from_logits(true);
            (model.add(Dense::new(classes)), Tensor::from_slice(&labels, [batch])?, Box::new(loss))
        }
        3 => {
            let labels: Vec<f32> = (0..batch).map(|_| draw.below(2) as f32).collect();
            let model = model.add(Dense::new(1).activation(Activation::Sigmoid));
            let y = Tensor::from_slice(&labels, [batch, 1])?;
            (model, y, Box::new(BinaryCrossentropy::new()))
        }
        kind => {
            let outputs = draw.of(&[1, 1, 2, 4]);
            let y = draw.numbers(&[batch, outputs])?;
            let loss: Box<dyn Loss> = match (kind, draw.below(2)) {
                (4, _) => Box::new(MeanSquaredError::new()),
                (_, 0) => Box::new(MeanAbsoluteError::new()),
                _ => Box::new(Huber::new()),
            };
            (model.add(Dense::new(outputs)), y, loss)
        }
    })
}

fn train(
    draw: &mut Draw,
    model: &Sequential,
    x: &Tensor,
    y: &Tensor,
    loss: &dyn Loss,
) -> tf::Result<Vec<f32>> {
    let optimizer = draw.optimizer();
    let mut losses = Vec::new();
    for _ in 0..3 {
        let tape = GradientTape::new();
        let value = loss.call(y, &model.call(x, TRAINING)?)?;
        optimizer.minimize(&value, tape, model)?;
        losses.push(value.item::<f32>()?);
    }
    Ok(losses)
}
