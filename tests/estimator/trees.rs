//! Boosted trees: forms of data, missing values, categories, early stopping, files, wrong data.

use ndarray::{Array1, Array2};
use wgrad::data::Dataset;
use wgrad::estimator::{
    BoostedTreesClassifier, BoostedTreesOptions, BoostedTreesRegressor, ImportanceType,
    TreesFitOptions, TreesLoss,
};
use wgrad::{Error, Tensor};

use crate::support::folder::Folder;

/// Numbers that a formula spreads over 0 to 1.
fn spread(i: usize) -> f64 {
    (i as f64 * 0.618_033_988_75).fract()
}

/// `[N,3]`, and the label `10 x0 + 3 [x1 > 1/2]`.
fn table(rows: usize) -> (Array2<f64>, Array1<f64>) {
    let x = Array2::from_shape_fn((rows, 3), |(i, j)| spread(i * 3 + j + 7 * j * j));
    let y = x.rows().into_iter().map(|row| 10.0 * row[0] + if row[1] > 0.5 { 3.0 } else { 0.0 });
    (x.clone(), y.collect())
}

fn fit() -> TreesFitOptions<'static> {
    TreesFitOptions::new()
}

fn regressor(options: BoostedTreesOptions) -> BoostedTreesRegressor {
    BoostedTreesRegressor::new(options).unwrap()
}

#[test]
fn every_form_of_data_gives_the_same_trees() {
    let (x, y) = table(300);
    // Values that f32 holds exactly.
    let (x, y) = (x.mapv(|x| x as f32), y.mapv(|y| y as f32));
    let options = BoostedTreesOptions::new().n_trees(5);
    let train = |train: &dyn Fn(&mut BoostedTreesRegressor)| {
        let mut model = regressor(options.clone());
        train(&mut model);
        model.trees().to_vec()
    };
    let arrays = train(&|model| drop(model.fit((&x, &y), fit()).unwrap()));
    assert_eq!(arrays.len(), 5);
    let wide = (x.mapv(f64::from), y.mapv(f64::from));
    assert_eq!(arrays, train(&|model| drop(model.fit((&wide.0, &wide.1), fit()).unwrap())));
    let tensors = (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
    assert_eq!(arrays, train(&|model| drop(model.fit((&tensors.0, &tensors.1), fit()).unwrap())));
    let data = Dataset::from_tensor_slices((x.clone(), y.clone())).unwrap().batch(64);
    assert_eq!(arrays, train(&|model| drop(model.fit(&data, fit()).unwrap())));
    // Two inputs side by side; labels of [N, 1].
    let halves = (x.slice(ndarray::s![.., ..1]), x.slice(ndarray::s![.., 1..]));
    let column = y.clone().insert_axis(ndarray::Axis(1));
    assert_eq!(
        arrays,
        train(&|model| {
            drop(model.fit(((&halves.0, &halves.1), &column), fit()).unwrap());
        })
    );
    // Weights of 1.
    let ones = vec![1.0f32; 300];
    let weighted = train(&|model| drop(model.fit((&x, &y, &ones[..]), fit()).unwrap()));
    assert_eq!(arrays, weighted);
}

#[test]
fn a_second_fit_begins_anew_and_equal_seeds_give_equal_trees() {
    let (x, y) = table(500);
    let options = BoostedTreesOptions::new().n_trees(8).validation_fraction(0.2).seed(4);
    let mut a = regressor(options.clone());
    a.fit((&x, &y), fit()).unwrap();
    let first = a.trees().to_vec();
    a.fit((&x, &y), fit()).unwrap();
    assert_eq!(a.trees(), first);
    let mut b = regressor(options.seed(5));
    b.fit((&x, &y), fit()).unwrap();
    assert_ne!(b.trees(), first);
}

#[test]
fn the_history_and_early_stopping() {
    let (x, y) = table(2000);
    let (held, truth) = table(2400);
    let (held, truth) =
        (held.slice_move(ndarray::s![2000.., ..]), truth.slice_move(ndarray::s![2000..]));
    let mut model =
        regressor(BoostedTreesOptions::new().n_trees(400).n_iter_no_change(5).tol(1e-3));
    let options = TreesFitOptions::new().validation_data((&held, &truth));
    let history = model.fit((&x, &y), options).unwrap();
    let losses = history.get("val_loss").unwrap();
    assert_eq!(losses.len(), model.trees().len());
    assert!(losses.len() < 400, "{}", losses.len());
    let names: Vec<&str> = history.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["loss", "mae", "val_loss", "val_mae"]);
    let logs = model.evaluate((&held, &truth)).unwrap();
    assert!((logs.get("loss").unwrap() - losses.last().unwrap()).abs() < 1e-12);
    assert!(logs.get("mae").unwrap() < 0.3);
}

#[test]
fn medians_resist_extreme_labels() {
    let (x, mut y) = table(600);
    (0..600).step_by(20).for_each(|row| y[row] = 1e6);
    let mut model = regressor(BoostedTreesOptions::new().loss(TreesLoss::AbsoluteError));
    model.fit((&x, &y), fit()).unwrap();
    let (x, y) = table(600);
    assert!(model.evaluate((&x, &y)).unwrap().get("mae").unwrap() < 1.0);
}

#[test]
fn several_classes_and_importances() {
    let x = Array2::from_shape_fn((900, 3), |(i, j)| spread(i * 3 + j + 11 * j * j) as f32);
    let y: Vec<u8> = x.rows().into_iter().map(|row| (row[1] * 3.0) as u8).collect();
    let names = ["a", "b", "c"].map(String::from).to_vec();
    let options = BoostedTreesOptions::new().n_trees(30).feature_names(names.clone());
    let mut model = BoostedTreesClassifier::new(3, options).unwrap();
    let history = model.fit((&x, &y[..]), fit()).unwrap();
    assert_eq!((model.trees().len(), model.n_classes()), (90, 3));
    assert_eq!(history.get("accuracy").unwrap().len(), 30);
    assert!(model.evaluate((&x, &y[..])).unwrap().get("accuracy").unwrap() > 0.98);
    let predictions = model.predict(&x).unwrap();
    let right =
        predictions.class_ids().iter().zip(&y).filter(|(a, b)| **a == usize::from(**b)).count();
    assert!(right > 880, "{right}");
    assert!(
        predictions.probabilities().rows().into_iter().all(|row| (row.sum() - 1.0).abs() < 1e-9)
    );
    let gains = model.feature_importances(ImportanceType::Gain).unwrap();
    // The formula lets the first column say something about the second.
    assert!(gains[1] > 0.6 && (gains.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{gains:?}");
    let splits = model.feature_importances(ImportanceType::Splits).unwrap();
    let nodes: usize = model.trees().iter().map(|tree| tree.leaves() - 1).sum();
    assert_eq!(splits.iter().sum::<f64>(), nodes as f64);
    assert_eq!(model.feature_names(), names);
}

#[test]
fn files_hold_all_that_predicts() {
    let folder = Folder::new("estimator-trees");
    let (mut x, y) = table(400);
    x.column_mut(2).iter_mut().enumerate().for_each(|(i, x)| *x = (i % 5 * 1000) as f64);
    x[[3, 0]] = f64::NAN;
    let path = folder.path("trees.safetensors");
    let mut model = regressor(BoostedTreesOptions::new().n_trees(20).categorical_features([2]));
    assert!(model.save(&path).unwrap_err().to_string().contains("no trees yet"));
    model.fit((&x, &y), fit()).unwrap();
    model.save(&path).unwrap();
    let loaded = BoostedTreesRegressor::load(&path).unwrap();
    assert_eq!(loaded.trees(), model.trees());
    // An unknown category, too.
    x[[5, 2]] = 17.0;
    assert_eq!(loaded.predict(&x).unwrap(), model.predict(&x).unwrap());
    let error = BoostedTreesClassifier::load(&path).unwrap_err().to_string();
    assert!(error.contains("does not have a classifier"), "{error}");
    let weights = folder
        .write("other.safetensors", &[8, 0, 0, 0, 0, 0, 0, 0, b'{', b'}', 32, 32, 32, 32, 32, 32]);
    let error = BoostedTreesRegressor::load(&weights).unwrap_err().to_string();
    assert!(error.contains("does not have boosted trees"), "{error}");
    assert!(matches!(BoostedTreesRegressor::load(folder.path("none")), Err(Error::Io(_))));
}

#[test]
fn unknown_categories_go_with_missing_ones() {
    let kinds: Vec<[f32; 1]> =
        (0..300).map(|i| [if i % 4 == 3 { f32::NAN } else { (i % 4) as f32 }]).collect();
    let y: Vec<f32> = (0..300).map(|i| [0.0, 10.0, 20.0, 40.0][i % 4]).collect();
    let mut model = regressor(BoostedTreesOptions::new().categorical_features([0]));
    model.fit((kinds, y), fit()).unwrap();
    let p = model.predict(([[0.0f32], [1.0], [2.0], [f32::NAN], [9.0], [-1.0], [0.5]],)).unwrap();
    for (p, wanted) in p.iter().zip([0.0, 10.0, 20.0, 40.0, 40.0, 40.0, 40.0]) {
        assert!((p - wanted).abs() < 0.1, "{p} {wanted}");
    }
}

#[test]
fn constant_columns_and_labels_give_trees_of_one_leaf() {
    let (x, y) = (Array2::from_elem((100, 2), 3.0), vec![2.5f32; 100]);
    let mut model = regressor(BoostedTreesOptions::new().n_trees(3));
    model.fit((&x, &y[..]), fit()).unwrap();
    assert!(model.trees().iter().all(|tree| tree.leaves() == 1));
    assert_eq!(model.predict(&x).unwrap()[99], 2.5);
    assert_eq!(model.feature_importances(ImportanceType::Gain).unwrap(), [0.0, 0.0]);
    // Fewer rows than two leaves need, and one row.
    for rows in [1, 39] {
        let (x, y) = table(rows);
        model.fit((&x, &y), fit()).unwrap();
        assert_eq!(model.trees()[0].leaves(), 1);
    }
    // A single class.
    let mut model = BoostedTreesClassifier::new(2, BoostedTreesOptions::new().n_trees(50)).unwrap();
    let (x, _) = table(100);
    model.fit((&x, vec![1; 100]), fit()).unwrap();
    assert_eq!(model.predict(&x).unwrap().class_ids(), [1; 100]);
    assert!(model.evaluate((&x, vec![1; 100])).unwrap().get("loss").unwrap() < 1e-4);
}

#[test]
fn infinite_and_huge_numbers_are_numbers() {
    let values = [f64::NEG_INFINITY, -1.7e308, 0.0, 1.7e308, f64::INFINITY];
    let x = Array2::from_shape_fn((500, 1), |(i, _)| values[i % 5]);
    let y = Array1::from_shape_fn(500, |i| [3.0, 9.0, 1.0, 20.0, 40.0][i % 5]);
    let mut model = regressor(BoostedTreesOptions::new().learning_rate(1.0).n_trees(10));
    model.fit((&x, &y), fit()).unwrap();
    let p = model.predict(&x.slice(ndarray::s![..5, ..])).unwrap();
    let distinct = p.iter().map(|p| p.to_bits()).collect::<std::collections::HashSet<_>>();
    assert_eq!(distinct.len(), 5, "{p:?}");
}

#[test]
fn a_million_rows_are_predicted() {
    let (x, y) = table(5000);
    let mut model = regressor(BoostedTreesOptions::new().n_trees(10));
    model.fit((&x, &y), fit()).unwrap();
    let (many, truth) = table(1_000_000);
    let p = model.predict(&many).unwrap();
    assert_eq!(p.len(), 1_000_000);
    let error = p.iter().zip(&truth).map(|(p, y)| (p - y).abs()).sum::<f64>() / 1e6;
    assert!(error < 1.5, "{error}");
}

#[test]
fn wrong_data_are_errors_with_their_place() {
    let (x, y) = table(60);
    let named = ["width", "height", "kind"].map(String::from).to_vec();
    let options = BoostedTreesOptions::new().n_trees(2).feature_names(named);
    let refused = |options: &BoostedTreesOptions, x: &Array2<f64>, y: &Array1<f64>| {
        regressor(options.clone()).fit((x, y), fit()).unwrap_err().to_string()
    };
    let empty = Array2::from_shape_fn(x.dim(), |(i, j)| if j == 1 { f64::NAN } else { x[[i, j]] });
    let error = refused(&options, &empty, &y);
    assert_eq!(
        error,
        "fit: column 1, 'height', is empty: all 60 rows lack it. Leave the column out."
    );
    let categorical = options.clone().categorical_features([1]);
    assert_eq!(refused(&categorical, &empty, &y), error);
    let error = refused(&categorical, &x.mapv(|x| x - 2.0), &y);
    assert!(
        error.contains("column 1, 'height', has the category -") && error.contains("in row 0"),
        "{error}"
    );
    let many = Array2::from_shape_fn((600, 3), |(i, _)| i as f64);
    let error = refused(&categorical, &many, &table(600).1);
    assert!(error.contains("more than 255 categories"), "{error}");
    let error = refused(&options.clone().categorical_features([3]), &x, &y);
    assert!(error.contains("the index 3, and x has 3 columns"), "{error}");
    let error = refused(&options.clone().feature_names(vec!["a".into()]), &x, &y);
    assert!(error.contains("x has 3 columns, and feature_names has 1 names"), "{error}");
    let mut wrong = y.clone();
    wrong[7] = f64::NAN;
    assert!(refused(&options, &x, &wrong).contains("the label of row 7 is NaN"));
    for (rows, columns) in [(0, 3), (60, 0)] {
        let x = Array2::<f64>::zeros((rows, columns));
        let error = refused(&options, &x, &Array1::zeros(rows));
        assert!(error.contains("there are no values"), "{error}");
    }

    let mut model = BoostedTreesClassifier::new(3, BoostedTreesOptions::new().n_trees(2)).unwrap();
    for label in [3.0, -1.0, 0.5, f32::NAN] {
        let mut labels = vec![0.0f32; 60];
        labels[9] = label;
        let error = model.fit((&x, &labels[..]), fit()).unwrap_err();
        assert!(matches!(error, Error::Index(_)));
        let error = error.to_string();
        assert!(
            error.contains(&format!("the label of row 9 is {label}; with 3 classes")),
            "{error}"
        );
    }
    assert!(model.predict(&x).unwrap_err().to_string().contains("no trees yet"));
    assert!(model.fit(&x, fit()).unwrap_err().to_string().contains("no labels"));
    let labels = vec![2; 60];
    let error = model.fit((&x, &labels[..], vec![-1.0f32; 60]), fit()).unwrap_err().to_string();
    assert!(error.contains("the weight of row 0 is -1"), "{error}");
    let error = model.fit((&x, &labels[..], vec![0.0f32; 60]), fit()).unwrap_err().to_string();
    assert!(error.contains("all weights are 0"), "{error}");
    let error = model.fit((&x, vec![[1, 2]; 60]), fit()).unwrap_err().to_string();
    assert!(error.contains("one number for each of 60 rows"), "{error}");
    model.fit((&x, &labels[..]), fit()).unwrap();
    let error = model.predict(&table(3).0.slice(ndarray::s![.., ..2])).unwrap_err().to_string();
    assert!(error.contains("x has 2 columns, and the model was trained with 3"), "{error}");
    let options = TreesFitOptions::new().validation_data((&x, vec![5; 60]));
    let error = model.fit((&x, &labels[..]), options).unwrap_err().to_string();
    assert!(error.contains("validation data: the label of row 0 is 5"), "{error}");
    let endless =
        Dataset::from_tensor_slices((x.clone(), labels.clone())).unwrap().batch(8).repeat(None);
    let error = model.fit(endless, fit()).unwrap_err().to_string();
    assert!(error.contains("the dataset is infinite"), "{error}");
    // After an error, the model has its trees.
    assert_eq!(model.trees().len(), 6);
}

#[test]
fn wrong_options_are_errors() {
    let new = BoostedTreesOptions::new;
    for (options, words) in [
        (new().n_trees(0), "n_trees is 0"),
        (new().learning_rate(f64::NAN), "learning_rate is NaN"),
        (new().learning_rate(-1.0), "learning_rate is -1"),
        (new().max_leaf_nodes(1), "max_leaf_nodes is Some(1)"),
        (new().max_depth(0), "max_depth is Some(0)"),
        (new().min_samples_leaf(0), "min_samples_leaf is 0"),
        (new().l2_regularization(-0.1), "l2_regularization is -0.1"),
        (new().max_bins(256), "max_bins is 256"),
        (new().max_bins(1), "max_bins is 1"),
        (new().n_iter_no_change(0), "n_iter_no_change"),
        (new().tol(f64::INFINITY), "tol is inf"),
        (new().validation_fraction(1.0), "validation_fraction"),
    ] {
        let error = BoostedTreesRegressor::new(options).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = BoostedTreesClassifier::new(1, new()).unwrap_err().to_string();
    assert!(error.contains("n_classes is 1"), "{error}");
    let (x, y) = table(4);
    let mut model = regressor(new().validation_fraction(0.01));
    assert!(model.fit((&x, &y), fit()).unwrap_err().to_string().contains("both parts need rows"));
}
