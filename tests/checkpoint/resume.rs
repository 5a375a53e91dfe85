//! A process that resumes another's training computes the same bits.

use std::path::{Path, PathBuf};

use wgrad as tf;
use wgrad::Trackable;
use wgrad::keras::layers::{Conv2D, Dense, Dropout, Flatten, MaxPooling2D};
use wgrad::keras::metrics::Mean;
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};
use wgrad::keras::{Activation, Layer, Sequential, TRAINING};
use wgrad::random::{self, Generator};
use wgrad::train::Checkpoint;
use wgrad::{Device, Error, GradientTape, Tensor, Variable};

use crate::support::child;

/// A training program: its parts, and its step.
struct Program {
    model: Sequential,
    optimizer: Box<dyn Optimizer>,
    /// Noise on the input.
    generator: Generator,
    /// The mean loss, in programs that have one.
    mean: Option<Mean>,
    image: bool,
    /// Reads the loss before the gradients are computed.
    reads: bool,
    /// Applies `functions` to the logits.
    functions: bool,
    /// Accumulates the gradients of several batches.
    parts: usize,
}

const PROGRAMS: [&str; 7] =
    ["mlp", "cnn", "metric", "reads", "functions", "functions, read", "parts"];

/// The number of batches per step in the program with accumulation.
const PARTS: usize = 3;

/// Thirty ops without any repetition, most of them expensive functions: a kernel that takes long to compile, so that a
/// structure that runs once would use single ops.
fn functions(x: &Tensor) -> tf::Result<Tensor> {
    let mut y = x.tanh()?;
    let mut state = 12345u32;
    for _ in 0..30 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        y = match state >> 29 {
            0 => y.sin()?,
            1 => y.tanh()?,
            2 => y.erf()?,
            3 => y.cos()?.multiply(0.5)?,
            4 => y.atan()?,
            5 => y.multiply(x)?.add(0.1)?,
            6 => y.add(x)?.multiply(0.5)?,
            // An op that a driver may combine differently if one kernel has all of them.
            _ => {
                y.square()?.multiply(0.3)?.multiply(0.7)?.multiply(3.3)?.add(0.1)?.subtract(0.3)?
            }
        };
    }
    Ok(y)
}

impl Program {
    fn new(name: &str) -> tf::Result<Self> {
        look_around()?;
        random::set_seed(5);
        let dense = |units| Dense::new(units).activation(Activation::Relu);
        let model = match name {
            "cnn" => Sequential::new()
                .add(Conv2D::new(6, [3, 3]).padding(tf::Padding::Same).activation(Activation::Relu))
                .add(MaxPooling2D::new([2, 2]))
                .add(Conv2D::new(8, [3, 3]).activation(Activation::Relu))
                .add(Flatten::new())
                .add(dense(32))
                .add(Dropout::new(0.4))
                .add(Dense::new(10)),
            _ => Sequential::new()
                .add(dense(48))
                .add(Dropout::new(0.3))
                .add(dense(24))
                .add(Dropout::new(0.5))
                .add(Dense::new(10)),
        };
        let image = name == "cnn";
        Ok(Program {
            model,
            optimizer: match name {
                "metric" => Box::new(Sgd::new(0.1).momentum(0.9)),
                _ => Box::new(Adam::new(1e-2)),
            },
            generator: Generator::from_seed(77),
            mean: (name == "metric").then(|| Mean::new("loss")),
            image,
            reads: name.contains("read"),
            functions: name.contains("functions"),
            parts: if name == "parts" { PARTS } else { 1 },
        })
    }

    fn step(&self, number: u64) -> tf::Result<()> {
        let data = Generator::from_seed(1000 + number);
        // The last batch of an epoch is smaller.
        let n = if number % 4 == 3 { 12 } else { 32 };
        let shape = if self.image { vec![n, 12, 12, 1] } else { vec![n, 20] };
        let mut sums: Vec<Option<Tensor>> = Vec::new();
        let mut last = None;
        for _ in 0..self.parts {
            let x = data.normal(&shape)?.add(self.generator.normal(&shape)?.multiply(0.1)?)?;
            let labels: Vec<i32> =
                random::global().permutation(n)?.iter().map(|i| *i as i32 % 10).collect();
            let labels = Tensor::from_slice(&labels, [n])?;
            let tape = GradientTape::new();
            let mut logits = self.model.call(&x, TRAINING)?;
            if self.functions {
                logits = functions(&logits)?;
            }
            let loss = tf::sparse_softmax_cross_entropy_with_logits(&labels, &logits)?;
            let loss = loss.reduce_mean(())?;
            if self.reads {
                assert!(loss.item::<f32>()?.is_finite());
            }
            let variables = self.model.trainable_variables();
            let gradients = tape.required_gradient(&loss, &variables)?.into_iter();
            sums = match sums.is_empty() {
                true => gradients.map(Some).collect(),
                false => gradients.zip(sums).map(|(g, sum)| Some(g + sum.unwrap())).collect(),
            };
            last = Some(loss);
        }
        self.optimizer.apply_gradients(&sums, &self.model)?;
        self.optimizer.set_learning_rate(1e-2 / (1.0 + number as f32)).unwrap();
        if let (Some(mean), Some(loss)) = (&self.mean, last) {
            mean.update_state(&loss)?;
        }
        Ok(())
    }

    fn checkpoint(&self) -> Checkpoint<'_> {
        let checkpoint =
            Checkpoint::new().with("model", &self.model).with("optimizer", &self.optimizer);
        checkpoint.with("noise", &self.generator).with("mean", &self.mean)
    }

    /// The bits of everything that training changes.
    fn bits(&self) -> tf::Result<Vec<u32>> {
        let mut bits = Vec::new();
        for variable in (&self.model, &self.optimizer, &self.mean).variables() {
            bits.extend(variable.read().to_vec::<f32>()?.iter().map(|x| x.to_bits()));
        }
        Ok(bits)
    }
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("wgrad-resume-{name}-{}/ckpt", std::process::id()))
}

/// Runs only the test `part` of this program again.
fn in_a_process(part: &str, program: &str, path: &Path, steps: [u64; 2]) -> Vec<u32> {
    let output = child::command(module_path!(), part)
        .env("RESUME_PROGRAM", program)
        .env("RESUME_FILE", path)
        .env("RESUME_STEPS", format!("{} {}", steps[0], steps[1]))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {text}{errors}");
    let bits = text.lines().find_map(|line| line.split_once("bits ")).unwrap().1;
    bits.split(' ').map(|word| word.parse().unwrap()).collect()
}

fn given_by_environment() -> (Program, PathBuf, [u64; 2]) {
    let program = Program::new(&std::env::var("RESUME_PROGRAM").unwrap()).unwrap();
    let steps = std::env::var("RESUME_STEPS").unwrap();
    let (from, to) = steps.split_once(' ').unwrap();
    let path = std::env::var("RESUME_FILE").unwrap().into();
    (program, path, [from.parse().unwrap(), to.parse().unwrap()])
}

fn print_bits(bits: &[u32]) {
    let words: Vec<String> = bits.iter().map(u32::to_string).collect();
    // On a separate line, whatever the test harness prints.
    std::io::Write::write_all(
        &mut std::io::stdout(),
        format!("\nbits {}\n", words.join(" ")).as_bytes(),
    )
    .unwrap();
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn trains_and_saves_on_the_way() {
    let (program, path, [save, end]) = given_by_environment();
    for number in 0..end {
        if number == save {
            program.checkpoint().write(&path).unwrap();
        }
        program.step(number).unwrap();
    }
    print_bits(&program.bits().unwrap());
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn goes_on() {
    let (program, path, [from, end]) = given_by_environment();
    program.checkpoint().read(&path).unwrap().assert_consumed().unwrap();
    let device = Device::current().unwrap();
    device.flush().unwrap();
    for number in from..end {
        let before = device.stats().flushes;
        program.step(number).unwrap();
        // As in a program after warm-up; one is for the loss.
        assert_eq!(device.stats().flushes - before, 1 + u64::from(program.reads));
    }
    print_bits(&program.bits().unwrap());
}

#[test]
fn another_process_goes_on_bit_for_bit() {
    for (at, name) in PROGRAMS.into_iter().enumerate() {
        let path = file(name);
        let saves: &[u64] = if at == 0 { &[1, 6] } else { &[1 + at as u64 % 5] };
        for &save in saves {
            let whole = in_a_process("trains_and_saves_on_the_way", name, &path, [save, 8]);
            if at == 0 {
                let unsaved = in_a_process("trains_and_saves_on_the_way", name, &path, [9, 8]);
                assert!(unsaved == whole, "saving changes nothing");
            }
            let resumed = in_a_process("goes_on", name, &path, [save, 8]);
            assert_eq!(resumed.len(), whole.len());
            let differ = resumed.iter().zip(&whole).filter(|(a, b)| a != b).count();
            assert_eq!(differ, 0, "{name}, from step {save}: of {} numbers", whole.len());
        }
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}

/// Calls with new structures, as programs make them before they train. Subsequent structures are then assumed to be new, too,
/// and would run with single ops.
fn look_around() -> tf::Result<()> {
    for n in 2..14 {
        let x = Tensor::ones([n])?.add(1.0)?;
        assert_eq!(x.reduce_sum(())?.item::<f32>()?, 2.0 * n as f32);
    }
    Ok(())
}

/// Manual gradient descent, with a flush at the end of each step.
fn by_hand(device: &Device, w: &Variable, number: u64) -> tf::Result<()> {
    let x = Generator::from_seed(number).normal([24, 40])?;
    let tape = GradientTape::new();
    let y = functions(&x.matmul(w)?)?.dropout(0.2, random::global())?;
    let loss = y.subtract(0.5)?.square()?.reduce_mean(())?;
    let dw = tape.required_gradient(&loss, w)?;
    w.assign_sub(&dw * 0.1)?;
    device.flush()
}

#[test]
fn a_loop_by_hand_goes_on_bit_for_bit() -> tf::Result<()> {
    // Other tests draw from the global generator, and restore its state.
    if !child::is_alone(module_path!(), "a_loop_by_hand_goes_on_bit_for_bit") {
        return Ok(());
    }
    let start = || Generator::from_seed(3).normal([40, 16]);
    let run = |from: u64, state: [u64; 3], values: Option<&[f32]>| {
        let device = Device::new()?;
        device.scope(|| {
            look_around()?;
            random::global().reset(state);
            let w = match values {
                Some(values) => Variable::new(&Tensor::from_slice(values, [40, 16])?),
                None => Variable::new(&start()?),
            };
            let mut kept = Vec::new();
            for number in from..9 {
                by_hand(&device, &w, number)?;
                kept.push((random::global().state(), w.read().to_vec::<f32>()?));
            }
            Ok::<_, tf::Error>(kept)
        })
    };
    let whole = run(0, [9, 0, 0], None)?;
    for from in [1, 4] {
        let (state, values) = &whole[from - 1];
        let resumed = run(from as u64, *state, Some(values))?;
        for (at, (resumed, whole)) in resumed.iter().zip(&whole[from..]).enumerate() {
            assert_eq!(resumed.0, whole.0);
            assert!(resumed.1 == whole.1, "from step {from}, {at} steps later");
        }
    }
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() -> tf::Result<()> {
    let model = |units| -> tf::Result<Sequential> {
        let model = Sequential::new().add(Dense::new(units)).add(Dropout::new(0.5).seed(1));
        model.build([1, 3])?;
        Ok(model)
    };
    fn checkpoint<'a>(model: &'a Sequential, optimizer: &'a dyn Trackable) -> Checkpoint<'a> {
        Checkpoint::new().with("model", model).with("optimizer", optimizer)
    }
    let (saved, adam) = (model(2)?, Adam::new(0.5));
    adam.set_iterations(7);
    let bytes = pollster::block_on(checkpoint(&saved, &adam).to_safetensors_async())?;

    let (other, sgd) = (model(2)?, Sgd::new(0.25));
    let before = other.get_weights()?;
    let text = |checkpoint: Checkpoint, bytes: &[u8]| {
        let error = checkpoint.restore_safetensors(bytes).unwrap_err();
        assert!(matches!(error, Error::Checkpoint(_)), "{error}");
        error.to_string()
    };
    let error = text(Checkpoint::new().with("model", &other).with("sgd", &sgd), &bytes);
    assert!(
        error.starts_with("restore: the checkpoint holds 'optimizer/iterations' []")
            || error.starts_with("restore: the checkpoint holds 'optimizer/learning_rate' []"),
        "{error}"
    );
    let noise = Generator::from_seed(1);
    let error = text(checkpoint(&other, &adam).with("noise", &noise), &bytes);
    assert!(
        error.starts_with("restore: the checkpoint lacks 'noise' [3] of U64; it holds "),
        "{error}"
    );
    assert!(error.ends_with("Take a file that the same Checkpoint has saved."), "{error}");
    let weights = pollster::block_on((&saved,).to_safetensors_async())?;
    let error = text(Checkpoint::new().with("0", &other), &weights);
    assert!(
        error.starts_with("restore: the checkpoint lacks '0/dropout/generator' [3] of U64;"),
        "{error}"
    );
    let wide = model(4)?;
    let error = text(checkpoint(&wide, &Adam::new(1.0)), &bytes);
    assert!(
        error.starts_with(
            "load: 'model/dense/kernel' is [3, 2] in the weights and [3, 4] in the model."
        ),
        "{error}"
    );
    let new = || Sequential::new().add(Dense::new(2)).add(Dropout::new(0.5));
    let (unbuilt, adam_of_it) = (new(), Adam::new(1.0));
    let unsaved = checkpoint(&unbuilt, &adam_of_it);
    let error = pollster::block_on(unsaved.to_safetensors_async()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "save: 'model/dense/kernel' has no value yet, as its layer has seen no input. Call the model once, or use build."
    );
    // The first restored value may have another size than the first input requires.
    unsaved.restore_safetensors(&bytes)?;
    let error = unbuilt.build([1, 4]).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "layer 'dense': load: 'model/dense/kernel' is [3, 2] in the weights and [4, 2] in the model."
        ),
        "{error}"
    );
    unbuilt.build([1, 3])?;
    assert_eq!(unbuilt.get_weights()?, saved.get_weights()?);
    let twice = checkpoint(&saved, &adam).with("a", &noise).with("a", &noise);
    let error = pollster::block_on(twice.to_safetensors_async()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "save: two parts of the Checkpoint are called 'a'. Give one of them another name."
    );
    assert_eq!(other.get_weights()?, before);

    let its = Adam::new(1.0);
    checkpoint(&other, &its).restore_safetensors(&bytes)?;
    assert_eq!((its.iterations(), its.learning_rate()), (7, 0.5));
    assert_eq!(other.get_weights()?, saved.get_weights()?);
    Ok(())
}

#[test]
fn an_optimizer_is_restored_before_its_first_step() -> tf::Result<()> {
    let start = [[1.0f32, 2.0]];
    let program = || -> tf::Result<_> {
        let model = Sequential::new().add(Dense::new(2).use_bias(false)).add(Dense::new(1));
        Ok((model, Adam::new(0.1)))
    };
    let step = |model: &Sequential, adam: &Adam| -> tf::Result<()> {
        let tape = GradientTape::new();
        let loss = model.call(&tf::constant(start)?, TRAINING)?.square()?.reduce_mean(())?;
        adam.minimize(&loss, tape, model)
    };
    let (model, adam) = program()?;
    let checkpoint = Checkpoint::new().with("model", &model).with("optimizer", &adam);
    step(&model, &adam)?;
    step(&model, &adam)?;
    let bytes = pollster::block_on(checkpoint.to_safetensors_async())?;
    let names: Vec<String> =
        pollster::block_on(adam.named_arrays_async())?.iter().map(|a| a.name.to_string()).collect();
    assert_eq!(
        names,
        ["momentum/0", "velocity/0", "momentum/1", "velocity/1", "momentum/2", "velocity/2"]
    );

    let (resumed, its) = program()?;
    Checkpoint::new()
        .with("model", &resumed)
        .with("optimizer", &its)
        .restore_safetensors(&bytes)?;
    // Saved before its first use, it equals what was restored.
    let again = Checkpoint::new().with("model", &resumed).with("optimizer", &its);
    let again = pollster::block_on(again.to_safetensors_async())?;
    let sorted = |bytes: &[u8]| {
        let file = safetensors::SafeTensors::deserialize(bytes).unwrap();
        let mut arrays: Vec<_> =
            file.iter().map(|(name, view)| (name.to_string(), view.data().to_vec())).collect();
        arrays.sort();
        // Other tests draw from it meanwhile.
        arrays.retain(|(name, _)| name != "global_generator");
        arrays
    };
    assert_eq!(sorted(&again), sorted(&bytes));
    step(&model, &adam)?;
    step(&resumed, &its)?;
    assert_eq!(resumed.get_weights()?, model.get_weights()?);
    assert_eq!((&resumed, &its).variables().len(), (&model, &adam).variables().len());
    Ok(())
}

/// This takes a second if each name is found directly, and twenty if all are searched for each.
#[test]
fn many_variables_and_their_slots_come_back() {
    const MANY: usize = 20_000;
    let program = |first: f32| {
        let start = tf::constant([first]).unwrap();
        let variables: Vec<Variable> = (0..MANY).map(|_| Variable::new(&start)).collect();
        (variables, Sgd::new(0.5).momentum(0.5))
    };
    let checkpoint = |(variables, sgd): &(Vec<Variable>, Sgd)| {
        let (model, optimizer): (&dyn Trackable, &dyn Trackable) = (variables, sgd);
        let all = Checkpoint::new().with("model", model).with("optimizer", optimizer);
        pollster::block_on(all.to_safetensors_async()).unwrap()
    };
    let saved = program(1.0);
    saved.1.build(&saved.0).unwrap();
    for i in [0, MANY / 2, MANY - 1] {
        saved.0[i].assign(tf::constant([i as f32]).unwrap()).unwrap();
    }
    let bytes = checkpoint(&saved);
    // Before the optimizer has slots: they are pending, and saved together with the other pending values.
    let restored = program(2.0);
    let (variables, sgd) = &restored;
    let all = Checkpoint::new().with("model", variables).with("optimizer", sgd);
    all.restore_safetensors(&bytes).unwrap();
    for i in [0, 1, MANY / 2, MANY - 1] {
        let want = if i == 1 { 1.0 } else { i as f32 };
        assert_eq!(variables[i].read().item::<f32>().unwrap(), want, "{i}");
    }
    // Other tests draw from the global generator at the same time. Its state, 24 bytes, is first.
    let but_generator = |bytes: &[u8]| {
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        assert!(bytes[8..].starts_with(b"{\"global_generator\":"));
        [&bytes[..8 + header], &bytes[8 + header + 24..]].concat()
    };
    assert!(but_generator(&checkpoint(&restored)) == but_generator(&bytes));
}
