//! Decides where the device cuts a stream that the program does not flush: where the program repeats itself, so that
//! every iteration of a loop reuses the plan of the previous one. The number of nodes is the last resort.

use super::period::Periods;
use super::stream_limits::STREAM_LIMIT;
use super::turns::{Mark, Turns};
use super::{Device, DeviceState};
use crate::graph::Stream;

impl Device {
    /// The number of ops that may wait before the device flushes automatically; `None` restores the default.
    ///
    /// By default the device flushes where it detects that the program's loop begins again, and otherwise when 4096 ops
    /// wait. With a custom number it flushes only when that many ops wait.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # use wgrad::{Device, Tensor};
    /// let device = Device::new()?;
    /// device.set_stream_limit(Some(100));
    /// let mut x = device.scope(|| Tensor::zeros([4]))?;
    /// let before = device.stats().flushes;
    /// for _ in 0..250 {
    ///     x = x.negative()?;
    /// }
    /// assert_eq!(device.stats().flushes - before, 2);
    /// device.set_stream_limit(None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_stream_limit(&self, nodes: Option<usize>) {
        self.state().cutter = Cutter::new(nodes);
    }

    /// The program continues another program's training, so this device cuts the stream as the other did after it had
    /// settled.
    #[cfg(feature = "checkpoint")]
    pub(crate) fn resume(&self) {
        let cutter = &mut self.state().cutter;
        cutter.turns.resume(cutter.passed);
    }

    /// Records a mark between the last op and the next, and flushes if the stream should be cut there.
    pub(crate) fn mark(&self, mark: Mark) {
        let mut state = self.state();
        let waiting = state.stream.len();
        if state.cutter.mark(mark, waiting) {
            self.flush_unasked(&mut state);
        }
        // This is last because it describes the ops that follow.
        state.cutter.training |= mark == Mark::Turn;
    }

    /// Records that a tape has computed gradients with the ops so far.
    pub(crate) fn gradients_end(&self) {
        self.state().stream.gradients_end();
    }
}

impl DeviceState {
    /// Whether to flush the stream, which has reached the limit.
    #[cold]
    pub(super) fn is_full(&mut self) -> bool {
        self.cutter.full(&self.stream)
    }
}

/// Decides where to cut a device's stream.
pub(super) struct Cutter {
    /// The limit that the program has set; if there is one, it alone counts.
    own: Option<usize>,
    limit: usize,
    /// How many nodes all earlier streams had.
    passed: u64,
    /// This stream has met a mark.
    marked: bool,
    /// The cutter itself has requested the flush that follows.
    cutting: bool,
    /// The flush that follows ends a step; it is not caused by a read.
    step: bool,
    /// This stream is a training step, which will repeat: it began with a tape, or a variable holds one of its values.
    training: bool,
    /// The number of optimizer steps before the one in this stream.
    made: Option<u64>,
    turns: Turns,
    periods: Periods,
}

/// The kind of work that a flush submits.
pub(super) struct Sent {
    /// It is a training step.
    pub(super) training: bool,
    /// The number of earlier steps, if it makes a step of an optimizer.
    pub(super) made: Option<u64>,
}

impl Cutter {
    pub(super) fn new(own: Option<usize>) -> Self {
        Cutter {
            own,
            limit: own.unwrap_or(STREAM_LIMIT),
            passed: 0,
            marked: false,
            cutting: false,
            step: false,
            training: false,
            made: None,
            turns: Turns::default(),
            periods: Periods::default(),
        }
    }

    /// This many of the waiting nodes run separately, and are not part of the program's loop.
    pub(super) fn leaves_out(&mut self, nodes: usize) {
        self.passed += nodes as u64;
    }

    /// Takes this cutter, and leaves one that has no history and cuts nothing.
    pub(super) fn aside(&mut self) -> Cutter {
        std::mem::replace(self, Cutter::new(Some(usize::MAX)))
    }

    /// How many nodes may wait before [`Cutter::full`] must be called.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Handles a mark after `waiting` nodes. Returns whether to flush them now.
    pub(super) fn mark(&mut self, mark: Mark, waiting: usize) -> bool {
        self.training |= mark != Mark::Turn && waiting > 0;
        if self.own.is_some() {
            return false;
        }
        self.marked = true;
        self.periods.forget();
        self.cutting = self.turns.mark(mark, self.passed + waiting as u64, waiting);
        self.set_limit();
        self.cutting
    }

    /// The stream has reached the limit. Returns whether to flush it now.
    pub(super) fn full(&mut self, stream: &Stream) -> bool {
        if self.own.is_some() {
            return true;
        }
        // A program with marks is cut at its marks; a repetition between two marks may be a loop in a layer or an
        // optimizer.
        let nodes = stream.len();
        let cut = self.marked || self.periods.full(nodes, stream.calls(self.periods.first(nodes)));
        self.cutting = cut;
        self.set_limit();
        cut
    }

    /// The program has declared that the flush that follows ends a step.
    pub(super) fn step_ends(&mut self) {
        self.step = true;
    }

    /// Variables hold values that wait; with `made`, they are results of an optimizer step after that many earlier
    /// ones.
    pub(super) fn replaces(&mut self, made: Option<u64>) {
        self.training = true;
        self.made = made;
    }

    /// A flush of `nodes` begins.
    pub(super) fn flushed(&mut self, nodes: usize) -> Sent {
        self.passed += nodes as u64;
        self.marked = false;
        let step = std::mem::take(&mut self.step);
        if !std::mem::take(&mut self.cutting) {
            self.turns.asked(self.passed, step);
            self.periods.forget();
            self.set_limit();
        }
        Sent { training: std::mem::take(&mut self.training), made: self.made.take() }
    }

    fn set_limit(&mut self) {
        let found = self.periods.cut_length().or(self.turns.room());
        self.limit = self.own.or(found).unwrap_or(STREAM_LIMIT);
    }
}
