//! `wgrad-compilers FOLDER [--seconds N] [--seed N]`: translates each kernel in a folder for every back end, compares its
//! workgroup with what adapters have, and hands it to the compilers that are installed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wgrad_compilers::{Idle, Programs, Texts, translate};

struct Arguments {
    folder: PathBuf,
    /// Stop after this time.
    time: Option<Duration>,
    /// Decides where among the texts to begin.
    seed: usize,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn arguments() -> Result<Arguments> {
    let mut rest = std::env::args().skip(1);
    let folder = rest.next().context("usage: wgrad-compilers FOLDER [--seconds N] [--seed N]")?;
    let mut found = Arguments { folder: folder.into(), time: None, seed: 0 };
    while let Some(argument) = rest.next() {
        let number: u64 = rest
            .next()
            .and_then(|value| value.parse().ok())
            .with_context(|| format!("{argument} takes a number"))?;
        match &argument[..] {
            "--seconds" => found.time = Some(Duration::from_secs(number)),
            "--seed" => found.seed = number as usize,
            _ => bail!("there is no {argument}"),
        }
    }
    Ok(found)
}

/// True if nothing was found.
fn run() -> Result<bool> {
    let arguments = arguments()?;
    let texts = Texts::open(&arguments.folder)?;
    if texts.names.is_empty() {
        bail!("there are no kernels in {}", arguments.folder.display());
    }
    let temporary = std::env::temp_dir().join(format!("wgrad-compilers-{}", std::process::id()));
    let programs = Programs::find(&temporary)?;
    let [there, missing] = programs.names();
    println!("{} kernels; naga for SPIR-V, MSL and HLSL, {}", texts.names.len(), there.join(", "));
    if !missing.is_empty() {
        println!("not here, and not asked: {}", missing.join(", "));
    }
    for (adapter, count) in texts.adapters() {
        println!("  {count:6} kernels for {adapter}");
    }
    let wrong = Mutex::new(texts.misfits()?);
    let idle = Mutex::new(Vec::new());
    let began = Instant::now();
    let next = AtomicUsize::new(0);
    let count = texts.names.len();
    // Large steps, so that a part of the texts is a part of each kind.
    let place = |at: usize| (arguments.seed.wrapping_add(at).wrapping_mul(PRIME)) % count;
    let look = || -> Result<()> {
        loop {
            let late = arguments.time.is_some_and(|time| began.elapsed() > time);
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count || late {
                next.fetch_min(at, Ordering::Relaxed);
                return Ok(());
            }
            let name = &texts.names[place(at)];
            let (found, few) = complaints(&texts, &programs, name)?;
            idle.lock().unwrap_or_else(|error| error.into_inner()).extend(few);
            let found = found.into_iter().map(|complaint| format!("{name}.wgsl: {complaint}"));
            wrong.lock().unwrap_or_else(|error| error.into_inner()).extend(found);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(look)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    // Nothing of value is in it.
    let _ = std::fs::remove_dir_all(&temporary);
    let wrong = wrong.into_inner().unwrap_or_else(|error| error.into_inner());
    let looked = next.load(Ordering::Relaxed).min(count);
    println!(
        "{looked} of {count} kernels in {} s; {} complaints",
        began.elapsed().as_secs(),
        wrong.len()
    );
    for complaint in wrong.iter().take(MOST) {
        println!("  {complaint}");
    }
    print_idle(idle.into_inner().unwrap_or_else(|error| error.into_inner()));
    if looked == 0 {
        bail!("the time was too short for any kernel");
    }
    Ok(wrong.is_empty())
}

/// Prints a line for each kind of kernel that leaves most of a core without threads. It is no fault, but a place to look.
fn print_idle(all: Vec<Idle>) {
    let mut kinds: BTreeMap<(String, String), (usize, f64, u32)> = BTreeMap::new();
    for idle in all {
        let new = (0, 1.0, 0);
        let (count, least, most) = kinds.entry((idle.adapter, idle.label)).or_insert(new);
        (*count, *least, *most) =
            (*count + 1, idle.occupancy.min(*least), idle.registers.max(*most));
    }
    if !kinds.is_empty() {
        println!(
            "threads at once, of those that a core could run; estimated, where below a quarter:"
        );
    }
    for ((adapter, label), (count, occupancy, registers)) in kinds {
        let percent = 100.0 * occupancy;
        println!(
            "  {adapter}: {label} ({count} kernels), {percent:.0} %, up to {registers} registers"
        );
    }
}

/// So many complaints are printed.
const MOST: usize = 100;

/// A prime beyond any number of texts, so that each has its turn.
const PRIME: usize = 1_000_003;

/// What is wrong with a kernel, and the adapters that it leaves idle.
fn complaints(texts: &Texts, programs: &Programs, name: &str) -> Result<(Vec<String>, Vec<Idle>)> {
    let wgsl = texts.read(name)?;
    let translated = match translate(&wgsl) {
        Ok(translated) => translated,
        Err(error) => return Ok((vec![error], Vec::new())),
    };
    let mut found = texts.too_small(name, translated.needs);
    found.extend(programs.complaints(name, &wgsl, &translated)?);
    Ok((found, texts.idle(name, translated.needs)))
}
