//! The program: its controls, its plot and its picture. `logic` trains and `ui` draws, so a hidden window trains on.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, channel};

use eframe::egui;
use eframe::egui_wgpu::RenderState;
use egui_plot::{Line, Plot, PlotPoints};
use wgrad as tf;
use wgrad::interop::{DeviceExt, TensorExt};
use wgrad::prelude::*;
use wgrad_embed_support::{Arguments, FrameTimes, Picture, Result};

use crate::Shared;
use crate::learner::{Learner, tensors};
use crate::points::{Points, Shape};
use crate::surface::{GRID, PIXELS, Surface, places};

/// Points of each class.
const POINTS: usize = 120;
const BLUE: egui::Color32 = egui::Color32::from_rgb(12, 62, 120);
const ORANGE: egui::Color32 = egui::Color32::from_rgb(214, 92, 0);

/// What the user sets.
#[derive(Clone, Copy, PartialEq)]
struct Settings {
    shape: Shape,
    noise: f32,
    units: usize,
    learning_rate: f32,
    /// Training steps in each frame.
    steps: u32,
    paused: bool,
}

pub struct App {
    arguments: Arguments,
    shared: Shared,
    device: tf::Device,
    settings: Settings,
    learner: Learner,
    points: Points,
    /// The points `[N,2]` and their classes `[N,1]`.
    training: (Tensor, Tensor),
    grid: Tensor,
    surface: Surface,
    texture: egui::TextureId,
    times: FrameTimes,
    frames: u64,
    /// The last frames' times, for the display.
    recent: VecDeque<f32>,
    /// Where the surface was drawn, in points.
    shown_at: egui::Rect,
    screenshot: Option<Receiver<std::sync::Arc<egui::ColorImage>>>,
}

impl App {
    /// Shares the device that eframe has opened.
    pub fn new(render: &RenderState, arguments: Arguments, shared: Shared) -> Result<Self> {
        let (adapter, raw, queue) = (&render.adapter, &render.device, &render.queue);
        let device = tf::Device::from_wgpu(adapter, raw.clone(), queue.clone())?;
        tf::Device::set_default(&device);
        tf::random::set_seed(arguments.seed);
        let surface = Surface::new(raw);
        let texture = render.renderer.write().register_native_texture(
            raw,
            &surface.view,
            wgrad::interop::wgpu::FilterMode::Linear,
        );
        let settings = Settings {
            shape: Shape::Spirals,
            noise: 0.03,
            units: 24,
            learning_rate: 0.01,
            steps: 4,
            paused: false,
        };
        let points = Points::new(settings.shape, POINTS, settings.noise, arguments.seed);
        Ok(App {
            learner: Learner::new(settings.units, settings.learning_rate),
            training: tensors(&points)?,
            grid: Tensor::from_slice(places().as_flattened(), [(GRID * GRID) as usize, 2])?,
            points,
            arguments,
            shared,
            device,
            settings,
            surface,
            texture,
            times: FrameTimes::new(),
            frames: 0,
            recent: VecDeque::new(),
            shown_at: egui::Rect::NOTHING,
            screenshot: None,
        })
    }

    fn train(&mut self) -> Result<()> {
        // What the last picture shows must stay until it has been taken.
        if !self.settings.paused && self.screenshot.is_none() {
            let (places, classes) = &self.training;
            for _ in 0..self.settings.steps {
                self.learner.learn(places, classes, self.settings.learning_rate)?;
            }
        }
        Ok(self.learner.receive()?)
    }

    /// Asks the network at every place of the grid. Its answers stay on the device: the render pass reads their buffer.
    fn draw_surface(&self) -> Result<()> {
        let probability = self.learner.predict(&self.grid)?;
        let (raw, queue) = self.device.wgpu();
        self.surface.draw(raw, queue, &probability.buffer()?);
        Ok(())
    }

    fn controls(&mut self, ui: &mut egui::Ui) -> Result<()> {
        let before = self.settings;
        let settings = &mut self.settings;
        ui.add_space(8.0);
        ui.heading("wgrad in egui");
        ui.label("The network and egui share one device.");
        ui.add_space(8.0);
        ui.horizontal(|ui| {
            for (shape, name) in Shape::ALL {
                ui.selectable_value(&mut settings.shape, shape, name);
            }
        });
        ui.add(egui::Slider::new(&mut settings.noise, 0.0..=0.2).text("noise"));
        ui.add(egui::Slider::new(&mut settings.units, 2..=64).text("hidden units"));
        let rate = egui::Slider::new(&mut settings.learning_rate, 1e-4..=0.1);
        ui.add(rate.logarithmic(true).text("learning rate"));
        ui.add(egui::Slider::new(&mut settings.steps, 1..=20).text("steps per frame"));
        let reset = ui
            .horizontal(|ui| {
                let text = if settings.paused { "Continue" } else { "Pause" };
                if ui.button(text).clicked() {
                    settings.paused = !settings.paused;
                }
                ui.button("Reset").clicked()
            })
            .inner;
        let (shape, noise) = (settings.shape, settings.noise);
        if (shape, noise) != (before.shape, before.noise) {
            self.points = Points::new(shape, POINTS, noise, self.arguments.seed);
            self.training = tensors(&self.points)?;
        }
        // The slider of a network's size makes a new one, with new weights.
        if reset || settings.units != before.units {
            self.learner = Learner::new(settings.units, settings.learning_rate);
        }
        Ok(())
    }

    fn state(&self, ui: &mut egui::Ui) {
        ui.add_space(8.0);
        let steps = self.learner.losses.len();
        let loss = self.learner.losses.last().copied().unwrap_or(f32::NAN);
        ui.label(format!("step {steps}, loss {loss:.4}"));
        let mean = self.recent.iter().sum::<f32>() / self.recent.len().max(1) as f32;
        ui.label(format!("frame {}, {:.1} ms each", self.frames, mean * 1e3));
        ui.add_space(8.0);
        ui.label("Loss (logarithm to base 10)");
        // At most about 800 points, however long the training.
        let stride = steps.div_ceil(800).max(1);
        let lines = self.learner.losses.iter().enumerate().step_by(stride);
        let points: PlotPoints =
            lines.map(|(step, &loss)| [step as f64, f64::from(loss.max(1e-9)).log10()]).collect();
        Plot::new("loss")
            .height(ui.available_height().clamp(80.0, 260.0))
            .allow_drag(false)
            .allow_zoom(false)
            .allow_scroll(false)
            .show(ui, |plot| plot.line(Line::new("loss", points).color(ORANGE).width(2.0)));
    }

    fn picture(&mut self, ui: &mut egui::Ui) {
        let side = ui.available_width().min(ui.available_height()).max(1.0);
        let image = egui::load::SizedTexture::new(self.texture, [side, side]);
        let shown = ui.centered_and_justified(|ui| ui.image(image)).inner;
        let rect = egui::Rect::from_center_size(shown.rect.center(), egui::Vec2::splat(side));
        self.shown_at = rect;
        let painter = ui.painter_at(rect);
        for ([x, y], class) in self.points.places.iter().zip(&self.points.classes) {
            let at = egui::pos2(
                egui::lerp(rect.x_range(), (x + 1.0) / 2.0),
                egui::lerp(rect.y_range(), (1.0 - y) / 2.0),
            );
            painter.circle(
                at,
                4.0,
                if *class > 0.5 { ORANGE } else { BLUE },
                egui::Stroke::new(1.0, egui::Color32::WHITE),
            );
        }
    }

    /// Ends after the last frame, when the picture of it is there.
    fn end_after_frames(&mut self, context: &egui::Context) -> Result<()> {
        if let Some(receiver) = &self.screenshot {
            if let Ok(image) = receiver.try_recv() {
                self.finish(context, &image)?;
                context.send_viewport_cmd(egui::ViewportCommand::Close);
            }
        } else if self.arguments.frames.is_some_and(|frames| self.frames >= frames) {
            let (sender, receiver) = channel();
            // The receiver may be gone: then the window was closed.
            context.request_screenshot(move |image| {
                let _ = sender.send(image);
            });
            self.screenshot = Some(receiver);
        }
        Ok(())
    }

    /// Compares what is shown with the truth.
    fn finish(&mut self, context: &egui::Context, image: &egui::ColorImage) -> Result<()> {
        self.learner.receive_all()?;
        let [width, height] = image.size;
        let bytes: Vec<u8> = image.pixels.iter().flat_map(|pixel| pixel.to_array()).collect();
        let window = Picture::from_bytes(width, height, &bytes, false)?;
        if let Some(path) = &self.arguments.picture {
            window.save(path)?;
        }
        let (raw, queue) = self.device.wgpu();
        let surface = Picture::of_texture(raw, queue, &self.surface.texture)?;
        let rect = self.shown_at * context.pixels_per_point();
        let mut report = self.shared.borrow_mut();
        report.losses = Some(ends(&self.learner.losses));
        report.wrong = Some(wrong(&surface, self.settings.shape));
        report.hidden = Some(hidden(&window, &surface, [rect.min.x, rect.min.y, rect.width()]));
        report.checked = true;
        Ok(())
    }
}

impl eframe::App for App {
    fn logic(&mut self, context: &egui::Context, _: &mut eframe::Frame) {
        let result = self.train();
        self.keep(context, result);
        // The next frame follows at once, or when the display has shown this one.
        context.request_repaint();
    }

    fn ui(&mut self, ui: &mut egui::Ui, _: &mut eframe::Frame) {
        self.times.frame();
        self.frames += 1;
        let elapsed = ui.input(|input| input.unstable_dt);
        self.recent.push_back(elapsed);
        if self.recent.len() > 60 {
            self.recent.pop_front();
        }
        let result = self.draw_surface();
        let panel = egui::Panel::left("controls").resizable(false).exact_size(290.0);
        let controls = panel
            .show(ui, |ui| {
                let result = self.controls(ui);
                self.state(ui);
                result
            })
            .inner;
        egui::CentralPanel::default().show(ui, |ui| self.picture(ui));
        let context = ui.ctx().clone();
        let ended = self.end_after_frames(&context);
        self.keep(&context, result.and(controls).and(ended));
    }

    fn on_exit(&mut self) {
        let mut report = self.shared.borrow_mut();
        report.frames = self.frames;
        report.times = std::mem::take(&mut self.times);
        report.losses.get_or_insert_with(|| ends(&self.learner.losses));
    }
}

impl App {
    /// Ends the program if something failed.
    fn keep(&mut self, context: &egui::Context, result: Result<()>) {
        if let Err(error) = result {
            // egui panics when it draws on a lost device, so the program ends before it does.
            if error.downcast_ref::<tf::Error>().is_some_and(tf::Error::is_device_lost) {
                eprintln!("error: {error}");
                std::process::exit(1);
            }
            self.shared.borrow_mut().error.get_or_insert(error);
            self.settings.paused = true;
            context.send_viewport_cmd(egui::ViewportCommand::Close);
        }
    }
}

/// The mean of the first 20 losses and of the last 20.
fn ends(losses: &[f32]) -> [f32; 2] {
    let count = losses.len().min(20);
    let mean = |part: &[f32]| part.iter().sum::<f32>() / part.len() as f32;
    [mean(&losses[..count]), mean(&losses[losses.len() - count..])]
}

/// The share of places on the classes' curves at which the surface has the other class's colour.
fn wrong(surface: &Picture, shape: Shape) -> f64 {
    let mut wrong = 0;
    for at in 0..1000 {
        let [x, y] = shape.place(at % 2, (at / 2) as f32 / 499.0);
        let pixel = |place: f32| (((place + 1.0) / 2.0) * PIXELS as f32) as usize;
        let colour = surface.at(pixel(x), pixel(-y)).unwrap_or_default();
        // Class 1 is orange, more red than blue.
        wrong += usize::from((colour[0] > colour[2]) != (at % 2 == 1));
    }
    wrong as f64 / 1000.0
}

/// The share of the surface that is not seen in the window, whose square begins at `x`, `y`. Where the points are, it is not.
fn hidden(window: &Picture, surface: &Picture, [x, y, side]: [f32; 3]) -> f64 {
    let mut hidden = 0;
    for at in 0..10_000 {
        let share = [(at % 100) as f32 + 0.5, (at / 100) as f32 + 0.5].map(|place| place / 100.0);
        let [column, row] = share.map(|share| (share * PIXELS as f32) as usize);
        let seen = window.at((x + share[0] * side) as usize, (y + share[1] * side) as usize);
        let (Some(seen), Some(drawn)) = (seen, surface.at(column, row)) else {
            hidden += 1;
            continue;
        };
        hidden += usize::from(wgrad_embed_support::picture::differ(seen, drawn, 40));
    }
    hidden as f64 / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surface_of_one_colour_is_half_wrong() {
        let side = PIXELS as usize;
        let orange =
            Picture { width: side, height: side, pixels: vec![[220, 100, 20]; side * side] };
        let blue = Picture { width: side, height: side, pixels: vec![[20, 80, 140]; side * side] };
        for (shape, _) in Shape::ALL {
            assert_eq!([wrong(&orange, shape), wrong(&blue, shape)], [0.5, 0.5]);
        }
        let mut right = blue;
        for y in 0..side {
            for x in 0..side {
                let place = |at: usize| (at as f32 + 0.5) / PIXELS as f32 * 2.0 - 1.0;
                if place(x).hypot(place(y)) > 0.5 {
                    right.pixels[y * side + x] = [220, 100, 20];
                }
            }
        }
        assert_eq!(wrong(&right, Shape::Rings), 0.0);
        // The window is the surface, or it is not.
        assert_eq!(hidden(&right, &right, [0.0, 0.0, PIXELS as f32]), 0.0);
        assert!(hidden(&orange, &right, [0.0, 0.0, PIXELS as f32]) > 0.15);
        assert!(hidden(&right, &right, [PIXELS as f32, 0.0, PIXELS as f32]) == 1.0);
    }

    #[test]
    fn the_ends_of_losses_are_means() {
        let losses: Vec<f32> = (0..100).map(|at| at as f32).collect();
        assert_eq!(ends(&losses), [9.5, 89.5]);
        assert_eq!(ends(&[3.0]), [3.0, 3.0]);
        assert!(ends(&[])[0].is_nan());
    }
}
