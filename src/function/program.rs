//! [`Program`]: what a function did while it was traced, in order. The recorder is an observer of the one entry point, so it
//! records what tapes and variables see, too; the calls themselves go to a trace and do not run.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::eager::{self, Effect, Observer, Owner, RunCounter};
use crate::error::{Error, Result, message};
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
    /// In a block: a value that its program passes.
    Outer(usize),
    Control(Control),
    /// A result of a [`Control`].
    Result {
        of: At,
        index: usize,
    },
}

/// Blocks that a run chooses or repeats.
pub(super) enum Control {
    /// Runs the branch of this index, the last one if there is none; a `bool` is 0 or 1.
    Choose { index: At, branches: Vec<Block> },
    /// Replaces the values, initially `start`, by those of `body` while `cond` is true, at most this often.
    Repeat { cond: Block, body: Block, start: Vec<At>, most: u64 },
}

/// A part of a program.
#[derive(Default)]
pub(super) struct Block {
    entries: Vec<Entry>,
    outputs: Vec<At>,
    /// The values of the surrounding entries that [`Entry::Outer`] names by index.
    captures: Vec<At>,
}

impl Control {
    fn blocks(&self) -> Vec<&Block> {
        match self {
            Control::Choose { branches, .. } => branches.iter().collect(),
            Control::Repeat { cond, body, .. } => vec![cond, body],
        }
    }

    fn inputs(&self) -> Vec<At> {
        let own = match self {
            Control::Choose { index, .. } => std::slice::from_ref(index),
            Control::Repeat { start, .. } => start,
        };
        let captures = self.blocks().into_iter().flat_map(|block| &block.captures);
        own.iter().chain(captures).copied().collect()
    }

    fn inputs_mut(&mut self) -> Vec<&mut At> {
        match self {
            Control::Choose { index, branches } => {
                let captures = branches.iter_mut().flat_map(|block| &mut block.captures);
                std::iter::once(index).chain(captures).collect()
            }
            Control::Repeat { cond, body, start, .. } => {
                start.iter_mut().chain(&mut cond.captures).chain(&mut body.captures).collect()
            }
        }
    }
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
            let acts = matches!(
                entry,
                Entry::Assign { .. } | Entry::Effect { .. } | Entry::Count(_) | Entry::Control(_)
            );
            needed[at] |= acts;
            if !needed[at] {
                continue;
            }
            let control;
            let inputs: &[At] = match entry {
                Entry::Assign { value, .. } => &[*value],
                Entry::Effect { inputs, .. } => inputs,
                Entry::Call(call) => &call.inputs,
                Entry::Stopped(of) | Entry::Same(of) | Entry::Result { of, .. } => &[*of],
                Entry::Control(own) => {
                    control = own.inputs();
                    &control
                }
                Entry::Argument(_)
                | Entry::Captured(_)
                | Entry::Read(_)
                | Entry::Count(_)
                | Entry::Outer(_) => &[],
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
                Entry::Stopped(of) | Entry::Same(of) | Entry::Result { of, .. } => moved(of),
                Entry::Assign { value, .. } => moved(value),
                Entry::Effect { inputs, .. } => inputs.iter_mut().for_each(moved),
                Entry::Control(control) => control.inputs_mut().into_iter().for_each(moved),
                Entry::Argument(_)
                | Entry::Captured(_)
                | Entry::Read(_)
                | Entry::Count(_)
                | Entry::Outer(_) => {}
            }
        }
        self.outputs.iter_mut().for_each(moved);
    }

    /// Whether a run must read values to know what to do.
    pub(super) fn has_control(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Control(_)))
    }

    /// Makes the program's calls eagerly, so that tapes record them and variables see them one by one.
    pub(super) fn replay(&self, arguments: &[Tensor]) -> Result<Vec<Tensor>> {
        self.replay_entries(&self.entries, &self.outputs, arguments, &[])
    }

    /// Replays a block; `outer` are the values that it captures.
    fn replay_entries(
        &self,
        entries: &[Entry],
        outputs: &[At],
        arguments: &[Tensor],
        outer: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        let mut values: Vec<Option<Tensor>> = Vec::with_capacity(entries.len());
        let mut results: HashMap<At, Vec<Tensor>> = HashMap::new();
        let value = |values: &[Option<Tensor>], at: At| -> Tensor {
            values[at as usize].clone().expect("an entry uses values of earlier entries")
        };
        for (own, entry) in entries.iter().enumerate() {
            let made = match entry {
                Entry::Argument(at) => Some(arguments[*at].clone()),
                Entry::Outer(at) => Some(outer[*at].clone()),
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
                Entry::Control(control) => {
                    let of = |at: At| value(&values, at);
                    results.insert(own as At, self.replay_control(control, &of)?);
                    None
                }
                Entry::Result { of, index } => Some(results[of][*index].clone()),
            };
            values.push(made);
        }
        Ok(outputs.iter().map(|at| value(&values, *at)).collect())
    }

    /// Runs the blocks that the values ask for; `value` is that of an entry around them.
    fn replay_control(
        &self,
        control: &Control,
        value: &dyn Fn(At) -> Tensor,
    ) -> Result<Vec<Tensor>> {
        let run = |block: &Block, arguments: &[Tensor]| {
            let outer: Vec<Tensor> = block.captures.iter().map(|at| value(*at)).collect();
            self.replay_entries(&block.entries, &block.outputs, arguments, &outer)
        };
        match control {
            Control::Choose { index, branches } => {
                let at = usize::try_from(number(&value(*index))?).unwrap_or(usize::MAX);
                run(&branches[at.min(branches.len() - 1)], &[])
            }
            Control::Repeat { cond, body, start, most } => {
                let mut values: Vec<Tensor> = start.iter().map(|at| value(*at)).collect();
                for _ in 0..*most {
                    if number(&run(cond, &values)?[0])? == 0 {
                        break;
                    }
                    values = run(body, &values)?;
                }
                Ok(values)
            }
        }
    }

    /// The program, a line for each entry.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.write_entries(&self.entries, &self.outputs, "", &mut text);
        text
    }

    fn write_entries(&self, entries: &[Entry], outputs: &[At], indent: &str, text: &mut String) {
        for (at, entry) in entries.iter().enumerate() {
            let line = match entry {
                Entry::Argument(number) => format!("%{at} = argument {number}"),
                Entry::Outer(number) => format!("%{at} = captured value {number}"),
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
                Entry::Control(Control::Choose { index, .. }) => {
                    format!("%{at} = choose by %{index} among")
                }
                Entry::Control(Control::Repeat { start, most, .. }) => match *most {
                    u64::MAX => format!("%{at} = repeat from ({})", list(start)),
                    most => format!("%{at} = repeat from ({}), at most {most} times", list(start)),
                },
                Entry::Result { of, index } => format!("%{at} = result {index} of %{of}"),
            };
            *text += &format!("{indent}{line}\n");
            if let Entry::Control(control) = entry {
                for (number, block) in control.blocks().into_iter().enumerate() {
                    let name = match control {
                        Control::Choose { .. } => format!("branch {number}"),
                        Control::Repeat { .. } => ["while", "do"][number].to_string(),
                    };
                    *text += &format!("{indent}  {name}, capturing ({}):\n", list(&block.captures));
                    let deeper = format!("{indent}    ");
                    self.write_entries(&block.entries, &block.outputs, &deeper, text);
                }
            }
        }
        *text += &format!("{indent}return ({})\n", list(outputs));
    }
}

/// `%1, %2`
fn list(entries: &[At]) -> String {
    entries.iter().map(|at| format!("%{at}")).collect::<Vec<_>>().join(", ")
}

/// Reads the `bool` or `i32` that decides what runs.
fn number(x: &Tensor) -> Result<i32> {
    #[cfg(not(target_family = "wasm"))]
    return match x.dtype() {
        DType::Bool => x.item::<bool>().map(i32::from),
        _ => x.item::<i32>(),
    };
    #[cfg(target_family = "wasm")]
    Err(crate::graph::outside_its_trace(x.value()))
}

/// Records a function.
pub(super) struct Recorder(RefCell<Recording>);

struct Recording {
    program: Program,
    /// The program's entries and those of the blocks that are being recorded in it, the innermost last.
    frames: Vec<Frame>,
    /// How many frames there were.
    serials: u32,
    /// The frame and the entry of each tensor, by its identity.
    of_tensor: HashMap<u64, (u32, At)>,
    /// Those of each traced value, by its address: some code gives a value a new identity without an entry.
    of_value: HashMap<usize, (u32, At)>,
    variable_at: HashMap<u64, usize>,
    /// Why the program cannot run.
    refused: Option<Error>,
}

/// The entries of a block while they are recorded.
#[derive(Default)]
struct Frame {
    serial: u32,
    block: Block,
    /// The own entry for each captured entry of the frame around.
    imported: HashMap<At, At>,
}

thread_local! {
    /// The recorders of this thread, the innermost last.
    static RECORDERS: RefCell<Vec<Rc<Recorder>>> = const { RefCell::new(Vec::new()) };
}

impl Recorder {
    pub(super) fn new(device: Device) -> Self {
        Recorder(RefCell::new(Recording {
            program: Program::new(device),
            frames: vec![Frame::default()],
            serials: 1,
            of_tensor: HashMap::new(),
            of_value: HashMap::new(),
            variable_at: HashMap::new(),
            refused: None,
        }))
    }

    /// Runs `f` with this recorder as the thread's current one.
    pub(super) fn recording<R>(self: &Rc<Self>, f: impl FnOnce() -> R) -> R {
        struct End;
        impl Drop for End {
            fn drop(&mut self) {
                RECORDERS.with_borrow_mut(Vec::pop);
            }
        }
        RECORDERS.with_borrow_mut(|recorders| recorders.push(self.clone()));
        let _end = End;
        f()
    }

    /// The recorder of the function that this thread traces.
    pub(super) fn current() -> Option<Rc<Self>> {
        RECORDERS.with_borrow(|recorders| recorders.last().cloned())
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
        let at = self.entry_of(tensor);
        self.0.borrow_mut().program.outputs.push(at);
    }

    /// The entry of a value that the next entries use.
    pub(super) fn entry_of(&self, tensor: &Tensor) -> At {
        self.0.borrow_mut().at(tensor)
    }

    /// Records a block: `f` of placeholders for `arguments` returns the block's results and something for the caller.
    pub(super) fn block<T>(
        &self,
        arguments: &[Tensor],
        f: impl FnOnce(Vec<Tensor>) -> Result<(T, Vec<Tensor>)>,
    ) -> Result<(Block, T)> {
        {
            let mut recording = self.0.borrow_mut();
            let serial = recording.serials;
            recording.serials += 1;
            recording.frames.push(Frame { serial, ..Frame::default() });
        }
        let symbols: Vec<Tensor> = arguments.iter().map(symbol_like).collect();
        for (number, symbol) in symbols.iter().enumerate() {
            self.0.borrow_mut().make(symbol, Entry::Argument(number));
        }
        let done = eager::branch(|| f(symbols));
        let mut recording = self.0.borrow_mut();
        let outputs = done.map(|(result, outputs)| {
            let outputs = outputs.iter().map(|tensor| recording.at(tensor)).collect::<Vec<At>>();
            (result, outputs)
        });
        let frame = recording.frames.pop().unwrap_or_default();
        let (result, outputs) = outputs?;
        Ok((Block { outputs, ..frame.block }, result))
    }

    /// Adds a choice or a loop, with results of the shapes and dtypes of `like`.
    pub(super) fn control(&self, control: Control, like: &[Tensor]) -> Vec<Tensor> {
        let mut recording = self.0.borrow_mut();
        let of = recording.push(Entry::Control(control));
        let results = like.iter().enumerate().map(|(index, like)| {
            let result = symbol_like(like);
            recording.make(&result, Entry::Result { of, index });
            result
        });
        results.collect()
    }

    /// The program.
    ///
    /// # Errors
    /// [`Error::Trace`] if it cannot run as a function.
    pub(super) fn end(&self) -> Result<Program> {
        let mut recording = self.0.borrow_mut();
        if let Some(error) = recording.refused.take() {
            return Err(error);
        }
        // A panic that the closure caught may have ended a block without its results.
        if recording.frames.len() > 1 {
            return Err(Error::Trace(
                "function: a closure of cond, switch_case or while_loop panicked, and its caller went on. Return an Err from \
                 it instead, or do not catch the panic."
                    .into(),
            ));
        }
        let empty = Program::new(recording.program.device.clone());
        let mut program = std::mem::replace(&mut recording.program, empty);
        program.entries = recording.frames.pop().unwrap_or_default().block.entries;
        program.prune();
        Ok(program)
    }
}

fn symbol_like(tensor: &Tensor) -> Tensor {
    eager::placeholder_on(tensor.device(), tensor.spec().clone())
}

impl Recording {
    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the program's frame stays until the end")
    }

    fn push(&mut self, entry: Entry) -> At {
        let entries = &mut self.frame().block.entries;
        entries.push(entry);
        entries.len() as At - 1
    }

    /// Adds an entry that makes `tensor`.
    fn make(&mut self, tensor: &Tensor, entry: Entry) -> At {
        if !tensor.device().same(&self.program.device) {
            let (own, other) = (self.program.device.named(), tensor.device().named());
            self.refused.get_or_insert_with(|| {
                Error::Trace(message!(
                    "function: the closure uses {own} and {other}, and a function runs on one device. Copy tensors to its \
                     device before the call."
                ))
            });
        }
        let at = self.push(entry);
        let place = (self.frame().serial, at);
        self.of_tensor.insert(tensor.id(), place);
        if tensor.value().traced().is_some() {
            self.of_value.entry(Arc::as_ptr(tensor.value()) as usize).or_insert(place);
        }
        at
    }

    /// The entry of a tensor; one that the function did not make is captured.
    fn at(&mut self, tensor: &Tensor) -> At {
        if let Some((serial, at)) = self.of_tensor.get(&tensor.id()).copied() {
            return self.import(tensor, serial, at);
        }
        let known = tensor.value().traced().and_then(|_| {
            let address = Arc::as_ptr(tensor.value()) as usize;
            self.of_value.get(&address).copied()
        });
        match known {
            Some((serial, at)) => {
                let at = self.import(tensor, serial, at);
                self.make(tensor, Entry::Same(at))
            }
            None => self.make(tensor, Entry::Captured(tensor.clone())),
        }
    }

    /// The entry in the innermost frame for the entry `at` of the frame `serial`.
    fn import(&mut self, tensor: &Tensor, serial: u32, mut at: At) -> At {
        let Some(from) = self.frames.iter().position(|frame| frame.serial == serial) else {
            let spec = tensor.spec();
            self.refused.get_or_insert_with(|| {
                Error::Trace(message!(
                    "function: a tensor, {spec}, that a branch or a loop has made is used outside of it. Return it from the \
                     closure: the function has it only if that closure runs."
                ))
            });
            return self.push(Entry::Captured(tensor.clone()));
        };
        for frame in &mut self.frames[from + 1..] {
            let Frame { block, imported, .. } = frame;
            at = *imported.entry(at).or_insert_with(|| {
                block.captures.push(at);
                block.entries.push(Entry::Outer(block.captures.len() - 1));
                block.entries.len() as At - 1
            });
        }
        at
    }

    fn variable(&mut self, variable: &Variable) -> usize {
        let variables = &mut self.program.variables;
        *self.variable_at.entry(variable.id()).or_insert_with(|| {
            variables.push(variable.clone());
            variables.len() - 1
        })
    }

    fn add_owner(&mut self, output: &Tensor, owner: &Owner<Result<RuntimeScalars>>) {
        let place = self.of_tensor.get(&output.id()).copied();
        let frame = self.frame();
        let at = place.filter(|(serial, _)| *serial == frame.serial).map(|(_, at)| at as usize);
        if let Some(Entry::Call(call)) = at.and_then(|at| frame.block.entries.get_mut(at)) {
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
            recording.push(Entry::Assign { variable, value });
        }
    }

    fn gradients_ended(&self) {
        let mut recording = self.0.borrow_mut();
        // A program with blocks has no graph.
        if let [program] = &recording.frames[..] {
            recording.program.gradients = program.block.entries.len();
        }
    }

    fn happens(&self, inputs: &[&Tensor], effect: &Effect) {
        let mut recording = self.0.borrow_mut();
        let inputs = inputs.iter().map(|input| recording.at(input)).collect();
        recording.push(Entry::Effect { inputs, effect: effect.clone() });
    }

    fn counts(&self, counter: &Arc<dyn RunCounter>) {
        self.0.borrow_mut().push(Entry::Count(counter.clone()));
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
