//! What is wrong with a kernel.

use std::collections::BTreeMap;
use std::fmt;

use crate::program::Program;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An invocation reads what another has written since the last barrier of the right kind.
    ReadAfterWrite,
    /// An invocation writes what another has read since the last barrier of the right kind.
    WriteAfterRead,
    /// Two invocations write the same word, without a barrier of the right kind between them.
    WriteAfterWrite,
    /// Two workgroups of a dispatch access the same word, and one of them writes.
    BetweenWorkgroups,
    /// A barrier that not all invocations reach.
    Diverging,
    /// A barrier, or what a subgroup does together, of which the text does not show that all invocations reach it.
    MayDiverge,
    /// An index that the array does not have.
    OutOfBounds,
    /// As [`Kind::OutOfBounds`], where a buffer is only read. WGSL lets the device answer with any of its elements, or with 0,
    /// so nothing is wrong unless the answer counts; here another element answers, and results show whether it does.
    ReadBeyond,
    /// Workgroup memory is read that its workgroup has not written; the device does not fill it with zeros.
    Unwritten,
    /// A module's variable is read that its invocation has not written. WGSL fills it with zeros; wgrad does not count on it.
    UnwrittenPrivate,
    /// A loop that goes on for longer than any driver lets it.
    Endless,
    /// A subgroup's function that not all its invocations call.
    DivergingSubgroup,
    /// A value is taken from an invocation that does not exist, or does not take part.
    OutsideSubgroup,
    /// A pointer for `workgroupUniformLoad`, or a place of a small matrix, that differs between invocations.
    NotUniform,
}

impl Kind {
    /// False for what WGSL allows.
    pub fn is_fault(self) -> bool {
        self != Kind::ReadBeyond
    }

    /// The finding in words.
    pub fn words(self) -> &'static str {
        match self {
            Kind::ReadAfterWrite => "race: read after another invocation's write",
            Kind::WriteAfterRead => "race: write after another invocation's read",
            Kind::WriteAfterWrite => "race: write after another invocation's write",
            Kind::BetweenWorkgroups => "race between workgroups",
            Kind::Diverging => "barrier that not all invocations reach",
            Kind::MayDiverge => "barrier that not all invocations may reach",
            Kind::OutOfBounds => "index out of bounds",
            Kind::ReadBeyond => "read beyond the end of a buffer",
            Kind::Unwritten => "workgroup memory that was never written",
            Kind::UnwrittenPrivate => "private variable that was never written",
            Kind::Endless => "loop without end",
            Kind::DivergingSubgroup => "subgroup function that not all invocations call",
            Kind::OutsideSubgroup => "value of an invocation that takes no part",
            Kind::NotUniform => "place that is not the same for all invocations",
        }
    }
}

/// A finding: what, where, how often, and the first time that it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub kind: Kind,
    /// The variable, if one has to do with it.
    pub variable: String,
    /// The line in the kernel's text, 0 if unknown.
    pub line: u32,
    /// The text of that line.
    pub text: String,
    /// How often it was seen.
    pub count: u64,
    /// The workgroup and the invocation that saw it first, and the place in the variable.
    pub first: Seen,
}

/// Where something was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// The workgroup, counted along x, y, z.
    pub workgroup: u32,
    /// The invocation's index in it.
    pub invocation: u32,
    /// Bytes from the begin of a binding, or words from the begin of workgroup memory.
    pub at: u32,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.words())?;
        if !self.variable.is_empty() {
            write!(f, " of `{}`", self.variable)?;
        }
        let Seen { workgroup, invocation, at } = self.first;
        write!(
            f,
            ", line {}: `{}` ({} times; first in workgroup {workgroup}, invocation {invocation}, at {at})",
            self.line, self.text, self.count
        )
    }
}

/// Findings by what and where.
#[derive(Debug, Default)]
pub(crate) struct Findings(BTreeMap<(Kind, u32, u32), (u64, Seen)>);

impl Findings {
    /// `variable` is a number of [`Program::variables`], or none of them.
    pub(crate) fn note(&mut self, kind: Kind, variable: u32, line: u32, seen: Seen) {
        self.0.entry((kind, variable, line)).or_insert((0, seen)).0 += 1;
    }

    pub(crate) fn into_list(self, program: &Program) -> Vec<Finding> {
        let finding = |((kind, variable, line), (count, first))| Finding {
            kind,
            variable: program.variables.get(variable as usize).cloned().unwrap_or_default(),
            line,
            text: program.line(line).to_string(),
            count,
            first,
        };
        self.0.into_iter().map(finding).collect()
    }
}
