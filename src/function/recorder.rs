//! [`Recorder`]: records a function's program. It is an observer of the one entry point, so it records what tapes and variables
//! see, too; the calls themselves go to a trace and do not run.

use std::cell::RefCell;
#[cfg(not(target_family = "wasm"))]
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

#[cfg(not(target_family = "wasm"))]
use super::program::Control;
use super::program::{At, Block, Call, Entry, GradientRule, Program};
use crate::eager::{self, Effect, Observer, Owner, RunCounter};
use crate::error::{Error, Result, message};
use crate::graph::{RuntimeScalars, Spec};
use crate::ops::{DEPTH_OF_RULES, Operation, Results, Rule};
use crate::runtime::Device;
#[cfg(not(target_family = "wasm"))]
use crate::tape::with_rule;
use crate::tensor::Tensor;
use crate::variable::Variable;

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
    /// How many rules of custom gradients are being recorded, one in another.
    rules: usize,
    /// Why the program cannot run.
    refused: Option<Error>,
}

/// The entries of a block while they are recorded.
#[derive(Default)]
struct Frame {
    serial: u32,
    block: Block,
    /// The first tensor of each entry that has one.
    tensors: HashMap<At, Tensor>,
    /// The own entry for each captured entry of the frame around.
    imported: HashMap<At, At>,
}

/// A [`Control`] as the tapes inside of the function see it.
#[cfg(not(target_family = "wasm"))]
#[derive(Clone)]
struct OneOp {
    /// The frame and the entry.
    serial: u32,
    of: At,
    /// Its inputs of a float dtype.
    sources: Vec<Tensor>,
    /// The trainable variables that it reads, by their indices in the program and themselves.
    variables: Vec<usize>,
    read: Vec<Variable>,
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
            rules: 0,
            refused: None,
        }))
    }

    #[cfg(not(target_family = "wasm"))]
    pub(super) fn device(&self) -> Device {
        self.0.borrow().program.device.clone()
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
        let program = &mut self.0.borrow_mut().program;
        program.outputs.push(at);
        program.output_specs.push(tensor.spec().clone());
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
        // The frame's values are dropped, and later ones may have their addresses.
        for tensor in frame.tensors.values() {
            let address = Arc::as_ptr(tensor.value()) as usize;
            if recording.of_value.get(&address).is_some_and(|(serial, _)| *serial == frame.serial) {
                recording.of_value.remove(&address);
            }
        }
        let (result, outputs) = outputs?;
        let mut block = Block { outputs, ..frame.block };
        block.prune();
        Ok((block, result))
    }

    /// Adds a choice, a loop or a call on the host, with results of the shapes and dtypes of `like`.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn control(
        self: &Rc<Self>,
        control: Control,
        like: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        let results: Vec<Tensor> = like.iter().map(symbol_like).collect();
        let mut recording = self.0.borrow_mut();
        let serial = recording.frame().serial;
        let inputs: Vec<Tensor> = control
            .inputs()
            .into_iter()
            .filter_map(|at| recording.frame().tensors.get(&at).cloned())
            .filter(|x| x.dtype().is_float())
            .collect();
        let mut variables = BTreeSet::new();
        control.blocks().iter().for_each(|block| block.add_variables(&mut variables));
        variables.retain(|variable| recording.program.variables[*variable].trainable());
        let read: Vec<Variable> =
            variables.iter().map(|at| recording.program.variables[*at].clone()).collect();
        let of = recording.push(Entry::Control(control));
        for (index, result) in results.iter().enumerate() {
            recording.make(result, Entry::Result { of, index });
        }
        drop(recording);
        if !eager::recorded() || inputs.is_empty() && read.is_empty() {
            return Ok(results);
        }
        // A tape inside of the function sees one op, whose gradient is an entry of the program.
        let variables: Vec<usize> = variables.into_iter().collect();
        let op = OneOp { serial, of, sources: inputs.clone(), variables, read: read.clone() };
        self.as_one_op(&inputs, results, &read, self.rule(op, Vec::new()))
    }

    /// The rule for the gradients of the op, or of its gradients by `seeds`.
    #[cfg(not(target_family = "wasm"))]
    fn rule(
        self: &Rc<Self>,
        op: OneOp,
        seeds: Vec<Vec<Tensor>>,
    ) -> impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static {
        let own = Rc::as_ptr(self).addr();
        move |dys| {
            let recorder =
                Recorder::current().filter(|recorder| Rc::as_ptr(recorder).addr() == own);
            let recorder = recorder.ok_or_else(|| {
                Error::Trace(
                    "function: a tape computes the gradient of a branch or a loop after the function's trace. Call gradient in \
                     the function, or open the tape around its call."
                        .into(),
                )
            })?;
            recorder.gradient(&op, seeds.iter().cloned().chain([dys.to_vec()]).collect())
        }
    }

    /// `results` for the tapes inside of the function: results of `inputs` and `variables` by one op with this gradient.
    #[cfg(not(target_family = "wasm"))]
    fn as_one_op(
        &self,
        inputs: &[Tensor],
        results: Vec<Tensor>,
        variables: &[Variable],
        rule: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    ) -> Result<Vec<Tensor>> {
        let seen = eager::untraced(|| with_rule(inputs, results.clone(), variables, rule))?;
        let mut recording = self.0.borrow_mut();
        for (seen, result) in seen.iter().zip(&results) {
            let at = recording.at(result);
            recording.make(seen, Entry::Same(at));
        }
        Ok(seen)
    }

    /// Adds the gradients of a [`Control`] by these seeds.
    #[cfg(not(target_family = "wasm"))]
    fn gradient(self: &Rc<Self>, op: &OneOp, seeds: Vec<Vec<Tensor>>) -> Result<Vec<Tensor>> {
        let mut recording = self.0.borrow_mut();
        if recording.frame().serial != op.serial {
            return Err(Error::Trace(
                "function: a branch or a loop computes the gradient of another one outside of it. Compute the gradient in the \
                 closure that has called cond or while_loop."
                    .into(),
            ));
        }
        if seeds.len() > 1 && !recording.runs_again(op.of) {
            return Err(Error::Gradient(
                "function: a second derivative through cond, switch_case, while_loop or host_call is computed inside of the \
                 function. It runs the branch or the loop again, which therefore may not assign variables, print, draw random \
                 numbers or call the host; nor may a variable that it reads have been assigned since. Open the outer tape \
                 around the call of the function."
                    .into(),
            ));
        }
        let floats = |seeds: &[Vec<Tensor>]| -> Vec<Tensor> {
            seeds.iter().flatten().filter(|x| x.dtype().is_float()).cloned().collect()
        };
        let before = floats(&seeds[..seeds.len() - 1]);
        let specs = op.sources.iter().chain(&before).map(Tensor::spec);
        let device = recording.program.device.clone();
        let like: Vec<Tensor> = specs
            .chain(op.read.iter().map(Variable::spec))
            .map(|spec| eager::placeholder_on(&device, spec.clone()))
            .collect();
        let entries = seeds
            .iter()
            .map(|seeds| seeds.iter().map(|seed| recording.at(seed)).collect())
            .collect();
        let (of, variables) = (op.of, op.variables.clone());
        let entry = recording.push(Entry::Gradient { of, seeds: entries, variables });
        for (index, gradient) in like.iter().enumerate() {
            recording.make(gradient, Entry::Result { of: entry, index });
        }
        drop(recording);
        if !eager::recorded() {
            return Ok(like);
        }
        let inputs = [op.sources.clone(), floats(&seeds)].concat();
        self.as_one_op(&inputs, like, &op.read, self.rule(op.clone(), seeds))
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
    /// Whether the control at this entry of the innermost frame would do the same again.
    #[cfg(not(target_family = "wasm"))]
    fn runs_again(&mut self, of: At) -> bool {
        let entries = &self.frame().block.entries;
        let Some(Entry::Control(control)) = entries.get(of as usize) else { return false };
        let mut read = BTreeSet::new();
        control.blocks().iter().for_each(|block| block.add_variables(&mut read));
        let assigned = |entry: &Entry| match entry {
            Entry::Assign { variable, .. } => read.contains(variable),
            // Its blocks may assign anything.
            Entry::Control(control) => !control.only_computes(),
            _ => false,
        };
        control.only_computes() && !entries[of as usize + 1..].iter().any(assigned)
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the program's frame stays until the end")
    }

    fn push(&mut self, entry: Entry) -> At {
        let entries = &mut self.frame().block.entries;
        entries.push(entry);
        entries.len() as At - 1
    }

    /// Refuses the function if `tensor` is on another device.
    fn check_device(&mut self, tensor: &Tensor) {
        if !tensor.device().same(&self.program.device) {
            let (own, other) = (self.program.device.named(), tensor.device().named());
            self.refused.get_or_insert_with(|| {
                Error::Trace(message!(
                    "function: the closure uses {own} and {other}, and a function runs on one device. Copy tensors to its \
                     device before the call."
                ))
            });
        }
    }

    /// Adds an entry that makes `tensor`.
    fn make(&mut self, tensor: &Tensor, entry: Entry) -> At {
        self.check_device(tensor);
        let last = self.frames.len() - 1;
        self.add(last, tensor, entry).1
    }

    /// Adds an entry that makes `tensor` to the frame of this index. Returns the frame's serial number, too.
    fn add(&mut self, frame: usize, tensor: &Tensor, entry: Entry) -> (u32, At) {
        let frame = &mut self.frames[frame];
        let at = frame.block.entries.len() as At;
        frame.block.entries.push(entry);
        frame.tensors.insert(at, tensor.clone());
        let place = (frame.serial, at);
        self.of_tensor.insert(tensor.id(), place);
        if tensor.value().traced().is_some() {
            self.of_value.entry(Arc::as_ptr(tensor.value()) as usize).or_insert(place);
        }
        place
    }

    /// The entry of a tensor from outside. The program has it, not a block: other blocks may use it, too.
    fn capture(&mut self, tensor: &Tensor) -> At {
        self.check_device(tensor);
        let (serial, at) = self.add(0, tensor, Entry::Captured(tensor.clone()));
        self.import(tensor, serial, at)
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
            None => self.capture(tensor),
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
            let Frame { block, imported, tensors, .. } = frame;
            at = *imported.entry(at).or_insert_with(|| {
                block.captures.push(at);
                block.entries.push(Entry::Outer(block.captures.len() - 1));
                let own = block.entries.len() as At - 1;
                tensors.insert(own, tensor.clone());
                own
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

    /// The call of the innermost frame that has made `output`.
    fn call_of(&mut self, output: &Tensor) -> Option<&mut Call> {
        let place = self.of_tensor.get(&output.id()).copied();
        let frame = self.frame();
        let at = place.filter(|(serial, _)| *serial == frame.serial).map(|(_, at)| at as usize);
        match frame.block.entries.get_mut(at?) {
            Some(Entry::Call(call)) => Some(call),
            _ => None,
        }
    }

    fn add_owner(&mut self, output: &Tensor, owner: &Owner<Result<RuntimeScalars>>) {
        if let Some(call) = self.call_of(output) {
            call.owner = Some(owner.clone());
        }
    }

    /// Removes the last call, which has made `output`.
    fn take_call(&mut self, output: &Tensor) -> Option<Call> {
        let (serial, at) = self.of_tensor.get(&output.id()).copied()?;
        let frame = self.frame();
        let is_last = frame.serial == serial && frame.block.entries.len() == at as usize + 1;
        if !is_last || !matches!(frame.block.entries.last(), Some(Entry::Call(_))) {
            return None;
        }
        frame.tensors.remove(&at);
        let entry = frame.block.entries.pop();
        self.of_tensor.remove(&output.id());
        self.of_value.remove(&(Arc::as_ptr(output.value()) as usize));
        match entry {
            Some(Entry::Call(call)) => Some(call),
            _ => None,
        }
    }

    /// A block of the innermost frame as a program of its arguments, then of what it captures.
    fn program_of(&mut self, block: Block, arguments: &[Spec]) -> (Arc<Program>, Vec<At>) {
        let mut program = Program::new(self.program.device.clone());
        // The block's entries name them by their indices.
        program.variables.clone_from(&self.program.variables);
        program.arguments = arguments.to_vec();
        let Block { entries, outputs, captures } = block;
        let tensors = &self.frame().tensors;
        program.arguments.extend(captures.iter().map(|at| tensors[at].spec().clone()));
        program.entries = entries;
        for entry in &mut program.entries {
            if let Entry::Outer(at) = entry {
                *entry = Entry::Argument(arguments.len() + *at);
            }
        }
        program.outputs = outputs;
        (Arc::new(program), captures)
    }

    fn call(&mut self, op: &Arc<dyn Operation>, inputs: &[&Tensor], output: &Tensor) {
        let inputs = inputs.iter().map(|input| self.at(input)).collect();
        let spec = output.spec().clone();
        let call = Call { op: op.clone(), inputs, spec, owner: None, rule: None };
        self.make(output, Entry::Call(call));
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

    fn has_rule(&self, output: &Tensor, results: &Results, rule: &Rule) {
        if !self.traces() {
            return;
        }
        // The call comes after the values that its rule captures.
        let (mut call, refused, deep) = {
            let mut recording = self.0.borrow_mut();
            let Some(call) = recording.take_call(output) else { return };
            recording.rules += 1;
            (call, recording.refused.take(), recording.rules > DEPTH_OF_RULES)
        };
        let device = self.0.borrow().program.device.clone();
        let like = |spec: &Spec| eager::placeholder_on(&device, spec.clone());
        let specs = results.whole();
        let dys: Vec<Tensor> = specs.iter().map(like).collect();
        let block = match deep {
            true => Ok((Block::default(), ())),
            false => eager::unrecorded(|| self.block(&dys, |dys| Ok(((), rule(&dys)?)))),
        };
        let mut recording = self.0.borrow_mut();
        recording.rules -= 1;
        let failed = std::mem::replace(&mut recording.refused, refused);
        // If the rule fails, it does so again where a gradient is computed.
        if let (Ok((block, ())), None) = (block, failed) {
            let (program, captures) = recording.program_of(block, &specs);
            let program = match deep {
                true => Err(Error::Gradient(message!(
                    "function: the tapes around a function compute derivatives of its custom gradients up to order \
                     {DEPTH_OF_RULES}. For higher ones, open the inner tapes in the function."
                ))),
                false => Ok(program),
            };
            call.rule = Some(GradientRule { program, results: results.clone(), captures });
        }
        recording.make(output, Entry::Call(call));
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
