//! Kinds of data and predictions: arrays, images, datasets, several inputs and outputs.

use ndarray::{Array2, ArrayD};
use wgrad as tf;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::data::{Batch, Dataset, IntoModelData, ModelData};
use wgrad::keras::layers::{Dense, Flatten};
use wgrad::keras::optimizers::Adam;
use wgrad::keras::{
    CompileOptions, FitOptions, History, INFERENCE, Layer, Model, PredictOptions, Sequential,
};
use wgrad::{Tensor, Trackable};

use super::{accuracy, alone, data, loss, network, series};

/// All kinds of data lead to the same training.
#[test]
fn data_come_in_many_forms() {
    let _alone = alone();
    let (x, y) = data(40);
    let rows: Vec<Vec<f32>> = x.rows().into_iter().map(|row| row.to_vec()).collect();
    let labels: Vec<i32> = y.to_vec();
    let tensors: Vec<(Tensor, Tensor)> = x
        .axis_chunks_iter(ndarray::Axis(0), 8)
        .zip(y.axis_chunks_iter(ndarray::Axis(0), 8))
        .map(|(x, y)| (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap()))
        .collect();
    fn trained<'a>(
        data: impl IntoModelData<'a>,
        batch_size: Option<usize>,
    ) -> (History, Vec<ndarray::ArrayD<f32>>) {
        let model = network();
        model.compile(Adam::new(0.01), loss(), CompileOptions::new().metrics(accuracy())).unwrap();
        let mut options = FitOptions::new().epochs(2).shuffle(false);
        if let Some(size) = batch_size {
            options = options.batch_size(size);
        }
        let history = model.fit(data, options).unwrap();
        (history, model.get_weights().unwrap())
    }
    let want = trained((&x, &y), Some(8));
    assert_eq!(trained((x.clone(), y.clone()), Some(8)), want, "owned arrays");
    let wide = x.mapv(f64::from);
    assert_eq!(trained((&wide, &y.mapv(i64::from)), Some(8)), want, "f64 and i64");
    let mut turned = Array2::zeros((6, 40));
    turned.assign(&x.t());
    assert_eq!(trained((&turned.t(), &y), Some(8)), want, "a transposed view");
    assert_eq!(trained((&rows, &labels), Some(8)), want, "vectors");
    assert_eq!(trained((&rows[..], &labels[..]), Some(8)), want, "slices");
    assert_eq!(trained(&tensors, None), want, "a list of batches");
    assert_eq!(trained(tensors.clone(), None), want, "an owned list of batches");
    assert_eq!(trained(|| tensors.iter().cloned(), None), want, "a closure");
    let batches = || {
        tensors.iter().map(|(x, y)| Batch {
            x: vec![x.clone()],
            y: vec![y.clone()],
            sample_weight: vec![],
        })
    };
    assert_eq!(trained(ModelData::from_fn(batches), None), want, "batches");
}

#[test]
fn images_are_data() {
    let _alone = alone();
    let digits = draw_digits(100, 1);
    let model = || {
        tf::random::set_seed(1);
        let model = Sequential::new().add(Flatten::new()).add(Dense::new(10));
        model.build([1, 28, 28, 1]).unwrap();
        model.compile(Adam::new(0.01), loss(), CompileOptions::new().metrics(accuracy())).unwrap();
        model
    };
    let options = || FitOptions::new().epochs(2).shuffle(false);
    let (a, b) = (model(), model());
    let first = a.fit(&digits, options()).unwrap();
    let floats = |(x, y): (ArrayD<u8>, ArrayD<i32>)| (x.mapv(|p| f32::from(p) / 255.0), y);
    let dataset = Dataset::from_tensor_slices(digits.clone()).unwrap();
    let second = b.fit(dataset.batch(32).map(floats), options()).unwrap();
    assert_eq!(first, second);
    assert!(series(&first, "accuracy")[1] > series(&first, "accuracy")[0]);
}

#[test]
fn several_inputs_and_outputs_are_predicted() {
    let _alone = alone();
    let (x, _) = data(10);
    let (a, b) = (Tensor::from_array(&x).unwrap(), Tensor::ones([10, 2]).unwrap());
    let left = tf::keras::Input::new([6]);
    let right = tf::keras::Input::new([2]);
    use tf::keras::LayerExt;
    let sum = Dense::new(3).on(&left).unwrap().add(Dense::new(3).on(&right).unwrap()).unwrap();
    let two = tf::keras::Functional::new([&left, &right], [&sum, &left]).unwrap();
    let want = two.call(&[a.clone(), b.clone()], INFERENCE).unwrap();
    let all = two.predict_all((&a, &b), PredictOptions::new().batch_size(4)).unwrap();
    assert_eq!(all.len(), 2);
    for (got, want) in all.iter().zip(&want) {
        assert_eq!(got.to_vec::<f32>().unwrap(), want.to_vec::<f32>().unwrap());
    }
    // As before, and a `y` after them is ignored.
    let y = Tensor::zeros([10]).unwrap();
    assert_eq!(two.predict_all(((&a, &b),), PredictOptions::new()).unwrap().len(), 2);
    assert_eq!(two.predict_all(((&a, &b), &y), PredictOptions::new()).unwrap().len(), 2);
    let error = two.predict((&a, &b), PredictOptions::new()).unwrap_err().to_string();
    assert!(error.contains("ask for them with predict_all"), "{error}");
    let one = tf::keras::Functional::new([&left, &right], &sum).unwrap();
    let got = one.predict((&a, &b), PredictOptions::new()).unwrap();
    assert_eq!(got.to_vec::<f32>().unwrap(), want[0].to_vec::<f32>().unwrap());
    // A model with one input uses x of (x, y).
    assert_eq!(network().predict((&a, &b), PredictOptions::new()).unwrap().shape(), [10, 3]);
    // Neither one nor two inputs fit.
    let error = two.predict((&b, &a), PredictOptions::new()).unwrap_err().to_string();
    assert!(error.contains("2"), "{error}");
}
