//! Models that need no library, for the browsers: `web/tests/exported.test.mjs` runs them.

use std::path::Path;

use serde_json::{Value, json};
use wgrad as tf;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::keras::layers::{
    Conv2D, Dense, Embedding, Flatten, GlobalAveragePooling1D, Layer, LayerNormalization,
    MaxPooling2D, MultiHeadAttention,
};
use wgrad::keras::{Activation, INFERENCE, LayerExt, Sequential};
use wgrad::{ConcreteFunction, DType, Padding, Tensor};

/// Exports the models to folders in `folder`, each with the results that a page must have.
pub fn export(folder: &Path, mlp: Sequential) {
    let x = images();
    write(folder, "mlp", &of(mlp, &x), std::slice::from_ref(&x));
    tf::random::set_seed(4);
    write(folder, "cnn", &of(cnn(), &x), &[x]);
    let ids: Vec<i32> = (0..2 * 12).map(|i| (i * 7) % 50).collect();
    let ids = tf::constant(ids).unwrap().reshape([2, 12]).unwrap();
    write(folder, "transformer", &of(transformer(), &ids), &[ids]);
    let inputs =
        [tf::constant([1.5_f32, -2.0]).unwrap(), tf::constant([true, false, true]).unwrap()];
    write(folder, "dtypes", &dtypes(&inputs), &inputs);
}

/// Writes the MLP, the CNN and the transformer block for `benches/peers/web/models.mjs`: as modules for batches of 1 and 32, and as
/// ONNX files and SavedModels, which other libraries load and which take any batch.
pub fn for_benchmarks(folder: &Path, mlp: Sequential) {
    tf::random::set_seed(4);
    let pixels = |count| draw_digits(count, 99).tensors(&(0..count).collect::<Vec<_>>()).unwrap().0;
    let batches = [pixels(1), pixels(32)];
    for_benchmark(folder, "mlp", mlp, &batches);
    for_benchmark(folder, "cnn", cnn(), &batches);
    let ids = |count: i32| {
        let ids: Vec<i32> = (0..count * 12).map(|i| (i * 7) % 50).collect();
        tf::constant(ids).unwrap().reshape([count as usize, 12]).unwrap()
    };
    for_benchmark(folder, "transformer", transformer(), &[ids(1), ids(32)]);
}

fn for_benchmark<M: Layer + 'static>(folder: &Path, name: &str, model: M, batches: &[Tensor; 2]) {
    let model = std::sync::Arc::new(model);
    for x in batches {
        let shared = model.clone();
        let predict = tf::function(move |x: Tensor| shared.call(&x, INFERENCE));
        let function = predict.get_concrete_function((x.clone(),)).unwrap();
        write(folder, &format!("{name}-{}", x.shape()[0]), &function, std::slice::from_ref(x));
    }
    let [x, _] = batches;
    let any = std::iter::once(None).chain(x.shape()[1..].iter().copied().map(Some));
    let spec = tf::TensorSpec::new(any.collect::<Vec<_>>(), x.dtype());
    let serve = tf::saved_model::Signature::new("serving_default", [("x", spec)], |inputs| {
        model.call(&inputs[0], INFERENCE)
    });
    let serve = [serve.outputs(["y"])];
    tf::saved_model::save(&*model, folder.join(name), &serve).unwrap();
    tf::onnx::save(&*model, folder.join(format!("{name}.onnx")), &serve[0]).unwrap();
    // The graph without its weights, whose size is compared.
    let apart = tf::onnx::OnnxSaveOptions::new().external_data(true);
    tf::onnx::save_with(&*model, folder.join(format!("{name}-apart.onnx")), &serve[0], apart)
        .unwrap();
}

/// 20 images of digits.
fn images() -> Tensor {
    draw_digits(20, 99).tensors(&(0..20).collect::<Vec<_>>()).unwrap().0
}

/// A model's inference, traced for an input like `x`.
fn of<M: Layer + 'static>(model: M, x: &Tensor) -> ConcreteFunction {
    let predict = tf::function(move |x: Tensor| model.call(&x, INFERENCE));
    predict.get_concrete_function((x.clone(),)).unwrap()
}

fn cnn() -> Sequential {
    Sequential::new()
        .add(Conv2D::new(8, [3, 3]).activation(Activation::Relu).padding(Padding::Same))
        .add(MaxPooling2D::new([2, 2]))
        .add(Conv2D::new(16, [3, 3]).activation(Activation::Relu))
        .add(Flatten::new())
        .add(Dense::new(10).activation(Activation::Softmax))
}

/// Attention and two dense layers, each with a residual connection and a normalization.
fn transformer() -> impl Layer {
    let input = tf::keras::Input::new([12]).with_dtype(DType::I32);
    let x = Embedding::new(50, 32).on(&input).unwrap();
    let attended = MultiHeadAttention::new(4, 8).on_all::<[Tensor], Tensor>([&x, &x]).unwrap();
    let x = LayerNormalization::new().on(&x.add(&attended).unwrap()).unwrap();
    let wide = Dense::new(64).activation(Activation::Gelu).on(&x).unwrap();
    let narrow = Dense::new(32).on(&wide).unwrap();
    let x = LayerNormalization::new().on(&x.add(&narrow).unwrap()).unwrap();
    let x = GlobalAveragePooling1D::new().on(&x).unwrap();
    tf::keras::Functional::new(&input, Dense::new(5).on(&x).unwrap()).unwrap()
}

/// Two inputs, and a result of each dtype that every adapter has; one is an input.
fn dtypes([x, truth]: &[Tensor; 2]) -> ConcreteFunction {
    let f = tf::function(|(x, truth): (Tensor, Tensor)| {
        let whole = x.multiply(100.0)?.cast(DType::I32)?;
        Ok(vec![
            x.exp()?,
            whole.clone(),
            whole.abs()?.cast(DType::U32)?,
            whole.abs()?.cast(DType::U8)?,
            truth.logical_not()?,
            truth,
        ])
    });
    f.get_concrete_function(((x.clone(), truth.clone()),)).unwrap()
}

fn write(folder: &Path, name: &str, function: &ConcreteFunction, inputs: &[Tensor]) {
    let folder = folder.join(name);
    function.export_webgpu(&folder).unwrap();
    let outputs = function.call(inputs).unwrap();
    let text = json!({ "inputs": list(inputs), "outputs": list(&outputs) }).to_string();
    std::fs::write(folder.join("expected.json"), text).unwrap();
}

/// The tensors' numbers.
fn list(tensors: &[Tensor]) -> Vec<Value> {
    let numbers = |tensor: &Tensor| match tensor.dtype() {
        DType::F32 => json!(tensor.to_vec::<f32>().unwrap()),
        DType::I32 => json!(tensor.to_vec::<i32>().unwrap()),
        DType::U32 => json!(tensor.to_vec::<u32>().unwrap()),
        DType::U8 => json!(tensor.to_vec::<u8>().unwrap()),
        DType::Bool => json!(tensor.cast(DType::U8).unwrap().to_vec::<u8>().unwrap()),
        other => panic!("no {other}"),
    };
    tensors.iter().map(numbers).collect()
}
