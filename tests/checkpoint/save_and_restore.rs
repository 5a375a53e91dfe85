//! Checkpoints: saving and restoring, also compared with TensorFlow.

#![allow(clippy::unwrap_used)]

use crate::support::folder;
use crate::support::root;

use std::sync::atomic::{AtomicU64, Ordering};

use folder::Folder;
use wgrad::keras::layers::Dense;
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Layer, Sequential, TRAINING};
use wgrad::train::Checkpoint;
use wgrad::{Error, GradientTape, Tensor, Trackable, Variable};

/// TensorFlow's own checkpoint of a Keras model and its Adam after three steps.
fn keras() -> std::path::PathBuf {
    root::root().join("tests/data/checkpoint/keras/ckpt-1")
}

fn program() -> (Sequential, Adam, AtomicU64) {
    let relu = Activation::Relu;
    let model = Sequential::new().add(Dense::new(4).activation(relu)).add(Dense::new(2));
    (model, Adam::new(0.01), AtomicU64::new(0))
}

fn checkpoint<'a>((model, adam, step): &'a (Sequential, Adam, AtomicU64)) -> Checkpoint<'a> {
    Checkpoint::new().with("model", model).with("optimizer", adam).with("step", step)
}

fn step((model, adam, step): &(Sequential, Adam, AtomicU64)) -> f32 {
    let tape = GradientTape::new();
    let x = (0..24).map(|i| (i as f32).sin()).collect::<Vec<_>>();
    let x = Tensor::from_slice(&x, [4, 6]).unwrap();
    let loss = model.call(&x, TRAINING).unwrap().square().unwrap().reduce_mean(()).unwrap();
    adam.minimize(&loss, tape, model).unwrap();
    step.fetch_add(1, Ordering::Relaxed);
    loss.item().unwrap()
}

#[test]
fn a_run_goes_on_from_its_files() {
    let folder = Folder::new("checkpoint-goes-on");
    let run = program();
    step(&run);
    step(&run);
    let path = checkpoint(&run).save(folder.path("ckpt")).unwrap();
    assert_eq!(path, folder.path("ckpt-1"));
    let whole: Vec<f32> = (0..3).map(|_| step(&run)).collect();

    let resumed = program();
    let its = checkpoint(&resumed);
    its.restore(&path).unwrap().assert_consumed().unwrap();
    assert_eq!(its.save_counter(), 1);
    assert_eq!((resumed.2.load(Ordering::Relaxed), resumed.1.iterations()), (2, 2));
    assert_eq!((0..3).map(|_| step(&resumed)).collect::<Vec<f32>>(), whole);
    assert_eq!(its.save(folder.path("ckpt")).unwrap(), folder.path("ckpt-2"));
}

#[test]
fn a_checkpoint_of_keras_is_restored_before_the_first_call() {
    let run = program();
    let status = checkpoint(&run).restore(keras()).unwrap();
    assert_eq!((status.unused(), status.missing()), (&[][..], &[][..]));
    status.assert_consumed().unwrap();
    run.0.build([1, 6]).unwrap();
    run.1.build(&run.0).unwrap();
    let arrays = std::fs::read(keras().with_extension("safetensors")).unwrap();
    let arrays = safetensors::SafeTensors::deserialize(&arrays).unwrap();
    let array = |name: &str| {
        let name = format!("{name}/.ATTRIBUTES/VARIABLE_VALUE");
        let bytes = arrays.tensor(&name).unwrap().data().to_vec();
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>()
    };
    let mut wanted: Vec<Vec<f32>> =
        (0..4).map(|i| array(&format!("optimizer/_trainable_variables/{i}"))).collect();
    wanted.extend((2..10).map(|i| array(&format!("optimizer/_variables/{i}"))));
    let found = (&run.0, &run.1).variables();
    let found: Vec<Vec<f32>> = found.iter().map(|v| v.read().to_vec().unwrap()).collect();
    assert_eq!(found, wanted);
}

/// `tf.Module`s, lists of variables, a step counter.
#[test]
fn a_checkpoint_of_modules_is_restored_by_names() {
    #[derive(Trackable)]
    struct Linear {
        w: Variable,
        b: Variable,
    }
    #[derive(Trackable)]
    struct Net {
        layers: Vec<Linear>,
    }
    let path = &root::root().join("tests/data/checkpoint/module/ckpt-2");
    let zeros = |shape: &[usize]| Variable::new(Tensor::zeros(shape).unwrap());
    let linear = |from, to| Linear { w: zeros(&[from, to]), b: zeros(&[to]) };
    let net = Net { layers: vec![linear(7, 5), linear(5, 3)] };
    let slots = || [&[5][..], &[7, 5], &[3], &[5, 3]].map(zeros);
    let (m, v, step) = (slots(), slots(), AtomicU64::new(0));
    let checkpoint = Checkpoint::new().with("net", &net).with("step", &step);
    let checkpoint = checkpoint.with("adam_m", &m).with("adam_v", &v);
    checkpoint.restore(path).unwrap().assert_consumed().unwrap();
    assert_eq!((checkpoint.save_counter(), step.load(Ordering::Relaxed)), (2, 6));
    for (variable, name) in [
        (&net.layers[0].w, "net/layers/0/w"),
        (&net.layers[1].b, "net/layers/1/b"),
        (&m[1], "adam_m/1"),
        (&v[3], "adam_v/3"),
    ] {
        let name = format!("{name}/.ATTRIBUTES/VARIABLE_VALUE");
        let wanted = wgrad::train::load_variable(path, &name).unwrap();
        let wanted = wanted.to_array::<f32>().unwrap();
        let found = variable.read().to_vec::<f32>().unwrap();
        assert_eq!(found, wanted.into_raw_vec_and_offset().0, "{name}");
        assert!(found.iter().any(|value| *value != 0.0));
    }
}

#[test]
fn a_status_says_what_did_not_fit() {
    let folder = Folder::new("checkpoint-status");
    let scalar = |value: f32| Variable::new(wgrad::constant(value).unwrap());
    let value = |variable: &Variable| variable.read().item::<f32>().unwrap();
    let (a, b) = (scalar(1.0), scalar(2.0));
    let path = Checkpoint::new().with("a", &a).with("b", &b).save(folder.path("ckpt")).unwrap();

    let (a, c) = (scalar(0.0), scalar(3.0));
    let both = Checkpoint::new().with("a", &a).with("c", &c);
    let status = both.restore(&path).unwrap();
    assert_eq!(status.missing(), ["c"]);
    assert_eq!(status.unused(), ["b/.ATTRIBUTES/VARIABLE_VALUE"]);
    status.assert_nontrivial_match().unwrap();
    assert_eq!((value(&a), value(&c)), (1.0, 3.0));
    let error = both.restore(&path).unwrap().assert_existing_objects_matched().unwrap_err();
    let path_text = path.display().to_string();
    assert_eq!(
        error.to_string(),
        format!(
            "assert_existing_objects_matched: {path_text} has no value for 'c'; it holds \
             'b/.ATTRIBUTES/VARIABLE_VALUE' that nothing here uses. Take a checkpoint of the same parts, or leave \
             these as they are with expect_partial."
        )
    );
    let one = Checkpoint::new().with("a", &a);
    one.restore(&path).unwrap().assert_existing_objects_matched().unwrap();
    assert!(one.restore(&path).unwrap().assert_consumed().is_err());
    let other = Checkpoint::new().with("z", &c);
    let error = other.restore(&path).unwrap().assert_nontrivial_match().unwrap_err().to_string();
    assert!(error.starts_with("assert_nontrivial_match: no part of the program is in "), "{error}");
    // A missing checkpoint is not an error until the program asserts it.
    let none = wgrad::train::latest_checkpoint(folder.path("empty")).unwrap();
    other.restore(none.clone()).unwrap().expect_partial();
    assert!(other.restore(none).unwrap().assert_consumed().is_err());
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let folder = Folder::new("checkpoint-shapes");
    let ones = |shape: &[usize]| Variable::new(Tensor::ones(shape).unwrap());
    let (a, b) = (ones(&[2]), ones(&[3, 4]));
    let path = Checkpoint::new().with("a", &a).with("b", &b).save(folder.path("ckpt")).unwrap();
    let (a, b) = (Variable::new(Tensor::zeros([2]).unwrap()), ones(&[4, 3]));
    let error = Checkpoint::new().with("a", &a).with("b", &b).restore(&path).err().unwrap();
    assert!(matches!(error, Error::Checkpoint(_)), "{error}");
    let text = error.to_string();
    assert!(text.starts_with(&path.display().to_string()), "{text}");
    assert!(text.contains("'b' is [3, 4] in the weights and [4, 3] in the model"), "{text}");
    assert_eq!(a.read().to_vec::<f32>().unwrap(), [0.0, 0.0]);
}

/// The part that comes after `restore` has its value when the program asserts that everything was restored.
#[test]
fn a_part_that_comes_later_has_its_value() {
    use std::sync::OnceLock;
    let folder = Folder::new("checkpoint-later");
    let made = OnceLock::from(Variable::new(wgrad::constant([1.0f32, 2.0]).unwrap()));
    let path = Checkpoint::new().with("part", &made).save(folder.path("ckpt")).unwrap();
    let later = OnceLock::new();
    let checkpoint = Checkpoint::new().with("part", &later);
    let status = checkpoint.restore(&path).unwrap();
    assert_eq!(status.unused().len(), 1);
    let part = later.get_or_init(|| Variable::new(Tensor::zeros([2]).unwrap()));
    status.assert_consumed().unwrap();
    assert_eq!(part.read().to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

/// As in a browser, which has no files.
#[test]
fn bytes_are_the_files() {
    let folder = Folder::new("checkpoint-bytes");
    let run = program();
    step(&run);
    let path = checkpoint(&run).write(folder.path("ckpt")).unwrap();
    let bytes = pollster::block_on(checkpoint(&run).to_bytes_async()).unwrap();
    let file = |ending: &str| std::fs::read(format!("{}{ending}", path.display())).unwrap();
    // Other tests may draw from the global generator meanwhile.
    assert_eq!(bytes.index.len(), file(".index").len());
    assert_eq!(bytes.data.len(), file(".data-00000-of-00001").len());
    let resumed = program();
    checkpoint(&resumed).restore_bytes(bytes).unwrap().assert_consumed().unwrap();
    assert_eq!(step(&resumed), step(&run));
}

/// Every traversal of the graph is linear: this takes a second; with quadratic traversals, minutes.
#[test]
fn many_variables_and_their_slots_come_back() {
    use wgrad::keras::optimizers::Sgd;
    const MANY: usize = 20_000;
    let start = wgrad::constant([1.0f32]).unwrap();
    let program = || {
        let variables: Vec<Variable> = (0..MANY).map(|_| Variable::new(&start)).collect();
        (variables, Sgd::new(0.5).momentum(0.5))
    };
    let (variables, sgd) = program();
    sgd.build(&variables).unwrap();
    variables[MANY / 2].assign(wgrad::constant([7.0f32]).unwrap()).unwrap();
    let saved = Checkpoint::new().with("model", &variables).with("optimizer", &sgd);
    let bytes = pollster::block_on(saved.to_bytes_async()).unwrap();
    let (variables, sgd) = program();
    let restored = Checkpoint::new().with("model", &variables).with("optimizer", &sgd);
    restored.restore_bytes(bytes).unwrap().assert_consumed().unwrap();
    assert_eq!(variables[MANY / 2].read().item::<f32>().unwrap(), 7.0);
}

#[test]
fn files_that_are_not_checkpoints_are_distinguished() {
    let folder = Folder::new("checkpoint-mistakes");
    let a = Variable::new(wgrad::constant(1.0).unwrap());
    let checkpoint = Checkpoint::new().with("a", &a);
    let path = checkpoint.save(folder.path("ckpt")).unwrap();
    let refused = |path: &std::path::Path| checkpoint.restore(path).err().unwrap().to_string();
    assert!(
        refused(&folder.path("")).contains("is a folder, not a checkpoint. Take the newest in it")
    );
    let index = std::path::PathBuf::from(format!("{}.index", path.display()));
    let text = refused(&index);
    assert!(text.ends_with(&format!("Name the checkpoint: {}.", path.display())), "{text}");
    assert!(matches!(checkpoint.restore(folder.path("none")).err(), Some(Error::Io(_))));
    let error = checkpoint.save("").unwrap_err().to_string();
    assert_eq!(error, "save: \"\" does not end with a file name; append one, such as ckpt.");
}

/// A checkpoint of `write` can be restored, and one of `save` can be read: the save counter is not part of the program.
#[test]
fn the_count_of_saves_is_never_missed() {
    let folder = Folder::new("checkpoint-counts");
    let a = Variable::new(wgrad::constant(1.0).unwrap());
    let checkpoint = Checkpoint::new().with("a", &a);
    let written = checkpoint.write(folder.path("written")).unwrap();
    let saved = checkpoint.save(folder.path("saved")).unwrap();
    let other = Checkpoint::new().with("a", &a);
    other.restore(written).unwrap().assert_consumed().unwrap();
    other.read(&saved).unwrap().assert_consumed().unwrap();
    assert_eq!(other.save_counter(), 0);
    other.restore(&saved).unwrap().assert_consumed().unwrap();
    assert_eq!(other.save_counter(), 1);
}

/// Two optimizers with variables that the checkpoint does not have; one of them also has one that it has.
#[test]
fn slots_of_variables_outside_of_the_checkpoint_come_back() {
    use wgrad::keras::optimizers::Sgd;
    let variable = |value: f32| Variable::new(wgrad::constant([value]).unwrap());
    let (inside, out, far) = (variable(1.0), variable(2.0), variable(3.0));
    let sgd = || Sgd::new(0.1).momentum(0.9);
    let (first, second) = (sgd(), sgd());
    let both = vec![inside.clone(), out.clone()];
    let grad = |value: f32| Some(wgrad::constant([value]).unwrap());
    first.apply_gradients(&[grad(1.0), grad(2.0)], &both).unwrap();
    second.apply_gradients(&[grad(3.0)], &far).unwrap();
    let parts = || {
        let checkpoint = Checkpoint::new().with("inside", &inside);
        checkpoint.with("first", &first).with("second", &second)
    };
    let slots = || -> Vec<f32> {
        let all = (&first, &second).variables();
        all.iter().map(|slot| slot.read().to_vec::<f32>().unwrap()[0]).collect()
    };
    let saved = slots();
    let bytes = pollster::block_on(parts().to_bytes_async()).unwrap();
    first.apply_gradients(&[grad(5.0), grad(6.0)], &both).unwrap();
    second.apply_gradients(&[grad(7.0)], &far).unwrap();
    assert_ne!(slots(), saved);
    parts().restore_bytes(bytes).unwrap().assert_consumed().unwrap();
    assert_eq!(slots(), saved);
}

#[test]
fn an_optimizer_that_scales_losses_is_saved_before_its_first_step() {
    use wgrad::keras::optimizers::{LossScaleOptimizer, Sgd};
    let saved = LossScaleOptimizer::new(Sgd::new(0.1)).initial_scale(64.0);
    let bytes = Checkpoint::new().with("optimizer", &saved);
    let bytes = pollster::block_on(bytes.to_bytes_async()).unwrap();
    let other = LossScaleOptimizer::new(Sgd::new(0.5));
    let checkpoint = Checkpoint::new().with("optimizer", &other);
    checkpoint.restore_bytes(bytes).unwrap().assert_consumed().unwrap();
    assert_eq!(other.dynamic_scale().unwrap().item::<f32>().unwrap(), 64.0);
    assert_eq!(other.learning_rate(), 0.1);
}

/// Like Keras's `optimizer.build`, a step creates slots for all trainable variables, in order.
#[test]
fn an_optimizers_lists_have_variables_without_gradients() {
    let folder = Folder::new("checkpoint-all-variables");
    let dense = || Dense::new(3);
    let program = || (dense(), dense(), dense());
    let model = program();
    let adam = Adam::new(0.1);
    let x = Tensor::ones([2, 3]).unwrap();
    for part in [&model.0, &model.1, &model.2] {
        part.build_for(&x);
    }
    let train = |parts: &[&Dense], model: &(Dense, Dense, Dense), adam: &Adam| {
        let tape = GradientTape::new();
        let y = parts.iter().fold(x.clone(), |y, part| part.call(&y, TRAINING).unwrap());
        let loss = y.square().unwrap().reduce_mean(()).unwrap();
        adam.minimize(&loss, tape, model).unwrap();
    };
    // The last part gets gradients first.
    train(&[&model.2], &model, &adam);
    train(&[&model.0, &model.2], &model, &adam);
    let path = Checkpoint::new().with("model", &model).with("optimizer", &adam);
    let path = path.save(folder.path("ckpt")).unwrap();
    let names = wgrad::train::list_variables(&path).unwrap();
    let slots = names.iter().filter(|(name, _)| name.starts_with("optimizer/_variables/")).count();
    assert_eq!(slots, 2 * 6);
    // Kernel and bias of each part, in the order of `trainable_variables`.
    let slot = |number: usize| {
        let name = format!("optimizer/_variables/{number}/.ATTRIBUTES/VARIABLE_VALUE");
        names.iter().find(|(known, _)| *known == name).unwrap().1.clone()
    };
    let shapes: Vec<Vec<usize>> = (0..6).map(|at| slot(2 + 2 * at)).collect();
    assert_eq!(shapes, [vec![3, 3], vec![3], vec![3, 3], vec![3], vec![3, 3], vec![3]]);
    let zero = |number: usize| {
        let name = format!("optimizer/_variables/{number}/.ATTRIBUTES/VARIABLE_VALUE");
        let value = wgrad::train::load_variable(&path, &name).unwrap();
        value.to_array::<f32>().unwrap().iter().all(|value| *value == 0.0)
    };
    assert_eq!(
        (0..6).map(|at| zero(2 + 2 * at)).collect::<Vec<_>>(),
        [false, false, true, true, false, false]
    );
}

/// Lists of only those variables that had gradients, as wgrad wrote them before 2026-11-20: shorter than the model's.
#[test]
fn an_optimizers_shorter_list_is_not_taken_for_the_whole() {
    let x = Tensor::ones([2, 3]).unwrap();
    let program = || {
        let parts = (Dense::new(3), Dense::new(3), Dense::new(3));
        for part in [&parts.0, &parts.1, &parts.2] {
            part.build_for(&x);
        }
        (parts, Adam::new(0.1))
    };
    let step = |adam: &Adam, variables: &[Variable]| {
        let grads = variables.iter().enumerate().map(|(at, variable)| {
            let ones = Tensor::ones(variable.read().shape()).unwrap();
            Some(ones.multiply(at as f32 + 1.0).unwrap())
        });
        adam.apply_gradients(&grads.collect::<Vec<_>>(), &variables).unwrap();
    };
    let at = |tensor: &Tensor| tensor.to_vec::<f32>().unwrap()[0];
    let (model, adam) = program();
    let last = model.2.trainable_variables();
    step(&adam, &last);
    let bytes = Checkpoint::new().with("model", &model).with("optimizer", &adam);
    let bytes = pollster::block_on(bytes.to_bytes_async()).unwrap();
    let (other, whole) = program();
    step(&whole, &other.trainable_variables());
    let checkpoint = Checkpoint::new().with("model", &other).with("optimizer", &whole);
    let status = checkpoint.restore_bytes(bytes).unwrap();
    let error = status.assert_consumed().unwrap_err().to_string();
    assert!(error.contains("'optimizer/velocity/model/1/kernel'"), "{error}");
    // The last layer's slots are the saved ones; the others' are unchanged.
    let momentum: Vec<f32> =
        whole.variables().iter().step_by(2).map(|slot| at(&slot.read())).collect();
    for (got, want) in momentum.iter().zip([0.1, 0.2, 0.3, 0.4, 0.1, 0.2]) {
        assert!((got - want).abs() < 1e-6, "{momentum:?}");
    }
}

trait BuildFor {
    fn build_for(&self, x: &Tensor);
}

impl BuildFor for Dense {
    fn build_for(&self, x: &Tensor) {
        self.call(x, TRAINING).unwrap();
    }
}

/// A number is used only if names do not contradict it.
#[test]
fn a_layer_that_could_be_one_or_another_is_an_error() {
    let folder = Folder::new("checkpoint-ambiguous");
    let model = |names: &[&str]| {
        let layers = names
            .iter()
            .fold(Sequential::new(), |model, name| model.add_named(name, Dense::new(3)));
        layers.build([1, 3]).unwrap();
        layers
    };
    let save = |names: &[&str]| {
        let model = model(names);
        (
            Checkpoint::new().with("model", &model).write(folder.path(&names.join("-"))).unwrap(),
            model,
        )
    };
    let restore = |path: &std::path::Path, names: &[&str]| {
        let model = model(names);
        let status = Checkpoint::new().with("model", &model).read(path);
        status.map(|status| status.assert_consumed().map(|()| model.get_weights().unwrap()))
    };
    // By names, in whatever order.
    let (path, saved) = save(&["a", "b"]);
    let weights = saved.get_weights().unwrap();
    let found = restore(&path, &["b", "a"]).unwrap().unwrap();
    assert_eq!(found, [&weights[2..], &weights[..2]].concat());
    // By numbers, if all names have changed and do not contradict.
    assert_eq!(restore(&path, &["first", "second"]).unwrap().unwrap(), weights);
    let (path, saved) = save(&["dense_4", "dense_5"]);
    assert_eq!(
        restore(&path, &["dense", "dense_1"]).unwrap().unwrap(),
        saved.get_weights().unwrap()
    );
    // Names in reverse order.
    let (path, _) = save(&["dense_5", "dense_4"]);
    let error = restore(&path, &["dense", "dense_1"]).map(drop).unwrap_err().to_string();
    for part in ["'model/dense'", "'model/dense_5/", "'model/dense_4/", "may be that of"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // A model with fewer layers uses those at its numbers, and reports the others.
    let (path, _) = save(&["x", "y", "z"]);
    let error = restore(&path, &["p", "q"]).map(drop).unwrap_err().to_string();
    assert!(error.contains("may be that of"), "{error}");
}

/// The slots of unknown variables are identified by number only, which is used only if all match.
#[test]
fn slots_without_their_variables_are_not_guessed() {
    let variable = |size: usize| Variable::new(Tensor::ones([size]).unwrap());
    let grads = |sizes: &[usize]| -> Vec<Option<Tensor>> {
        sizes.iter().map(|size| Some(Tensor::ones([*size]).unwrap())).collect()
    };
    let adam = |sizes: &[usize]| {
        let adam = Adam::new(0.1);
        let variables: Vec<Variable> = sizes.iter().map(|size| variable(*size)).collect();
        adam.apply_gradients(&grads(sizes), &variables).unwrap();
        (adam, variables)
    };
    let (saved, _saved) = adam(&[2, 3]);
    let bytes = Checkpoint::new().with("optimizer", &saved);
    let bytes = pollster::block_on(bytes.to_bytes_async()).unwrap();
    let restore = |sizes: &[usize]| {
        let (adam, _variables) = adam(sizes);
        let checkpoint = Checkpoint::new().with("optimizer", &adam);
        checkpoint.restore_bytes(bytes.clone()).map(|status| status.assert_consumed().unwrap())
    };
    restore(&[2, 3]).unwrap();
    for sizes in [&[3, 2][..], &[2], &[2, 3, 3]] {
        let error = restore(sizes).unwrap_err().to_string();
        assert!(error.contains("nothing but its number says"), "{error}");
    }
}

/// Types of a program that have the names of Keras's classes.
mod own {
    use wgrad::keras::optimizers::{self, Optimizer, OptimizerState, Step};
    use wgrad::{Tensor, Trackable, Variable};

    #[derive(Trackable)]
    pub struct Dense {
        pub kernel: Variable,
    }

    #[derive(Trackable)]
    pub struct Sequential {
        pub first: Dense,
        pub second: Dense,
    }

    #[derive(Trackable)]
    pub struct Adamax {
        #[track(flatten)]
        pub rule: optimizers::Adamax,
    }

    impl Optimizer for Adamax {
        fn state(&self) -> &OptimizerState {
            self.rule.state()
        }

        fn slot_names(&self, variable: &Variable) -> Vec<&'static str> {
            self.rule.slot_names(variable)
        }

        fn update(
            &self,
            step: &Step,
            w: &Tensor,
            g: &Tensor,
            slots: &[Tensor],
        ) -> wgrad::Result<(Tensor, Vec<Tensor>)> {
            self.rule.update(step, w, g, slots)
        }
    }
}

#[test]
fn a_type_of_a_program_is_stored_under_its_own_names() {
    let variable = |at: f32| Variable::new(Tensor::full([2, 2], at).unwrap());
    let dense = |at| own::Dense { kernel: variable(at) };
    let program = || {
        let model = own::Sequential { first: dense(1.0), second: dense(2.0) };
        (model, own::Adamax { rule: wgrad::keras::optimizers::Adamax::new(0.1) })
    };
    let (model, adamax) = program();
    let grads = || vec![Some(Tensor::ones([2, 2]).unwrap()); 2];
    adamax.apply_gradients(&grads(), &model).unwrap();

    let folder = Folder::new("checkpoint-own-names");
    let saved = Checkpoint::new().with("model", &model).with("optimizer", &adamax);
    let path = saved.save(folder.path("ckpt")).unwrap();
    // The object graph has each part's names, with their length before them.
    let data = std::fs::read(format!("{}.data-00000-of-00001", path.display())).unwrap();
    let has = |name: &str| {
        let written = [&[name.len() as u8][..], name.as_bytes()].concat();
        data.windows(written.len()).any(|window| window == written)
    };
    for name in ["first", "second", "kernel", "_momentums", "_norms"] {
        assert!(has(name), "{name}");
    }
    // Keras's Adamax has other lists, its models number their layers, and its `Dense` has another name for the kernel.
    for name in ["_m", "_u", "layer_with_weights-0", "_kernel"] {
        assert!(!has(name), "{name}");
    }

    let (again, its) = program();
    let restored = Checkpoint::new().with("model", &again).with("optimizer", &its);
    restored.restore(&path).unwrap().assert_consumed().unwrap();
    adamax.apply_gradients(&grads(), &model).unwrap();
    its.apply_gradients(&grads(), &again).unwrap();
    assert_eq!(again.get_weights().unwrap(), model.get_weights().unwrap());
}
