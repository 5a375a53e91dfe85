//! [`Program`]: what a function did while it was traced, in order. The recorder is an observer of the one entry point, so it
//! records what tapes and variables see, too; the calls themselves go to a trace and do not run.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use crate::eager::{self, Effect, Observer, Owner, RunCounter};
use crate::error::Result;
use crate::graph::attributes::{Value as Attributes, Visitor};
use crate::graph::lower::{Lowering, LoweringContext, Variants};
use crate::graph::{Identity, Op, RuntimeScalars, Spec};
use crate::ops::{Backward, Grads, Keep, Operation};
use crate::runtime::Device;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// The index of an entry, which names the value that the entry makes.
pub(super) type At = u32;

pub(super) enum Entry {
    /// A tensor that the caller passes.
    Argument(usize),
    /// A tensor from outside of the function.
    Captured(Tensor),
    Call(Call),
    /// The value of a variable, by its index.
    Read(usize),
    /// A value under a new identity, through which no gradient passes.
    Stopped(At),
    /// A value under a new identity.
    Same(At),
    Assign {
        variable: usize,
        value: At,
    },
    Effect {
        inputs: Vec<At>,
        effect: Effect,
    },
    Count(Arc<dyn RunCounter>),
}

pub(super) struct Call {
    pub(super) op: Arc<dyn Operation>,
    pub(super) inputs: SmallVec<[At; 3]>,
    pub(super) spec: Spec,
    /// Returns the op's runtime scalars for the next run, if they vary.
    pub(super) owner: Option<Owner<Result<RuntimeScalars>>>,
}

pub(super) struct Program {
    pub(super) device: Device,
    pub(super) entries: Vec<Entry>,
    /// The shapes and dtypes of the tensors that the caller passes.
    pub(super) arguments: Vec<Spec>,
    pub(super) variables: Vec<Variable>,
    pub(super) outputs: Vec<At>,
    /// How many entries there were when a tape last computed gradients.
    pub(super) gradients: usize,
}

impl Program {
    fn new(device: Device) -> Self {
        Program {
            device,
            entries: Vec::new(),
            arguments: Vec::new(),
            variables: Vec::new(),
            outputs: Vec::new(),
            gradients: 0,
        }
    }

    /// The entries without those that no output, assignment or effect needs.
    fn prune(&mut self) {
        let mut needed = vec![false; self.entries.len()];
        for at in &self.outputs {
            needed[*at as usize] = true;
        }
        for at in (0..self.entries.len()).rev() {
            let entry = &self.entries[at];
            let acts =
                matches!(entry, Entry::Assign { .. } | Entry::Effect { .. } | Entry::Count(_));
            needed[at] |= acts;
            if !needed[at] {
                continue;
            }
            let inputs: &[At] = match entry {
                Entry::Assign { value, .. } => &[*value],
                Entry::Effect { inputs, .. } => inputs,
                Entry::Call(call) => &call.inputs,
                Entry::Stopped(of) | Entry::Same(of) => &[*of],
                Entry::Argument(_) | Entry::Captured(_) | Entry::Read(_) | Entry::Count(_) => &[],
            };
            inputs.iter().for_each(|at| needed[*at as usize] = true);
        }
        let mut new = vec![0; self.entries.len()];
        let mut count = 0;
        for (at, needed) in needed.iter().enumerate() {
            new[at] = count;
            count += u32::from(*needed);
        }
        self.gradients = needed[..self.gradients].iter().filter(|needed| **needed).count();
        let mut keep = needed.iter();
        self.entries.retain(|_| *keep.next().unwrap_or(&false));
        let moved = |at: &mut At| *at = new[*at as usize];
        for entry in &mut self.entries {
            match entry {
                Entry::Call(call) => call.inputs.iter_mut().for_each(moved),
                Entry::Stopped(of) | Entry::Same(of) => moved(of),
                Entry::Assign { value, .. } => moved(value),
                Entry::Effect { inputs, .. } => inputs.iter_mut().for_each(moved),
                Entry::Argument(_) | Entry::Captured(_) | Entry::Read(_) | Entry::Count(_) => {}
            }
        }
        self.outputs.iter_mut().for_each(moved);
    }

    /// Makes the program's calls eagerly, so that tapes record them and variables see them one by one.
    pub(super) fn replay(&self, arguments: &[Tensor]) -> Result<Vec<Tensor>> {
        let mut values: Vec<Option<Tensor>> = Vec::with_capacity(self.entries.len());
        let value = |values: &[Option<Tensor>], at: At| -> Tensor {
            values[at as usize].clone().expect("an entry uses values of earlier entries")
        };
        for entry in &self.entries {
            let made = match entry {
                Entry::Argument(at) => Some(arguments[*at].clone()),
                Entry::Captured(tensor) => Some(tensor.clone()),
                Entry::Call(call) => {
                    let inputs: SmallVec<[Tensor; 3]> =
                        call.inputs.iter().map(|at| value(&values, *at)).collect();
                    let inputs: SmallVec<[&Tensor; 3]> = inputs.iter().collect();
                    let op = match &call.owner {
                        Some(owner) => Renumbered::new(call.op.clone(), owner()?),
                        None => call.op.clone(),
                    };
                    Some(eager::call_again(op, &inputs, &self.device, call.owner.as_ref())?)
                }
                Entry::Read(variable) => Some(self.variables[*variable].read()),
                Entry::Stopped(of) => Some(value(&values, *of).stop_gradient()),
                Entry::Same(of) => Some(value(&values, *of)),
                Entry::Assign { variable, value: of } => {
                    self.variables[*variable].assign(value(&values, *of))?;
                    None
                }
                Entry::Effect { inputs, effect } => {
                    let inputs: Vec<Tensor> = inputs.iter().map(|at| value(&values, *at)).collect();
                    effect(&inputs.iter().collect::<Vec<_>>());
                    None
                }
                Entry::Count(counter) => {
                    counter.advance();
                    None
                }
            };
            values.push(made);
        }
        Ok(self.outputs.iter().map(|at| value(&values, *at)).collect())
    }

    /// The program, a line for each entry.
    pub(super) fn text(&self) -> String {
        let list =
            |inputs: &[At]| inputs.iter().map(|at| format!("%{at}")).collect::<Vec<_>>().join(", ");
        let mut text = String::new();
        for (at, entry) in self.entries.iter().enumerate() {
            text += &match entry {
                Entry::Argument(number) => format!("%{at} = argument {number}"),
                Entry::Captured(tensor) => format!("%{at} = captured: {}", tensor.spec()),
                Entry::Call(call) => {
                    let (kind, attributes) = (call.op.kind(), Attributes::from_op(&*call.op));
                    format!("%{at} = {kind}{attributes}({}): {}", list(&call.inputs), call.spec)
                }
                Entry::Read(variable) => {
                    let spec = self.variables[*variable].spec();
                    format!("%{at} = read variable {variable}: {spec}")
                }
                Entry::Stopped(of) => format!("%{at} = stop_gradient(%{of})"),
                Entry::Same(of) => format!("%{at} = %{of}"),
                Entry::Assign { variable, value } => {
                    format!("assign variable {variable} = %{value}")
                }
                Entry::Effect { inputs, .. } => format!("print or check ({})", list(inputs)),
                Entry::Count(_) => "advance a count of steps".to_string(),
            };
            text += "\n";
        }
        text += &format!("return ({})\n", list(&self.outputs));
        text
    }
}

/// Records a function.
pub(super) struct Recorder(RefCell<Recording>);

struct Recording {
    program: Program,
    /// The entry of each tensor, by its identity.
    of_tensor: HashMap<u64, At>,
    /// The entry of each traced value, by its address: some code gives a value a new identity without an entry.
    of_value: HashMap<usize, At>,
    variable_at: HashMap<u64, usize>,
    /// The devices of the calls, other than the program's.
    other_device: Option<Device>,
}

impl Recorder {
    pub(super) fn new(device: Device) -> Self {
        let program = Program::new(device);
        Recorder(RefCell::new(Recording {
            program,
            of_tensor: HashMap::new(),
            of_value: HashMap::new(),
            variable_at: HashMap::new(),
            other_device: None,
        }))
    }

    /// Adds the next argument of the function.
    pub(super) fn argument(&self, tensor: &Tensor) {
        let mut recording = self.0.borrow_mut();
        let number = recording.program.arguments.len();
        recording.program.arguments.push(tensor.spec().clone());
        recording.make(tensor, Entry::Argument(number));
    }

    /// Adds a result of the function.
    pub(super) fn output(&self, tensor: &Tensor) {
        let mut recording = self.0.borrow_mut();
        let at = recording.at(tensor);
        recording.program.outputs.push(at);
    }

    /// The program, and a device on which it calls ops besides its own.
    pub(super) fn end(&self) -> (Program, Option<Device>) {
        let mut recording = self.0.borrow_mut();
        let empty = Program::new(recording.program.device.clone());
        let mut program = std::mem::replace(&mut recording.program, empty);
        program.prune();
        (program, recording.other_device.take())
    }
}

impl Recording {
    /// Adds an entry that makes `tensor`.
    fn make(&mut self, tensor: &Tensor, entry: Entry) {
        if !tensor.device().same(&self.program.device) {
            self.other_device.get_or_insert_with(|| tensor.device().clone());
        }
        let at = self.program.entries.len() as At;
        self.program.entries.push(entry);
        self.of_tensor.insert(tensor.id(), at);
        if tensor.value().traced().is_some() {
            self.of_value.entry(Arc::as_ptr(tensor.value()) as usize).or_insert(at);
        }
    }

    /// The entry of a tensor; one that the function did not make is captured.
    fn at(&mut self, tensor: &Tensor) -> At {
        if let Some(at) = self.of_tensor.get(&tensor.id()) {
            return *at;
        }
        let known = tensor.value().traced().and_then(|_| {
            let address = Arc::as_ptr(tensor.value()) as usize;
            self.of_value.get(&address).copied()
        });
        let entry = known.map_or_else(|| Entry::Captured(tensor.clone()), Entry::Same);
        self.make(tensor, entry);
        self.program.entries.len() as At - 1
    }

    fn variable(&mut self, variable: &Variable) -> usize {
        let variables = &mut self.program.variables;
        *self.variable_at.entry(variable.id()).or_insert_with(|| {
            variables.push(variable.clone());
            variables.len() - 1
        })
    }

    fn add_owner(&mut self, output: &Tensor, owner: &Owner<Result<RuntimeScalars>>) {
        let at = self.of_tensor.get(&output.id()).copied();
        let entry = at.and_then(|at| self.program.entries.get_mut(at as usize));
        if let Some(Entry::Call(call)) = entry {
            call.owner = Some(owner.clone());
        }
    }

    fn call(&mut self, op: &Arc<dyn Operation>, inputs: &[&Tensor], output: &Tensor) {
        let inputs = inputs.iter().map(|input| self.at(input)).collect();
        let spec = output.spec().clone();
        self.make(output, Entry::Call(Call { op: op.clone(), inputs, spec, owner: None }));
    }
}

impl Observer for Recorder {
    fn called(&self, op: &Arc<dyn Operation>, inputs: &[&Tensor], output: &Tensor) {
        if self.traces() {
            self.0.borrow_mut().call(op, inputs, output);
        }
    }

    fn read(&self, variable: &Variable, value: &Tensor) {
        if self.traces() {
            let mut recording = self.0.borrow_mut();
            let variable = recording.variable(variable);
            recording.make(value, Entry::Read(variable));
        }
    }

    fn created(
        &self,
        op: &Arc<dyn Operation>,
        owner: Option<&Owner<Result<RuntimeScalars>>>,
        output: &Tensor,
    ) {
        if self.traces() {
            let mut recording = self.0.borrow_mut();
            recording.call(op, &[], output);
            if let Some(owner) = owner {
                recording.add_owner(output, owner);
            }
        }
    }

    fn varies(&self, output: &Tensor, owner: &Owner<Result<RuntimeScalars>>) {
        if self.traces() {
            self.0.borrow_mut().add_owner(output, owner);
        }
    }

    fn stopped(&self, x: &Tensor, y: &Tensor) {
        if self.traces() {
            let mut recording = self.0.borrow_mut();
            let of = recording.at(x);
            recording.make(y, Entry::Stopped(of));
        }
    }

    fn assigned(&self, variable: &Variable, value: &Tensor) {
        if self.traces() {
            let mut recording = self.0.borrow_mut();
            let (variable, value) = (recording.variable(variable), recording.at(value));
            recording.program.entries.push(Entry::Assign { variable, value });
        }
    }

    fn gradients_ended(&self) {
        let mut recording = self.0.borrow_mut();
        recording.program.gradients = recording.program.entries.len();
    }

    fn happens(&self, inputs: &[&Tensor], effect: &Effect) {
        let mut recording = self.0.borrow_mut();
        let inputs = inputs.iter().map(|input| recording.at(input)).collect();
        recording.program.entries.push(Entry::Effect { inputs, effect: effect.clone() });
    }

    fn counts(&self, counter: &Arc<dyn RunCounter>) {
        self.0.borrow_mut().program.entries.push(Entry::Count(counter.clone()));
    }

    // What is lifted out of the trace is no part of the program.
    fn traces(&self) -> bool {
        eager::traces_function()
    }
}

/// An op with other runtime scalars than it was made with.
pub(super) struct Renumbered {
    op: Arc<dyn Operation>,
    scalars: Mutex<RuntimeScalars>,
}

impl Renumbered {
    pub(super) fn new(op: Arc<dyn Operation>, scalars: RuntimeScalars) -> Arc<Self> {
        Arc::new(Renumbered { op, scalars: Mutex::new(scalars) })
    }

    pub(super) fn set(&self, scalars: RuntimeScalars) {
        *self.scalars.lock().unwrap_or_else(PoisonError::into_inner) = scalars;
    }
}

impl Identity for Renumbered {
    fn kind(&self) -> &'static str {
        self.op.kind()
    }

    fn attributes(&self, visitor: &mut dyn Visitor) {
        self.op.attributes(visitor);
    }

    fn identify(&self, state: &mut dyn std::hash::Hasher) {
        self.op.identify(state);
    }
}

impl Op for Renumbered {
    fn name(&self) -> &'static str {
        self.op.name()
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        self.op.infer(inputs)
    }

    fn runtime_scalars(&self) -> RuntimeScalars {
        self.scalars.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn scalars_vary(&self) -> bool {
        true
    }

    fn variants(&self, cx: &LoweringContext) -> Variants {
        self.op.variants(cx)
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        self.op.lower(cx)
    }
}

impl Operation for Renumbered {
    fn keep(&self) -> Keep {
        self.op.keep()
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        self.op.grad(back)
    }
}
