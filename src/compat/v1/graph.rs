//! [`Graph`] and [`GraphBuilder`]: nodes under names.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::known::{Known, Unfed};
use super::{global_variables_initializer, train};
use crate::dtype::DType;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::function::TensorSpec;
use crate::graph::Spec;
use crate::runtime::Device;
use crate::tape::{GradientTape, PersistentTape, Sources};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// Calls the closure of a graph.
type Build = dyn Fn(&GraphBuilder<'_>) -> Result<()> + Send + Sync;

/// A closure that builds nodes. A clone is the same graph.
#[derive(Clone)]
pub struct Graph(pub(super) Arc<Build>);

impl Graph {
    /// A graph of the nodes that the closure builds. It must build the same ones whenever it is called.
    pub fn new(build: impl Fn(&GraphBuilder<'_>) -> Result<()> + Send + Sync + 'static) -> Self {
        Graph(Arc::new(build))
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Graph")
    }
}

/// Returns the initial value of a variable.
type Initial = Rc<dyn Fn() -> Result<Tensor>>;

/// What an operation does when it is fetched.
type Act = Box<dyn FnOnce(&PersistentTape) -> Result<()>>;

enum Node {
    Tensor(Tensor),
    Variable(Variable),
    /// Runs other operations, then acts, unless it has.
    Operation(Vec<String>, Option<Act>),
}

/// Builds the nodes of a [`Graph`]. Each has a name, by which [`Session::run`](super::Session::run) fetches it.
pub struct GraphBuilder<'a> {
    device: Device,
    known: &'a Known,
    feeds: &'a [(String, Tensor)],
    tape: PersistentTape,
    building: RefCell<Building>,
}

#[derive(Default)]
struct Building {
    scopes: Vec<String>,
    nodes: HashMap<String, Node>,
    initial: Vec<(Variable, Initial)>,
    fed: HashSet<String>,
    unfed: Vec<String>,
}

impl<'a> GraphBuilder<'a> {
    /// Builds a graph and computes the fetches: a tensor for each that is not an operation.
    pub(super) fn run(
        graph: &Graph,
        device: &Device,
        known: &'a Known,
        fetches: &[String],
        feeds: &'a [(String, Tensor)],
    ) -> Result<Vec<Tensor>> {
        let builder = GraphBuilder {
            device: device.clone(),
            known,
            feeds,
            tape: GradientTape::persistent().keep_recording(),
            building: RefCell::default(),
        };
        let built = (graph.0)(&builder);
        builder.end(built)?;
        let fetched = builder.tensors(fetches)?;
        builder.act(fetches)?;
        Ok(fetched)
    }

    /// A tensor whose value each run feeds; `None` is a size that may vary from run to run. TensorFlow's `tf.placeholder`.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::DType`] if the value that is fed is another one, [`Error::Data`] if the name is taken.
    pub fn placeholder(
        &self,
        name: &str,
        dtype: DType,
        shape: impl AsRef<[Option<usize>]>,
    ) -> Result<Tensor> {
        let (name, spec) = (self.scoped(name), TensorSpec::new(shape, dtype));
        let value = match self.feed(&name) {
            Some(value) => {
                check_feed(&name, &spec, &value)?;
                value
            }
            None => {
                let value = eager::placeholder_on(&self.device, self.guess(&spec));
                self.building.borrow_mut().unfed.push(name.clone());
                self.known.add_unfed(value.id(), Unfed { name: name.clone(), spec });
                value
            }
        };
        if value.dtype().is_float() {
            self.tape.watch(&value)?;
        }
        self.add(name, Node::Tensor(value.clone()))?;
        Ok(value)
    }

    /// Sizes for a placeholder that is not fed: those of the first value that is, because it often is of the same batch.
    fn guess(&self, spec: &TensorSpec) -> Spec {
        let size = |(axis, size): (usize, &Option<usize>)| {
            let fed = || self.feeds.iter().find_map(|(_, value)| value.shape().get(axis).copied());
            size.or_else(fed).unwrap_or(2)
        };
        let shape: Vec<usize> = spec.shape().iter().enumerate().map(size).collect();
        Spec::new(shape, spec.dtype())
    }

    /// A variable of the session. Its value is that of `initial` once the session has run
    /// [`global_variables_initializer`]. TensorFlow's `tf.Variable`.
    ///
    /// # Errors
    /// Those of `initial`; [`Error::Data`] if the name is taken.
    pub fn variable(
        &self,
        name: &str,
        initial: impl Fn() -> Result<Tensor> + 'static,
    ) -> Result<Variable> {
        self.add_variable(name, true, Rc::new(initial))
    }

    /// As [`variable`](Self::variable), but optimizers do not change it: `tf.Variable(.., trainable=False)`.
    ///
    /// # Errors
    /// As [`variable`](Self::variable).
    pub fn untrainable_variable(
        &self,
        name: &str,
        initial: impl Fn() -> Result<Tensor> + 'static,
    ) -> Result<Variable> {
        self.add_variable(name, false, Rc::new(initial))
    }

    fn add_variable(&self, name: &str, trainable: bool, initial: Initial) -> Result<Variable> {
        let name = self.scoped(name);
        let variable = self.known.variable(&name, || {
            // The trace does not contain this call, which gives the variable its shape: later traces find the variable.
            let value = eager::lifted(|| self.tape.stop_recording(|| initial()))?;
            Ok(if trainable { Variable::new(value) } else { Variable::untrainable(value) })
        })?;
        self.add(name, Node::Variable(variable.clone()))?;
        self.building.borrow_mut().initial.push((variable.clone(), initial));
        Ok(variable)
    }

    /// Names a tensor, so that a run can fetch it. If a run feeds the name, the result is the value that is fed.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::DType`] if the value that is fed is another one, [`Error::Data`] if the name is taken.
    pub fn identity(&self, name: &str, tensor: &Tensor) -> Result<Tensor> {
        let name = self.scoped(name);
        let value = match self.feed(&name) {
            Some(value) => {
                check_feed(&name, &TensorSpec::from(tensor), &value)?;
                value
            }
            None => tensor.clone(),
        };
        self.add(name, Node::Tensor(value.clone()))?;
        Ok(value)
    }

    /// Names what a run does if it fetches the name: assignments, prints, checks.
    ///
    /// # Errors
    /// [`Error::Data`] if the name is taken.
    pub fn operation(&self, name: &str, act: impl FnOnce() -> Result<()> + 'static) -> Result<()> {
        self.add(self.scoped(name), Node::Operation(Vec::new(), Some(Box::new(|_| act()))))
    }

    /// Names several operations as one. TensorFlow's `tf.group`.
    ///
    /// # Errors
    /// [`Error::Data`] if the name is taken, or if one of the operations is not one.
    pub fn group(&self, name: &str, operations: &[&str]) -> Result<()> {
        for operation in operations {
            match self.building.borrow().nodes.get(*operation) {
                Some(Node::Operation(..)) => {}
                _ if *operation == global_variables_initializer() => {}
                _ => {
                    return Err(Error::Data(message!(
                        "GraphBuilder::group: '{operation}' is not an operation that was built before."
                    )));
                }
            }
        }
        let operations = operations.iter().map(ToString::to_string).collect();
        self.add(self.scoped(name), Node::Operation(operations, None))
    }

    /// Names a step of an optimizer, which changes all trainable variables on which the loss depends. The session calls
    /// `optimizer` once, and keeps what it returns.
    ///
    /// # Errors
    /// [`Error::Data`] if the name is taken. A run that fetches the step returns [`Error::Gradient`] if the loss depends on no
    /// variable.
    pub fn minimize(
        &self,
        name: &str,
        loss: &Tensor,
        optimizer: impl FnOnce() -> train::Optimizer,
    ) -> Result<()> {
        let name = self.scoped(name);
        let optimizer = self.known.optimizer(&name, optimizer);
        let (loss, step) = (loss.clone(), name.clone());
        let act = move |tape: &PersistentTape| {
            let variables = tape.watched_variables();
            let gradients = tape.gradient(&loss, &variables[..])?;
            let (mut own, mut changed) = (Vec::new(), Vec::new());
            for (gradient, variable) in gradients.into_iter().zip(variables) {
                if gradient.is_some() {
                    own.push(gradient);
                    changed.push(variable);
                }
            }
            if own.is_empty() {
                return Err(Error::Gradient(message!(
                    "{step}: no gradients: the loss depends on no trainable variable of the graph."
                )));
            }
            tape.stop_recording(|| optimizer.optimizer.apply_gradients(&own, &changed))
        };
        self.add(name, Node::Operation(Vec::new(), Some(Box::new(act))))
    }

    /// The gradients of a tensor by variables and tensors, `None` where it does not depend on one. TensorFlow's
    /// `tf.gradients`.
    ///
    /// # Errors
    /// Those of [`PersistentTape::gradient`].
    pub fn gradients<S: Sources>(&self, y: &Tensor, sources: S) -> Result<S::Gradients> {
        self.tape.gradient(y, sources)
    }

    /// Puts `name/` in front of the names that `f` gives. TensorFlow's `tf.name_scope`, which variables follow, too.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn name_scope<R>(&self, name: &str, f: impl FnOnce() -> Result<R>) -> Result<R> {
        self.building.borrow_mut().scopes.push(format!("{name}/"));
        let result = f();
        self.building.borrow_mut().scopes.pop();
        result
    }

    fn scoped(&self, name: &str) -> String {
        self.building.borrow().scopes.concat() + name
    }

    fn feed(&self, name: &str) -> Option<Tensor> {
        let (_, value) = self.feeds.iter().find(|(fed, _)| fed == name)?;
        self.building.borrow_mut().fed.insert(name.to_string());
        Some(value.clone())
    }

    fn add(&self, name: String, node: Node) -> Result<()> {
        let nodes = &mut self.building.borrow_mut().nodes;
        if name == global_variables_initializer() || nodes.contains_key(&name) {
            return Err(Error::Data(message!(
                "GraphBuilder: the graph has a node '{name}' already. Choose another name, or build it in a name_scope."
            )));
        }
        self.known.add_node(&name, matches!(node, Node::Operation(..)));
        nodes.insert(name, node);
        Ok(())
    }

    /// Checks what the closure has built.
    fn end(&self, built: Result<()>) -> Result<()> {
        let building = self.building.borrow();
        if let Err(error) = built {
            return match &building.unfed[..] {
                [] => Err(error),
                unfed => Err(error.reworded(|text| {
                    message!(
                        "{text} (Nothing is fed for {}: their open sizes were set to those of the values that are fed, or to \
                         2. If the graph does not fit such sizes, feed them.)",
                        unfed.join(", ")
                    )
                })),
            };
        }
        let unknown = self.feeds.iter().find(|(name, _)| !building.fed.contains(name));
        if let Some((name, _)) = unknown {
            return Err(Error::Data(message!(
                "Session::run: a value is fed for '{name}', but the graph has no placeholder and no tensor of this name. It has {}.",
                self.known.names(false)
            )));
        }
        Ok(())
    }

    /// The fetched tensors.
    fn tensors(&self, fetches: &[String]) -> Result<Vec<Tensor>> {
        let mut tensors = Vec::new();
        for name in fetches {
            match self.building.borrow().nodes.get(name) {
                Some(Node::Tensor(tensor)) => tensors.push(tensor.clone()),
                Some(Node::Variable(variable)) => tensors.push(variable.read()),
                Some(Node::Operation(..)) => {}
                None if name == global_variables_initializer() => {}
                None => {
                    return Err(Error::Data(message!(
                        "Session::run: the graph has no node '{name}'. It has {}.",
                        self.known.names(true)
                    )));
                }
            }
        }
        Ok(tensors)
    }

    /// Runs the fetched operations, each once.
    fn act(&self, fetches: &[String]) -> Result<()> {
        if fetches.iter().any(|name| name == global_variables_initializer()) {
            let initial = std::mem::take(&mut self.building.borrow_mut().initial);
            for (variable, initial) in initial {
                variable.assign(initial()?)?;
            }
        }
        for name in fetches {
            let node = match self.building.borrow_mut().nodes.get_mut(name) {
                Some(Node::Operation(operations, act)) => (std::mem::take(operations), act.take()),
                _ => continue,
            };
            let (operations, act) = node;
            self.act(&operations)?;
            if let Some(act) = act {
                act(&self.tape)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for GraphBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GraphBuilder({} nodes)", self.building.borrow().nodes.len())
    }
}

fn check_feed(name: &str, spec: &TensorSpec, value: &Tensor) -> Result<()> {
    if spec.is_compatible_with(value) {
        return Ok(());
    }
    let text = message!(
        "Session::run: cannot feed {} for '{name}', which is {spec}.",
        TensorSpec::from(value)
    );
    match value.dtype() == spec.dtype() {
        true => Err(Error::Shape(text)),
        false => Err(Error::DType(text)),
    }
}
