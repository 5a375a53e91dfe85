//! A variant that is wrong is never chosen, however it is wrong.

use super::super::{Tuner, Tuning, proof};
use super::*;
use crate::device::{Caps, Cooperative, DeviceOptions};
use crate::graph::Op;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext, Unverified};

/// `y = 2 x`, by kernels most of which are wrong.
#[derive(Debug, Attribute)]
#[op("Doubling")]
struct Doubling;

const SHADER: &str = "
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;
struct Params { total: u32, row: u32 }

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = (group.y * p.row + group.x) * 64u + local;
    if (i < p.total && wanted(i)) { y[i] = value(i); }
}
";

const NAMES: [&str; 7] =
    ["close by", "last wrong", "half done", "nothing done", "no shader", "right", "plain"];

impl Op for Doubling {
    fn name(&self) -> &'static str {
        "Doubling"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn variants(&self, cx: &LoweringContext) -> Variants {
        let kinds = &cx.caps.cooperative;
        // Two of them rely on cooperative matrices.
        let needs = |name: &str| match name {
            "half done" => Some(8),
            "right" => Some(16),
            _ => None,
        };
        let has = |size| kinds.is_empty() || kinds.iter().any(|kind| kind.size == size);
        let names = NAMES.into_iter().filter(|name| needs(name).is_none_or(has));
        let names: Vec<String> = names.map(String::from).collect();
        let unproven = |name: &&String| {
            kinds.iter().any(|kind| !kind.proven && needs(name) == Some(kind.size))
        };
        let case = |name: &String| case(needs(name).unwrap(), name, false);
        let unverified = names.iter().filter(unproven).map(case).collect();
        Variants {
            of: "Doubling".into(),
            plain: names.len() - 1,
            names,
            terms: 2,
            unverified,
            ..Variants::default()
        }
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let (value, wanted) = match cx.variant.unwrap_or(NAMES[0]) {
            "close by" => ("x[i] * 2.0001", "true"),
            "last wrong" => ("select(x[i] + x[i], x[i], i + 1u == p.total)", "true"),
            "half done" => ("x[i] + x[i]", "i % 2u == 0u"),
            "nothing done" => ("x[i] + x[i]", "p.total == 0u"),
            "no shader" => ("nobody_knows(i)", "true"),
            "right" => ("2.0 * x[i]", "true"),
            _ => ("x[i] + x[i]", "true"),
        };
        let total = cx.output.elements();
        Kernel::new("doubling", SHADER)
            .declare(format!("fn value(i: u32) -> f32 {{ return {value}; }}"))
            .declare(format!("fn wanted(i: u32) -> bool {{ return {wanted}; }}"))
            .read(Bind::Input(0))
            .write(Bind::Output)
            .param("total", total)
            .workgroups(total.div_ceil(64), 0)
            .into()
    }
}

/// A device without its own cooperative matrices, because the tests invent some.
fn gpu() -> Gpu {
    let mut gpu = pollster::block_on(Gpu::open(&DeviceOptions::default())).unwrap();
    gpu.caps.cooperative.clear();
    gpu
}

fn graph() -> Graph {
    let spec = Spec::new([1003], DType::F32);
    let inputs = [Input::Leaf(0)].into_iter().collect();
    let node = Node { op: Arc::new(Doubling), inputs, spec: spec.clone(), wanted: true };
    Graph { nodes: vec![node], leaves: vec![spec], donated: vec![false], ..Graph::default() }
}

fn kind(size: u32) -> Cooperative {
    Cooperative { size, inputs: DType::F32, proven: false }
}

fn case(size: u32, variant: &str, wanted: bool) -> Unverified {
    let spec = Spec::new([1003], DType::F32);
    let (op, inputs) = (Arc::new(Doubling), vec![spec.clone()]);
    Unverified { kind: kind(size), op, inputs, output: spec, variant: variant.to_string(), wanted }
}

/// The op's task, as a plan makes it.
fn task(gpu: &Gpu) -> Arc<Task> {
    let graph = graph();
    let plan = plan(&graph, &gpu.caps, true, &Choice::Unasked);
    let [task] = plan.tasks() else { panic!("{:?}", plan.tasks()) };
    assert_eq!(task.key, "Doubling f32[1003]");
    task.clone()
}

/// Measures the ops that `tuner` has seen.
fn measure_all(tuner: &mut Tuner, gpu: &Gpu) -> Vec<TunedOp> {
    let (mut tasks, mut ops) = (tuner.take_unmeasured(), Vec::new());
    pollster::block_on(measure(gpu, &mut tasks, &mut ops)).unwrap();
    assert!(tasks.is_empty());
    tuner.found(&ops);
    ops
}

fn assert_only_right_ones_are_chosen(op: &TunedOp) {
    let wrong: Vec<&str> =
        op.variants.iter().filter(|v| v.wrong).map(|v| v.name.as_str()).collect();
    assert_eq!(wrong, NAMES[..5]);
    assert!(op.variants.iter().all(|v| v.wrong == v.time.is_none()), "{op:?}");
    assert!(["right", "plain"].contains(&op.chosen.as_str()), "{op:?}");
}

#[test]
fn a_wrong_variant_is_set_aside() {
    let gpu = gpu();
    let mut tuner = Tuner::default();
    tuner.saw(&[task(&gpu)]);
    let ops = measure_all(&mut tuner, &gpu);
    let [op] = &ops[..] else { panic!("{ops:?}") };
    assert_only_right_ones_are_chosen(op);
    assert_eq!(tuner.findings().get(&op.op), Some(op.chosen.as_str()));
    // Known ops are not measured again.
    tuner.saw(&[task(&gpu)]);
    assert!(measure_all(&mut tuner, &gpu).is_empty());
}

#[test]
fn where_the_plain_one_fails_nothing_is_chosen() {
    let gpu = gpu();
    for (plain, what) in [(3, "writes nothing, which leaves NaN"), (4, "has no shader")] {
        let mut task = Arc::into_inner(task(&gpu)).unwrap();
        task.variants.plain = plain;
        let mut tuner = Tuner::default();
        tuner.saw(&[Arc::new(task)]);
        assert!(measure_all(&mut tuner, &gpu).is_empty(), "it {what}");
        assert_eq!(tuner.findings().len(), 0);
    }
}

#[test]
fn a_plain_one_of_nan_ends_the_measurement() {
    let gpu = gpu();
    let mut task = Arc::into_inner(task(&gpu)).unwrap();
    task.variants.plain = 3;
    let mut measurement = Measurement::new(Arc::new(task));
    let error = pollster::block_on(measurement.step(&gpu, &mut None)).unwrap_err();
    assert!(error.to_string().contains("variant \"nothing done\": "), "{error}");
}

#[test]
fn small_steps_find_the_same() {
    let gpu = gpu();
    let task = task(&gpu);
    let mut tuner = Tuner { mode: Tuning::Background, ..Tuner::default() };
    let tasks = [task.clone(), task.clone()];
    tuner.ran(&tasks, 19);
    assert!(!tuner.slice(&gpu).unwrap() && tuner.background.current.is_none());
    tuner.ran(&tasks, 20);
    let mut slices = 0;
    while !tuner.slice(&gpu).unwrap() {
        slices += 1;
        assert!(slices < 1000, "it does not end");
        assert!(tuner.findings.get(&task.key).is_none() || tuner.background.current.is_none());
        // No device memory is held between slices.
        assert_eq!(gpu.stats().live_bytes, 0);
        // The next is due at once.
        assert!(tuner.background.next.take().is_some());
    }
    let chosen = tuner.findings.get(&task.key).unwrap();
    assert!(["right", "plain"].contains(&chosen), "{chosen}");
    assert!(slices > 7, "{slices}: one a variant at least");
    tuner.background.next = None;
    assert!(!tuner.slice(&gpu).unwrap());
}

#[test]
fn without_memory_nothing_is_measured() {
    let gpu = gpu();
    gpu.pool.set_limit(Some(4096)).unwrap();
    let mut tuner = Tuner::default();
    tuner.saw(&[task(&gpu)]);
    assert!(measure_all(&mut tuner, &gpu).is_empty());
    assert_eq!(tuner.findings().len(), 0);
    gpu.check().unwrap();
}

#[test]
fn results_agree_but_for_rounding() {
    let bytes =
        |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|x| x.to_ne_bytes()).collect() };
    let plain = bytes(&[1.0, -1.0, 1.0, -1.0]);
    let same = |other: &[f32], terms| agree(DType::F32, false, terms, &plain, &bytes(other));
    assert_eq!(same(&[1.0, -1.0, 1.0, -1.0], 1), Ok(()));
    // 8 (1 + sqrt(terms)) ulps of 1.19e-7.
    assert_eq!(same(&[1.0, -1.0, 1.0 + 1.8e-6, -1.0], 1), Ok(()));
    let error = same(&[1.0, -1.0, 1.0 + 2.2e-6, -1.0], 1).unwrap_err();
    assert!(error.starts_with("element 2 is "), "{error}");
    assert_eq!(same(&[1.0, -1.0, 1.0 + 2.2e-6, -1.0], 4), Ok(()));
    assert!(same(&[1.0, f32::NAN, 1.0, -1.0], 1000).is_err());
    assert!(same(&[1.0, -1.0, 1.0], 1).is_err());
    let half = |x: f32| f16::from_f32(x).to_ne_bytes();
    assert_eq!(agree(DType::F16, false, 1, &half(1.0), &half(1.005)), Ok(()));
    assert!(agree(DType::F16, false, 1, &half(1.0), &half(1.01)).is_err());
    assert_eq!(agree(DType::I32, false, 100, &[1, 0, 0, 0], &[1, 0, 0, 0]), Ok(()));
    assert!(agree(DType::I32, false, 100, &[1, 0, 0, 0], &[2, 0, 0, 0]).is_err());
}

/// The kind is invented: the variant itself is verified.
#[test]
fn what_is_proven_wrong_is_gone() {
    let gpu = gpu();
    let mut caps = Caps { cooperative: vec![kind(8), kind(16)], ..gpu.caps.clone() };
    let case = |size, variant| case(size, variant, true);
    assert!(!proof::settle(&gpu, &mut caps, &[]));
    assert_eq!(caps.cooperative, [kind(8), kind(16)]);
    // One wrong case of several is enough, and a variant without a shader is wrong.
    for wrong in ["last wrong", "half done", "nothing done", "no shader"] {
        let mut caps = caps.clone();
        assert!(!proof::settle(&gpu, &mut caps, &[case(8, wrong), case(8, "right")]));
        assert_eq!(caps.cooperative, [kind(16)], "{wrong}");
    }
    assert!(proof::settle(&gpu, &mut caps, &[case(8, "close by"), case(16, "right")]));
    assert_eq!(caps.cooperative, [Cooperative { proven: true, ..kind(16) }]);
    // Without memory nothing is known.
    gpu.pool.set_limit(Some(1)).unwrap();
    let mut caps = Caps { cooperative: vec![kind(8)], ..gpu.caps.clone() };
    assert!(!proof::settle(&gpu, &mut caps, &[case(8, "right")]));
    assert_eq!(caps.cooperative, [kind(8)]);
    gpu.check().unwrap();
}

#[test]
fn a_finding_is_no_proof() {
    let gpu = gpu();
    let both = Caps { cooperative: vec![kind(8), kind(16)], ..gpu.caps.clone() };
    let takes = |plan: &Plan, text: &str| plan.sources().any(|s| s.wgsl.contains(text));
    let with = |finding: &str, caps: &mut Caps| {
        // The cache folder is not read.
        let mut tuner = Tuner { loaded: true, ..Tuner::default() };
        tuner.findings.set("Doubling f32[1003]", finding);
        tuner.plan(&gpu, caps, &graph(), true)
    };
    // They are not requested.
    let mut caps = both.clone();
    assert!(takes(&with("plain", &mut caps), "return x[i] + x[i];"));
    assert_eq!(caps.cooperative, both.cooperative);

    let mut caps = both.clone();
    assert!(takes(&with("right", &mut caps), "return 2.0 * x[i];"));
    assert_eq!(caps.cooperative, [kind(8), Cooperative { proven: true, ..kind(16) }]);

    let mut caps = both.clone();
    let plan = with("half done", &mut caps);
    assert!(takes(&plan, "2.0001"), "the op's own choice");
    assert_eq!(caps.cooperative, [kind(16)]);
    // Proven or gone for good, and there is something to measure again.
    let plan = with("half done", &mut caps);
    assert!(takes(&plan, "2.0001") && plan.tasks().len() == 1);
}

#[test]
fn what_takes_long_gets_few_rounds() {
    let gpu = gpu();
    let rounds = |spent: Duration, round: usize| {
        let mut measurement = Measurement::new(task(&gpu));
        measurement.entries.iter_mut().for_each(|entry| entry.state = State::Right);
        measurement.plain = Some(Vec::new());
        (measurement.spent, measurement.round) = (spent, round);
        // The last turn of the round is over.
        measurement.turn = measurement.entries.len();
        pollster::block_on(measurement.next(&gpu, &mut None)).unwrap();
        measurement.round
    };
    let (short, long) = (Duration::from_millis(1400), Duration::from_millis(1600));
    assert_eq!((rounds(short, 1), rounds(short, 2)), (2, 3));
    assert_eq!((rounds(long, 1), rounds(long, 2)), (2, ROUNDS));
}

#[test]
fn a_plan_has_what_is_unknown_once() {
    let gpu = gpu();
    let mut graph = graph();
    graph.nodes.push(graph.nodes[0].clone());
    let mut tuner = Tuner { loaded: true, ..Tuner::default() };
    let mut caps = gpu.caps.clone();
    assert_eq!(tuner.plan(&gpu, &mut caps, &graph, true).tasks().len(), 1);
    tuner.findings.set("Doubling f32[1003]", "plain");
    assert!(tuner.plan(&gpu, &mut caps, &graph, true).tasks().is_empty());
}

#[test]
fn what_is_chosen_is_never_slower_than_the_first_by_the_reported_times() {
    let gpu = gpu();
    let micros = |times: &[u64]| times.iter().map(|&time| Duration::from_micros(time)).collect();
    let chosen = |first: (State, &[u64]), second: (State, &[u64])| {
        let mut measurement = Measurement::new(task(&gpu));
        for (entry, (state, times)) in measurement.entries.iter_mut().zip([first, second]) {
            (entry.state, entry.times) = (state, micros(times));
        }
        let op = measurement.finish().unwrap();
        assert!(op.gain().unwrap() >= 1.0, "{op:?}");
        NAMES.iter().position(|name| *name == op.chosen).unwrap()
    };
    // One short time of the second left the first behind, whose usual time is shorter.
    assert_eq!(chosen((State::Slow, &[680, 690, 670]), (State::Right, &[1060, 400, 1070])), 0);
    assert_eq!(chosen((State::Right, &[1060, 1050]), (State::Slow, &[700, 680])), 1);
    assert_eq!(chosen((State::Right, &[100, 104]), (State::Right, &[100, 101])), 0);
    assert_eq!(chosen((State::Right, &[200, 210]), (State::Right, &[100, 101])), 1);
    // With a clock resolution of 100 us, first nothing shows that the second is faster, then something does.
    let [usual, little, much] = [
        [0, 0, 100, 0, 100, 0, 0, 100, 0],
        [0, 0, 0, 0, 100, 0, 0, 100, 0],
        [300, 400, 300, 300, 400, 400, 300, 300, 300],
    ];
    assert_eq!(chosen((State::Right, &usual), (State::Right, &little)), 0);
    assert_eq!(chosen((State::Right, &much), (State::Right, &usual)), 1);
}

#[test]
fn a_coarse_clock_leaves_nobody_behind_by_chance() {
    let gpu = gpu();
    let mut measurement = Measurement::new(task(&gpu));
    let micros = |times: [u64; 9]| times.map(Duration::from_micros).into_iter().collect();
    // All equal, except for how many steps of 100 us each run spanned; and one that takes four times as long.
    let times = [[0, 0, 100, 0, 100, 0, 0, 100, 0], [100, 0, 0, 100, 0, 0, 100, 100, 0]];
    for (entry, times) in measurement.entries.iter_mut().zip(times) {
        (entry.state, entry.times) = (State::Right, micros(times));
    }
    measurement.round = 3;
    measurement.leave_behind();
    assert!(measurement.entries[..2].iter().all(|entry| entry.state == State::Right));
    measurement.entries[1].times = micros([200, 300, 300, 300, 200, 300, 300, 300, 200]);
    measurement.leave_behind();
    assert_eq!(measurement.entries[1].state, State::Slow);
}
