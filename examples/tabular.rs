//! A wide and deep network on a table with words and numbers: who survives on a ship that never sailed.
//!
//! `cargo example tabular` runs it. It draws passengers, writes them as a CSV file, and reads that. A `FeatureSpace` learns the words
//! and the ranges of the columns, and makes rows of numbers of them, with crosses of columns. The linear half of the network can
//! weigh each word and each cross; the deep half finds what several columns have in common. The program compares both halves alone
//! with the whole, and with boosted trees, which take the words as categories and the unknown ages as missing. It saves the space and
//! the network, loads them, and asks about two passengers.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/say.rs"]
mod say;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use flags::Flags;
use ndarray::{Array2, ArrayD};
use say::{Result, say};
use wgrad as tf;
use wgrad::data::Dataset;
use wgrad::data::csv::{CsvDataset, required};
use wgrad::estimator::{
    BoostedTreesClassifier, BoostedTreesOptions, ImportanceType, TreesFitOptions,
};
use wgrad::estimator::{DnnClassifier, DnnLinearCombinedClassifier, LinearClassifier};
use wgrad::keras::layers::{Cross, Discretization, Feature, FeatureMode, FeatureSpace, HostLayer};
use wgrad::keras::layers::{StringLookup, Table};
use wgrad::keras::optimizers::Adam;
use wgrad::keras::{EvaluateOptions, Logs, PredictOptions, Verbose};
use wgrad::ndarray;
use wgrad::prelude::*;

const PASSENGERS: usize = 3_000;
const TEST: usize = 1_000;
const BATCH: usize = 64;

/// A batch of records: survived, class, sex, age, fare, port.
type Records =
    (ArrayD<f32>, ArrayD<String>, ArrayD<String>, ArrayD<f32>, ArrayD<f32>, ArrayD<String>);

fn main() -> ExitCode {
    let about = "Learn from a table of passengers.\n\nUsage: tabular [OPTIONS]";
    say::exit_code(run(&Flags::parse(about, 600)))
}

/// Draws passengers and writes their records. Women, children and the first class mostly survive, but men from Cork in the third
/// class do, too: a combination that no column shows on its own.
fn write_passengers(path: &Path, count: usize) -> Result<()> {
    let draws = tf::random::global().uniform([count, 7])?.to_vec::<f32>()?;
    let mut text = String::from("survived,class,sex,age,fare,port\n");
    for draw in draws.chunks_exact(7) {
        let class = if draw[0] < 0.25 { 0 } else { 1 + usize::from(draw[0] > 0.5) };
        let male = draw[1] < 0.62;
        let age = 1.0 + 70.0 * draw[2] * draw[2].sqrt();
        let port = ["Southampton", "Cherbourg", "Cork"][(3.0 * draw[3]) as usize % 3];
        let fare = [60.0, 20.0, 8.0][class] * (0.5 + draw[4]);
        let mut score = [1.2, 0.2, -0.9][class] + if male { -1.6 } else { 1.6 };
        score += if age < 12.0 { 1.8 } else { 0.0 };
        score += if male && class == 2 && port == "Cork" { 4.0 } else { 0.0 };
        let survived = u8::from(draw[5] < 1.0 / (1.0 + f32::exp(-2.0 * score)));
        let class = ["first", "second", "third"][class];
        let sex = if male { "male" } else { "female" };
        // One age in ten is unknown.
        let age = if draw[6] < 0.1 { String::new() } else { format!("{age:.0}") };
        writeln!(text, "{survived},{class},{sex},{age},{fare:.2},{port}")?;
    }
    Ok(std::fs::write(path, text)?)
}

/// The batches of a file's records. An unknown age counts as `age`.
fn records(path: &Path, age: f32) -> Result<Dataset<Records>> {
    let word = required::<String>;
    let columns = (required::<f32>(), word(), word(), age, required::<f32>(), word());
    Ok(CsvDataset::new(path, columns).header(true).build()?.batch(BATCH))
}

/// The columns by name; ages occur twice, as numbers and as ranges.
fn table((_, class, sex, age, fare, port): &Records) -> Table {
    Table::new()
        .column("class", class)
        .column("sex", sex)
        .column("age", age)
        .column("ages", age)
        .column("fare", fare)
        .column("port", port)
}

fn space() -> FeatureSpace {
    let ages = Discretization::with_num_bins(6);
    // Ports are few and all known: another one is an error in the data.
    let port = StringLookup::new().num_oov_indices(0);
    FeatureSpace::new()
        .feature("class", Feature::string_categorical())
        .feature("sex", Feature::string_categorical())
        .feature("age", Feature::float_normalized())
        .feature("ages", Feature::new("float32", ages, FeatureMode::OneHot))
        .feature("fare", Feature::float_normalized())
        .feature("port", Feature::new("string", port, FeatureMode::OneHot))
        .cross(Cross::new(["class", "sex"], 16))
        .cross(Cross::new(["sex", "port"], 16))
        .cross(Cross::new(["sex", "ages"], 32))
}

/// Rows for boosted trees: words as categories, ages that may be unknown.
fn tree_rows(
    (survived, class, sex, age, fare, port): Records,
) -> tf::Result<(ArrayD<f32>, ArrayD<f32>)> {
    let words = [
        (class, StringLookup::new().vocabulary(["first", "second", "third"])),
        (sex, StringLookup::new().vocabulary(["female", "male"])),
        (port, StringLookup::new().vocabulary(["Southampton", "Cherbourg", "Cork"])),
    ];
    let mut rows = Array2::zeros((survived.len(), 5));
    for (at, (column, lookup)) in words.iter().enumerate() {
        let places = lookup.apply(column)?.to_array::<i64>()?;
        rows.column_mut(at).iter_mut().zip(&places).for_each(|(x, place)| *x = *place as f32);
    }
    rows.column_mut(3).iter_mut().zip(&age).for_each(|(x, age)| *x = *age);
    rows.column_mut(4).iter_mut().zip(&fare).for_each(|(x, fare)| *x = *fare);
    Ok((rows.into_dyn(), survived))
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    say!("adapter   {}", Device::current()?.adapter());
    std::fs::create_dir_all(&flags.out)?;
    let file = |name: &str| -> PathBuf { flags.out.join(name) };
    write_passengers(&file("passengers.csv"), PASSENGERS)?;
    write_passengers(&file("test.csv"), TEST)?;

    let (train, test) =
        (records(&file("passengers.csv"), 30.0)?, records(&file("test.csv"), 30.0)?);
    let space = Arc::new(space());
    let tables = (&train).into_iter().map(|batch| batch.map(|batch| table(&batch)));
    space.adapt_batches(tables)?;

    // The space computes on the host, in the dataset's threads.
    let encoded = |records: &Dataset<Records>| {
        let space = space.clone();
        records.clone().map(move |batch: Records| -> tf::Result<(ArrayD<f32>, ArrayD<f32>)> {
            Ok((space.apply(&table(&batch))?.to_array::<f32>()?, batch.0))
        })
    };
    let (train, test) = (encoded(&train).cache(), encoded(&test));
    let first = (&train).into_iter().next().ok_or("there are passengers")??;
    let width = first.0.shape()[1];
    say!("passenger {width} numbers from 6 columns and 3 crosses");

    let steps = || {
        let per_epoch = PASSENGERS.div_ceil(BATCH);
        let options = FitOptions::new().epochs(flags.steps.div_ceil(per_epoch));
        options.steps_per_epoch(per_epoch.min(flags.steps)).verbose(Verbose::Silent)
    };
    let quiet = || EvaluateOptions::new().verbose(Verbose::Silent);
    let adam = || Adam::new(5e-3);
    let wide = LinearClassifier::new(width, 2)?.optimizer(adam())?;
    wide.fit(&train, steps())?;
    report("wide", wide.model().count_params(), "parameters", &wide.evaluate(&test, quiet())?)?;
    let deep = DnnClassifier::new(width, &[32, 16], 2)?.optimizer(adam())?;
    deep.fit(&train, steps())?;
    report("deep", deep.model().count_params(), "parameters", &deep.evaluate(&test, quiet())?)?;
    // Each half gets all numbers.
    let twice = |data: &Dataset<(ArrayD<f32>, ArrayD<f32>)>| {
        data.clone().map(|(x, y): (ArrayD<f32>, ArrayD<f32>)| ((x.clone(), x), y))
    };
    let both = DnnLinearCombinedClassifier::new(width, width, &[32, 16], 2)?;
    let both = both.linear_optimizer(adam())?.dnn_optimizer(adam())?;
    both.fit(twice(&train), steps())?;
    let logs = both.evaluate(twice(&test), quiet())?;
    report("both", both.model().count_params(), "parameters", &logs)?;

    let tree_data =
        |name: &str| -> Result<_> { Ok(records(&file(name), f32::NAN)?.map(tree_rows)) };
    let names = ["class", "sex", "port", "age", "fare"].map(String::from).to_vec();
    let options = BoostedTreesOptions::new().n_trees(60).categorical_features([0, 1, 2]);
    let mut trees = BoostedTreesClassifier::new(2, options.feature_names(names))?;
    trees.fit(tree_data("passengers.csv")?, TreesFitOptions::new())?;
    let logs = trees.evaluate(tree_data("test.csv")?)?;
    report("trees", trees.trees().len(), "trees", &logs)?;
    let gains = trees.feature_importances(ImportanceType::Gain)?;
    for (name, gain) in trees.feature_names().iter().zip(gains) {
        say!("  {name:7} {:4.1} % of the gain", 100.0 * gain);
    }

    space.save(file("space.keras"))?;
    both.save(file("network.keras"))?;
    let space = FeatureSpace::load(file("space.keras"))?;
    let both = DnnLinearCombinedClassifier::load(file("network.keras"))?;
    let asked = Table::new()
        .column("class", &["first", "third"])
        .column("sex", &["female", "male"])
        .column("age", &[9.0f32, 40.0])
        .column("ages", &[9.0f32, 40.0])
        .column("fare", &[80.0f32, 8.0])
        .column("port", &["Cherbourg", "Southampton"]);
    let x = space.apply(&asked)?.to_tensor()?;
    let chances = both.predict(((&x, &x),), PredictOptions::new())?.probabilities();
    say!("a girl in the first class  {:5.1} %", 100.0 * chances[[0, 1]]);
    say!("a man in the third class   {:5.1} %", 100.0 * chances[[1, 1]]);
    let lost = asked.column("port", &["Cherbourg", "Atlantis"]);
    match space.apply(&lost) {
        Ok(_) => Err("an unknown port was accepted".into()),
        Err(error) => {
            say!("{error}");
            Ok(())
        }
    }
}

/// Prints the size and the accuracy of a model.
fn report(name: &str, size: usize, unit: &str, logs: &Logs) -> Result<()> {
    let share = 100.0 * logs.get("accuracy").ok_or("the metric is in the logs")?;
    say!("{name:9} {size} {unit}, {share:.1} % of {TEST} passengers");
    Ok(())
}
