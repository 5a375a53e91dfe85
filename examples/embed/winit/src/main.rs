//! A window in which a network learns to continue a simulation, on the application's own device.
//!
//! In each frame a compute pass of the application moves the waves of a basin, from buffer to buffer. A small convolutional network
//! reads the buffers of the last two frames in place, predicts the present one and takes a training step. The application's render
//! pass draws both: the water on the left, the prediction on the right, from the buffer in which the network left it.
//!
//! `cargo xtask embed winit` runs it for 400 frames; with `cargo run` in this folder it runs until its window is closed. A click drops
//! something into the water, the space bar pauses the training. `--budget-ms` spreads a step over frames. With `--frames` it ends with
//! an error if the loss did not fall to a twentieth (under a budget: to half) or if more than 3 of 100 pixels of the prediction differ
//! from the water.

#[path = "../../../support/say.rs"]
mod say;

mod budget;
mod network;
mod screen;
mod water;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use wgrad as tf;
use wgrad::interop::{DeviceExt, TensorExt, wgpu};
use wgrad::prelude::*;
use wgrad_embed_support::arguments::Extra;
use wgrad_embed_support::picture::differ;
use wgrad_embed_support::{Arguments, FrameTimes, Picture, Result};
use winit::application::ApplicationHandler;
use winit::dpi::{LogicalSize, PhysicalPosition};
use winit::event::{ElementState, KeyEvent, MouseButton, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop};
use winit::keyboard::{Key, NamedKey};
use winit::window::{Window, WindowId};

use budget::Budget;
use network::Network;
use say::say;
use screen::{Scene, Screen, Shown};
use water::{SIDE, Water};

const ABOUT: &str = "A network learns to continue a simulation in the same window, on the same device.\n\n\
    Usage: wgrad-embed-winit [OPTIONS]";

fn main() -> ExitCode {
    let arguments = Arguments::parse(ABOUT, &[Extra::NoTraining, Extra::Budget, Extra::Width]);
    say::exit_code(run(arguments))
}

fn run(arguments: Arguments) -> Result<()> {
    let events = EventLoop::new().map_err(|error| format!("cannot open a window: {error}"))?;
    let mut program =
        Program { arguments, state: None, cursor: None, asleep_until: None, result: Ok(()) };
    events.run_app(&mut program)?;
    program.result
}

/// What winit calls.
struct Program {
    arguments: Arguments,
    /// From the first `resumed` on.
    state: Option<State>,
    cursor: Option<PhysicalPosition<f64>>,
    /// When to look whether the window is visible again.
    asleep_until: Option<Instant>,
    result: Result<()>,
}

impl Program {
    /// Ends the program if something failed. Nothing panics: winit's loop ends as usual, and the error is returned.
    fn keep(&mut self, events: &ActiveEventLoop, result: Result<()>) {
        if let Err(error) = result {
            if self.result.is_ok() {
                self.result = Err(error);
            }
            events.exit();
        }
    }

    fn redraw(&mut self, events: &ActiveEventLoop) -> Result<()> {
        let Some(state) = &mut self.state else { return Ok(()) };
        let shown = state.frame(&self.arguments)?;
        // While nobody sees the frames, the program looks again now and then.
        self.asleep_until = (shown == Shown::Hidden).then(|| {
            state.times.pause();
            Instant::now() + Duration::from_millis(100)
        });
        if self.arguments.frames.is_some_and(|frames| state.frames >= frames) {
            events.exit();
        }
        Ok(())
    }
}

impl ApplicationHandler for Program {
    fn resumed(&mut self, events: &ActiveEventLoop) {
        if self.state.is_none() {
            match State::new(events, &self.arguments) {
                Ok(state) => self.state = Some(state),
                Err(error) => self.keep(events, Err(error)),
            }
        }
    }

    fn window_event(&mut self, events: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        let Some(state) = &mut self.state else { return };
        match event {
            WindowEvent::CloseRequested => events.exit(),
            WindowEvent::Resized(size) => state.screen.resize(size.width, size.height),
            WindowEvent::Occluded(hidden) => state.occluded = hidden,
            WindowEvent::CursorMoved { position, .. } => self.cursor = Some(position),
            WindowEvent::MouseInput {
                state: ElementState::Pressed,
                button: MouseButton::Left,
                ..
            } => {
                state.drop_at(self.cursor);
            }
            WindowEvent::KeyboardInput {
                event: KeyEvent { logical_key: Key::Named(key), state: ElementState::Pressed, .. },
                ..
            } => match key {
                NamedKey::Escape => events.exit(),
                NamedKey::Space => self.arguments.training = !self.arguments.training,
                _ => {}
            },
            WindowEvent::RedrawRequested => {
                let result = self.redraw(events);
                self.keep(events, result);
            }
            _ => {}
        }
    }

    fn about_to_wait(&mut self, events: &ActiveEventLoop) {
        match (self.asleep_until, &self.state) {
            (Some(time), _) if Instant::now() < time => {
                events.set_control_flow(ControlFlow::WaitUntil(time));
            }
            (_, Some(state)) => {
                events.set_control_flow(ControlFlow::Poll);
                state.screen.window().request_redraw();
            }
            _ => {}
        }
    }

    /// The surface must be dropped while the connection to the display is open, so the state ends here.
    fn exiting(&mut self, _: &ActiveEventLoop) {
        if let Some(state) = self.state.take() {
            let finished = match &self.result {
                Ok(()) => state.finish(&self.arguments),
                Err(_) => Ok(()),
            };
            if self.result.is_ok() {
                self.result = finished;
            }
        }
    }
}

/// The window, the simulation and the network.
struct State {
    screen: Screen,
    device: tf::Device,
    water: Water,
    network: Network,
    /// For steps that take several frames.
    budget: Budget,
    /// The heights of the present frame, of the one before, and of the one before that, over the application's three buffers.
    heights: VecDeque<Tensor>,
    speed: Tensor,
    predicted: Option<Tensor>,
    /// Frames that were shown.
    frames: u64,
    times: FrameTimes,
    occluded: bool,
}

impl State {
    fn new(events: &ActiveEventLoop, arguments: &Arguments) -> Result<Self> {
        let (seed, width) = (arguments.seed, arguments.width);
        let window = Window::default_attributes()
            .with_title("wgrad in winit: the water, and what a network expects it to be")
            .with_inner_size(LogicalSize::new(width, width / 2));
        let window = events.create_window(window)?;
        let display = events.owned_display_handle();
        let screen = pollster::block_on(Screen::open(window, display))?;
        let Screen { adapter, device: raw, queue, .. } = &screen;
        let water = Water::new(raw, queue, seed);

        // The network's calls from here on use the application's device.
        let device = tf::Device::from_wgpu(adapter, raw.clone(), queue.clone())?;
        tf::Device::set_default(&device);
        tf::random::set_seed(seed);
        say!("adapter   {}", device.adapter());
        let tensor = |buffer: wgpu::Buffer| wrapped(&device, buffer);
        Ok(State {
            heights: (0..3).map(|_| tensor(water.heights())).collect::<tf::Result<_>>()?,
            speed: tensor(water.speed.clone())?,
            predicted: None,
            network: Network::new(),
            budget: Budget::new(&device, &water)?,
            screen,
            device,
            water,
            frames: 0,
            times: FrameTimes::new(),
            occluded: false,
        })
    }

    /// A frame: the simulation, the network, the picture.
    fn frame(&mut self, arguments: &Arguments) -> Result<Shown> {
        if self.occluded || self.screen.is_empty() {
            return Ok(Shown::Hidden);
        }
        self.times.frame();

        // 1. The application takes back the oldest of its three buffers, and its simulation overwrites it.
        let (Some(oldest), [now, before, ..]) =
            (self.heights.pop_back(), &*self.heights.make_contiguous())
        else {
            return Ok(Shown::NotYet);
        };
        let buffer = oldest.into_buffer()?;
        self.water.simulate(self.frames, &now.buffer()?, &before.buffer()?, &buffer);
        let next = wrapped(&self.device, buffer)?;

        // 2. The network predicts this frame from the two before, and learns from it. Under a budget, a step takes several frames,
        // which show the last step's prediction.
        let (network, speed) = (&mut self.network, &self.speed);
        let predicted = match (arguments.training, arguments.budget) {
            (false, _) => Some(network.predict(now, before, speed)?),
            (true, None) => Some(network.learn(&next, now, before, speed)?),
            (true, Some(budget)) => {
                let heights = [&next, now, before];
                self.budget.frame(budget, network, &self.water, heights, speed)?
            }
        };

        // 3. The render pass reads both where they are. The tensors are kept until it has been submitted.
        self.heights.push_front(next);
        self.predicted = predicted.or(self.predicted.take());
        let shown = self.show()?;
        if shown == Shown::Yes {
            self.frames += 1;
        }
        Ok(shown)
    }

    fn show(&mut self) -> Result<Shown> {
        let Some(predicted) = &self.predicted else { return Ok(Shown::NotYet) };
        let (water, predicted) = (self.heights[0].buffer()?, predicted.buffer()?);
        let scene = Scene { water: &water, predicted: &predicted, speed: &self.water.speed };
        self.screen.show(&scene)
    }

    /// A click at a place of the window, on either side.
    fn drop_at(&mut self, place: Option<PhysicalPosition<f64>>) {
        let Some(place) = place else { return };
        let [width, height] = self.screen.size().map(f64::from);
        let (x, y) = ((place.x / (width / 2.0)).fract(), place.y / height);
        self.water.drop = Some([x, y].map(|share| share as f32 * SIDE as f32));
    }

    /// Reports how it went. After `--frames`, the network must have learned.
    fn finish(mut self, arguments: &Arguments) -> Result<()> {
        say!("frames    {}", self.frames);
        if arguments.budget.is_some() {
            say!("steps     {}", self.budget.steps);
            // What is checked is a prediction of the last frame.
            self.device.run_for(Duration::MAX)?;
            self.predicted =
                Some(self.network.predict(&self.heights[1], &self.heights[2], &self.speed)?);
        }
        let losses = self.network.losses()?;
        if let Some([first, last]) = losses {
            say!("loss      {first:.6} at the start, {last:.6} at the end");
        }
        say!("times     {}", self.times);
        let Some(frames) = arguments.frames else { return Ok(()) };
        if self.frames < frames {
            say!(
                "the window was closed after {} of {frames} frames, so nothing is checked",
                self.frames
            );
            return Ok(());
        }
        let Some(predicted) = &self.predicted else { return Ok(()) };
        let (water, predicted) = (self.heights[0].buffer()?, predicted.buffer()?);
        let scene = Scene { water: &water, predicted: &predicted, speed: &self.water.speed };
        let picture = self.screen.picture(&scene)?;
        if let Some(path) = &arguments.picture {
            picture.save(path)?;
            say!("picture   {}", path.display());
        }
        if picture.is_blank() {
            return Err("the picture is blank".into());
        }
        let Some([first, last]) = losses else { return Ok(()) };
        let wrong = 100.0 * wrong(&picture);
        say!("pixels    {wrong:.2} % of the prediction differ from the water");
        // Under a budget, the same frames have fewer steps.
        let (share, name) = match arguments.budget {
            None => (20.0, "twentieth"),
            Some(_) => (2.0, "half"),
        };
        // NaN fails, too.
        let learned = last < first / share;
        if !learned {
            return Err(format!(
                "the loss was {first:.6} at the start and {last:.6} at the end; it must fall to a {name}"
            )
            .into());
        }
        if wrong > 3.0 {
            return Err(format!("{wrong:.2} % of the pixels are wrong; at most 3 % may be").into());
        }
        Ok(())
    }
}

/// A tensor `[1,H,W,1]` over one of the application's buffers.
fn wrapped(device: &tf::Device, buffer: wgpu::Buffer) -> tf::Result<Tensor> {
    Tensor::from_buffer(device, buffer, [1, SIDE as usize, SIDE as usize, 1], DType::F32)
}

/// The share of pixels in the right half that differ from those in the left half.
fn wrong(picture: &Picture) -> f64 {
    let half = picture.width / 2;
    let places = (0..picture.height).flat_map(|y| (2..half.saturating_sub(2)).map(move |x| (x, y)));
    let (mut wrong, mut all) = (0usize, 0usize);
    for (x, y) in places {
        let right = picture.width - half + x;
        if let (Some(water), Some(predicted)) = (picture.at(x, y), picture.at(right, y)) {
            all += 1;
            wrong += usize::from(differ(water, predicted, 24));
        }
    }
    wrong as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halves_are_compared_pixel_by_pixel() {
        let mut picture = Picture { width: 24, height: 5, pixels: vec![[10, 20, 30]; 120] };
        assert_eq!(wrong(&picture), 0.0);
        // 8 of 12 columns count: those next to the edges belong to the line between the halves.
        picture.pixels[24 + 12 + 2] = [10, 20, 60];
        assert_eq!(wrong(&picture), 1.0 / 40.0);
        picture.pixels[24 + 2] = [10, 20, 55];
        assert_eq!(wrong(&picture), 0.0);
        assert_eq!(wrong(&Picture { width: 0, height: 0, pixels: Vec::new() }), 0.0);
    }
}
