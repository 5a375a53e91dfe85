//! Tests that an observer that traces is notified of the whole program, and of the owners of scalars that vary.

use super::*;
use crate::keras::layers::{Dense, Dropout};
use crate::keras::optimizers::{Adam, Optimizer, Sgd};
use crate::keras::{INFERENCE, Layer, Sequential, TRAINING};
use crate::random::Generator;
use crate::tape::GradientTape;
use crate::tensor::constant;
use crate::trackable::Trackable;

/// What happened; tensors are identified as on a tape.
enum Event {
    Called { op: Arc<dyn Operation>, inputs: Vec<u64>, output: u64 },
    Created { op: Arc<dyn Operation>, owner: Option<Owner<Result<RuntimeScalars>>>, output: u64 },
    Read { variable: u64, value: u64 },
    Stopped { x: u64, y: u64 },
    Assigned { variable: u64, value: u64 },
}

/// An observer that traces.
#[derive(Default)]
struct Trace(RefCell<Vec<Event>>);

impl Trace {
    /// What happens while `f` runs.
    fn record(f: impl FnOnce() -> Result<()>) -> Result<Vec<Event>> {
        let trace = Rc::new(Trace::default());
        let observer: Rc<dyn Observer> = trace.clone();
        observe(observer.clone());
        let done = f();
        ignore(&observer);
        done.map(|()| trace.0.take())
    }

    fn add(&self, event: Event) {
        self.0.borrow_mut().push(event);
    }
}

impl Observer for Trace {
    fn called(&self, op: &Arc<dyn Operation>, inputs: &[&Tensor], output: &Tensor) {
        let inputs = inputs.iter().map(|x| x.id()).collect();
        self.add(Event::Called { op: op.clone(), inputs, output: output.id() });
    }

    fn read(&self, variable: &Variable, value: &Tensor) {
        self.add(Event::Read { variable: variable.id(), value: value.id() });
    }

    fn created(
        &self,
        op: &Arc<dyn Operation>,
        owner: Option<&Owner<Result<RuntimeScalars>>>,
        output: &Tensor,
    ) {
        self.add(Event::Created { op: op.clone(), owner: owner.cloned(), output: output.id() });
    }

    fn stopped(&self, x: &Tensor, y: &Tensor) {
        self.add(Event::Stopped { x: x.id(), y: y.id() });
    }

    fn assigned(&self, variable: &Variable, value: &Tensor) {
        self.add(Event::Assigned { variable: variable.id(), value: value.id() });
    }

    fn traces(&self) -> bool {
        true
    }
}

/// A model with dropout, and its optimizer.
struct Training {
    x: Tensor,
    model: Sequential,
    optimizer: Adam,
}

impl Training {
    /// Before its first step, with its variables made.
    fn new() -> Result<Self> {
        let x = constant([[0.5, -1.0, 2.0], [1.0, 0.25, -0.75]])?;
        let ones = || crate::keras::Initializer::Ones;
        let model = Sequential::new()
            .add(Dense::new(4).kernel_initializer(ones()))
            .add(Dropout::new(0.5).seed(11))
            .add(Dense::new(1).kernel_initializer(ones()));
        model.call(&x, INFERENCE)?;
        let optimizer = Adam::new(0.1);
        optimizer.build(&model)?;
        Ok(Training { x, model, optimizer })
    }

    fn step(&self) -> Result<()> {
        let tape = GradientTape::new();
        let loss = self.model.call(&self.x, TRAINING)?.square()?.softmax(0)?.reduce_max(())?;
        self.optimizer.minimize(&loss, tape, &self.model)
    }

    fn values(&self) -> Result<Vec<Vec<f32>>> {
        let variables = self.model.trainable_variables();
        variables.iter().chain(&self.optimizer.variables()).map(|v| v.read().to_vec()).collect()
    }
}

/// The runtime scalars of the ops without inputs, in program order.
fn words(events: &[Event]) -> Vec<RuntimeScalars> {
    let created = events.iter().filter_map(|event| match event {
        Event::Created { op, .. } => Some(op.runtime_scalars()),
        _ => None,
    });
    created.collect()
}

/// As [`words`], but the owners return those of the next run.
fn next_words(events: &[Event]) -> Result<Vec<RuntimeScalars>> {
    let created = events.iter().filter_map(|event| match event {
        Event::Created { owner: Some(owner), .. } => Some(owner()),
        Event::Created { op, .. } => Some(Ok(op.runtime_scalars())),
        _ => None,
    });
    created.collect()
}

#[test]
fn owners_give_the_numbers_of_the_next_step() -> Result<()> {
    let traced = Training::new()?;
    let first = Trace::record(|| traced.step())?;
    let asked = next_words(&first)?;
    // The second step of a separate training: the owners' answers have advanced the generator of the first.
    let stepped = Training::new()?;
    stepped.step()?;
    let second = Trace::record(|| stepped.step())?;
    assert_eq!(asked, words(&second));
    // Dropout's position in the stream and Adam's correction, once for each of four variables; all else is the same.
    let differ = words(&first).iter().zip(&asked).filter(|(now, next)| now != next).count();
    let owned = |event: &&Event| matches!(event, Event::Created { owner: Some(_), .. });
    assert_eq!(first.iter().filter(owned).count(), 5);
    assert_eq!(differ, 5);

    // Again: the third step's, with another learning rate.
    traced.optimizer.set_iterations(2);
    traced.optimizer.set_learning_rate(0.01)?;
    stepped.optimizer.set_learning_rate(0.01)?;
    let third = Trace::record(|| stepped.step())?;
    assert_eq!(next_words(&first)?, words(&third));
    Ok(())
}

#[test]
fn all_of_a_step_is_reported_in_order() -> Result<()> {
    let training = Training::new()?;
    let events = Trace::record(|| training.step())?;
    // What exists before a program begins: its inputs.
    let mut known = vec![training.x.id()];
    let (mut reads, mut assigned, mut ops) = (Vec::new(), Vec::new(), 0);
    for event in &events {
        match event {
            Event::Called { op, inputs, output } => {
                assert!(
                    inputs.iter().all(|x| known.contains(x)),
                    "{} of something unknown",
                    op.name()
                );
                known.push(*output);
                ops += 1;
            }
            Event::Created { output, .. } => known.push(*output),
            Event::Read { variable, value } => {
                assert!(!assigned.contains(variable), "read before it is assigned");
                reads.push(*variable);
                known.push(*value);
            }
            Event::Stopped { x, y } => {
                assert!(known.contains(x), "a stopped gradient of something unknown");
                known.push(*y);
            }
            Event::Assigned { variable, value } => {
                assert!(known.contains(value), "assigned something unknown");
                assigned.push(*variable);
            }
        }
    }
    // Adam's 13 ops for each of four variables, and the model's forward and backward.
    assert!(ops > 4 * 13, "{ops}");
    let mut cells: Vec<u64> =
        training.model.trainable_variables().iter().map(Variable::id).collect();
    cells.extend(training.optimizer.variables().iter().map(Variable::id));
    cells.sort_unstable();
    assigned.sort_unstable();
    assert_eq!(assigned, cells);
    assert!(cells.iter().all(|cell| reads.contains(cell)));
    Ok(())
}

#[test]
fn an_update_in_place_is_a_read_and_an_assignment() -> Result<()> {
    let v = Variable::new(&constant(1.0)?);
    let events = Trace::record(|| v.assign_add(2.0))?;
    let names: Vec<&str> = events
        .iter()
        .map(|event| match event {
            Event::Called { op, .. } | Event::Created { op, .. } => op.name(),
            Event::Read { .. } => "read",
            Event::Stopped { .. } => "stop",
            Event::Assigned { .. } => "assign",
        })
        .collect();
    assert_eq!(names, ["read", "stop", "Fill", "AddV2", "assign"]);
    Ok(())
}

#[test]
fn being_traced_changes_nothing_and_others_make_no_owners() -> Result<()> {
    let (traced, plain) = (Training::new()?, Training::new()?);
    for _ in 0..3 {
        Trace::record(|| traced.step())?;
        plain.step()?;
    }
    assert_eq!(traced.values()?, plain.values()?);

    let made = Cell::new(0);
    let make = || {
        owner(|| {
            made.set(made.get() + 1);
            || 1
        })
    };
    let _tape = GradientTape::new();
    assert!(make().is_none());
    Trace::record(|| {
        assert_eq!(make().map(|owner| owner()), Some(1));
        Ok(())
    })?;
    assert!(make().is_none());
    assert_eq!(made.get(), 1);
    Ok(())
}

#[test]
fn a_generator_and_a_learning_rate_are_asked_where_they_are_now() -> Result<()> {
    let generator = Generator::from_seed(5);
    let drawn = Trace::record(|| generator.uniform([6]).map(drop))?;
    generator.reset_from_seed(9);
    let again = Trace::record(|| Generator::from_seed(9).uniform([6]).map(drop))?;
    assert_eq!(next_words(&drawn)?, words(&again));
    // Six numbers further, because reading the owner draws.
    assert_eq!(generator.state(), [9 + 6 * 256, 0, 0]);

    let w = Variable::new(&constant(1.0)?);
    let sgd = Sgd::new(0.5);
    let step = Trace::record(|| sgd.apply_gradients(&[Some(constant(1.0)?)], &w))?;
    assert_eq!(words(&step), [RuntimeScalars::from_slice(&[0.5f32.to_bits()])]);
    sgd.set_learning_rate(0.125)?;
    assert_eq!(next_words(&step)?, [RuntimeScalars::from_slice(&[0.125f32.to_bits()])]);
    // A schedule is read for the next step.
    let scheduled = Sgd::new(|step: u64| 0.5 / (step as f64 + 1.0));
    let first = Trace::record(|| scheduled.apply_gradients(&[Some(constant(1.0)?)], &w))?;
    assert_eq!(words(&first), [RuntimeScalars::from_slice(&[0.5f32.to_bits()])]);
    assert_eq!(next_words(&first)?, [RuntimeScalars::from_slice(&[0.25f32.to_bits()])]);
    // A rate that does not fit is reported as by an eager call.
    sgd.set_learning_rate(f32::NAN)?;
    assert!(next_words(&step)?[0][0] == f32::NAN.to_bits());
    Ok(())
}
