//! Subgroups of any size, through workgroup memory: what an invocation gives to the others it stores there, between two
//! barriers.
//!
//! The size says how many invocations a subgroup has; the last one of a workgroup may have fewer. WGSL does not say which
//! invocations of a workgroup a subgroup holds (13.3.1.1, `subgroup_invocation_id`), so they are neighbours, or far apart.
//! What an operation gives for a lane that does not exist, or is not active, is left open (17.12): here it is a number
//! that nobody stored.

use std::fmt::{self, Write};

use naga::{
    BinaryOperator, CollectiveOperation, Direction, Expression, Function, GatherMode, Handle,
    Literal, Module, ScalarKind, Statement, SubgroupOperation,
};

use crate::builder::{Builder, Numbers};
use crate::error::{Error, Result};

type One = Handle<Expression>;

/// How a driver forms subgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subgroups {
    /// How many invocations each has.
    pub size: u32,
    /// They are far apart in the workgroup.
    pub scattered: bool,
}

impl fmt::Display for Subgroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "subgroups-{}{}", self.size, if self.scattered { "-scattered" } else { "" })
    }
}

impl Subgroups {
    /// `subgroups-8`, `subgroups-32-scattered`.
    pub(crate) fn named(name: &str) -> Option<Result<Self>> {
        let rest = name.strip_prefix("subgroups-")?;
        let (size, scattered) = match rest.strip_suffix("-scattered") {
            Some(size) => (size, true),
            None => (rest, false),
        };
        let size = size.parse().ok().filter(|size: &u32| size.is_power_of_two() && *size <= 128);
        Some(size.map(|size| Subgroups { size, scattered }).ok_or_else(|| {
            Error::new(format!(
                "{name}: the size of a subgroup is a power of two up to 128, as in subgroups-32"
            ))
        }))
    }

    /// The functions with which `threads` invocations of a workgroup exchange numbers.
    pub(crate) fn text(self, threads: u32) -> String {
        let size = self.size;
        let place = match self.scattered {
            true => format!("(index * {}u + 1u) % {threads}u", multiplier(threads)),
            false => "index".to_string(),
        };
        let mut all = format!(
            "var<workgroup> hostile_board: array<vec4<u32>, {threads}>;\n\
             var<private> hostile_place: u32;\n\
             var<private> hostile_lane: u32;\n\
             var<private> hostile_lanes: u32;\n\
             fn hostile_join_subgroup(index: u32) {{\n    \
                 hostile_place = {place};\n    \
                 hostile_lane = hostile_place % {size}u;\n    \
                 hostile_lanes = min({size}u, {threads}u - (hostile_place - hostile_lane));\n}}\n\
             fn hostile_lane_of() -> u32 {{ return hostile_lane; }}\n\
             fn hostile_subgroup_of() -> u32 {{ return hostile_place / {size}u; }}\n\
             fn hostile_show(word: vec4<u32>) {{\n    \
                 workgroupBarrier();\n    hostile_board[hostile_place] = word;\n    workgroupBarrier();\n}}\n\
             fn hostile_see(lane: u32) -> vec4<u32> {{\n    \
                 let at = hostile_place - hostile_lane + min(lane, hostile_lanes - 1u);\n    \
                 return select(vec4<u32>(0x4d5a5a5au), hostile_board[at], lane < hostile_lanes);\n}}\n\
             fn hostile_ballot(value: bool) -> vec4<u32> {{\n    \
                 hostile_show(vec4<u32>(select(0u, 1u, value)));\n    var all = vec4<u32>(0u);\n    \
                 for (var i = 0u; i < hostile_lanes; i++) {{\n        \
                     all[i / 32u] |= hostile_see(i).x << (i % 32u);\n    }}\n    return all;\n}}\n"
        );
        for kind in [ScalarKind::Float, ScalarKind::Sint, ScalarKind::Uint, ScalarKind::Bool] {
            for lanes in 1..=4 {
                all += &exchanges(kind, lanes);
            }
        }
        all
    }
}

/// A number above 1 that has no factor in common with `threads`, so that multiplying by it mixes the places.
fn multiplier(threads: u32) -> u32 {
    let common = |mut a: u32, mut b: u32| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (5..).find(|by| common(*by, threads) == 1).unwrap_or(1)
}

fn scalar(kind: ScalarKind) -> &'static str {
    match kind {
        ScalarKind::Float => "f32",
        ScalarKind::Sint => "i32",
        ScalarKind::Uint => "u32",
        _ => "bool",
    }
}

fn ty(scalar: &str, lanes: u8) -> String {
    if lanes == 1 { scalar.to_string() } else { format!("vec{lanes}<{scalar}>") }
}

/// The functions for one type.
fn exchanges(kind: ScalarKind, lanes: u8) -> String {
    let name = format!("{}{lanes}", scalar(kind));
    let (x, words) = (ty(scalar(kind), lanes), ty("u32", lanes));
    let mut value = match kind {
        ScalarKind::Bool => format!("select({words}(0u), {words}(1u), value)"),
        _ => format!("bitcast<{words}>(value)"),
    };
    let rest = ["", "0u, 0u, 0u", "0u, 0u", "0u"].get(lanes as usize).copied().unwrap_or("");
    if lanes < 4 {
        value = format!("vec4<u32>({value}, {rest})");
    }
    let swizzle = &".xyzw"[..=lanes as usize];
    let of = |lane: &str| match kind {
        ScalarKind::Bool => format!("(hostile_see({lane}){swizzle} == {words}(1u))"),
        _ => format!("bitcast<{x}>(hostile_see({lane}){swizzle})"),
    };
    let mut all = format!(
        "fn hostile_take_{name}(value: {x}, lane: u32) -> {x} {{\n    hostile_show({value});\n    return {};\n}}\n",
        of("lane")
    );
    let mut fold = |operation: &str, start: &str, joined: &str| {
        for (mode, end) in [
            ("Reduce", "hostile_lanes"),
            ("InclusiveScan", "hostile_lane + 1u"),
            ("ExclusiveScan", "hostile_lane"),
        ] {
            let _ = write!(
                all,
                "fn hostile_{operation}_{mode}_{name}(value: {x}) -> {x} {{\n    hostile_show({value});\n    \
                     var a = {start};\n    for (var i = 0u; i < {end}; i++) {{\n        \
                         let b = {};\n        a = {joined};\n    }}\n    return a;\n}}\n",
                of("i")
            );
        }
    };
    let [zero, one] = ["0", "1"].map(|number| format!("{x}({number})"));
    match kind {
        ScalarKind::Bool if lanes == 1 => {
            fold("All", "true", "a && b");
            fold("Any", "false", "a || b");
        }
        ScalarKind::Bool => {}
        _ => {
            fold("Add", &zero, "a + b");
            fold("Mul", &one, "a * b");
            fold("Min", "value", "min(a, b)");
            fold("Max", "value", "max(a, b)");
        }
    }
    if matches!(kind, ScalarKind::Sint | ScalarKind::Uint) {
        fold("And", "value", "a & b");
        fold("Or", "value", "a | b");
        fold("Xor", &zero, "a ^ b");
    }
    all
}

/// Calls the functions of [`Subgroups::text`] in place of subgroup operations.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) subgroups: Subgroups,
    pub(crate) threads: u32,
    pub(crate) find: &'a dyn Fn(&str) -> Option<Handle<Function>>,
}

impl Exchange<'_> {
    fn function(&self, name: &str) -> Result<Handle<Function>> {
        (self.find)(name).ok_or_else(|| {
            Error::new(format!("the subgroup operation {name} is not known to the rewriter"))
        })
    }

    /// What the entry point begins with; `index` is the invocation's in its workgroup.
    pub(crate) fn begin(&self, build: &mut Builder, index: One) -> Result<()> {
        let function = self.function("join_subgroup")?;
        build.push(Statement::Call { function, arguments: vec![index], result: None });
        Ok(())
    }

    pub(crate) fn lane(&self, build: &mut Builder) -> Result<One> {
        build.call(self.function("lane_of")?, vec![])
    }

    pub(crate) fn subgroup(&self, build: &mut Builder) -> Result<One> {
        build.call(self.function("subgroup_of")?, vec![])
    }

    /// The number of subgroups in a workgroup.
    pub(crate) fn count(&self) -> u32 {
        self.threads.div_ceil(self.subgroups.size)
    }

    pub(crate) fn ballot(&self, build: &mut Builder, predicate: Option<One>) -> Result<One> {
        let predicate = match predicate {
            Some(predicate) => predicate,
            None => build.literal(Literal::Bool(true))?,
        };
        build.call(self.function("ballot")?, vec![predicate])
    }

    /// The value that another lane holds.
    pub(crate) fn gather(&self, build: &mut Builder, mode: GatherMode, value: One) -> Result<One> {
        let own = self.lane(build)?;
        let mut binary = |op, left, right| build.add(Expression::Binary { op, left, right });
        let lane = match mode {
            GatherMode::BroadcastFirst => build.literal(Literal::U32(0))?,
            GatherMode::Broadcast(lane) | GatherMode::Shuffle(lane) => unsigned(build, lane)?,
            GatherMode::ShuffleDown(by) => binary(BinaryOperator::Add, own, by)?,
            GatherMode::ShuffleUp(by) => binary(BinaryOperator::Subtract, own, by)?,
            GatherMode::ShuffleXor(mask) => binary(BinaryOperator::ExclusiveOr, own, mask)?,
            GatherMode::QuadBroadcast(index) => {
                let mask = build.literal(Literal::U32(!3))?;
                let mut binary =
                    |op, left, right| build.add(Expression::Binary { op, left, right });
                let first = binary(BinaryOperator::And, own, mask)?;
                binary(BinaryOperator::Add, first, index)?
            }
            GatherMode::QuadSwap(direction) => {
                let mask = match direction {
                    Direction::X => 1,
                    Direction::Y => 2,
                    Direction::Diagonal => 3,
                };
                let right = build.literal(Literal::U32(mask))?;
                let op = BinaryOperator::ExclusiveOr;
                build.add(Expression::Binary { op, left: own, right })?
            }
        };
        self.with_whole_words(build, value, |build, name, value| {
            build.call(self.function(&format!("take_{name}"))?, vec![value, lane])
        })
    }

    pub(crate) fn collective(
        &self,
        build: &mut Builder,
        op: SubgroupOperation,
        mode: CollectiveOperation,
        value: One,
    ) -> Result<One> {
        self.with_whole_words(build, value, |build, name, value| {
            build.call(self.function(&format!("{op:?}_{mode:?}_{name}"))?, vec![value])
        })
    }

    /// Gives a value to a function by the name of its type; an `f16` as an `f32`, which holds it exactly.
    fn with_whole_words(
        &self,
        build: &mut Builder,
        value: One,
        call: impl Fn(&mut Builder, &str, One) -> Result<One>,
    ) -> Result<One> {
        let Some(numbers) = build.numbers(value) else {
            return Err(Error::new("a subgroup exchanges what is neither a scalar nor a vector"));
        };
        let Numbers { lanes, scalar: own } = numbers;
        let name = format!("{}{lanes}", scalar(own.kind));
        if own.kind != ScalarKind::Float || own.width == 4 {
            return call(build, &name, value);
        }
        let kind = ScalarKind::Float;
        let wide = build.add(Expression::As { expr: value, kind, convert: Some(4) })?;
        let result = call(build, &name, wide)?;
        build.add(Expression::As { expr: result, kind, convert: Some(own.width) })
    }
}

fn unsigned(build: &mut Builder, index: One) -> Result<One> {
    match build.numbers(index).map(|numbers| numbers.scalar.kind) {
        Some(ScalarKind::Sint) => {
            build.add(Expression::As { expr: index, kind: ScalarKind::Uint, convert: Some(4) })
        }
        _ => Ok(index),
    }
}

/// Whether a module has subgroup operations, or asks how its invocations form subgroups.
pub(crate) fn are_used(module: &Module) -> bool {
    let functions = module.functions.iter().map(|(_, function)| function);
    let entries = module.entry_points.iter().map(|entry| &entry.function);
    functions.chain(entries).any(|function| {
        let arguments = function.arguments.iter().any(|a| is_built_in(a.binding.as_ref()));
        let results = function.expressions.iter().any(|(_, expression)| {
            matches!(
                expression,
                Expression::SubgroupBallotResult | Expression::SubgroupOperationResult { .. }
            )
        });
        arguments || results
    })
}

/// Whether an argument is about subgroups.
pub(crate) fn is_built_in(binding: Option<&naga::Binding>) -> bool {
    use naga::BuiltIn::{NumSubgroups, SubgroupId, SubgroupInvocationId, SubgroupSize};
    matches!(
        binding,
        Some(naga::Binding::BuiltIn(
            NumSubgroups | SubgroupId | SubgroupInvocationId | SubgroupSize
        ))
    )
}
