//! A kernel made ready to run: a list of instructions on registers, each of which holds one word for every invocation of a
//! workgroup.
//!
//! Functions are written out at their calls, so what a pointer points into is known beforehand, and vectors are taken
//! apart into scalars. Control flow is a mask of invocations and a stack of frames that give lanes back to it.

use naga::{AtomicFunction, CollectiveOperation, MathFunction, SubgroupOperation};

use crate::layout::Kind;

/// A register: one word for each invocation.
pub(crate) type Reg = u32;

/// The number of an instruction.
pub(crate) type Pc = u32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    Negate,
    Not,
    Math(MathFunction),
    IsNan,
    IsInf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Math(MathFunction),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ternary {
    /// `a` is a condition.
    Select,
    Math(MathFunction),
}

/// Where an access goes: a place in a buffer or in workgroup memory, and the words to report it by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address {
    pub(crate) root: Root,
    /// Bytes in a buffer, words in workgroup memory.
    pub(crate) constant: u32,
    /// Added to it, for each invocation.
    pub(crate) dynamic: Option<Reg>,
    /// Where the variable ends.
    pub(crate) end: u32,
    /// The variable, by its number in [`Program::variables`].
    pub(crate) variable: u32,
    pub(crate) line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// A binding, by its number in [`Program::bindings`].
    Buffer(u32),
    Workgroup,
}

/// How many elements an index may choose from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    Fixed(u32),
    /// As many as the binding has room for, behind `offset` bytes.
    Runtime {
        binding: u32,
        offset: u32,
        stride: u32,
    },
}

/// How an invocation chooses whose value of its subgroup it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gather {
    First,
    /// The invocation with this number.
    From,
    /// The one whose number is so much larger, smaller, or differs in these bits.
    Down,
    Up,
    Xor,
    /// Within four neighbours.
    QuadFrom,
    QuadXor(u32),
}

/// A small matrix that a subgroup holds together: its scalars are numbered column by column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix {
    pub(crate) first: Reg,
    pub(crate) columns: u32,
    pub(crate) rows: u32,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    Unary {
        op: Unary,
        kind: Kind,
        d: Reg,
        a: Reg,
    },
    Binary {
        op: Binary,
        kind: Kind,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Ternary {
        op: Ternary,
        kind: Kind,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    /// `insertBits`, the only function of four.
    InsertBits {
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        e: Reg,
    },
    Convert {
        from: Kind,
        to: Kind,
        d: Reg,
        a: Reg,
    },
    Copy {
        d: Reg,
        a: Reg,
    },
    /// A copy for the active invocations alone, as `d` is a variable.
    Set {
        d: Reg,
        a: Reg,
    },
    /// Register `first + index`.
    Pick {
        d: Reg,
        first: Reg,
        index: Reg,
        variable: u32,
        line: u32,
    },
    /// `all` are the first register of the variable and the one behind its last.
    Put {
        first: Reg,
        index: Reg,
        a: Reg,
        all: [Reg; 2],
        variable: u32,
        line: u32,
    },
    /// Reports a variable of the invocation that was never written: `written` is 0.
    Written {
        written: Reg,
        index: Option<Reg>,
        variable: u32,
        line: u32,
    },
    /// `d = base + stride * index`, with [`OUTSIDE`] added where the index is none.
    Index {
        d: Reg,
        base: Option<Reg>,
        index: Reg,
        stride: u32,
        bound: Bound,
    },
    ArrayLength {
        d: Reg,
        bound: Bound,
    },
    /// Registers from `d` on.
    Load {
        d: Reg,
        count: u32,
        kind: Kind,
        atomic: bool,
        address: Address,
    },
    Store {
        a: Reg,
        count: u32,
        kind: Kind,
        atomic: bool,
        address: Address,
    },
    Atomic {
        fun: Rmw,
        kind: Kind,
        d: Option<Reg>,
        a: Reg,
        address: Address,
    },

    If {
        condition: Reg,
        otherwise: Pc,
    },
    Else {
        end: Pc,
    },
    EndIf {
        exit: Pc,
    },
    Loop,
    /// Those that go on join in; `end` is that of the loop.
    Continuing {
        end: Pc,
    },
    BreakIf {
        condition: Reg,
    },
    Again {
        start: Pc,
        number: u32,
    },
    EndLoop {
        exit: Pc,
    },
    Switch,
    /// Takes the invocations whose selector is one of `count` values from `first` on in [`Program::cases`].
    Case {
        selector: Reg,
        first: u32,
        count: u32,
        otherwise: Pc,
    },
    Default {
        otherwise: Pc,
    },
    EndCase,
    EndSwitch {
        exit: Pc,
    },
    Call,
    EndCall {
        exit: Pc,
    },
    /// The active invocations leave for the frame that lies `depth` frames below the top.
    Break {
        depth: u32,
        exit: Pc,
    },
    Continue {
        depth: u32,
        exit: Pc,
    },
    Return {
        depth: u32,
        exit: Pc,
    },
    End,

    /// A barrier, by its number in [`Program::barriers`].
    Barrier {
        number: u32,
    },
    /// All invocations have the same value, as `workgroupUniformLoad` wants of its pointer.
    Uniform {
        a: Reg,
        line: u32,
    },
    Gather {
        mode: Gather,
        d: Reg,
        a: Reg,
        index: Option<Reg>,
        line: u32,
    },
    Collective {
        op: SubgroupOperation,
        how: CollectiveOperation,
        kind: Kind,
        d: Reg,
        a: Reg,
        line: u32,
    },
    /// Four registers of bits.
    Ballot {
        d: Reg,
        a: Option<Reg>,
        line: u32,
    },
    MatrixLoad {
        to: Matrix,
        address: Address,
        stride: Reg,
        by_rows: bool,
    },
    MatrixStore {
        from: Matrix,
        address: Address,
        stride: Reg,
        by_rows: bool,
    },
    /// `d = a b + c`.
    MatrixMultiply {
        d: Matrix,
        a: Matrix,
        b: Matrix,
        c: Matrix,
        line: u32,
    },
}

impl Op {
    /// Shows all registers that the instruction names; of a range, the first.
    pub(crate) fn registers(&mut self, see: &mut impl FnMut(&mut Reg)) {
        match self {
            Op::Unary { d, a, .. }
            | Op::Convert { d, a, .. }
            | Op::Copy { d, a }
            | Op::Set { d, a }
            | Op::Collective { d, a, .. } => [d, a].into_iter().for_each(see),
            Op::Binary { d, a, b, .. } => [d, a, b].into_iter().for_each(see),
            Op::Ternary { d, a, b, c, .. } => [d, a, b, c].into_iter().for_each(see),
            Op::InsertBits { d, a, b, c, e } => [d, a, b, c, e].into_iter().for_each(see),
            Op::Pick { d, first, index, .. } => [d, first, index].into_iter().for_each(see),
            Op::Put { first, index, a, all, .. } => {
                [first, index, a].into_iter().chain(all).for_each(see);
            }
            Op::Written { written, index, .. } => {
                [written].into_iter().chain(index).for_each(see);
            }
            Op::Index { d, base, index, .. } => [d, index].into_iter().chain(base).for_each(see),
            Op::ArrayLength { d, .. } => see(d),
            Op::Load { d: a, address, .. } | Op::Store { a, address, .. } => {
                [a].into_iter().chain(&mut address.dynamic).for_each(see);
            }
            Op::Atomic { d, a, address, fun, .. } => {
                if let Rmw::CompareExchange { compare } = fun {
                    see(compare);
                }
                [a].into_iter().chain(d).chain(&mut address.dynamic).for_each(see);
            }
            Op::If { condition: a, .. }
            | Op::BreakIf { condition: a }
            | Op::Case { selector: a, .. }
            | Op::Uniform { a, .. } => see(a),
            Op::Gather { d, a, index, .. } => [d, a].into_iter().chain(index).for_each(see),
            Op::Ballot { d, a, .. } => [d].into_iter().chain(a).for_each(see),
            Op::MatrixLoad { to: matrix, address, stride, .. }
            | Op::MatrixStore { from: matrix, address, stride, .. } => {
                let own = [&mut matrix.first, stride].into_iter();
                own.chain(&mut address.dynamic).for_each(see);
            }
            Op::MatrixMultiply { d, a, b, c, .. } => {
                [d, a, b, c].into_iter().for_each(|matrix| see(&mut matrix.first));
            }
            Op::Else { .. }
            | Op::EndIf { .. }
            | Op::Loop
            | Op::Continuing { .. }
            | Op::Again { .. }
            | Op::EndLoop { .. }
            | Op::Switch
            | Op::Default { .. }
            | Op::EndCase
            | Op::EndSwitch { .. }
            | Op::Call
            | Op::EndCall { .. }
            | Op::Break { .. }
            | Op::Continue { .. }
            | Op::Return { .. }
            | Op::End
            | Op::Barrier { .. } => {}
        }
    }

    /// Sets where the instruction goes on when no invocation is left.
    pub(crate) fn jump_to(&mut self, pc: Pc) {
        match self {
            Op::If { otherwise: to, .. }
            | Op::Else { end: to }
            | Op::EndIf { exit: to }
            | Op::Continuing { end: to }
            | Op::EndLoop { exit: to }
            | Op::Case { otherwise: to, .. }
            | Op::Default { otherwise: to }
            | Op::EndSwitch { exit: to }
            | Op::EndCall { exit: to }
            | Op::Break { exit: to, .. }
            | Op::Continue { exit: to, .. }
            | Op::Return { exit: to, .. } => *to = pc,
            other => unreachable!("{other:?} goes nowhere"),
        }
    }
}

/// An atomic function; registers of what it compares with are known beforehand.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rmw {
    Plain(AtomicFunction),
    /// The second register behind the result says whether it was exchanged.
    CompareExchange {
        compare: Reg,
    },
}

/// Marks an offset that an index out of bounds has made; the offset itself is that of the last element.
pub(crate) const OUTSIDE: u32 = 1 << 31;

/// A barrier of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarrierPoint {
    /// The line in the text.
    pub line: u32,
    /// It orders accesses to workgroup memory.
    pub workgroup: bool,
    /// It orders accesses to storage.
    pub storage: bool,
}

/// A variable of a binding.
#[derive(Debug, Clone)]
pub struct Binding {
    /// Its number in group 0.
    pub binding: u32,
    /// The kernel may write it.
    pub writable: bool,
    /// It holds parameters.
    pub uniform: bool,
}

/// A value that a kernel gets from its place in the grid.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Given {
    GlobalInvocationId(u32),
    LocalInvocationId(u32),
    LocalInvocationIndex,
    WorkgroupId(u32),
    NumWorkgroups(u32),
    SubgroupSize,
    SubgroupId,
    SubgroupInvocationId,
    NumSubgroups,
}

/// A kernel made ready to run.
#[derive(Debug)]
pub struct Program {
    pub(crate) ops: Vec<Op>,
    pub(crate) registers: u32,
    /// Registers that hold one number, from the first register on.
    pub(crate) constants: Vec<u32>,
    pub(crate) given: Vec<(Given, Reg)>,
    /// The values of all cases.
    pub(crate) cases: Vec<u32>,
    pub(crate) variables: Vec<String>,
    /// Registers of variables that belong to a module, which are 0 when an invocation begins.
    pub(crate) private: std::ops::Range<Reg>,
    pub(crate) private_init: Vec<(Reg, u32)>,
    pub(crate) workgroup_words: u32,
    /// The entry point's.
    pub workgroup_size: [u32; 3],
    /// The bindings, by their numbers.
    pub bindings: Vec<Binding>,
    /// The barriers, in the order of the text.
    pub barriers: Vec<BarrierPoint>,
    /// The lines at which loops begin.
    pub loops: Vec<u32>,
    /// Invocations of a subgroup work together.
    pub uses_subgroups: bool,
    /// Accesses have to be distinguished by halves of words.
    pub(crate) halves: bool,
    pub(crate) lines: Vec<String>,
}

impl Program {
    /// The text of a line, from 1 on.
    pub fn line(&self, line: u32) -> &str {
        self.lines.get((line as usize).wrapping_sub(1)).map_or("", |text| text.trim())
    }

    /// The invocations of a workgroup.
    pub fn invocations(&self) -> usize {
        self.workgroup_size.iter().map(|&n| n as usize).product()
    }
}
