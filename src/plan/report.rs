//! A readable form of a plan: its kernels, what each computes, and their texts.

use std::fmt;
use std::sync::Arc;

use super::{Step, pressure};
use crate::shape::Shape;
use crate::support::text_table::{self, Column};

/// The planner's description of a step, for reports and profiles. The run does not depend on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Note {
    /// The kernel's name in tables; if empty, the source's label.
    pub(crate) label: String,
    /// The ops that the kernel computes, by TensorFlow's names, in the order in which they were called.
    pub(crate) ops: Vec<&'static str>,
    /// The shapes of the results that the kernel writes.
    pub(crate) outputs: Vec<Shape>,
    /// Additions and multiplications of one run; 0 if unknown.
    pub(crate) flops: u64,
    /// The compilation cost of the text, in units of ten microseconds, in addition to that of any kernel.
    pub(crate) weight: usize,
}

impl Note {
    /// The note of a kernel with several sections; it lists ops that occur in several sections once.
    pub(super) fn of_parts(parts: Vec<Note>, label: &str) -> Note {
        let mut all = Note { label: label.to_string(), ..Note::default() };
        let mut known: Vec<Vec<&'static str>> = Vec::new();
        for part in parts {
            all.outputs.extend(part.outputs);
            if !known.contains(&part.ops) {
                all.ops.extend(&part.ops);
                known.push(part.ops);
            }
        }
        all
    }
}

/// The plan of a flush: the kernels in the order in which they run, and what each of them computes.
///
/// Prints as a table; how many registers a thread needs is an estimate ([`PlannedKernel::registers`]).
/// [`Device::last_plan`](crate::Device::last_plan) returns one, and with the environment variable `WGRAD_PRINT_PLANS=1`
/// every new plan is logged at the level `info`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Device, Tensor};
/// let device = Device::new()?;
/// let x = device.scope(|| Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]))?;
/// let y = x.square()?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 4.0, 9.0]);
///
/// let plan = device.last_plan().expect("the read has run one");
/// println!("{plan}");
/// let kernel = &plan.kernels()[plan.kernels().len() - 1];
/// assert!(kernel.ops.contains(&"Square"));
/// assert_eq!(kernel.outputs, [[3].into()]);
/// assert!(plan.wgsl().contains("fn main("));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PlanReport(Arc<Inner>);

struct Inner {
    kernels: Vec<PlannedKernel>,
    /// For each kernel, those whose results it reads.
    #[cfg(feature = "summary")]
    inputs: Vec<Vec<usize>>,
    buffer_bytes: u64,
}

/// One dispatch of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedKernel {
    /// The kernel's name.
    pub label: String,
    /// The ops that it computes, by TensorFlow's names, in the order in which they were called.
    pub ops: Vec<&'static str>,
    /// The shapes of the results that it writes.
    pub outputs: Vec<Shape>,
    /// Bytes of the tensors that it binds: it reads and writes at least this many, if it uses all of them.
    pub bytes: u64,
    /// Additions and multiplications of one run, if known.
    pub flops: Option<u64>,
    /// Workgroups along x, y and z.
    pub workgroups: [u32; 3],
    /// The complete shader.
    pub wgsl: Arc<str>,
}

impl PlannedKernel {
    /// About how many registers of 32 bits a thread needs, estimated from the text; drivers' compilers mostly use
    /// between half and twice as many. A GPU runs fewer threads at once if each needs many.
    pub fn registers(&self) -> u32 {
        pressure::registers(&self.wgsl)
    }

    /// Bytes that the threads of a workgroup share. A GPU's core has a fixed amount for all workgroups that run there
    /// at once.
    pub fn shared_bytes(&self) -> u64 {
        pressure::shared_bytes(&self.wgsl)
    }
}

impl PlanReport {
    pub(super) fn new(steps: &[Step], buffer_bytes: u64) -> Self {
        let kernels = steps.iter().map(|step| PlannedKernel {
            label: step.label().to_string(),
            ops: step.note.ops.clone(),
            outputs: step.note.outputs.clone(),
            bytes: step.bytes,
            flops: Some(step.note.flops).filter(|flops| *flops > 0),
            workgroups: step.grid,
            wgsl: step.source.wgsl.clone(),
        });
        PlanReport(Arc::new(Inner {
            kernels: kernels.collect(),
            #[cfg(feature = "summary")]
            inputs: inputs(steps),
            buffer_bytes,
        }))
    }

    /// The kernels in the order in which they run.
    pub fn kernels(&self) -> &[PlannedKernel] {
        &self.0.kernels
    }

    /// The indices (from 0) of the kernels whose results the kernel `at` reads from memory, without values that it
    /// overwrites in place.
    #[cfg(feature = "summary")]
    pub fn inputs(&self, at: usize) -> &[usize] {
        self.0.inputs.get(at).map_or(&[], |inputs| &inputs[..])
    }

    /// Bytes of the buffers that a run takes from the device's pool, for results and for intermediate values.
    pub fn buffer_bytes(&self) -> u64 {
        self.0.buffer_bytes
    }

    /// The shaders of all kernels, each text once, under a comment with the kernel's numbers and ops.
    pub fn wgsl(&self) -> String {
        let kernels = self.kernels();
        let mut text = String::new();
        for (i, kernel) in kernels.iter().enumerate() {
            if kernels[..i].iter().any(|other| other.wgsl == kernel.wgsl) {
                continue;
            }
            let same = kernels.iter().enumerate().skip(i).filter(|(_, k)| k.wgsl == kernel.wgsl);
            for (at, kernel) in same {
                text += &format!("// {} {}: {}\n", at + 1, kernel.label, kernel.ops.join(", "));
            }
            text += kernel.wgsl.trim_end();
            text += "\n\n";
        }
        text
    }
}

/// For each step, the steps that last wrote the values that it reads.
#[cfg(feature = "summary")]
fn inputs(steps: &[Step]) -> Vec<Vec<usize>> {
    use super::BufferRef;
    use crate::device::Access;
    let key = |reference: BufferRef| match reference {
        BufferRef::Leaf(at) => (0, at),
        BufferRef::Slot(at) => (1, at),
    };
    let mut writers = std::collections::HashMap::new();
    let mut all = Vec::with_capacity(steps.len());
    for (at, step) in steps.iter().enumerate() {
        let storage = step.source.accesses.iter().filter(|access| **access != Access::Uniform);
        let bound: Vec<_> =
            step.binds.iter().map(|(reference, _)| key(*reference)).zip(storage).collect();
        let read = bound.iter().filter(|(_, access)| **access == Access::Read);
        let mut from: Vec<usize> = read.filter_map(|(key, _)| writers.get(key).copied()).collect();
        from.sort_unstable();
        from.dedup();
        all.push(from);
        let written = bound.into_iter().filter(|(_, access)| **access == Access::Write);
        writers.extend(written.map(|(key, _)| (key, at)));
    }
    all
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels = self.kernels();
        let plural = if kernels.len() == 1 { "" } else { "s" };
        let bytes = text_table::bytes(self.buffer_bytes());
        writeln!(f, "plan of {} kernel{plural}, {bytes} of buffers", kernels.len())?;
        let columns = [
            Column::right("#"),
            Column::left("kernel"),
            Column::left("ops"),
            Column::left("result"),
            Column::right("bytes"),
            Column::right("flops"),
            Column::right("registers"),
            Column::right("shared"),
        ];
        let rows = kernels.iter().enumerate().map(|(i, kernel)| {
            vec![
                (i + 1).to_string(),
                kernel.label.clone(),
                kernel.ops.join(" "),
                shapes(&kernel.outputs),
                text_table::bytes(kernel.bytes),
                kernel.flops.map_or("-".to_string(), |flops| flops.to_string()),
                kernel.registers().to_string(),
                text_table::bytes(kernel.shared_bytes()),
            ]
        });
        text_table::write(f, &columns, rows.collect())
    }
}

/// Shapes as a cell of the table: each with its number of consecutive repetitions, up to a limit.
fn shapes(all: &[Shape]) -> String {
    let mut groups = all.chunk_by(|a, b| a == b);
    let named: Vec<String> = groups
        .by_ref()
        .take(MOST_SHAPES)
        .map(|group| match group.len() {
            1 => group[0].to_string(),
            n => format!("{} ({n} times)", group[0]),
        })
        .collect();
    let rest = if groups.next().is_some() { " ..." } else { "" };
    named.join(" ") + rest
}

/// How many shapes a table names.
const MOST_SHAPES: usize = 4;

impl fmt::Debug for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlanReport({} kernels)", self.kernels().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_shapes_are_summarized() {
        let of =
            |all: &[&[usize]]| shapes(&all.iter().map(|s| Shape::from(*s)).collect::<Vec<_>>());
        assert_eq!(of(&[&[4, 3]]), "[4, 3]");
        assert_eq!(of(&[&[2], &[2], &[2], &[]]), "[2] (3 times) []");
        assert_eq!(of(&[&[1], &[2], &[3], &[4]]), "[1] [2] [3] [4]");
        assert_eq!(of(&[&[1], &[2], &[3], &[4], &[5]]), "[1] [2] [3] [4] ...");
    }

    #[test]
    fn what_parts_have_in_common_is_named_once() {
        let note = |ops: &[&'static str], shape: &[usize]| Note {
            ops: ops.to_vec(),
            outputs: vec![shape.into()],
            ..Note::default()
        };
        let parts =
            vec![note(&["Mul", "Sub"], &[2]), note(&["Sum"], &[]), note(&["Mul", "Sub"], &[3])];
        let all = Note::of_parts(parts, "2 x Sub, Sum");
        assert_eq!(all.ops, ["Mul", "Sub", "Sum"]);
        assert_eq!(all.outputs, [Shape::from([2]), Shape::from(&[][..]), Shape::from([3])]);
        assert_eq!(all.label, "2 x Sub, Sum");
    }
}
