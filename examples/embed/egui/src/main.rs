//! An egui program with a network on egui's own device: settings, a plot of the loss, and what the network has learned so far.
//!
//! eframe opens the window and the device. The network learns to tell two classes of points apart, a few steps in each frame. A
//! render pass of the program reads the network's output in place and draws it into a texture, which egui shows. The losses arrive
//! when the GPU has them; no frame waits for one.
//!
//! `cargo xtask embed egui` runs it for 300 frames; with `cargo run` in this folder it runs until its window is closed. With
//! `--frames` it ends with an error if the loss did not fall to a tenth, if more than 3 % of the places on the classes' curves have
//! the wrong colour, or if the window does not show the surface.

#[path = "../../../support/say.rs"]
mod say;

mod app;
mod learner;
mod points;
mod surface;

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use eframe::egui;
use eframe::egui_wgpu::{WgpuConfiguration, WgpuSetup, WgpuSetupCreateNew};
use wgrad::interop::wgpu;
use wgrad_embed_support::{Arguments, FrameTimes, Result};

use app::App;
use say::say;

const ABOUT: &str =
    "A network in an egui program, on egui's device.\n\nUsage: wgrad-embed-egui [OPTIONS]";

/// What the program reports when its window has been closed.
#[derive(Default)]
pub struct Report {
    pub frames: u64,
    pub times: FrameTimes,
    pub losses: Option<[f32; 2]>,
    /// The share of places with the wrong colour.
    pub wrong: Option<f64>,
    /// The share of the surface that the window does not show.
    pub hidden: Option<f64>,
    /// The last frame was reached.
    pub checked: bool,
    pub error: Option<Box<dyn std::error::Error>>,
}

/// eframe owns the program while it runs.
pub type Shared = Rc<RefCell<Report>>;

fn main() -> ExitCode {
    say::exit_code(run(Arguments::parse(ABOUT, &[])))
}

fn run(arguments: Arguments) -> Result<()> {
    let shared = Shared::default();
    let options = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default().with_inner_size([960.0, 640.0]),
        renderer: eframe::Renderer::Wgpu,
        wgpu_options: WgpuConfiguration { wgpu_setup: setup(), ..Default::default() },
        ..Default::default()
    };
    let (given, report) = (arguments.clone(), shared.clone());
    eframe::run_native(
        "wgrad in egui",
        options,
        Box::new(move |context| {
            let render = context.wgpu_render_state.as_ref();
            let render = render.ok_or("eframe does not draw with wgpu")?;
            let app = App::new(render, given, report).map_err(|error| error.to_string())?;
            Ok(Box::new(app))
        }),
    )
    .map_err(|error| match error {
        eframe::Error::Wgpu(error) => format!(
            "no driver can draw on this window ({error}). `cargo xtask setup` installs a driver, or names what is missing."
        ),
        error => format!("cannot run in a window: {error}"),
    })?;
    let mut report = shared.borrow_mut();
    match report.error.take() {
        Some(error) => Err(error),
        None => finish(&report, &arguments),
    }
}

/// eframe's device with the adapter's own limits, and the features with which kernels are faster.
fn setup() -> WgpuSetup {
    let features =
        wgpu::Features::SHADER_F16 | wgpu::Features::SUBGROUP | wgpu::Features::TIMESTAMP_QUERY;
    let mut setup = WgpuSetupCreateNew::without_display_handle();
    setup.instance_descriptor.backends = wgpu::Backends::PRIMARY.with_env();
    setup.device_descriptor = Arc::new(move |adapter| wgpu::DeviceDescriptor {
        label: Some("egui's"),
        required_features: adapter.features() & features,
        required_limits: adapter.limits(),
        ..Default::default()
    });
    WgpuSetup::CreateNew(setup)
}

/// Prints how it went. After `--frames`, the network must have learned.
fn finish(report: &Report, arguments: &Arguments) -> Result<()> {
    say!("frames    {}", report.frames);
    let [first, last] = report.losses.unwrap_or([f32::NAN; 2]);
    say!("loss      {first:.4} at the start, {last:.4} at the end");
    say!("times     {}", report.times);
    if !report.checked {
        if let Some(frames) = arguments.frames {
            say!("the window was closed before {frames} frames were drawn, so nothing is checked");
        }
        return Ok(());
    }
    if let Some(path) = &arguments.picture {
        say!("picture   {}", path.display());
    }
    let percent = |share: Option<f64>| 100.0 * share.unwrap_or(1.0);
    let (wrong, hidden) = (percent(report.wrong), percent(report.hidden));
    say!("surface   {wrong:.1} % of the places on the curves have the wrong colour");
    say!("window    {hidden:.1} % of the surface is covered by points or not shown");
    // NaN fails, too.
    let learned = last < first / 10.0;
    if !learned {
        return Err(format!(
            "the loss was {first:.4} at the start and {last:.4} at the end; it must fall to a tenth"
        )
        .into());
    }
    if wrong > 3.0 {
        return Err(format!("{wrong:.1} % of the places are wrong; at most 3 % may be").into());
    }
    if hidden > 25.0 {
        return Err(format!("the window does not show {hidden:.1} % of the surface").into());
    }
    Ok(())
}
