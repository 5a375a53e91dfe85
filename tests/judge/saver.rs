//! Sessions of TensorFlow 1 restore wgrad's checkpoints and train a step, and vice versa: `cargo xtask judge`.

use std::process::Command;

use serde_json::Value;
use wgrad::compat::v1::{Graph, Saver, Session, train};
use wgrad::{DType, Result, constant};

use crate::support::folder::Folder;

type NewOptimizer = fn() -> train::Optimizer;

/// As in the script.
const OPTIMIZERS: [(&str, NewOptimizer); 4] = [
    ("sgd", || train::gradient_descent_optimizer(0.1)),
    ("momentum", || train::momentum_optimizer(0.05, 0.9)),
    ("adam", || train::adam_optimizer(0.1)),
    ("adagrad", || train::adagrad_optimizer(0.5)),
];

fn graph(optimizer: NewOptimizer) -> Graph {
    Graph::new(move |g| {
        let x = g.placeholder("x", DType::F32, [None, Some(2)])?;
        let target = g.placeholder("target", DType::F32, [None])?;
        let w = g.variable("w", || constant([0.5, -0.5]))?;
        let b = g.variable("b", || constant(0.25))?;
        let step = g.untrainable_variable("global_step", || constant(0))?;
        let y = x.multiply(w.read())?.reduce_sum(1)?.add(b.read())?;
        let loss = y.subtract(&target)?.square()?.reduce_mean(())?;
        g.minimize("minimize", &loss, optimizer)?;
        g.operation("count", move || step.assign_add(1))?;
        g.group("train", &["minimize", "count"])
    })
}

fn train_step(session: &Session) -> Result<()> {
    let x = constant([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0]])?;
    let target = constant([2.0, -1.0, 1.0, 5.0])?;
    session.run("train", &[("x", x), ("target", target)]).map(drop)
}

/// `w`, `b` and the global step.
fn values(session: &Session) -> Result<Vec<f64>> {
    let [w, b, step] = session.run(["w", "b", "global_step"], &[])?.map(Option::unwrap);
    let w = w.to_vec::<f32>()?;
    let all = [w[0], w[1], b.item::<f32>()?, step.item::<i32>()? as f32];
    Ok(all.map(f64::from).to_vec())
}

fn assert_close(own: &[f64], other: &Value, what: &str) {
    let other: Vec<f64> =
        other.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    let close = own.iter().zip(&other).all(|(own, other)| (own - other).abs() < 1e-5);
    assert!(own.len() == other.len() && close, "{what}: {own:?} here, {other:?} in TensorFlow");
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn sessions_of_tensorflow_1_and_wgrad_continue_from_each_others_checkpoints() -> Result<()> {
    let folder = Folder::new("judge-saver");
    let mut own = Vec::new();
    for (name, optimizer) in OPTIMIZERS {
        let session = Session::new(&graph(optimizer))?;
        session.run("init", &[])?;
        for _ in 0..3 {
            train_step(&session)?;
        }
        Saver::new().save(&session, folder.path(name).join("wgrad"), 3)?;
        train_step(&session)?;
        own.push(values(&session)?);
    }
    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("`cargo xtask judge` names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/checkpoint/saver.py");
    let output = Command::new(python).arg(script).arg(folder.path("")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    for ((name, optimizer), own) in OPTIMIZERS.into_iter().zip(own) {
        let [after_wgrad, all] = &results[name].as_array().unwrap()[..] else {
            panic!("{results}")
        };
        assert_close(&own, after_wgrad, &format!("{name} after wgrad's checkpoint"));
        assert_close(&own, all, &format!("{name} from the start"));
        let session = Session::new(&graph(optimizer))?;
        Saver::new().restore(&session, folder.path(name).join("tf-3"))?;
        train_step(&session)?;
        assert_close(&values(&session)?, all, &format!("{name} after TensorFlow's checkpoint"));
    }
    Ok(())
}
