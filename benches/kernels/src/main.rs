//! `cargo xtask kernels`: a table of the kernels of a list of programs as AMD's compiler compiles them.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use wgrad_kernels::compiler::{Compiled, Compiler};
use wgrad_kernels::model::{Estimate, NAVI21};
use wgrad_kernels::programs::Program;
use wgrad_kernels::{kernels, programs};

const HELP: &str = "\
Usage: cargo xtask kernels [OPTIONS] [TEXT...]

What AMD's compiler makes of the kernels that programs get on a GPU: of all, or of those whose names hold a TEXT. No card is
needed. A line is a program, with what is said of its slowest kernel; its kernels are indented. The shares of a Navi 21's peak are
estimates (benches/kernels/src/model.rs).

Options:
  --programs     leave out the lines of kernels
  --check        print only the kernels that spill registers, work in memory, or leave fewer than four waves on a core, and fail
                 if there are any
  --texts DIR    write the kernels and their machine code there

WGRAD_PORTABLE is the number of buffers that a kernel may bind, if it is above 8, which every browser guarantees; native drivers of
desktop GPUs have 64 and more.
RADV_FORCE_FAMILY chooses the GPU to compile for: navi21 unless set, or polaris10, vega10, gfx1100.
";

/// The number of waves that each SIMD should be able to hold, so that some compute while others wait.
const WAVES: u32 = 4;

fn main() -> Result<ExitCode> {
    let (mut only, mut texts, mut each, mut check) = (Vec::new(), None, true, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            "--programs" => each = false,
            "--check" => check = true,
            "--texts" => {
                texts = Some(PathBuf::from(arguments.next().context("--texts needs a folder")?))
            }
            option if option.starts_with('-') => bail!("there is no option {option}; see --help"),
            text => only.push(text.to_owned()),
        }
    }
    let compiler = Compiler::new()?;
    let chosen =
        |name: &str| only.is_empty() || only.iter().any(|text| name.contains(text.as_str()));
    let programs = programs::all().into_iter().filter(|program| chosen(&program.name));
    if check {
        return checked(&compiler, programs);
    }
    println!(
        "| program | kernels | waves | waves a SIMD | registers | FMAs | bytes a load | microseconds | share |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for program in programs {
        let kernels = kernels(&program)?;
        let mut rows = Vec::new();
        for (k, kernel) in kernels.iter().enumerate() {
            let compiled = compiler.compile(kernel).with_context(|| program.name.clone())?;
            let estimate = NAVI21.estimate(kernel, &compiled);
            if let Some(folder) = &texts {
                write_texts(
                    folder,
                    &format!("{}.{k}.{}", program.name, kernel.label),
                    &kernel.wgsl,
                    &compiled.code,
                )?;
            }
            rows.push((kernel.label.as_str(), compiled, estimate));
        }
        let seconds: f64 =
            rows.iter().map(|(_, _, estimate)| estimate.seconds + NAVI21.launch).sum();
        let flops = kernels.iter().filter_map(|kernel| kernel.flops).sum();
        let estimates: Vec<_> = rows.iter().map(|(_, _, estimate)| estimate).collect();
        let share = 100.0 * NAVI21.least(flops, &estimates) / seconds;
        let slowest = rows.iter().max_by(|a, b| a.2.seconds.total_cmp(&b.2.seconds));
        let Some((_, compiled, estimate)) = slowest else { continue };
        let mut line = format!("| {} | {} | ", program.name, rows.len());
        write!(line, "{} {:.1} | {share:.0} % |", cells(compiled, estimate), 1e6 * seconds)?;
        println!("{line}");
        if each {
            for (label, compiled, estimate) in &rows {
                println!(
                    "| &nbsp; {label} | | {} {:.1} | |",
                    cells(compiled, estimate),
                    1e6 * estimate.seconds
                );
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the kernels that a GPU would run badly, whatever their size.
fn checked(compiler: &Compiler, programs: impl Iterator<Item = Program>) -> Result<ExitCode> {
    let (mut count, mut bad) = (0, 0);
    for program in programs {
        for kernel in kernels(&program)? {
            let compiled = compiler.compile(&kernel).with_context(|| program.name.clone())?;
            count += 1;
            if compiled.spilled > 0 || compiled.scratch > 0 || compiled.waves < WAVES {
                bad += 1;
                let Compiled { registers, spilled, scratch, waves, .. } = compiled;
                println!(
                    "{}: {}: {registers} registers and {spilled} spilled, {scratch} bytes of scratch memory, {waves} waves a core",
                    program.name, kernel.label
                );
            }
        }
    }
    println!("{count} kernels, {bad} spill registers or leave fewer than {WAVES} waves on a core");
    Ok(if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Waves, waves per SIMD, registers, FMAs, and bytes per load.
fn cells(compiled: &Compiled, estimate: &Estimate) -> String {
    let Estimate { waves, mix, .. } = estimate;
    let spilled = match compiled.spilled {
        0 => String::new(),
        spilled => format!(" and {spilled} spilled"),
    };
    let fmas = match mix.fmas {
        0 => "-".to_owned(),
        fmas => format!("{fmas} of {}", mix.instructions),
    };
    let bytes = match mix.loads {
        0 => "-".to_owned(),
        loads => format!("{:.0}", f64::from(mix.loaded) / f64::from(loads)),
    };
    format!("{waves} | {} | {}{spilled} | {fmas} | {bytes} |", compiled.waves, compiled.registers)
}

fn write_texts(folder: &std::path::Path, name: &str, wgsl: &str, code: &str) -> Result<()> {
    let plain = |c: char| if c.is_alphanumeric() || c == '.' { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    for (text, end) in [(wgsl, "wgsl"), (code, "s")] {
        let file = folder.join(format!("{name}.{end}"));
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
