//! The kinds of calls in programs.

/// A flavour of programs: how often each kind of call is tried.
#[derive(Clone, Copy, Debug)]
pub struct Flavour {
    pub name: &'static str,
    pub unary: usize,
    pub binary: usize,
    pub scalar: usize,
    pub choose: usize,
    pub view: usize,
    pub reduce: usize,
    pub softmax: usize,
    pub motif: usize,
    pub matmul: usize,
    pub image: usize,
    pub index: usize,
    pub constant: usize,
    /// Sizes of axes.
    pub sizes: &'static [usize],
    pub most_axes: usize,
    /// The maximum number of elements of a value.
    pub largest: usize,
    /// The number of calls of a program.
    pub calls: usize,
    /// Only differentiable ops.
    pub smooth: bool,
    /// NaN and infinities among the inputs, and ops whose results for them are documented.
    pub special: bool,
}

const SMALL: &[usize] = &[1, 2, 3, 4, 5, 7, 8, 10];

const PLAIN: Flavour = Flavour {
    name: "elementwise",
    unary: 6,
    binary: 8,
    scalar: 4,
    choose: 3,
    view: 0,
    reduce: 0,
    softmax: 0,
    motif: 0,
    matmul: 0,
    image: 0,
    index: 0,
    constant: 1,
    sizes: SMALL,
    most_axes: 3,
    largest: 4000,
    calls: 36,
    smooth: false,
    special: false,
};

/// Chains and trees of element-wise ops with all kinds of broadcasting.
pub const ELEMENTWISE: Flavour = PLAIN;

/// The same with permuted axes, slices, paddings and joins.
pub const VIEWS: Flavour =
    Flavour { name: "views", view: 12, unary: 4, binary: 6, most_axes: 4, ..PLAIN };

/// Reductions over all combinations of axes with element-wise ops before and after.
pub const REDUCES: Flavour = Flavour {
    name: "reductions",
    reduce: 10,
    softmax: 4,
    motif: 2,
    unary: 4,
    view: 1,
    calls: 30,
    ..PLAIN
};

/// Rows and columns longer than the part of a thread and of a workgroup.
pub const LONG: Flavour = Flavour {
    name: "long",
    sizes: &[1, 1, 3, 10, 1000, 4097],
    most_axes: 2,
    largest: 45_000,
    reduce: 6,
    softmax: 3,
    motif: 1,
    calls: 22,
    ..PLAIN
};

/// Products with element-wise ops before and after.
pub const PRODUCTS: Flavour = Flavour {
    name: "products",
    matmul: 6,
    image: 4,
    reduce: 2,
    view: 2,
    motif: 3,
    sizes: &[1, 2, 3, 4, 5, 7, 10, 16, 33],
    largest: 5000,
    calls: 26,
    ..PLAIN
};

/// The patterns that a planner recognizes, and similar ones.
pub const MOTIFS: Flavour = Flavour {
    name: "motifs",
    motif: 12,
    softmax: 3,
    index: 2,
    reduce: 2,
    view: 1,
    unary: 3,
    binary: 4,
    sizes: &[1, 3, 4, 5, 8, 10, 32, 65],
    largest: 5000,
    calls: 40,
    ..PLAIN
};

/// Integers, booleans and indices.
pub const INDICES: Flavour = Flavour {
    name: "indices",
    index: 8,
    choose: 8,
    view: 3,
    reduce: 3,
    unary: 3,
    binary: 5,
    ..PLAIN
};

/// Axes of size 0 among others.
pub const EMPTY: Flavour = Flavour {
    name: "empty",
    sizes: &[0, 1, 2, 3, 4],
    view: 5,
    reduce: 5,
    softmax: 2,
    matmul: 2,
    index: 2,
    calls: 30,
    ..PLAIN
};

/// All kinds of calls.
pub const MIXED: Flavour = Flavour {
    name: "mixed",
    view: 5,
    reduce: 5,
    softmax: 2,
    motif: 3,
    matmul: 2,
    image: 2,
    index: 2,
    most_axes: 4,
    calls: 40,
    ..PLAIN
};

/// Small and differentiable.
pub const SMOOTH: Flavour = Flavour {
    name: "smooth",
    view: 4,
    reduce: 4,
    softmax: 3,
    motif: 3,
    matmul: 3,
    image: 2,
    index: 1,
    choose: 1,
    sizes: &[1, 2, 3, 4, 5],
    largest: 200,
    calls: 16,
    smooth: true,
    ..PLAIN
};

/// Rows with NaN and infinities.
pub const SPECIAL: Flavour = Flavour {
    name: "special",
    unary: 6,
    binary: 6,
    scalar: 3,
    choose: 1,
    view: 3,
    reduce: 6,
    softmax: 4,
    index: 3,
    most_axes: 3,
    calls: 30,
    special: true,
    ..PLAIN
};

/// More calls, inputs and results than one kernel can bind.
pub const WIDE: Flavour = Flavour {
    name: "wide",
    view: 1,
    reduce: 1,
    motif: 1,
    sizes: &[1, 3, 4, 8],
    most_axes: 2,
    largest: 500,
    calls: 150,
    ..PLAIN
};
