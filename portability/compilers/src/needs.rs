//! What a kernel needs of an adapter.

/// A kernel's workgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Its threads.
    pub threads: u32,
    /// The bytes that they share, counted as wgpu counts them.
    pub shared: u32,
}

impl Needs {
    /// Reads a module's only entry point.
    pub fn of(module: &naga::Module) -> Result<Needs, String> {
        let [entry] = &module.entry_points[..] else {
            return Err(format!(
                "{} entry points, and there should be one",
                module.entry_points.len()
            ));
        };
        let mut layouter = naga::proc::Layouter::default();
        layouter.update(module.to_ctx()).map_err(|error| error.to_string())?;
        let globals = module.global_variables.iter();
        let shared = globals.filter(|(_, global)| global.space == naga::AddressSpace::WorkGroup);
        Ok(Needs {
            threads: entry.workgroup_size.iter().product(),
            shared: shared.map(|(_, global)| layouter[global.ty].size.next_multiple_of(16)).sum(),
        })
    }
}
