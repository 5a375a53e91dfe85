//! Tests of graphs and sessions: what they compute, what they refuse, and what their checkpoints hold.

use super::*;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::random::Generator;
use crate::runtime::Device;
use crate::tensor::{Tensor, constant};

fn vec(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}

fn message<T>(result: Result<T>) -> String {
    result.err().expect("an error").to_string()
}

/// `y = x w + b`, and a step of gradient descent.
fn line(optimizer: fn() -> train::Optimizer) -> Graph {
    Graph::new(move |g| {
        let x = g.placeholder("x", DType::F32, [None, Some(2)])?;
        let target = g.placeholder("target", DType::F32, [None])?;
        let w = g.variable("w", || constant([0.5, -0.5]))?;
        let b = g.variable("b", || constant(0.25))?;
        let y = g.identity("y", &x.multiply(w.read())?.reduce_sum(1)?.add(b.read())?)?;
        let loss = g.identity("loss", &y.subtract(&target)?.square()?.reduce_mean(())?)?;
        let step = g.untrainable_variable("global_step", || constant(0))?;
        g.operation("count", move || step.assign_add(1))?;
        g.minimize("minimize", &loss, optimizer)?;
        g.group("train", &["minimize", "count"])
    })
}

fn sgd() -> train::Optimizer {
    train::gradient_descent_optimizer(0.1)
}

fn batch() -> Result<[(&'static str, Tensor); 2]> {
    let x = constant([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0]])?;
    Ok([("x", x), ("target", constant([2.0, -1.0, 1.0, 5.0])?)])
}

#[test]
fn a_session_computes_what_is_fetched() -> Result<()> {
    let session = Session::new(&line(sgd))?;
    session.run(global_variables_initializer(), &[])?;
    let x = constant([[1.0, 1.0], [2.0, 0.0]])?;
    assert_eq!(vec(&session.eval("y", &[("x", x)])?), [0.25, 1.25]);
    let [loss, nothing, w] = session.run(["loss", "train", "w"], &batch()?)?;
    // The tensors are from before the step.
    let errors: [f32; 4] = [0.75 - 2.0, -0.25 + 1.0, 0.25 - 1.0, 1.75 - 5.0];
    let expected = errors.iter().map(|e| e * e).sum::<f32>() / 4.0;
    assert_eq!((loss.unwrap().item::<f32>()?, nothing.is_none()), (expected, true));
    assert_eq!(vec(&w.unwrap()), [0.5, -0.5]);
    // By hand: dw = mean(2 e x), db = mean(2 e).
    let dw0 = (errors[0] + errors[2] + 2.0 * errors[3]) / 2.0;
    let dw1 = (errors[1] + errors[2] - errors[3]) / 2.0;
    let db = errors.iter().sum::<f32>() / 2.0;
    let [w, b, step] = session.run(["w", "b", "global_step"], &[])?;
    let w = vec(&w.unwrap());
    assert!((w[0] - (0.5 - 0.1 * dw0)).abs() < 1e-6 && (w[1] - (-0.5 - 0.1 * dw1)).abs() < 1e-6);
    assert!((b.unwrap().item::<f32>()? - (0.25 - 0.1 * db)).abs() < 1e-6);
    assert_eq!(step.unwrap().item::<i32>()?, 1);
    // One trace for each set of fetches and shapes: init, y, the step, the variables.
    for _ in 0..50 {
        session.run(["train"], &batch()?)?;
    }
    assert_eq!(session.tracing_count(), 5);
    assert!(session.eval("loss", &batch()?)?.item::<f32>()? < 0.1 * expected);
    assert_eq!(session.eval("global_step", &[])?.item::<i32>()?, 51);
    Ok(())
}

#[test]
fn each_session_has_its_own_variables() -> Result<()> {
    let graph = Graph::new(|g| {
        let start = || Generator::from_seed(7).normal([3]);
        let w = g.variable("w", start)?;
        let added = w.clone();
        g.operation("add", move || added.assign_add(1.0))?;
        g.identity("twice", &w.read().multiply(2.0)?).map(drop)
    });
    let (a, b) = (Session::new(&graph)?, Session::new(&graph)?);
    let error = a.eval("twice", &[]).unwrap_err();
    assert!(
        matches!(&error, Error::Check(text) if text.contains("attempting to use uninitialized value w")),
        "{error}"
    );
    assert!(message(a.run(["add"], &[])).contains("uninitialized value w"));
    for session in [&a, &b] {
        session.run(["init"], &[])?;
    }
    let start = vec(&a.eval("w", &[])?);
    assert_eq!(start, vec(&Generator::from_seed(7).normal([3])?));
    a.run(["add"], &[])?;
    let twice: Vec<f32> = start.iter().map(|x| (x + 1.0) * 2.0).collect();
    assert_eq!(vec(&a.eval("twice", &[])?), twice);
    assert_eq!(vec(&b.eval("w", &[])?), start);
    // The initializer starts again.
    a.run(["init"], &[])?;
    assert_eq!(vec(&a.eval("w", &[])?), start);
    Ok(())
}

#[test]
fn what_is_not_fed_is_named_only_if_it_is_needed() -> Result<()> {
    let session = Session::new(&line(sgd))?;
    session.run(["init"], &[])?;
    let x = || constant([[1.0, 1.0], [2.0, 0.0], [0.0, 0.0]]).unwrap();
    session.eval("y", &[("x", x())])?;
    for _ in 0..2 {
        let error = session.eval("loss", &[("x", x())]).unwrap_err();
        assert!(matches!(&error, Error::Data(_)));
        assert_eq!(
            error.to_string(),
            "Session::run: you must feed a value for placeholder 'target' with dtype f32 and shape [?]."
        );
    }
    assert!(message(session.run(["train"], &[])).contains("must feed a value for placeholder"));
    // A tensor that is fed needs no placeholders.
    let y = ("y", constant([1.0, 2.0])?);
    let target = ("target", constant([1.0, 4.0])?);
    assert_eq!(session.eval("loss", &[y, target])?.item::<f32>()?, 2.0);
    Ok(())
}

#[test]
fn wrong_feeds_and_fetches_are_refused() -> Result<()> {
    let session = Session::new(&line(sgd))?;
    session.run(["init"], &[])?;
    let error = session.eval("y", &[("x", constant([1.0, 2.0])?)]).unwrap_err();
    assert!(
        matches!(&error, Error::Shape(text) if text.contains("cannot feed f32[2] for 'x', which is f32[?, 2]")),
        "{error}"
    );
    let error = session.eval("y", &[("x", constant([[1, 2]])?)]).unwrap_err();
    assert!(
        matches!(&error, Error::DType(text) if text.contains("cannot feed i32[1, 2]")),
        "{error}"
    );
    let text = message(session.eval("y", &[("z", constant(1.0)?)]));
    assert!(
        text.contains("'z'") && text.contains("It has b, global_step, loss, target, w, x, y."),
        "{text}"
    );
    let text = message(session.eval("accuracy", &[]));
    assert!(text.contains("no node 'accuracy'") && text.contains("minimize"), "{text}");
    assert!(message(session.eval("train", &batch()?)).contains("'train' is an operation"));
    let twice = [("x", constant([[1.0, 2.0]])?), ("x", constant([[1.0, 2.0]])?)];
    assert!(message(session.eval("y", &twice)).contains("'x' is fed twice"));
    assert!(message(session.partial_run()).contains("partial runs are not supported"));
    session.close();
    assert!(message(session.eval("w", &[])).contains("the session is closed"));

    let same = Graph::new(|g| {
        g.identity("a", &constant(1.0)?)?;
        g.identity("a", &constant(2.0)?).map(drop)
    });
    assert!(message(Session::new(&same)?.eval("a", &[])).contains("has a node 'a' already"));
    let group = Graph::new(|g| g.group("all", &["a"]));
    assert!(message(Session::new(&group)?.run("all", &[])).contains("'a' is not an operation"));
    let constant_loss = Graph::new(|g| g.minimize("step", &constant(1.0)?, sgd));
    let error = Session::new(&constant_loss)?.run("step", &[]).unwrap_err();
    assert!(
        matches!(&error, Error::Gradient(text) if text.contains("step: no gradients")),
        "{error}"
    );
    let reads = Graph::new(|g| {
        let x = g.placeholder("x", DType::F32, [])?;
        if x.item::<f32>()? > 0.0 { Ok(()) } else { g.identity("y", &x).map(drop) }
    });
    let error = Session::new(&reads)?.eval("y", &[("x", constant(1.0)?)]).unwrap_err();
    assert!(matches!(&error, Error::Trace(_)), "{error}");
    let strict = Graph::new(|g| {
        let x = g.placeholder("x", DType::F32, [None])?;
        g.identity("y", &x.reshape([2, 5])?).map(drop)
    });
    let strict = Session::new(&strict)?;
    assert!(message(strict.run("y", &[])).contains("Nothing is fed for x"));
    assert_eq!(strict.eval("y", &[("x", Tensor::ones([10])?)])?.shape(), [2, 5]);
    Ok(())
}

#[test]
fn scopes_gradients_and_default_sessions() -> Result<()> {
    let graph = Graph::new(|g| {
        let x = g.placeholder("x", DType::F32, [])?;
        let y = g.name_scope("cube", || {
            let w = g.variable("w", || constant(2.0))?;
            g.identity("y", &(&(&x * &x) * &x).multiply(w.read())?)
        })?;
        let dy = g.gradients(&y, &x)?.expect("y depends on x");
        let ddy = g.gradients(&dy, &x)?.expect("dy depends on x");
        g.identity("dy", &dy)?;
        g.identity("ddy", &ddy).map(drop)
    });
    assert!(message(eval("dy", &[])).contains("no default session"));
    let outer = InteractiveSession::new(&graph)?;
    outer.run("init", &[])?;
    let three = || [("x", constant(3.0).unwrap())];
    assert_eq!(eval("cube/y", &three())?.item::<f32>()?, 54.0);
    assert_eq!(
        (eval("dy", &three())?.item::<f32>()?, eval("ddy", &three())?.item::<f32>()?),
        (54.0, 36.0)
    );
    let inner = Session::new(&graph)?;
    inner.as_default(|| assert!(message(eval("cube/w", &[])).contains("uninitialized")));
    assert_eq!(eval("cube/w", &[])?.item::<f32>()?, 2.0);
    outer.close();
    assert!(get_default_session().is_none());
    Ok(())
}

#[test]
fn a_session_runs_on_its_device_and_in_threads() -> Result<()> {
    let device = Device::new()?;
    let session = Session::on(&line(sgd), &device);
    session.run("init", &[])?;
    let w = session.eval("w", &[])?;
    assert!(w.device().same(&device));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let session = session.clone();
            let device = device.clone();
            scope.spawn(move || {
                for _ in 0..10 {
                    let feeds = device.scope(batch).unwrap();
                    session.run(["train"], &feeds).unwrap();
                }
            });
        }
    });
    assert_eq!(session.eval("global_step", &[])?.item::<i32>()?, 40);
    Ok(())
}

#[cfg(feature = "checkpoint")]
mod saver {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder =
            std::env::temp_dir().join(format!("wgrad-saver-{name}-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&folder));
        folder
    }

    fn continues_as_before(name: &str, optimizer: fn() -> train::Optimizer) -> Result<()> {
        let folder = folder(name);
        let graph = line(optimizer);
        let session = Session::new(&graph)?;
        let saver = Saver::new();
        assert!(
            message(saver.save(&session, folder.join("model"), None))
                .contains("w has no value yet")
        );
        session.run("init", &[])?;
        for _ in 0..3 {
            session.run("train", &batch()?)?;
        }
        let path = saver.save(&session, folder.join("model"), 3)?;
        assert!(path.ends_with("model-3"), "{}", path.display());
        session.run("train", &batch()?)?;
        let other = Session::new(&graph)?;
        // By the folder's file `checkpoint`.
        saver.restore(&other, &folder)?;
        assert_eq!(other.eval("global_step", &[])?.item::<i32>()?, 3);
        other.run("train", &batch()?)?;
        let (own, restored) = (vec(&session.eval("w", &[])?), vec(&other.eval("w", &[])?));
        for (own, restored) in own.iter().zip(restored) {
            assert!((own - restored).abs() < 1e-6, "{name}: {own} and {restored}");
        }
        // A session whose slots exist takes them, too.
        session.run("train", &batch()?)?;
        saver.restore(&session, &path)?;
        session.run("train", &batch()?)?;
        let again = vec(&session.eval("w", &[])?);
        for (own, again) in own.iter().zip(again) {
            assert!((own - again).abs() < 1e-6, "{name}: {own} and {again}");
        }
        std::fs::remove_dir_all(folder).unwrap();
        Ok(())
    }

    #[test]
    fn training_continues_from_a_checkpoint() -> Result<()> {
        continues_as_before("sgd", sgd)?;
        continues_as_before("momentum", || train::momentum_optimizer(0.05, 0.9))?;
        continues_as_before("adam", || train::adam_optimizer(0.1))?;
        continues_as_before("adagrad", || train::adagrad_optimizer(0.5))?;
        continues_as_before("nadam", || crate::keras::optimizers::Nadam::new(0.1).into())
    }

    #[test]
    fn a_saver_keeps_the_latest_checkpoints() -> Result<()> {
        let folder = folder("keep");
        let session = Session::new(&line(sgd))?;
        session.run("init", &[])?;
        let saver = Saver::new().max_to_keep(2);
        for step in 1..5 {
            saver.save(&session, folder.join("model"), step)?;
        }
        let exists = |step: u32| folder.join(format!("model-{step}.index")).exists();
        assert_eq!([1, 2, 3, 4].map(exists), [false, false, true, true]);
        assert_eq!(saver.last_checkpoints().len(), 2);
        let newest = crate::train::latest_checkpoint(&folder)?.expect("four were saved");
        assert!(newest.ends_with("model-4"));
        // Another process continues.
        let next = Saver::new().max_to_keep(2);
        next.recover_last_checkpoints(&folder)?;
        next.save(&session, folder.join("model"), 5)?;
        assert_eq!([3, 4, 5].map(exists), [false, true, true]);
        std::fs::remove_dir_all(folder).unwrap();
        Ok(())
    }

    #[test]
    fn a_checkpoint_of_another_graph_changes_nothing() -> Result<()> {
        let folder = folder("other");
        let saver = Saver::new();
        let small = Graph::new(|g| g.variable("w", || constant([9.0, 9.0])).map(drop));
        let small = Session::new(&small)?;
        small.run("init", &[])?;
        let path = saver.save(&small, folder.join("small"), None)?;
        let session = Session::new(&line(sgd))?;
        session.run("init", &[])?;
        let error = saver.restore(&session, &path).unwrap_err();
        assert!(
            matches!(&error, Error::Checkpoint(text) if text.contains("has no variable 'b'. It has w.")),
            "{error}"
        );
        assert_eq!(vec(&session.eval("w", &[])?), [0.5, -0.5]);
        let wide = Graph::new(|g| g.variable("w", || constant([1.0, 2.0, 3.0])).map(drop));
        let wide = Session::new(&wide)?;
        let error = saver.restore(&wide, &path).unwrap_err();
        assert!(matches!(&error, Error::Checkpoint(_)), "{error}");
        assert!(message(saver.restore(&wide, folder.join("none"))).contains("none"));
        std::fs::remove_dir_all(folder).unwrap();
        Ok(())
    }
}
