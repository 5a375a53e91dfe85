//! The checks of each text in the catalog.

use wgrad_compilers::{Needs, Programs, translate};

use super::{Text, catalog};
use crate::device::{Access, ShaderSource};

/// The points in which the text disagrees with the host's declarations.
fn disagreements(text: &Text, module: &naga::Module) -> Vec<String> {
    let mut wrong = Vec::new();
    let accesses = &text.source.accesses;
    match &module.entry_points[..] {
        [entry] if entry.name == "main" && entry.stage == naga::ShaderStage::Compute => {}
        _ => wrong.push("there must be one entry point, a compute shader called main".into()),
    }
    let buffers = accesses.iter().filter(|access| **access != Access::Uniform).count();
    if buffers > 8 {
        wrong.push(format!("{buffers} storage buffers; WebGPU guarantees 8"));
    }
    wrong.extend(too_much(text, module));
    let mut storage = vec![None; accesses.len()];
    let mut uniform = None;
    for (_, global) in module.global_variables.iter() {
        let Some(binding) = global.binding else { continue };
        let at = binding.binding as usize;
        match global.space {
            _ if binding.group != 0 => wrong.push(format!("group {}", binding.group)),
            naga::AddressSpace::Storage { access } if at < accesses.len() => {
                let write = access.contains(naga::StorageAccess::STORE);
                storage[at] = Some(if write { Access::Write } else { Access::Read });
            }
            naga::AddressSpace::Uniform if at < accesses.len() => {
                storage[at] = Some(Access::Uniform);
                // The first member holds the parameters of the kernel's own text.
                if accesses.iter().position(|a| *a == Access::Uniform) == Some(at) {
                    uniform = Some(global.ty);
                }
            }
            space => wrong.push(format!("binding {at} is {space:?}")),
        }
    }
    for (at, (found, said)) in storage.iter().zip(accesses).enumerate() {
        if *found != Some(*said) {
            wrong.push(format!("binding {at} is {found:?} in the text and {said:?} on the host"));
        }
    }
    let Some(uniform) = uniform else {
        wrong.push("the uniform with the parameters is missing".into());
        return wrong;
    };
    let naga::TypeInner::Struct { members, .. } = &module.types[uniform].inner else {
        wrong.push("the parameters are no struct".into());
        return wrong;
    };
    let scalar = |member: &naga::StructMember| matches!(module.types[member.ty].inner, naga::TypeInner::Scalar(scalar) if scalar.width == 4);
    for member in members.iter().filter(|member| !scalar(member)) {
        wrong.push(format!("the parameter {:?} is no 4-byte scalar", member.name));
    }
    let names: Vec<String> = members.iter().filter_map(|member| member.name.clone()).collect();
    if text.params.as_ref().is_some_and(|params| *params != names) {
        wrong.push(format!("Params has {names:?} and the host gives {:?}", text.params));
    }
    wrong
}

/// The workgroup resources that the text needs beyond those of every adapter that would compile it.
pub(super) fn too_much(text: &Text, module: &naga::Module) -> Option<String> {
    let Ok(needs) = Needs::of(module) else { return None };
    let [threads, shared] = text.workgroup;
    (needs.threads > threads || needs.shared > shared)
        .then(|| format!("the workgroup has {needs:?}, and an adapter only {threads} and {shared}"))
}

/// Fails with all complaints, each with its call and its text.
fn report(complaints: Vec<(&Text, String)>, what: &str) {
    let count = complaints.len();
    for (text, complaint) in complaints.into_iter().take(10) {
        eprintln!("{} ({}): {complaint}\n{}", text.source.label, text.call, text.source.wgsl);
    }
    assert_eq!(count, 0, "{count} of {} texts {what}", catalog().len());
}

#[test]
fn every_kernel_is_valid_on_every_backend() {
    let wrong =
        catalog().iter().filter_map(|text| Some((text, translate(&text.source.wgsl).err()?)));
    report(wrong.collect(), "are refused by naga");
    // A broken walk through the ops would leave nothing to check.
    for mat in ["coop_mat16x16<f16, A>", "coop_mat8x8<f32, A>"] {
        assert!(catalog().iter().any(|text| text.source.wgsl.contains(mat)), "{mat} is not there");
    }
    assert!(catalog().len() > 500, "{} texts", catalog().len());
}

#[test]
fn bindings_and_parameters_are_what_the_host_says() {
    let mut wrong = Vec::new();
    for text in catalog() {
        let Ok(module) = naga::front::wgsl::parse_str(&text.source.wgsl) else { continue };
        wrong.extend(disagreements(text, &module).into_iter().map(|complaint| (text, complaint)));
    }
    report(wrong, "disagree with the host");
    let known = catalog().iter().filter(|text| text.params.is_some()).count();
    assert!(known > 100, "{known} texts with known parameters");
}

#[test]
fn loops_count_to_an_end() {
    let unbounded = |wgsl: &str| {
        let code = wgsl.lines().map(|line| line.split("//").next().unwrap_or(""));
        let mut words =
            code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
        words.find(|word| ["while", "loop"].contains(word)).map(str::to_string)
    };
    let wrong = catalog().iter().filter_map(|text| Some((text, unbounded(&text.source.wgsl)?)));
    report(wrong.collect(), "have loops without a count");
}

/// Chrome's compiler is stricter than naga in places (reserved words, constants). Where Chrome is installed, it must
/// accept the texts too.
#[test]
fn tint_agrees_where_it_is_installed() {
    let folder = std::env::temp_dir().join(format!("wgrad-catalog-{}", std::process::id()));
    let programs = Programs::find(&folder).unwrap();
    if !programs.names()[0].contains(&"tint") {
        println!("tint is not installed: {} texts were checked by naga only", catalog().len());
        return;
    }
    let run = |(i, text): (usize, &'static Text)| {
        let complaint = programs.tint(&i.to_string(), &text.source.wgsl).unwrap();
        complaint.map(|complaint| (text, complaint))
    };
    let numbered: Vec<(usize, &Text)> = catalog().iter().enumerate().collect();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let share = numbered.len().div_ceil(threads).max(1);
    let wrong: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = numbered
            .chunks(share)
            .map(|chunk| scope.spawn(|| chunk.iter().copied().filter_map(run).collect::<Vec<_>>()))
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    std::fs::remove_dir_all(&folder).unwrap();
    println!("tint has checked {} texts", catalog().len());
    report(wrong, "are refused by tint");
}

#[test]
fn the_checks_notice_mistakes() {
    let gather = catalog().iter().find(|text| text.source.label == "gather").unwrap();
    let altered = |from: &str, to: &str| {
        let wgsl = gather.source.wgsl.replace(from, to);
        assert_ne!(*wgsl, *gather.source.wgsl, "{from} is not in the text");
        ShaderSource { wgsl: wgsl.into(), ..gather.source.clone() }
    };
    let check = |source: ShaderSource| translate(&source.wgsl);
    assert!(check(altered("fn main(", "// Here it begins.\nfn main(")).is_ok());
    assert!(check(altered("return;", "return 1;")).is_err());
    for (from, to, complaint) in [
        ("count: u32,", "counted: u32, count: u32,", "Params has"),
        ("outer: u32,", "pair: vec2<u32>, outer: u32,", "no 4-byte scalar"),
        ("<storage, read> index", "<storage, read_write> index", "binding 1 is Some(Write)"),
        ("fn main(", "fn other(", "entry point"),
        ("const WG: u32 = 64u;", "const WG: u32 = 512u;", "workgroup"),
    ] {
        let source = altered(from, to);
        let module = naga::front::wgsl::parse_str(&source.wgsl).unwrap();
        let params = gather.params.clone();
        let text = Text { source, call: String::new(), params, workgroup: gather.workgroup };
        let found = disagreements(&text, &module);
        assert!(found.iter().any(|text| text.contains(complaint)), "{from} -> {to}: {found:?}");
    }
}
