//! Small values that a program holds for long, such as the losses of its steps: they move from their own buffers to the
//! shelf.

use std::sync::{Arc, Weak};

use super::flush::ready;
use super::{Device, DeviceState};
use crate::device::{Buffer, Shelf};
use crate::error::Result;
use crate::graph::{Taken, Value, ValueState};

pub(super) struct Kept {
    shelf: Shelf,
    /// Values of one place at most, each with the number of walks that it has outlived.
    small: Vec<(Weak<Value>, u8)>,
    /// The next walk takes place when there are this many values.
    enough: usize,
}

/// This many values trigger a walk, and half as many trigger a copy.
const MANY: usize = 256;
/// A value that has outlived this many walks counts as held for long. A step that replaces its variables' values does
/// so earlier.
const OLD: u8 = 2;

impl Default for Kept {
    fn default() -> Self {
        Kept { shelf: Shelf::default(), small: Vec::new(), enough: MANY }
    }
}

impl Kept {
    pub(super) fn trim(&mut self) {
        self.shelf.trim();
    }

    /// Records a value that a run has computed, or that was uploaded.
    pub(super) fn note(&mut self, value: &Arc<Value>, buffer: &Buffer) {
        if buffer.fits_a_place() {
            // A program that only uploads and reads has no run after which values are looked at.
            if self.small.len() >= 2 * self.enough {
                self.small.retain(|(value, _)| value.strong_count() > 0);
                self.enough = self.enough.max(self.small.len());
            }
            self.small.push((Arc::downgrade(value), 0));
        }
    }

    /// Removes the values that have been held for long, with their buffers, from the list; none if they are few.
    fn old(&mut self) -> Vec<(Arc<Value>, Arc<Buffer>)> {
        let own = |value: &Weak<Value>| {
            let value = value.upgrade()?;
            match value.state() {
                ValueState::Ready(buffer) if buffer.is_pooled() => Some((value, buffer)),
                _ => None,
            }
        };
        let mut old = Vec::new();
        self.small.retain_mut(|(value, walks)| {
            *walks += 1;
            match own(value) {
                Some((value, buffer)) if *walks > OLD => {
                    // A buffer that has other holders is not moved.
                    if Arc::strong_count(&buffer) == 2 {
                        old.push((value, buffer));
                    }
                    false
                }
                other => other.is_some(),
            }
        });
        if old.len() < MANY / 2 {
            self.small.extend(old.drain(..).map(|(value, _)| (Arc::downgrade(&value), OLD)));
        }
        self.enough = MANY + self.small.len() + self.small.len() / 4;
        self.small.shrink_to(self.enough);
        old
    }
}

impl Device {
    /// Moves small values that have been held for long to the shelf, unless an application shares the device and may
    /// know their buffers.
    pub(super) fn put_away(&self, state: &mut DeviceState) {
        let (gpu, kept) = (&self.0.gpu, &mut state.kept);
        if gpu.is_shared() {
            kept.small = Vec::new();
        }
        if kept.small.len() < kept.enough {
            return;
        }
        let old = kept.old();
        if old.is_empty() {
            return;
        }
        let buffers: Vec<Arc<Buffer>> = old.iter().map(|(_, buffer)| buffer.clone()).collect();
        match kept.shelf.put(gpu, &buffers) {
            Ok(places) => {
                for ((value, _), place) in old.iter().zip(places) {
                    value.set(ValueState::Ready(place));
                }
            }
            Err(error) => drop(state.failure.get_or_insert(error)),
        }
    }

    /// Moves leaves that the plan may write into to their own buffers.
    pub(super) fn take_off(&self, state: &mut DeviceState, taken: &mut Taken) {
        let donated = &mut taken.graph.donated;
        for (leaf, donated) in taken.leaves.iter_mut().zip(donated) {
            if !*donated || !leaf.is_placed() {
                continue;
            }
            match self.0.gpu.take_off(leaf) {
                Ok(own) => *leaf = own,
                Err(error) => {
                    *donated = false;
                    state.failure.get_or_insert(error);
                }
            }
        }
    }

    /// The buffer of `value` alone.
    pub(super) fn own_buffer(&self, value: &Arc<Value>) -> Result<Arc<Buffer>> {
        let mut buffer = ready(value)?;
        if buffer.is_placed() {
            buffer = self.0.gpu.take_off(&buffer)?;
            value.set(ValueState::Ready(buffer.clone()));
        }
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceOptions;
    use crate::tensor::constant;

    #[test]
    fn values_that_are_only_uploaded_and_read_leave_nothing() -> Result<()> {
        let device = Device::open(&DeviceOptions::default())?;
        device.scope(|| {
            let mut held = Vec::new();
            for i in 0..10 * MANY {
                let x = constant(i as f32)?;
                assert_eq!(x.item::<f32>()?, i as f32);
                held.extend((i < MANY).then_some(x));
            }
            let noted = device.state().kept.small.len();
            assert!(noted <= 3 * MANY, "{noted}");
            for (i, x) in held.iter().enumerate() {
                assert_eq!(x.item::<f32>()?, i as f32);
            }
            Ok(())
        })
    }
}
