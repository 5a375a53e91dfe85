//! [`Session`]: runs parts of a graph.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::graph::{Graph, GraphBuilder};
use super::known::Known;
use crate::error::{Error, Result, message};
use crate::function::{Function, function};
use crate::runtime::Device;
use crate::tensor::Tensor;

/// A session's function: the names to fetch, the names and values to feed; it returns the tensors that are fetched.
type Run = dyn Fn(Vec<String>, Vec<(String, Tensor)>) -> Result<Vec<Tensor>> + Send + Sync;

/// Runs parts of a [`Graph`]. The values of the graph's variables belong to the session. A clone is the same session.
#[derive(Clone)]
pub struct Session {
    device: Device,
    run: Function<Run>,
    pub(super) known: Arc<Known>,
    closed: Arc<AtomicBool>,
}

/// What [`Session::run`] fetches: a name, an array of names or a slice of names.
pub trait Fetches {
    /// A tensor for each name, `None` for an operation.
    type Output;

    #[doc(hidden)]
    fn names(&self) -> Vec<String>;

    #[doc(hidden)]
    fn output(results: Vec<Option<Tensor>>) -> Self::Output;
}

impl Fetches for &str {
    type Output = Option<Tensor>;

    fn names(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn output(results: Vec<Option<Tensor>>) -> Self::Output {
        results.into_iter().next().flatten()
    }
}

impl<const N: usize> Fetches for [&str; N] {
    type Output = [Option<Tensor>; N];

    fn names(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }

    fn output(results: Vec<Option<Tensor>>) -> Self::Output {
        let mut results = results.into_iter();
        std::array::from_fn(|_| results.next().flatten())
    }
}

impl Fetches for &[&str] {
    type Output = Vec<Option<Tensor>>;

    fn names(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }

    fn output(results: Vec<Option<Tensor>>) -> Self::Output {
        results
    }
}

impl Session {
    /// A session on the current device.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no device.
    pub fn new(graph: &Graph) -> Result<Self> {
        Ok(Session::on(graph, &Device::current()?))
    }

    /// A session on this device.
    pub fn on(graph: &Graph, device: &Device) -> Self {
        let known = Arc::new(Known::default());
        let run = function({
            let (graph, device, known) = (graph.clone(), device.clone(), known.clone());
            move |fetches: Vec<String>, feeds: Vec<(String, Tensor)>| {
                GraphBuilder::run(&graph, &device, &known, &fetches, &feeds)
            }
        });
        Session { device: device.clone(), run, known, closed: Arc::default() }
    }

    /// Computes the fetched tensors and runs the fetched operations, with these values for placeholders. Tensors have the
    /// values from before the operations.
    ///
    /// # Errors
    /// - [`Error::Data`] if a placeholder that the fetches need is not fed, or if the graph has no node of a name.
    /// - [`Error::Shape`] or [`Error::DType`] if a value does not fit its placeholder.
    /// - [`Error::Check`] if a variable has no value yet, or if the session is closed.
    /// - [`Error::Trace`] if the graph reads the value of a tensor while it is built.
    pub fn run<F: Fetches>(&self, fetches: F, feeds: &[(&str, Tensor)]) -> Result<F::Output> {
        let names = fetches.names();
        let mut tensors = self.fetch(&names, feeds)?.into_iter();
        let results = names
            .iter()
            .map(|name| if self.known.is_operation(name) { None } else { tensors.next() })
            .collect::<Vec<Option<Tensor>>>();
        Ok(F::output(results))
    }

    fn fetch(&self, names: &[String], feeds: &[(&str, Tensor)]) -> Result<Vec<Tensor>> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::Check(
                "Session::run: the session is closed. Make another one.".into(),
            ));
        }
        for (at, (name, _)) in feeds.iter().enumerate() {
            if feeds[..at].iter().any(|(other, _)| other == name) {
                return Err(Error::Data(message!("Session::run: '{name}' is fed twice.")));
            }
        }
        let values: Vec<Tensor> = feeds.iter().map(|(_, value)| value.clone()).collect();
        let feeds: Vec<(String, Tensor)> =
            feeds.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let ran = self.device.scope(|| {
            let run = self.run.get_concrete_function((names.to_vec(), feeds))?;
            self.known.check(&run)?;
            Ok((run.call(&values)?, run))
        });
        let (tensors, run) = ran?;
        self.known.initialize(&run);
        Ok(tensors)
    }

    /// One tensor. TensorFlow's `tensor.eval(feed_dict)`.
    ///
    /// # Errors
    /// As [`run`](Self::run); [`Error::Data`] if the name is that of an operation.
    pub fn eval(&self, fetch: &str, feeds: &[(&str, Tensor)]) -> Result<Tensor> {
        self.run(fetch, feeds)?.ok_or_else(|| {
            Error::Data(message!(
                "Session::eval: '{fetch}' is an operation, which has no value. Call run."
            ))
        })
    }

    /// Not supported: it returns an error that says what to do.
    ///
    /// # Errors
    /// [`Error::Check`] always.
    pub fn partial_run(&self) -> Result<()> {
        Err(Error::Check(
            "Session::partial_run: partial runs are not supported. Fetch what the first part needs with one run, and feed it to \
             the next one under its name."
                .into(),
        ))
    }

    /// How many sets of fetches and shapes of feeds have been traced.
    pub fn tracing_count(&self) -> usize {
        self.run.tracing_count()
    }

    /// What the traces have recorded.
    pub fn graph_text(&self) -> String {
        self.run.graph_text()
    }

    /// Ends the session: later runs return an error.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Makes this session the one of [`eval`] while `f` runs.
    pub fn as_default<R>(&self, f: impl FnOnce() -> R) -> R {
        let _end = Default::enter(self);
        f()
    }

    /// Builds the graph once, so that its variables are known.
    #[cfg(feature = "checkpoint")]
    pub(super) fn build(&self) -> Result<()> {
        self.run(&[][..], &[]).map(drop)
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({} traces)", self.tracing_count())
    }
}

thread_local! {
    /// The default sessions of this thread, the latest last, each with its number.
    static DEFAULTS: RefCell<(u64, Vec<(u64, Session)>)> = const { RefCell::new((0, Vec::new())) };
}

/// Ends a session's time as the default one.
struct Default(u64);

impl Default {
    fn enter(session: &Session) -> Self {
        DEFAULTS.with_borrow_mut(|(last, sessions)| {
            *last += 1;
            sessions.push((*last, session.clone()));
            Default(*last)
        })
    }
}

impl Drop for Default {
    fn drop(&mut self) {
        // A thread that is ending may have lost its list.
        let remove = |defaults: &RefCell<(u64, Vec<(u64, Session)>)>| {
            let sessions = &mut defaults.borrow_mut().1;
            let at = sessions.iter().position(|(number, _)| *number == self.0);
            at.map(|at| sessions.remove(at))
        };
        drop(DEFAULTS.try_with(remove));
    }
}

/// The default session of this thread: that of the innermost [`Session::as_default`] or the latest [`InteractiveSession`].
pub fn get_default_session() -> Option<Session> {
    DEFAULTS.with_borrow(|(_, sessions)| sessions.last().map(|(_, session)| session.clone()))
}

/// One tensor of the default session. TensorFlow's `tensor.eval()`.
///
/// # Errors
/// [`Error::Check`] if there is no default session; as [`Session::eval`].
pub fn eval(fetch: &str, feeds: &[(&str, Tensor)]) -> Result<Tensor> {
    let session = get_default_session().ok_or_else(|| {
        Error::Check(message!(
            "eval: cannot evaluate '{fetch}': no default session is registered. Make an InteractiveSession, or call \
             session.as_default(|| ..)."
        ))
    })?;
    session.eval(fetch, feeds)
}

/// A session that is the default one of its thread until it is dropped or closed.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use wgrad::compat::v1::{self, Graph, InteractiveSession};
/// let graph = Graph::new(|g| {
///     let x = g.identity("x", &tf::constant([3.0, 4.0])?)?;
///     g.identity("norm", &x.square()?.reduce_sum(())?.sqrt()?).map(drop)
/// });
/// let session = InteractiveSession::new(&graph)?;
/// assert_eq!(v1::eval("norm", &[])?.item::<f32>()?, 5.0);
/// assert_eq!(v1::eval("norm", &[("x", tf::constant([6.0, 8.0])?)])?.item::<f32>()?, 10.0);
/// session.close();
/// assert!(v1::eval("norm", &[]).is_err());
/// # Ok(())
/// # }
/// ```
pub struct InteractiveSession {
    session: Session,
    default: Default,
}

impl InteractiveSession {
    /// Makes a session and the default one of it.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no device.
    pub fn new(graph: &Graph) -> Result<Self> {
        let session = Session::new(graph)?;
        let default = Default::enter(&session);
        Ok(InteractiveSession { session, default })
    }

    /// Ends the session.
    pub fn close(self) {
        self.session.close();
    }
}

impl std::ops::Deref for InteractiveSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl fmt::Debug for InteractiveSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InteractiveSession({:?}, default {})", self.session, self.default.0)
    }
}
