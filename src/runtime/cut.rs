//! Where a stream is cut that nobody asks to be flushed: where the program repeats itself, so that every turn of a
//! loop finds the plan of the one before. The number of nodes is the last resort.

use super::period::Periods;
use super::stream_limits::STREAM_LIMIT;
use super::turns::{Mark, Turns};
use super::{Device, DeviceState};
use crate::graph::Stream;

impl Device {
    /// Ops that wait before a flush is made without being asked for; `None` restores the default.
    ///
    /// By default a stream is cut where the program's loop begins anew, as far as the device can see that, and else
    /// when 4096 ops wait. With a number of one's own it is cut there and nowhere else.
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

    /// The program goes on with what another one has begun, whose stream it cuts as that one did when it had settled.
    #[cfg(feature = "safetensors")]
    pub(crate) fn resume(&self) {
        let cutter = &mut self.state().cutter;
        cutter.turns.resume(cutter.passed);
    }

    /// Notes a mark between the op that was called last and the next one, and flushes if the stream is to be cut
    /// there.
    pub(crate) fn mark(&self, mark: Mark) {
        let mut state = self.state();
        let waiting = state.stream.len();
        if state.cutter.mark(mark, waiting) {
            self.flush_unasked(&mut state);
        }
        // What begins now, whatever was before.
        state.cutter.training |= mark == Mark::Turn;
    }
}

impl DeviceState {
    /// Whether the stream, which has reached the limit, is to be flushed.
    #[cold]
    pub(super) fn is_full(&mut self) -> bool {
        self.cutter.full(&self.stream)
    }
}

/// Decides where a device's stream is cut.
pub(super) struct Cutter {
    /// The program's own limit, which nothing else is heeded beside.
    own: Option<usize>,
    limit: usize,
    /// Nodes of all streams before this one.
    passed: u64,
    /// A mark came in this stream.
    marked: bool,
    /// The flush that comes now is the cutter's own.
    cutting: bool,
    /// The flush that comes now is a step's end, not a look at a value.
    step: bool,
    /// A tape was begun, or a variable has got what waits: a training step, which comes again.
    training: bool,
    turns: Turns,
    periods: Periods,
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
            turns: Turns::default(),
            periods: Periods::default(),
        }
    }

    /// Nodes that wait before [`Cutter::full`] is to be asked.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// A mark behind `waiting` nodes: whether they are to be flushed now.
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

    /// The stream has reached the limit: whether it is to be flushed now.
    pub(super) fn full(&mut self, stream: &Stream) -> bool {
        if self.own.is_some() {
            return true;
        }
        // A program with marks repeats itself by them; what goes on between two of them may be a layer's or an
        // optimizer's own loop.
        let nodes = stream.len();
        let cut = self.marked || self.periods.full(nodes, stream.calls(self.periods.first(nodes)));
        self.cutting = cut;
        self.set_limit();
        cut
    }

    /// The flush that comes now ends a step, as the program says.
    pub(super) fn step_ends(&mut self) {
        self.step = true;
    }

    /// Variables have got what waits.
    pub(super) fn replaces(&mut self) {
        self.training = true;
    }

    /// A flush of `nodes` begins. Returns whether it is of a training step.
    pub(super) fn flushed(&mut self, nodes: usize) -> bool {
        self.passed += nodes as u64;
        self.marked = false;
        let step = std::mem::take(&mut self.step);
        if !std::mem::take(&mut self.cutting) {
            self.turns.asked(self.passed, step);
            self.periods.forget();
            self.set_limit();
        }
        std::mem::take(&mut self.training)
    }

    fn set_limit(&mut self) {
        let found = self.periods.cut_length().or(self.turns.room());
        self.limit = self.own.or(found).unwrap_or(STREAM_LIMIT);
    }
}
