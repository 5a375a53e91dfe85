//! TensorFlow's golden cases with the public API: values, gradients, second order, training.
//!
//! A case is run in three ways (`golden/run.rs`), or listed with a reason (`golden/missing.rs`); each family prints both
//! numbers. `calls.rs` maps ops' names to calls; permitted differences are in `golden/exceptions.rs`. With
//! `WGRAD_ORACLE=<folder>` all of this applies to the full collection in that folder.

#![allow(clippy::unwrap_used)]

#[path = "support/calls.rs"]
mod calls;
#[path = "support/driver.rs"]
mod driver;
#[path = "support/formula.rs"]
mod formula;
#[path = "support/golden/mod.rs"]
mod golden;
#[path = "support/oracle.rs"]
mod oracle;
#[path = "support/root.rs"]
mod root;
#[path = "support/trajectory.rs"]
mod trajectory;

use std::path::Path;
use std::sync::{Mutex, OnceLock};

use golden::run::{Fate, Way, run};
use golden::{Tally, enter, missing, print, run_family};
use oracle::{Case, Oracle};
use serde_json::Value;
use wgrad::{Device, DeviceStats};

/// Read once for all tests.
fn the_oracle() -> &'static Oracle {
    static ORACLE: OnceLock<Oracle> = OnceLock::new();
    ORACLE.get_or_init(|| Oracle::open(&oracle::default_dir()))
}

macro_rules! family_tests {
    ($($family:ident)*) => {
        const FAMILIES: &[&str] = &[$(stringify!($family)),*];
        $(
            #[test]
            fn $family() {
                finish(stringify!($family));
            }
        )*
    };
}
// Each becomes a test that runs all cases of the family, prints the results and lists failures.
family_tests!(unary binary reduction matmul conv pool softmax losses norm gather array image rnn layers optimizers
    schedules metrics higher_order random);

/// Runs a family; the last family also prints the total.
fn finish(family: &str) {
    static DONE: Mutex<Vec<Tally>> = Mutex::new(Vec::new());
    let golden = the_oracle();
    let mut tally = run_family(golden, family);
    assert_eq!(tally.run + tally.listed(), golden.cases(family).len(), "a case was forgotten");
    {
        let mut done = DONE.lock().unwrap();
        done.push(tally.clone());
        if done.len() == FAMILIES.len() {
            let mut total = Tally::default();
            done.iter().for_each(|tally| total.add(tally));
            // The repository's selection does not need most entries.
            if oracle::whole().is_some() {
                let idle = missing::idle(&total.used);
                total.failures.extend(idle.iter().cloned());
                tally.failures.extend(idle);
            }
            print(&total.summary("total"));
        }
    }
    print(&tally.report(family));
    report(&tally.failures);
}

fn report(failures: &[String]) {
    assert!(failures.is_empty(), "{} failures:\n  {}", failures.len(), failures.join("\n  "));
}

#[test]
fn every_family_has_a_test() {
    let mut known = FAMILIES.to_vec();
    known.sort_unstable();
    assert_eq!(the_oracle().families(), known);
}

#[test]
fn every_case_can_be_read() {
    let golden = the_oracle();
    for case in golden.all() {
        let lists = [&case.inputs, &case.grads];
        let lists = lists.into_iter().flatten().flat_map(|(_, names)| names);
        let singles = [
            &case.outputs,
            &case.upstream,
            &case.upstream2,
            &case.grads2,
            &case.weights,
            &case.state,
            &case.state_after,
        ];
        let singles = singles.into_iter().flatten().map(|(_, name)| name);
        for name in lists.chain(singles) {
            // Panics if there is none.
            golden.tensor(case, name);
        }
    }
}

/// Files and folders next to the cases, and where they are tested, or why they are not.
const BESIDE: &[(&str, &str)] = &[
    ("errors.json", "wrong calls: tests/errors makes them"),
    ("mnist_reference.json", "needs the real MNIST: tests/mnist_real.rs"),
    ("mnist_trajectory/mlp.json", "needs the real MNIST: tests/mnist_real.rs"),
    ("mnist_trajectory/cnn.json", "needs the real MNIST: tests/mnist_real.rs"),
    ("mnist_trajectory/cnn_lstm.json", "needs the real MNIST: tests/mnist_real.rs"),
    ("formats/checkpoint", "no reader of TensorFlow's checkpoints"),
    ("formats/checkpoint_dtypes", "no reader of TensorFlow's checkpoints"),
    ("formats/checkpoint_keras", "no reader of TensorFlow's checkpoints"),
    ("formats/checkpoint_sharded", "no reader of TensorFlow's checkpoints"),
    ("formats/events", "no writer of TensorBoard's events"),
    ("formats/images_decoded", "no decoder of pictures"),
    ("formats/keras", "no reader of Keras's files"),
    ("formats/npy", "no reader of NumPy's files"),
    ("formats/saved_model", "no reader of SavedModel"),
    ("formats/tfrecord", "no reader of TFRecord"),
];

/// The collection has more than cases; every part of it must be listed.
#[test]
fn files_next_to_the_cases_are_listed() {
    let mut tally = Tally::default();
    for path in beside_the_cases(&oracle::default_dir()) {
        let known = BESIDE.iter().find(|(name, _)| *name == path);
        tally.list(&path, known.map_or("unknown", |(_, reason)| reason));
        if known.is_none() {
            tally.failures.push(format!("{path} has no test, and is not in BESIDE"));
        }
    }
    print(&tally.report("beside the cases"));
    report(&tally.failures);
}

/// Entries of the folder that are neither a case's nor a script or a text.
fn beside_the_cases(dir: &Path) -> Vec<String> {
    let names = |dir: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let own = ["index.json", "formula.json", "formula_trajectory"];
    let mut found = Vec::new();
    for name in names(dir) {
        let family = name.strip_suffix(".safetensors").is_some_and(|it| FAMILIES.contains(&it));
        if family || own.contains(&&*name) || name.ends_with(".py") || name.ends_with(".md") {
            continue;
        }
        if !dir.join(&name).is_dir() {
            found.push(name);
            continue;
        }
        // The tensors of a trajectory are listed with its text.
        let inside = names(&dir.join(&name))
            .into_iter()
            .filter(|inside| !inside.ends_with(".safetensors") && !inside.ends_with(".py"));
        found.extend(inside.map(|inside| format!("{name}/{inside}")));
    }
    found.sort();
    found
}

/// The three ways really differ in what they run.
#[test]
fn the_ways_differ() {
    let golden = the_oracle();
    let case = golden.all().iter().find(|case| case.name == "second_mlp").unwrap();
    let of = |way: Way| -> DeviceStats {
        let device = Device::new().unwrap();
        device.set_fusion(way != Way::Unfused);
        let (_, misses) = run(golden, case, &device, way, &mut Default::default());
        assert_eq!(misses, [""; 0]);
        device.stats()
    };
    let [fused, unfused, late] = Way::ALL.map(of);
    if std::env::var_os("WGRAD_EAGER_SYNC").is_none() {
        // Forward, backward and second order, each twice; the same, once; one flush, twice.
        assert_eq!([fused.flushes, unfused.flushes, late.flushes], [6, 3, 2]);
        assert!(late.kernels < fused.kernels && fused.kernels < 2 * unfused.kernels);
    }
}

/// Runs a changed copy of a case in the late way. Returns its result.
fn changed(name: &str, change: impl FnOnce(&mut Case)) -> (Fate, Tally) {
    let golden = the_oracle();
    let mut case = golden.all().iter().find(|case| case.name == name).unwrap().clone();
    change(&mut case);
    let device = Device::new().unwrap();
    let (fate, failures) = run(golden, &case, &device, Way::Late, &mut Default::default());
    let mut tally = Tally { failures, ..Tally::default() };
    enter(&mut tally, &case, &fate);
    (fate, tally)
}

#[test]
fn what_nobody_knows_is_listed_and_fails() {
    let lacks = |what: &str| Fate::Lacks(what.to_owned());
    let (fate, tally) = changed("conv2d_k3_s1_SAME", |case| case.op = "tf.nn.conv9d".into());
    assert_eq!(fate, lacks(""));
    assert_eq!((tally.run, tally.listed()), (0, 1));
    assert_eq!(
        tally.failures,
        [
            "conv2d_k3_s1_SAME: tf.nn.conv9d has no call in tests/support/calls.rs, and is not in MISSING"
        ]
    );

    // An unread attribute, one of an unknown kind, an additional argument, a missing one.
    let set = |case: &mut Case, key: &str, value: Value| _ = case.attrs.insert(key.into(), value);
    let (fate, tally) = changed("conv2d_k3_s1_SAME", |case| set(case, "turned", true.into()));
    assert_eq!((fate, tally.failures.len()), (lacks("turned"), 1));
    let (fate, _) = changed("conv2d_k3_s1_SAME", |case| set(case, "padding", 7.into()));
    assert_eq!(fate, lacks("padding"));
    let (fate, _) = changed("conv2d_k3_s1_SAME", |case| {
        let (_, names) = case.inputs[0].clone();
        case.inputs.push(("mask".into(), names));
    });
    assert_eq!(fate, lacks("mask"));
    let (fate, _) = changed("conv2d_k3_s1_SAME", |case| case.inputs.retain(|(key, _)| key != "w"));
    assert_eq!(fate, lacks("w"));
    for (name, op) in [
        ("Dense_relu", "keras.layers.Denser"),
        ("Adam", "keras.optimizers.Adamant"),
        ("Mean", "keras.metrics.Meaner"),
    ] {
        let (fate, tally) = changed(name, |case| case.op = op.into());
        assert_eq!((fate, tally.failures.len()), (lacks(""), 1), "{op}");
    }
}

#[test]
fn what_is_listed_and_runs_all_the_same_fails() {
    let golden = the_oracle();
    let mut case = golden.all()[0].clone();
    case.op = golden::missing::LISTED_BY_TESTS.into();
    let mut tally = Tally::default();
    enter(&mut tally, &case, &Fate::Run);
    assert_eq!(
        tally.failures,
        [format!("{} ran, and keras.layers.NoSuchLayer is in MISSING", case.name)]
    );
}

#[test]
fn a_wrong_number_is_found_in_every_way() {
    let golden = the_oracle();
    let case = golden.all().iter().find(|case| case.name == "second_mlp").unwrap();
    // Another function with the same arguments.
    let mut wrong = case.clone();
    wrong.op = "matmul".into();
    wrong.inputs[0].0 = "a".into();
    wrong.inputs[1].0 = "b".into();
    wrong.inputs.truncate(2);
    for way in Way::ALL {
        let device = Device::new().unwrap();
        let (fate, misses) = run(golden, &wrong, &device, way, &mut Default::default());
        assert!(fate == Fate::Run && !misses.is_empty(), "{way}: {fate:?}");
    }
}

#[test]
fn an_exception_excuses_its_own_elements_alone() {
    // The cosine has the same exception as the sine for huge angles, but differs from the sine elsewhere.
    let (fate, tally) = changed("sin_special", |case| case.op = "tf.math.cos".into());
    assert_eq!(fate, Fate::Run);
    assert!(tally.failures[0].starts_with("first run, out.0: "), "{:?}", tally.failures);
    let (fate, tally) = changed("sin_special", |_| {});
    assert_eq!((fate, tally.failures), (Fate::Run, vec![]));
}
