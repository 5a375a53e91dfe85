//! [`Device`], the handle that a program holds: one GPU, its stream of waiting ops, and its plans.
//!
//! A flush turns the stream into a graph, finds or makes a plan for it, and runs the plan. The modules that it combines
//! (`graph`, `plan`, `device`) do not know each other's users.

#[cfg(not(target_family = "wasm"))]
mod blocking;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod context;
mod copies;
mod cut;
mod device_name;
mod flush;
#[cfg(test)]
mod flush_tests;
mod functions;
mod inspect;
mod kept;
#[cfg(not(target_family = "wasm"))]
mod numerics;
#[cfg(not(target_family = "wasm"))]
mod pacing;
#[cfg(not(target_family = "wasm"))]
mod packs;
mod period;
#[cfg(test)]
mod precision_tests;
mod reports;
mod shared;
mod stream_limits;
mod trace;
mod tuning;
mod turns;
#[cfg(test)]
mod turns_tests;

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::device::platform::{self, env_var};
use crate::device::{
    AdapterInfo, Buffer, Caps, Counter, DeviceOptions, DeviceStats, Gpu, MemoryInfo, SafelyDropped,
    Staging, is_set,
};
use crate::error::{Error, Result};
use crate::graph::{Coincidences, Op, Spec, Stream, Value, ValueState, outside_its_trace};
use crate::plan::{Identity, PlanCache, Tuner};
use cut::Cutter;
use device_name::DeviceName;
use flush::{ReadValues, never_ran, ready};
pub(crate) use functions::{FunctionGraph, FunctionLeaf};
pub use inspect::Profiler;
use kept::Kept;
use reports::Reporter;
pub(crate) use trace::Trace;
pub(crate) use turns::Mark;

/// A GPU that tensors live on. Cloning it gives another handle to the same device.
///
/// A program that uses the fastest adapter need not name it: the first tensor opens it. Other programs open a device
/// and make it the default, or work inside [`Device::scope`].
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Device, Tensor};
/// let device = Device::new()?;
/// let sum = device.scope(|| Tensor::ones([2, 3])?.reduce_sum(()))?;
/// assert_eq!(sum.item::<f32>()?, 6.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Device(Arc<SafelyDropped<Shared>>);

struct Shared {
    gpu: Gpu,
    state: Mutex<DeviceState>,
    /// The device flushes after every op (`WGRAD_EAGER_SYNC=1`).
    sync: bool,
    /// Which device of the process it is, from 1 on, in the order in which they were opened.
    number: usize,
    /// The name of a logical device.
    name: Option<DeviceName>,
    /// Functions are traced again at each call, and compared.
    #[cfg(not(target_family = "wasm"))]
    check_traces: bool,
}

/// What calls and flushes change, under one lock.
struct DeviceState {
    stream: Stream,
    cutter: Cutter,
    plans: PlanCache,
    coincidences: Coincidences,
    tuner: Tuner,
    /// What plans may rely on: initially the GPU's properties; proofs and the program's choice of precision change
    /// them.
    caps: Caps,
    /// Plans may compute several ops in one kernel (unless `WGRAD_FUSION=0`).
    fusion: bool,
    /// An error that no caller has seen yet: an automatic flush failed, or a call received a value that had failed.
    failure: Option<Error>,
    /// Values on their way from other devices.
    #[cfg(not(target_family = "wasm"))]
    incoming: Vec<copies::Incoming>,
    /// Small results that the program may keep, and those that it has kept for long.
    kept: Kept,
    /// Bytes uploaded since the last flush; waiting ops hold them on the device.
    uploaded: u64,
    /// Set once the program has requested a report.
    reports: Option<Box<dyn Reporter>>,
    /// Every op runs at its call, and its result is checked.
    #[cfg(not(target_family = "wasm"))]
    check_numerics: bool,
}

/// After uploads of this many bytes the device flushes automatically.
const UPLOAD_LIMIT: u64 = 128 << 20;

static DEFAULT: Mutex<Option<Device>> = Mutex::new(None);

thread_local! {
    static SCOPES: RefCell<Vec<Device>> = const { RefCell::new(Vec::new()) };
}

/// The time in which a thread makes its tensors on a device: [`Device::enter`].
#[derive(Debug)]
#[must_use = "the scope ends when this value is dropped"]
pub struct DeviceScope {
    of_thread: PhantomData<*const ()>,
}

impl Drop for DeviceScope {
    fn drop(&mut self) {
        // The popped device is dropped after the borrow.
        drop(SCOPES.try_with(|scopes| scopes.borrow_mut().pop()));
    }
}

impl Device {
    /// As [`Device::open`], on every target.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub async fn open_async(options: &DeviceOptions) -> Result<Self> {
        Ok(Device::with(Gpu::open(options).await?, None))
    }

    fn with(gpu: Gpu, name: Option<DeviceName>) -> Self {
        let sync = is_set("WGRAD_EAGER_SYNC");
        let fusion = env_var("WGRAD_FUSION").is_none_or(|value| value != "0");
        let tuner = Tuner::new(Identity::new(&gpu.info, &gpu.caps));
        let state = Mutex::new(DeviceState {
            stream: Stream::default(),
            cutter: Cutter::new(None),
            plans: PlanCache::default(),
            coincidences: Coincidences::default(),
            tuner,
            caps: gpu.caps.clone(),
            fusion,
            failure: None,
            #[cfg(not(target_family = "wasm"))]
            incoming: Vec::new(),
            kept: Kept::default(),
            uploaded: 0,
            reports: None,
            #[cfg(not(target_family = "wasm"))]
            check_numerics: is_set("WGRAD_CHECK_NUMERICS"),
        });
        static OPENED: AtomicUsize = AtomicUsize::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed) + 1;
        let shared = Shared {
            gpu,
            state,
            sync,
            number,
            name,
            #[cfg(not(target_family = "wasm"))]
            check_traces: is_set("WGRAD_TRACE_CHECK"),
        };
        Device(Arc::new(SafelyDropped::new(shared)))
    }

    /// The device that new tensors are made on: that of the innermost [`Device::scope`] on this thread, else the
    /// default device. Natively this opens the default device if there is none yet: the first visible GPU, or else the CPU,
    /// unless `WGRAD_ADAPTER` names another (see [`config`](crate::config)).
    ///
    /// # Errors
    /// As [`Device::new`]; in a browser, an error if no default was set.
    pub fn current() -> Result<Self> {
        // A thread that is ending may have lost its list of scopes.
        let scoped = SCOPES.try_with(|scopes| scopes.borrow().last().cloned());
        if let Ok(Some(device)) = scoped {
            return Ok(device);
        }
        platform::wait_at_thread_end(wait_for_default);
        #[cfg_attr(target_family = "wasm", expect(unused_mut))]
        let mut default = DEFAULT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = &*default {
            return Ok(device.clone());
        }
        #[cfg(not(target_family = "wasm"))]
        return Ok(default.insert(context::default_device()?).clone());
        #[cfg(target_family = "wasm")]
        Err(Error::Device(
            crate::error::DeviceFault::NoAdapter,
            "Device: a browser opens devices asynchronously; await Device::open_async and give the \
             device to Device::set_default first."
                .into(),
        ))
    }

    /// Makes `device` the one that new tensors are made on, in every thread.
    pub fn set_default(device: &Device) {
        *DEFAULT.lock().unwrap_or_else(PoisonError::into_inner) = Some(device.clone());
    }

    /// Runs `f` with this device as the one that new tensors are made on, in this thread.
    pub fn scope<R>(&self, f: impl FnOnce() -> R) -> R {
        let _scope = self.enter();
        f()
    }

    /// As [`Device::scope`], until the returned value is dropped, for callers that cannot pass a closure. Scopes of a thread must end in
    /// the reverse order.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Device, Tensor};
    /// let device = Device::current()?;
    /// let scope = device.enter();
    /// let x = Tensor::ones([2])?;
    /// drop(scope);
    /// assert_eq!(x.device(), &device);
    /// # Ok(())
    /// # }
    /// ```
    pub fn enter(&self) -> DeviceScope {
        // A thread that is ending may have lost its list; then no tensor can be made any more, on any device.
        let _ = SCOPES.try_with(|scopes| scopes.borrow_mut().push(self.clone()));
        DeviceScope { of_thread: PhantomData }
    }

    /// As [`Device::scope`], for a future: whenever it is polled, new tensors are made on this device.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Device, Tensor};
    /// let device = Device::new()?;
    /// let sum = pollster::block_on(device.scope_async(async {
    ///     Tensor::ones([2, 3])?.reduce_sum(())?.to_vec_async::<f32>().await
    /// }))?;
    /// assert_eq!(sum, [6.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn scope_async<R>(&self, future: impl Future<Output = R>) -> R {
        let mut future = Box::pin(future);
        std::future::poll_fn(|cx| self.scope(|| future.as_mut().poll(cx))).await
    }

    /// The adapter that this device runs on.
    pub fn adapter(&self) -> &AdapterInfo {
        &self.0.gpu.info
    }

    /// TensorFlow's name of the device, such as `/job:localhost/replica:0/task:0/device:GPU:0`; `None` for a device that the
    /// program opened itself, which is not one of the [logical devices](crate::config).
    pub fn name(&self) -> Option<String> {
        self.0.name.map(DeviceName::full)
    }

    /// Counters of work and memory.
    pub fn stats(&self) -> DeviceStats {
        self.0.gpu.stats()
    }

    /// Sends the waiting ops to the GPU, and does not wait for them.
    ///
    /// # Errors
    /// [`Error::Device`] if the device is lost or out of memory. Reading one of the values that these ops should have
    /// computed returns the same error.
    pub fn flush(&self) -> Result<()> {
        let mut state = self.state();
        state.cutter.step_ends();
        let flushed = self
            .flush_locked(&mut state, ReadValues::None, &[])
            .and_then(|_| self.0.gpu.send_held());
        // An earlier failure is returned first, and only once.
        match state.failure.take() {
            Some(error) => Err(self.0.gpu.judge(error)),
            None => flushed,
        }
    }

    /// As [`Device::synchronize`], on every target; does not block in a browser.
    ///
    /// # Errors
    /// As [`Device::flush`].
    pub async fn synchronize_async(&self) -> Result<()> {
        self.flush()?;
        self.0.gpu.done().await?;
        self.deliver_reports()
    }

    /// Completes when the device is lost, and returns the reason. Natively a program notices a loss when it next calls
    /// or polls the device.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// let device = wgrad::Device::new()?;
    /// let lost = std::thread::spawn({
    ///     let device = device.clone();
    ///     move || pollster::block_on(device.lost())
    /// });
    /// device.destroy();
    /// assert!(lost.join().expect("the thread ends").starts_with("Destroyed"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lost(&self) -> String {
        self.0.gpu.loss().await
    }

    /// Destroys the device and frees all its memory. Its tensors become invalid: every call that uses one returns
    /// [`Error::Device`], as after any other loss. [`Device::current`] does not open another device automatically.
    pub fn destroy(&self) {
        self.0.gpu.destroy();
    }

    /// Limits the bytes that tensors may occupy; `None` removes the limit. See [`DeviceOptions::memory_limit`].
    ///
    /// A call that reaches the limit returns an error that names the ten largest tensors, with the ops that made them, and the
    /// device continues to work: a training can continue with a smaller batch.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Device, Tensor};
    /// let device = Device::new()?;
    /// device.set_memory_limit(Some(8 << 20))?;
    /// device.scope(|| {
    ///     let kept = Tensor::ones([1 << 20])?.square()?;
    ///     kept.reduce_sum(())?.item::<f32>()?;
    ///     let error = Tensor::zeros([1 << 21])?.to_vec::<f32>().unwrap_err().to_string();
    ///     assert!(error.contains("4194304 bytes: f32 [1048576] made by Square"), "{error}");
    ///     assert_eq!(Tensor::zeros([1 << 19])?.to_vec::<f32>()?[0], 0.0);     // smaller: there is room
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Device`] if more bytes are in use than `bytes`; the limit then stays as it was.
    pub fn set_memory_limit(&self, bytes: Option<u64>) -> Result<()> {
        self.0.gpu.pool.set_limit(bytes)
    }

    /// The memory of the device's tensors, in bytes (TensorFlow's `tf.config.experimental.get_memory_info`).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Device, Tensor};
    /// let device = Device::new()?;
    /// let x = device.scope(|| Tensor::ones([1024]))?;
    /// device.flush()?;                                    // a tensor takes memory once its op has run
    /// assert_eq!(device.memory_info().current, 4096);
    /// drop(x);
    /// assert_eq!((device.memory_info().current, device.memory_info().peak), (0, 4096));
    /// device.reset_memory_stats();
    /// assert_eq!(device.memory_info().peak, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn memory_info(&self) -> MemoryInfo {
        let [current, peak] = self.0.gpu.pool.live();
        MemoryInfo { current, peak }
    }

    /// Sets [`MemoryInfo::peak`] to the bytes that are in use now (TensorFlow's `tf.config.experimental.reset_memory_stats`).
    pub fn reset_memory_stats(&self) {
        self.0.gpu.pool.reset_peak();
    }

    /// Sets whether one kernel may compute several ops. By default it may, unless `WGRAD_FUSION=0` is set. Without
    /// fusion every op has its own kernel, which shows which op is slow or wrong. The setting applies to waiting ops,
    /// too.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # use wgrad::{Device, Tensor};
    /// let device = Device::new()?;
    /// device.set_fusion(false);
    /// let y = device.scope(|| Tensor::ones([2])?.negative()?.square())?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 1.0]);
    /// assert_eq!(device.stats().kernels, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_fusion(&self, on: bool) {
        let mut state = self.state();
        if state.fusion != on {
            state.fusion = on;
            state.plans.clear();
        }
    }

    /// Frees memory that no tensor uses and discards all plans. Returns the number of bytes that it gave back to the
    /// driver.
    ///
    /// # Errors
    /// As [`Device::flush`].
    pub fn trim(&self) -> Result<u64> {
        let mut state = self.state();
        self.flush_locked(&mut state, ReadValues::None, &[])?;
        self.0.gpu.send_held()?;
        state.plans.clear();
        self.count_plans(&state);
        state.kept.trim();
        self.0.gpu.trim_transfers();
        Ok(self.0.gpu.pool.trim())
    }

    /// Takes the waiting ops, without running them, for tests that plan them.
    #[cfg(test)]
    pub(crate) fn take_waiting(&self) -> crate::graph::Graph {
        let mut graph = self.state().stream.take(&[]).graph;
        // The key notes which nodes carry equal runtime scalars.
        graph.key(&mut Coincidences::default());
        graph
    }

    pub(crate) fn same(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The device's name for a message about several devices: two on one adapter have the same name.
    pub(crate) fn named(&self) -> String {
        let is = |other: &Option<Device>| other.as_ref().is_some_and(|other| self.same(other));
        let scoped = SCOPES.try_with(|scopes| scopes.borrow().last().cloned()).unwrap_or_default();
        let role = match DEFAULT.try_lock() {
            _ if is(&scoped) => ", the one of this Device::scope",
            Ok(default) if is(&default) => ", the default device",
            _ => "",
        };
        let name = self.0.name.map(|name| format!(", {name}")).unwrap_or_default();
        format!("device {} of this program ({}{name}{role})", self.0.number, self.adapter())
    }

    /// The number that the program's messages name it by.
    pub(crate) fn number(&self) -> usize {
        self.0.number
    }

    /// Whether functions are traced again at each call, and compared.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn checks_traces(&self) -> bool {
        self.0.check_traces
    }

    /// Whether every op runs at its call, so that its result is checked.
    pub(crate) fn checks_numerics(&self) -> bool {
        #[cfg(not(target_family = "wasm"))]
        return self.state().check_numerics;
        #[cfg(target_family = "wasm")]
        false
    }

    pub(crate) fn caps(&self) -> &Caps {
        &self.0.gpu.caps
    }

    /// As [`Stream::waiting_op`](crate::graph::Stream::waiting_op).
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn waiting_op(&self, value: &Value) -> Option<Arc<dyn Op>> {
        self.state().stream.waiting_op(value)
    }

    /// Appends an op to the stream. A failed input produces a failed result, as NaN produces NaN: the next read, flush
    /// or optimizer step reports the device's failure, so gradient rules and operators need not handle it.
    pub(crate) fn push(
        &self,
        op: Arc<dyn Op>,
        inputs: &[&Arc<Value>],
        spec: Spec,
    ) -> Result<Arc<Value>> {
        self.check_size(op.name(), &spec)?;
        let mut state = self.state();
        self.0.gpu.counters.add(Counter::Nodes, 1);
        #[cfg(not(target_family = "wasm"))]
        if state.check_numerics {
            return Ok(self.push_checked(&mut state, op, inputs, spec));
        }
        let (value, failed) = state.stream.push(op, inputs, spec);
        if let Some(error) = failed {
            state.failure.get_or_insert(error);
            return Ok(value);
        }
        let waiting = state.stream.len();
        if self.0.sync || (waiting >= state.cutter.limit() && state.is_full()) {
            self.flush_unasked(&mut state);
        }
        Ok(value)
    }

    /// Appends an op of a trace to the stream; `value` is its result.
    fn push_traced(&self, op: Arc<dyn Op>, inputs: &[&Arc<Value>], value: &Arc<Value>) {
        let mut state = self.state();
        self.0.gpu.counters.add(Counter::Nodes, 1);
        if let Err(error) = state.stream.push_traced(op, inputs, value) {
            state.failure.get_or_insert(error);
        }
    }

    /// Flushes automatically. The next call that can report an error reports that of this flush.
    fn flush_unasked(&self, state: &mut DeviceState) {
        // Another thread can flush the waiting ops.
        if self.0.gpu.check_thread().is_err() {
            return;
        }
        if let Err(error) = self.flush_locked(state, ReadValues::None, &[]) {
            state.failure.get_or_insert(error);
        }
    }

    /// `error` as this call reports it now. The next flush does not report it again, but does report the failure of
    /// another value.
    fn reported(&self, state: &mut DeviceState, error: Error) -> Error {
        if state.failure.as_ref().is_some_and(|kept| kept.to_string() == error.to_string()) {
            state.failure = None;
        }
        self.0.gpu.judge(error)
    }

    /// A value with `bytes` in it, laid out as the dtype is stored.
    pub(crate) fn upload(&self, op: &str, spec: Spec, bytes: &[u8]) -> Result<Arc<Value>> {
        self.check_size(op, &spec)?;
        let gpu = &self.0.gpu;
        gpu.check_thread()?;
        let mut state = self.state();
        let buffer = self.room_for(&mut state, &spec)?;
        gpu.upload(&buffer, bytes)?;
        let value = Value::new("Const", spec, ValueState::Ready(buffer.clone()));
        buffer.holds(value.op, value.spec.dtype, &value.spec.shape);
        state.kept.note(&value, &buffer);
        Ok(value)
    }

    /// A buffer for a value that is uploaded or copied to the device.
    fn room_for(&self, state: &mut DeviceState, spec: &Spec) -> Result<Arc<Buffer>> {
        let gpu = &self.0.gpu;
        let unreported = state.failure.is_some();
        state.uploaded += spec.bytes();
        // A flush itself needs memory, so it happens long before the limit is reached.
        let quarter = gpu.pool.limit().map_or(UPLOAD_LIMIT, |limit| limit / 4);
        if state.uploaded > quarter.min(UPLOAD_LIMIT) {
            self.flush_unasked(state);
        }
        let mut acquired = gpu.pool.acquire(spec.bytes(), &[]);
        if acquired.as_ref().is_err_and(Error::is_out_of_memory) {
            // The waiting ops may be the only holders of other buffers; a flush frees those.
            self.flush_unasked(state);
            gpu.send_held()?;
            acquired = gpu.pool.acquire(spec.bytes(), &[]);
        }
        acquired.map_err(|error| {
            // This error covers it: the waiting ops ran out of memory, too.
            if !unreported && state.failure.as_ref().is_some_and(Error::is_out_of_memory) {
                state.failure = None;
            }
            self.reported(state, error)
        })
    }

    /// The stored bytes of `value`.
    pub(crate) async fn read(&self, value: &Arc<Value>) -> Result<Vec<u8>> {
        let (staging, _) = self.start_read(value)?;
        let bytes = self.0.gpu.read(staging).await?;
        self.deliver_reports().map(|()| bytes)
    }

    /// The stored bytes of several values; the host waits for the device once.
    pub(crate) async fn read_all(&self, values: &[&Arc<Value>]) -> Result<Vec<Vec<u8>>> {
        let size = |value: &Arc<Value>| value.spec.dtype.size() * value.spec.elements();
        let words = |value: &Arc<Value>| size(value).next_multiple_of(4);
        self.0.gpu.check_thread()?;
        let staging = {
            let mut state = self.state();
            self.flush_reports(&mut state);
            if values.iter().any(|value| matches!(value.state(), ValueState::Waiting(_))) {
                self.flush_unasked(&mut state);
            }
            let mut parts = Vec::with_capacity(values.len());
            for value in values {
                let buffer = ready(value).map_err(|error| self.reported(&mut state, error))?;
                self.land(&mut state, &buffer)?;
                parts.push((buffer, words(value) as u64));
            }
            let staging = self.0.gpu.staging(values.iter().map(|value| words(value)).sum())?;
            self.0.gpu.gather(&parts, &staging)?;
            staging
        };
        let bytes = self.0.gpu.read(staging).await?;
        self.deliver_reports()?;
        let mut rest = &bytes[..];
        let cut = |value: &&Arc<Value>| {
            let (own, later) = rest.split_at(words(value));
            rest = later;
            own[..size(value)].to_vec()
        };
        Ok(values.iter().map(cut).collect())
    }

    /// As [`Device::read`]; blocks, which a browser does not allow.
    pub(crate) fn read_blocking(&self, value: &Arc<Value>) -> Result<Vec<u8>> {
        let (staging, index) = self.start_read(value)?;
        let bytes = self.0.gpu.read_blocking(staging, index)?;
        self.deliver_reports().map(|()| bytes)
    }

    /// Submits the copy of `value` to the host, in the same submission as the work it waits for.
    fn start_read(&self, value: &Arc<Value>) -> Result<(Staging, wgpu::SubmissionIndex)> {
        let gpu = &self.0.gpu;
        let bytes = value.spec.dtype.size() * value.spec.elements();
        gpu.check_thread()?;
        let mut state = self.state();
        self.flush_reports(&mut state);
        let staging = gpu.staging(bytes)?;
        let index = match value.state() {
            ValueState::Ready(buffer) => {
                self.land(&mut state, &buffer)?;
                gpu.submit(&[], Some((&buffer, &staging)))?
            }
            ValueState::Failed(error) => return Err(self.reported(&mut state, error)),
            ValueState::Traced(_) => return Err(outside_its_trace(value)),
            ValueState::Waiting(_) => {
                let flushed = self.flush_locked(&mut state, ReadValues::One(value, &staging), &[]);
                match flushed.map_err(|error| self.reported(&mut state, error))? {
                    Some(index) => index,
                    None => return Err(never_ran()),
                }
            }
        };
        Ok((staging, index))
    }

    /// Rejects a tensor that no binding of the adapter can cover.
    pub(crate) fn check_size(&self, op: &str, spec: &Spec) -> Result<()> {
        // This counts in 64 bits, as a browser's `usize` has 32.
        let times = |n: u64, &size: &usize| n.checked_mul(size.max(1) as u64);
        let bytes = spec.shape.iter().try_fold(spec.dtype.size() as u64, times);
        self.0.gpu.check_size(op, &spec.shape, bytes)
    }

    fn state(&self) -> MutexGuard<'_, DeviceState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Blocks until the default device is idle.
fn wait_for_default() {
    let device = DEFAULT.try_lock().ok().and_then(|device| device.clone());
    if let Some(device) = device {
        // The program is ending, so it could not handle an error.
        if let Ok(mut state) = device.0.state.try_lock() {
            device.flush_reports(&mut state);
        }
        let _ = device.0.gpu.wait(None);
        let _ = device.deliver_reports();
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}: {})", self.0.number, self.adapter())
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}

impl Eq for Device {}
