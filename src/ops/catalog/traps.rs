//! Constructs that kernels avoid, because some shader compiler computes wrong numbers for them: `docs/portability.md`
//! lists the reports. These rules check naga's form of each text in the catalog.

use naga::{
    AddressSpace, BuiltIn, Expression, Function, MathFunction, Module, Statement, TypeInner,
};

use super::catalog;

/// The functions of WGSL that kernels call. The list excludes functions whose limits differ between drivers (`tanh`,
/// `sinh`, `cosh`, `atan2`, `pow`, ...), for which the prelude has its own formulas, and the packing of normalized
/// numbers, which Metal has miscompiled.
const FUNCTIONS: &[MathFunction] = &[
    MathFunction::Abs,
    MathFunction::Ceil,
    MathFunction::Clamp,
    MathFunction::CountOneBits,
    // Only for numbers that are known to be moderate.
    MathFunction::Exp,
    MathFunction::Floor,
    MathFunction::Fma,
    MathFunction::InverseSqrt,
    MathFunction::Log,
    MathFunction::Max,
    MathFunction::Min,
    MathFunction::QuantizeToF16,
    MathFunction::Round,
    MathFunction::Sign,
    MathFunction::Sqrt,
];

/// The functions of a module, the entry point among them.
fn functions(module: &Module) -> impl Iterator<Item = &Function> {
    let entries = module.entry_points.iter().map(|entry| &entry.function);
    module.functions.iter().map(|(_, function)| function).chain(entries)
}

/// All statements of a block, including nested ones.
fn walk(block: &naga::Block, see: &mut impl FnMut(&Statement)) {
    for statement in block {
        see(statement);
        match statement {
            Statement::Block(inner) => walk(inner, see),
            Statement::If { accept, reject, .. } => {
                walk(accept, see);
                walk(reject, see);
            }
            Statement::Loop { body, continuing, .. } => {
                walk(body, see);
                walk(continuing, see);
            }
            Statement::Switch { cases, .. } => {
                cases.iter().for_each(|case| walk(&case.body, see));
            }
            _ => {}
        }
    }
}

/// The avoided constructs that a text uses.
fn traps(module: &Module) -> Vec<String> {
    let mut found = memory(module);
    for entry in &module.entry_points {
        for argument in &entry.function.arguments {
            let Some(naga::Binding::BuiltIn(builtin)) = argument.binding else { continue };
            let known = [
                BuiltIn::WorkGroupId,
                BuiltIn::LocalInvocationIndex,
                BuiltIn::LocalInvocationId,
                BuiltIn::GlobalInvocationId,
                BuiltIn::SubgroupSize,
                BuiltIn::SubgroupId,
                BuiltIn::SubgroupInvocationId,
            ];
            // The host folds grids, so the driver's counts differ from those that a kernel has requested.
            if !known.contains(&builtin) {
                found.push(format!("it asks for {builtin:?}"));
            }
        }
    }
    for function in functions(module) {
        for (_, expression) in function.expressions.iter() {
            if let Expression::Math { fun, .. } = expression
                && !FUNCTIONS.contains(fun)
            {
                found.push(format!("it calls {fun:?}"));
            }
        }
        walk(&function.body, &mut |statement| match statement {
            // naga and drivers have miscompiled cases and values in them.
            Statement::Switch { .. } => found.push("it has a switch".into()),
            // Metal drops the barrier in it.
            Statement::WorkGroupUniformLoad { .. } => {
                found.push("it has a workgroupUniformLoad".into());
            }
            Statement::Store { pointer, .. } if is_lane(module, function, *pointer) => {
                found.push("it writes a lane of a vector at an index".into());
            }
            _ => {}
        });
    }
    found.sort();
    found.dedup();
    found
}

/// Types whose memory layouts differ between shading languages.
fn memory(module: &Module) -> Vec<String> {
    let mut found = Vec::new();
    for (_, ty) in module.types.iter() {
        if matches!(ty.inner, TypeInner::Matrix { .. }) {
            found.push("it has a matrix".into());
        }
    }
    for (_, global) in module.global_variables.iter() {
        match global.space {
            AddressSpace::Storage { .. } | AddressSpace::Uniform
                if holds_three(module, global.ty) =>
            {
                found.push("it binds a vector of three".into());
            }
            // Metal drops barriers for an argument of that kind.
            AddressSpace::WorkGroup if functions(module).any(|it| takes_workgroup(module, it)) => {
                found.push("it hands workgroup memory to a function".into());
            }
            _ => {}
        }
    }
    found
}

fn takes_workgroup(module: &Module, function: &Function) -> bool {
    function.arguments.iter().any(|argument| {
        let ty = &module.types[argument.ty].inner;
        matches!(ty, TypeInner::Pointer { space: AddressSpace::WorkGroup, .. })
    })
}

fn holds_three(module: &Module, ty: naga::Handle<naga::Type>) -> bool {
    match &module.types[ty].inner {
        TypeInner::Vector { size, .. } => *size == naga::VectorSize::Tri,
        TypeInner::Array { base, .. } => holds_three(module, *base),
        TypeInner::Struct { members, .. } => {
            members.iter().any(|member| holds_three(module, member.ty))
        }
        _ => false,
    }
}

/// Whether a pointer refers to a vector component whose index is not known at compile time: FXC does not compile writes
/// to it.
fn is_lane(module: &Module, function: &Function, pointer: naga::Handle<Expression>) -> bool {
    let Expression::Access { base, .. } = function.expressions[pointer] else { return false };
    let ty = match function.expressions[base] {
        Expression::LocalVariable(variable) => function.local_variables[variable].ty,
        Expression::GlobalVariable(variable) => module.global_variables[variable].ty,
        _ => return false,
    };
    matches!(module.types[ty].inner, TypeInner::Vector { .. })
}

#[test]
fn no_kernel_does_what_compilers_get_wrong() {
    let mut wrong = std::collections::BTreeMap::<String, std::collections::BTreeSet<&str>>::new();
    for text in catalog() {
        let module = naga::front::wgsl::parse_str(&text.source.wgsl)
            .unwrap_or_else(|error| panic!("{}: {error}", text.source.label));
        for trap in traps(&module) {
            wrong.entry(trap).or_default().insert(&text.source.label);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_compilers_get_wrong_is_noticed() {
    let kernel = |globals: &str, body: &str| {
        let text = format!("{globals}\n@compute @workgroup_size(1) fn main() {{ {body} }}");
        traps(&naga::front::wgsl::parse_str(&text).unwrap())
    };
    assert_eq!(kernel("var<private> v: vec4<f32>;", "v.y = 1.0;"), Vec::<String>::new());
    let lane = "var i = 1u; i += 1u; var v = vec4<f32>(); v[i] = 1.0;";
    assert_eq!(kernel("", lane), ["it writes a lane of a vector at an index"]);
    let switch = "var i = 1u; switch i { case 1u: { i = 2u; } default: {} }";
    assert_eq!(kernel("", switch), ["it has a switch"]);
    assert_eq!(kernel("", "var x = 1.0; x = tanh(x);"), ["it calls Tanh"]);
    let three = "@group(0) @binding(0) var<storage> x: array<vec3<f32>>;";
    assert_eq!(kernel(three, ""), ["it binds a vector of three"]);
    let three = "struct P { a: u32, b: vec3<u32> } @group(0) @binding(0) var<uniform> p: P;";
    assert_eq!(kernel(three, ""), ["it binds a vector of three"]);
    assert_eq!(kernel("var<private> m: mat2x2<f32>;", ""), ["it has a matrix"]);
    let load = "let x = workgroupUniformLoad(&w);";
    assert_eq!(kernel("var<workgroup> w: u32;", load), ["it has a workgroupUniformLoad"]);
    let hands = "var<workgroup> w: u32; fn f(p: ptr<workgroup, u32>) { *p = 1u; }";
    assert_eq!(kernel(hands, "f(&w);"), ["it hands workgroup memory to a function"]);
}
