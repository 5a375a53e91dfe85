//! The parts of a plan that an adapter would not run: checks for adapters that are not available.

use std::fmt::Write as _;

use super::{Plan, Step};
use crate::device::{Access, Caps};

impl Plan {
    /// The requirements of the plan beyond an adapter's limits and features, one line each. The workgroup requirements
    /// of the texts are known only to tools that parse them (`portability/compilers`).
    pub(crate) fn misfits(&self, caps: &Caps) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(error) = &self.refused {
            found.push(error.to_string());
        }
        for slot in self.slots.iter().filter(|slot| slot.bytes > caps.buffer_bytes) {
            found.push(format!("a buffer of {} bytes, of {}", slot.bytes, caps.buffer_bytes));
        }
        for step in &self.steps {
            let wrong = step.misfits(caps);
            if !wrong.is_empty() {
                found.push(format!("{}:{wrong}", step.label()));
            }
        }
        found
    }
}

impl Step {
    fn misfits(&self, caps: &Caps) -> String {
        let mut wrong = String::new();
        let mut complain = |complaint: std::fmt::Arguments| {
            // Writing to a text cannot fail.
            let _ = write!(wrong, " {complaint};");
        };
        for groups in self.grid {
            if !(1..=caps.groups).contains(&groups) {
                complain(format_args!("{groups} workgroups, of {}", caps.groups));
            }
        }
        let storage = self.source.accesses.iter().filter(|access| **access != Access::Uniform);
        if storage.clone().count() > caps.storage_buffers {
            complain(format_args!("{} buffers, of {}", storage.count(), caps.storage_buffers));
        }
        for &(_, bytes) in &self.binds {
            if bytes == 0 || bytes > caps.binding_bytes {
                complain(format_args!("a binding of {bytes} bytes, of {}", caps.binding_bytes));
            }
        }
        for &(at, bytes) in &self.params {
            if at % caps.uniform_alignment != 0 || bytes == 0 || bytes > UNIFORM_BYTES {
                complain(format_args!(
                    "{bytes} bytes of parameters at {at}, and the adapter aligns to {}",
                    caps.uniform_alignment
                ));
            }
        }
        let uses = |word: &str| self.source.wgsl.contains(word);
        if uses("enable f16;") && !caps.f16 {
            complain(format_args!("f16, which the adapter does not have"));
        }
        if (uses("subgroup") || uses("coop_mat")) && caps.subgroups.is_none() {
            complain(format_args!("subgroups, which the adapter does not have"));
        }
        if uses("coop_mat") && caps.cooperative.is_empty() {
            complain(format_args!("matrices, which the adapter does not have"));
        }
        wrong
    }
}

/// The size of a uniform that every adapter allows.
const UNIFORM_BYTES: u64 = 16 << 10;
