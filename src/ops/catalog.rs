//! Generates every kernel that the ops can request and checks it without an adapter.
//!
//! The tests call the ops on wgpu's no-op device, plan the nodes that wait in its stream for a GPU and for a CPU, and
//! gather the texts of the kernels. Each must pass naga's validator, become SPIR-V, MSL and HLSL, and agree with the
//! bindings and parameters that the host declares.

#![allow(clippy::unwrap_used)]

mod adapters;
mod calls;
mod checks;
mod loops;
mod races;
mod runs;
mod traps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::registry;
use crate::device::{Access, Caps, Cooperative, MatmulPrecision, ShaderSource};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::attributes::Value as Attributes;
use crate::graph::identity::bytes;
use crate::graph::lower::{Lowering, LoweringContext};
use crate::graph::{Node, Op, Spec};
use crate::plan::{Choice, plan};
use crate::runtime::Device;
use crate::shape::Shape;
use crate::tensor::Tensor;
use races::Races;
use runs::Runner;

/// A kernel's text, the call that requested it, and the host's information about its parameters.
struct Text {
    source: ShaderSource,
    call: String,
    /// The names of the parameters; unknown for generated kernels.
    params: Option<Vec<String>>,
    /// The smallest workgroup limits (threads, and bytes that they share) among the adapters that would compile it.
    workgroup: [u32; 2],
}

/// Gathers texts.
struct Catalog {
    device: Device,
    /// A placeholder for the contents of every input.
    buffer: wgpu::Buffer,
    caps: Vec<Caps>,
    texts: BTreeMap<Arc<str>, Text>,
    /// The ops that the calls made, by their identities.
    ops: BTreeMap<Vec<u8>, Arc<dyn Op>>,
    /// Calls run on a real device, and nothing is gathered.
    runner: Option<Runner>,
    /// Kernels run in the interpreter, and nothing is gathered.
    races: Option<Races>,
}

/// The output of the calls: the texts of kernels, and the ops with their keys.
type Gathered = (Vec<Text>, Vec<(Vec<u8>, Arc<dyn Op>)>);

fn gathered() -> &'static Gathered {
    static GATHERED: OnceLock<Gathered> = OnceLock::new();
    GATHERED.get_or_init(|| {
        let mut catalog = Catalog::new();
        catalog.gather();
        (catalog.texts.into_values().collect(), catalog.ops.into_iter().collect())
    })
}

fn catalog() -> &'static [Text] {
    &gathered().0
}

#[test]
fn ops_that_differ_have_keys_that_differ() {
    let ops = &gathered().1;
    assert!(ops.len() > 400, "{} ops only", ops.len());
    for (i, (key, op)) in ops.iter().enumerate() {
        for (other_key, other) in &ops[i + 1..] {
            let same = op.kind() == other.kind()
                && Attributes::of_identity(&**op) == Attributes::of_identity(&**other);
            assert!(!same, "{op:?} and {other:?} are one");
            assert!(!other_key.starts_with(key), "the key of {op:?} begins that of {other:?}");
        }
    }
}

#[test]
fn every_op_is_made_again_from_its_name_and_attributes() {
    let mut kinds = BTreeSet::new();
    for (key, op) in &gathered().1 {
        let value = Attributes::from_op(&**op);
        kinds.insert(op.kind());
        let again = registry::read(op.kind(), &value).unwrap();
        assert_eq!(Attributes::from_op(&*again), value, "{}", op.kind());
        assert_eq!(&bytes(&*again), key, "{}{value}", op.kind());
        assert_eq!(again.runtime_scalars(), op.runtime_scalars(), "{}{value}", op.kind());
        assert_eq!(again.name(), op.name());
    }
    // Ops that the catalog's calls do not make: gradients of gradients, and ops without a kernel.
    let (int, list, text) =
        (Attributes::Int, Attributes::List, |text: &str| Attributes::Text(text.into()));
    let fields = |fields: &[(&str, Attributes)]| {
        let fields = fields.iter().map(|(name, value)| (name.to_string(), value.clone()));
        Attributes::Fields(fields.collect())
    };
    let pair = || list(vec![int(2), int(2)]);
    let windows = fields(&[("window", pair()), ("strides", pair()), ("padding", text("Valid"))]);
    let cast = list(vec![text("Cast"), fields(&[("dtype", text("f16"))])]);
    let carries = list(vec![Attributes::Bool(true)]);
    let frame = ["axis", "frames", "length", "step"].map(|name| (name, int(3)));
    for (kind, value) in [
        ("After", fields(&[])),
        ("CustomGradientResult", fields(&[("start", int(1)), ("alone", Attributes::Bool(false))])),
        ("LogDeterminantRule", fields(&[])),
        ("EigenvaluesRule", fields(&[])),
        ("SingularValuesRule", fields(&[])),
        ("MaxPoolPick", fields(&[("options", windows)])),
        ("Frame", fields(&frame)),
        ("RowsOf", fields(&[("op", cast), ("rows", int(2)), ("carries", carries)])),
    ] {
        assert_eq!(Attributes::from_op(&*registry::read(kind, &value).unwrap()), value, "{kind}");
        assert!(kinds.insert(kind), "the catalog makes {kind}");
    }
    // A program's own functions are in no file.
    let function = "CustomGradient";
    let refused = registry::read(function, &fields(&[])).err().unwrap();
    assert!(refused.contains("function of the program"), "{refused}");
    assert!(registry::read("Nothing", &fields(&[])).err().unwrap().contains("no op 'Nothing'"));
    let known = |kind: &&str| kinds.contains(kind) || *kind == function;
    let missing: Vec<&str> = registry::kinds().filter(|kind| !known(kind)).collect();
    assert!(missing.is_empty(), "no call of the catalog makes {missing:?}");
    let names: BTreeSet<&str> = registry::kinds().collect();
    assert_eq!(names.len(), registry::kinds().count(), "a name occurs twice");
}

impl Catalog {
    fn new() -> Self {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::NOOP;
        descriptor.backend_options.noop.enable = true;
        let instance = wgpu::Instance::new(descriptor);
        let adapter = pollster::block_on(instance.request_adapter(&Default::default())).unwrap();
        let request = wgpu::DeviceDescriptor {
            required_features: wgpu::Features::SHADER_F16,
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&request)).unwrap();
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 16,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        });
        let gpu = Caps::portable();
        let few = Caps::with_limits(&wgpu::Limits::downlevel_defaults());
        let cpu = Caps { cpu: true, ..gpu.clone() };
        let lanes = Caps { subgroups: Some([8, 8]), ..cpu.clone() };
        let four = Caps { subgroups: Some([4, 4]), ..cpu.clone() };
        let kind = |size, inputs| Cooperative { size, inputs, proven: true };
        let warps = Caps {
            subgroups: Some([32, 64]),
            cooperative: vec![kind(16, DType::F16), kind(8, DType::F32)],
            precision: MatmulPrecision::F16Inputs,
            workgroup: [256, 32 << 10],
            ..gpu.clone()
        };
        Catalog {
            device: Device::shared(&adapter, device, queue).unwrap(),
            buffer,
            caps: vec![gpu, few, cpu, lanes, four, warps],
            texts: BTreeMap::new(),
            ops: BTreeMap::new(),
            runner: None,
            races: None,
        }
    }

    /// A catalog whose calls run on `device`.
    fn running(device: Device, runner: Runner) -> Self {
        Catalog { device, runner: Some(runner), ..Catalog::new() }
    }

    fn tensor(&self, shape: impl Into<Shape>, dtype: DType) -> Tensor {
        if let Some(runner) = &self.runner {
            return runner.tensor(&self.device, shape.into(), dtype);
        }
        let value = self.device.adopt(Spec::new(shape, dtype), self.buffer.clone());
        Tensor::new(self.device.clone(), value)
    }

    /// Makes the call and plans the nodes it put into the stream.
    fn add<T>(&mut self, call: impl Into<String>, f: impl FnOnce(&Self) -> Result<T>) {
        let call = call.into();
        let device = self.device.clone();
        if let Some(runner) = &self.runner {
            return runner.run(&device, &call, || f(self));
        }
        // The results live until the nodes are taken: the planner skips results that are not held.
        let results = device.scope(|| f(self)).unwrap_or_else(|e| panic!("{call}: {e}"));
        let graph = device.take_waiting();
        drop(results);
        for node in &graph.nodes {
            let known = self.ops.entry(bytes(&*node.op)).or_insert_with(|| node.op.clone());
            let values = [&**known, &*node.op].map(Attributes::of_identity);
            assert!(values[0] == values[1], "{call}: {:?} has the key of {known:?}", node.op);
        }
        for caps in self.caps.clone() {
            // On a device with fewer buffers, concat makes several nodes, attention uses a matrix of scores, and a
            // recurrent layer calls its cells.
            let wide = |node: &&Node| node.inputs.len() >= caps.storage_buffers;
            if let Some(node) = graph.nodes.iter().find(wide) {
                let name = node.op.name();
                let others = ["ConcatV2", "ScaledDotProductAttention", "Recurrent"];
                assert!(others.iter().any(|other| name.starts_with(other)), "{name}");
                continue;
            }
            if let Some(races) = &mut self.races {
                races.look(&call, &graph, &caps);
                continue;
            }
            if !caps.f16 && graph.specs().any(|spec| spec.dtype == DType::F16) {
                continue;
            }
            let fits = |source: &ShaderSource| {
                let storage = source.accesses.iter().filter(|access| **access != Access::Uniform);
                let (count, most) = (storage.count(), caps.storage_buffers);
                assert!(count <= most, "{call}: {} binds {count} of {most} buffers", source.label);
            };
            for node in &graph.nodes {
                let inputs: Vec<&Spec> = node.inputs.iter().map(|i| graph.spec(*i)).collect();
                let cx = LoweringContext {
                    inputs: &inputs,
                    output: &node.spec,
                    caps: &caps,
                    variant: None,
                };
                let names = node.op.variants(&cx).names;
                for variant in names.iter().map(|name| Some(name.as_str())).chain([None]) {
                    let Lowering::Kernels(kernels) =
                        node.op.lower(&LoweringContext { variant, ..cx })
                    else {
                        break;
                    };
                    for kernel in &kernels.kernels {
                        let (own, most) = (kernel.iterations, caps.loop_iterations);
                        assert!(own <= most, "{call} {variant:?}: {own} iterations of {most}");
                        let params = kernel.params.iter().map(|(name, _)| name.to_string());
                        let source = kernel.source_alone();
                        fits(&source);
                        self.insert(source, &call, Some(params.collect()), &caps);
                    }
                }
            }
            for fusion in [true, false] {
                let plan = plan(&graph, &caps, fusion, &Choice::Unasked);
                assert_eq!(plan.misfits(&caps), Vec::<String>::new(), "{call} on {caps:?}");
                for source in plan.sources() {
                    self.insert(source.clone(), &call, None, &caps);
                }
            }
        }
    }

    fn insert(
        &mut self,
        source: ShaderSource,
        call: &str,
        params: Option<Vec<String>>,
        caps: &Caps,
    ) {
        let (key, workgroup) = (source.wgsl.clone(), caps.workgroup);
        let new = || Text { source, call: call.to_string(), params, workgroup };
        let text = self.texts.entry(key).or_insert_with(new);
        for (least, own) in text.workgroup.iter_mut().zip(workgroup) {
            *least = (*least).min(own);
        }
    }
}
