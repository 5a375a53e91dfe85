//! Moves bytes to the device and back.
//!
//! Uploads go through wgpu's staging memory and never wait. A read copies a value into a mappable buffer, in the same
//! submission as the work before it, and maps that buffer: `async` everywhere, with a blocking counterpart natively.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use futures_channel::oneshot;

use super::faults::Faults;
use super::platform::{self, Poller};
use super::stats::Counter;
use super::{Buffer, Gpu};
use crate::error::{DeviceFault, Error, Result, message};

pub(super) struct Transfer {
    idle: Mutex<Vec<wgpu::Buffer>>,
    /// Buffers for later uploads of packs. A submission may still read from them.
    #[cfg(not(target_family = "wasm"))]
    uploads: Mutex<Vec<Upload>>,
    /// Bytes uploaded since the last submission.
    pending_bytes: AtomicU64,
    poller: Poller,
}

/// A mappable buffer that a submission copies `bytes` into.
pub(crate) struct Staging {
    raw: wgpu::Buffer,
    bytes: usize,
}

/// A buffer that the host writes, and a submission reads.
#[cfg(not(target_family = "wasm"))]
struct Upload {
    raw: wgpu::Buffer,
    /// Reports that the submission has been done, and the host can write again.
    mapped: oneshot::Receiver<std::result::Result<(), wgpu::BufferAsyncError>>,
}

/// A read that is not waited for.
pub(crate) struct Arriving {
    staging: Staging,
    mapped: oneshot::Receiver<std::result::Result<(), wgpu::BufferAsyncError>>,
}

impl Staging {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn raw(&self) -> &wgpu::Buffer {
        &self.raw
    }

    /// The bytes to copy: copies move whole words.
    pub(super) fn copy_bytes(&self) -> u64 {
        (self.bytes as u64).next_multiple_of(4)
    }
}

/// Uploads stay in host memory until the next submission carries them; beyond this many bytes they get their own
/// submission.
const PENDING_LIMIT: u64 = 64 << 20;
/// What a callback for a mapped buffer has reported.
type Mapped =
    std::result::Result<std::result::Result<(), wgpu::BufferAsyncError>, oneshot::Canceled>;

/// How many staging buffers are kept for later reads, and the size of the largest one kept.
const IDLE_LIMIT: usize = 8;
const IDLE_BYTES: u64 = 16 << 20;

impl Transfer {
    /// Records that a submission has carried the pending uploads.
    pub(super) fn uploads_submitted(&self) {
        self.pending_bytes.store(0, Ordering::Relaxed);
    }

    pub(super) fn new(faults: &Arc<Faults>) -> Self {
        let faults = faults.clone();
        let wait = move || {
            // The readers themselves detect a loss.
            let _ = faults.poll(wgpu::PollType::wait_indefinitely());
        };
        Transfer {
            idle: Mutex::new(Vec::new()),
            #[cfg(not(target_family = "wasm"))]
            uploads: Mutex::new(Vec::new()),
            pending_bytes: AtomicU64::new(0),
            poller: Poller::new(wait),
        }
    }
}

impl Gpu {
    /// Writes `bytes` to the start of `buffer`, before all work that is submitted later.
    pub(crate) fn upload(&self, buffer: &Buffer, bytes: &[u8]) -> Result<()> {
        self.ask()?;
        let whole = bytes.len() & !3;
        if whole > 0 {
            self.write(buffer, 0, &bytes[..whole])?;
        }
        if whole < bytes.len() {
            let mut tail = [0u8; 4];
            tail[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
            self.write(buffer, whole as u64, &tail)?;
        }
        self.counters.add(Counter::UploadedBytes, bytes.len() as u64);
        let pending = &self.transfer.pending_bytes;
        if pending.fetch_add(bytes.len() as u64, Ordering::Relaxed) > PENDING_LIMIT {
            self.submit(&[], None)?;
        }
        self.check()
    }

    /// Writes values that are one after another in `bytes` to the starts of these buffers: the given number of bytes (whole words)
    /// to each, before all work that is submitted later. One submission copies them all, from memory that is used again.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn scatter(&self, bytes: &[u8], buffers: &[(Arc<Buffer>, u64)]) -> Result<()> {
        self.ask()?;
        let mut parts = Vec::with_capacity(buffers.len());
        let mut rest = bytes;
        for (buffer, size) in buffers {
            let (own, later) = rest.split_at_checked(*size as usize).unwrap_or((rest, &[]));
            rest = later;
            parts.extend(
                (0..)
                    .step_by(IDLE_BYTES as usize)
                    .zip(own.chunks(IDLE_BYTES as usize))
                    .map(|(at, own)| (buffer, at, own)),
            );
        }
        if self.holds() {
            return parts.into_iter().try_for_each(|(buffer, at, own)| self.write(buffer, at, own));
        }
        let mut parts = parts.into_iter().peekable();
        while parts.peek().is_some() {
            let mut turn = Vec::new();
            let mut size = 0;
            while let Some(part) = parts.next_if(|part| size + part.2.len() as u64 <= IDLE_BYTES) {
                size += part.2.len() as u64;
                turn.push(part);
            }
            self.scatter_once(size, &turn)?;
        }
        self.counters.add(Counter::UploadedBytes, bytes.len() as u64);
        self.check()
    }

    /// Copies parts to the given places of buffers; they have `size` bytes together.
    #[cfg(not(target_family = "wasm"))]
    fn scatter_once(&self, size: u64, parts: &[(&Arc<Buffer>, u64, &[u8])]) -> Result<()> {
        let upload = self.upload_buffer(size)?;
        let Ok(mut view) = upload.slice(0..size).get_mapped_range_mut() else {
            self.ask()?;
            let text = "Device: uploading: the memory for it was not mapped. Open a new device.";
            return Err(self.judge(Error::Device(DeviceFault::Lost, text.into())));
        };
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut from = 0;
        for (buffer, at, own) in parts {
            let bytes = own.len() as u64;
            view.slice(from as usize..(from + bytes) as usize).copy_from_slice(own);
            encoder.copy_buffer_to_buffer(&upload, from, buffer.raw(), buffer.offset() + at, bytes);
            from += bytes;
        }
        drop(view);
        upload.unmap();
        let index = self.finish(encoder);
        let (sender, mapped) = oneshot::channel();
        upload.map_async(wgpu::MapMode::Write, .., move |result| {
            // One that is dropped is not used again.
            let _ = sender.send(result);
        });
        let mut uploads = self.transfer.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        if uploads.len() < IDLE_LIMIT {
            uploads.push(Upload { raw: upload, mapped });
        }
        drop(uploads);
        self.hold_back(index)
    }

    /// A buffer of at least `size` bytes, mapped for writing.
    #[cfg(not(target_family = "wasm"))]
    fn upload_buffer(&self, size: u64) -> Result<wgpu::Buffer> {
        // wgpu maps only during a poll.
        let _ = self.faults.poll(wgpu::PollType::Poll);
        let mut uploads = self.transfer.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |upload: &mut Upload| {
            let (own, most) = (upload.raw.size(), size.saturating_mul(2).max(4096));
            (size..=most).contains(&own) && matches!(upload.mapped.try_recv(), Ok(Some(Ok(()))))
        };
        let reused = uploads.iter_mut().position(fits).map(|at| uploads.swap_remove(at).raw);
        if reused.is_none() && uploads.len() == IDLE_LIMIT {
            // Sizes have changed.
            uploads.remove(0);
        }
        drop(uploads);
        let raw = reused.unwrap_or_else(|| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("wgrad upload"),
                size: size.max(4096),
                usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: true,
            })
        });
        self.check()?;
        Ok(raw)
    }

    /// A buffer to read `bytes` into.
    pub(crate) fn staging(&self, bytes: usize) -> Result<Staging> {
        let size = (bytes as u64).next_multiple_of(4).max(4);
        let mut idle = self.transfer.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let fits =
            |b: &wgpu::Buffer| b.size() >= size && b.size() <= size.saturating_mul(2).max(4096);
        let reused = idle.iter().position(fits).map(|i| idle.swap_remove(i));
        drop(idle);
        let raw = match reused {
            Some(raw) => raw,
            None => self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("wgrad read-back"),
                size: size.max(4096),
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }),
        };
        self.check()?;
        Ok(Staging { raw, bytes })
    }

    /// The bytes of `staging`, once the device has done the submission that fills it.
    pub(crate) async fn read(&self, staging: Staging) -> Result<Vec<u8>> {
        let mapped = self.start_map(&staging);
        let result = self.reported(mapped).await;
        self.finish_read(staging, result)
    }

    /// As [`Gpu::read`]; blocks the thread.
    pub(crate) fn read_blocking(
        &self,
        staging: Staging,
        index: wgpu::SubmissionIndex,
    ) -> Result<Vec<u8>> {
        self.deliver(staging, index, <[u8]>::to_vec)
    }

    /// Waits for the submission that fills `staging`, and calls `f` with the bytes. Blocks the thread.
    pub(crate) fn deliver<R>(
        &self,
        staging: Staging,
        index: wgpu::SubmissionIndex,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let result = self.wait_for_map(&staging, index)?;
        self.finish_read_with(staging, result, f)
    }

    /// Waits for the submission that fills `staging`, and returns the bytes where they are. Blocks the thread.
    /// [`Gpu::end_read`] must follow, when the view is dropped.
    pub(crate) fn view(
        &self,
        staging: &Staging,
        index: wgpu::SubmissionIndex,
    ) -> Result<wgpu::BufferView> {
        let result = self.wait_for_map(staging, index)?;
        self.mapped_view(staging, result)
    }

    fn wait_for_map(&self, staging: &Staging, index: wgpu::SubmissionIndex) -> Result<Mapped> {
        let mut mapped = self.start_map(staging);
        self.wait(Some(index))?;
        match mapped.try_recv() {
            Ok(Some(result)) => Ok(Ok(result)),
            // The wait may end just before wgpu runs the callback.
            Ok(None) => self.wait(None).map(|()| pollster::block_on(mapped)),
            Err(canceled) => Ok(Err(canceled)),
        }
    }

    /// Requests the bytes of `staging`; the submission that fills it has been made.
    pub(crate) fn arriving(&self, staging: Staging) -> Arriving {
        let mapped = self.start_map(&staging);
        Arriving { staging, mapped }
    }

    /// The bytes, or `arriving` again if they have not arrived yet.
    pub(crate) fn arrived(&self, mut arriving: Arriving) -> Result<Result<Vec<u8>>, Arriving> {
        if platform::MAY_BLOCK {
            // wgpu runs callbacks only during a poll.
            let _ = self.faults.poll(wgpu::PollType::Poll);
        }
        match arriving.mapped.try_recv() {
            Ok(None) => Err(arriving),
            Ok(Some(result)) => Ok(self.finish_read(arriving.staging, Ok(result))),
            Err(canceled) => Ok(self.finish_read(arriving.staging, Err(canceled))),
        }
    }

    /// Waits until the device has done all submitted work, without blocking the thread.
    pub(crate) async fn done(&self) -> Result<()> {
        let (sender, receiver) = oneshot::channel();
        self.queue.on_submitted_work_done(move || {
            // A dropped future is not waiting.
            let _ = sender.send(());
        });
        // If the device is lost, wgpu drops the callback or keeps it forever.
        match self.reported(receiver).await {
            Ok(()) => self.check(),
            Err(_) => self.ask(),
        }
    }

    /// The value that a callback sends, while a thread polls for it. Canceled if the driver loses the device meanwhile.
    async fn reported<T>(&self, receiver: oneshot::Receiver<T>) -> Result<T, oneshot::Canceled> {
        if !platform::MAY_BLOCK {
            // A browser settles every promise.
            return receiver.await;
        }
        self.transfer.poller.wake();
        let (mut receiver, mut loss) = (receiver, pin!(self.faults.loss()));
        poll_fn(|cx| match Pin::new(&mut receiver).poll(cx) {
            Poll::Pending => loss.as_mut().poll(cx).map(|_| Err(oneshot::Canceled)),
            received => received,
        })
        .await
    }

    fn start_map(
        &self,
        staging: &Staging,
    ) -> oneshot::Receiver<std::result::Result<(), wgpu::BufferAsyncError>> {
        let (sender, receiver) = oneshot::channel();
        let range = 0..staging.copy_bytes().max(4);
        staging.raw.slice(range).map_async(wgpu::MapMode::Read, move |result| {
            // A dropped reader is not waiting.
            let _ = sender.send(result);
        });
        receiver
    }

    fn finish_read(&self, staging: Staging, result: Mapped) -> Result<Vec<u8>> {
        self.finish_read_with(staging, result, <[u8]>::to_vec)
    }

    fn finish_read_with<R>(
        &self,
        staging: Staging,
        result: Mapped,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let view = self.mapped_view(&staging, result)?;
        let bytes = f(&view[..staging.bytes]);
        drop(view);
        self.end_read(staging);
        Ok(bytes)
    }

    fn mapped_view(&self, staging: &Staging, result: Mapped) -> Result<wgpu::BufferView> {
        // wgpu can report a successful map on a lost device, so this looks at the device first.
        if matches!(result, Ok(Ok(()))) { self.check() } else { self.ask() }?;
        // The device can be lost at any line below; the loss is then the error.
        let failed = |what: String| {
            self.judge(Error::Device(DeviceFault::Lost, message!("Device: reading back: {what}.")))
        };
        result
            .map_err(|_| failed("the device went away before the value arrived".into()))?
            .map_err(|e| failed(e.to_string()))?;
        staging
            .raw
            .slice(0..staging.copy_bytes().max(4))
            .get_mapped_range()
            .map_err(|e| failed(e.to_string()))
    }

    /// Unmaps a buffer whose view was dropped, and keeps it for later reads.
    pub(crate) fn end_read(&self, staging: Staging) {
        staging.raw.unmap();
        let mut idle = self.transfer.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_LIMIT && staging.raw.size() <= IDLE_BYTES {
            idle.push(staging.raw);
        }
        self.counters.add(Counter::Reads, 1);
    }

    /// Drops the buffers that are kept for reads.
    pub(crate) fn trim_transfers(&self) {
        self.transfer.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        #[cfg(not(target_family = "wasm"))]
        self.transfer.uploads.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A new buffer for the parameters of a plan.
    pub(crate) fn uniform_buffer(&self, bytes: u64) -> Result<Arc<Buffer>> {
        let raw = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("wgrad parameters"),
            size: bytes.max(16),
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        self.check()?;
        Ok(Arc::new(Buffer::foreign(raw)))
    }
}
