//! A Bevy app in which a network moves a swarm of points: it learns where on a path each of them belongs, while the path changes.
//!
//! Bevy opens the device; `WgradPlugin` shares it. A system of the render world trains the network, reads the swarm's places where
//! the network left them, and draws them into an image of Bevy's. A sprite shows the image. The white markers are sprites that
//! the main world moves along the true path.
//!
//! `cargo xtask embed bevy` runs it for 400 frames; with `cargo run` in this folder it runs until its window is closed. With
//! `--frames` it ends with an error if the loss did not fall to a hundredth or if the swarm is away from more than 5 % of the path.

#[path = "../../../support/say.rs"]
mod say;

mod path;
mod swarm;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use bevy::app::AppExit;
use bevy::prelude::*;
use bevy::render::render_resource::{TextureFormat, TextureUsages};
use bevy::render::view::Msaa;
use bevy::render::view::screenshot::{Screenshot, ScreenshotCaptured};
use bevy::window::WindowResolution;
use bevy_wgrad::{WgradFault, WgradPlugin};
use wgrad::interop::wgpu;
use wgrad_embed_support::{Arguments, FrameTimes, Picture, Result};

use say::say;
use swarm::{CANVAS, Found, Outcome, Scene, SwarmPlugin};

const ABOUT: &str = "A network moves a swarm of points in a Bevy app, on Bevy's device.\n\nUsage: bevy_wgrad [OPTIONS]";

/// Sprites that show the path.
const MARKERS: usize = 16;

fn main() -> ExitCode {
    say::exit_code(run(Arguments::parse(ABOUT, &[])))
}

/// The number of a sprite that shows the path.
#[derive(Component)]
struct Marker(usize);

#[derive(Resource)]
struct Given(Arguments);

#[derive(Resource, Default)]
struct Times(FrameTimes);

/// A picture of the window, when Bevy has made it.
#[derive(Resource, Clone, Default)]
struct Window(Arc<Mutex<Option<Image>>>);

fn run(arguments: Arguments) -> Result<()> {
    check_machine()?;
    let window = Window::default();
    let resolution = WindowResolution::new(720, 720);
    let mut app = App::new();
    app.add_plugins((
        DefaultPlugins.set(WindowPlugin {
            primary_window: Some(bevy::window::Window {
                title: "wgrad in Bevy: a swarm learns its path".into(),
                resolution,
                ..default()
            }),
            ..default()
        }),
        WgradPlugin,
        SwarmPlugin,
    ))
    .insert_resource(ClearColor(Color::srgb(0.06, 0.07, 0.10)))
    .insert_resource(Given(arguments.clone()))
    .insert_resource(window.clone())
    .init_resource::<Times>()
    .add_systems(Startup, set_up)
    .add_systems(Update, (advance, end_after_frames).chain())
    .add_observer(|captured: On<ScreenshotCaptured>, window: Res<Window>| {
        *window.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(captured.image.clone());
    });
    let report = Arc::new(Mutex::new(None));
    let kept = report.clone();
    // The app is gone when `run` returns.
    app.add_systems(
        Last,
        move |scene: Option<Res<Scene>>,
              times: Res<Times>,
              fault: Res<WgradFault>,
              outcome: Res<Outcome>,
              exits: MessageReader<AppExit>| {
            if !exits.is_empty() {
                let mut report = kept.lock().unwrap_or_else(PoisonError::into_inner);
                *report = Some(Report {
                    frames: scene.map_or(0, |scene| scene.frame),
                    times: times.0.clone(),
                    fault: fault.text(),
                    found: outcome.found(),
                });
            }
        },
    );
    app.run();
    let report = report.lock().unwrap_or_else(PoisonError::into_inner).take();
    let image = window.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    finish(report.ok_or("the app has ended by itself; Bevy's messages say why")?, image, &arguments)
}

/// Bevy panics without a display or an adapter; this returns an error instead.
fn check_machine() -> Result<()> {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "linux") && !set("DISPLAY") && !set("WAYLAND_DISPLAY") {
        return Err("there is no display: neither DISPLAY nor WAYLAND_DISPLAY is set".into());
    }
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::all().with_env(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    bevy::tasks::block_on(instance.request_adapter(&Default::default())).map_err(|error| {
        format!("no adapter was found ({error}). `cargo xtask setup` installs a driver.")
    })?;
    Ok(())
}

fn set_up(mut commands: Commands, mut images: ResMut<Assets<Image>>, given: Res<Given>) {
    let mut canvas = Image::new_target_texture(CANVAS, CANVAS, TextureFormat::Rgba8UnormSrgb, None);
    // It is read at the end.
    canvas.texture_descriptor.usage |= TextureUsages::COPY_SRC;
    let canvas = images.add(canvas);
    let sprite = Sprite {
        image: canvas.clone(),
        custom_size: Some(Vec2::splat(CANVAS as f32)),
        ..default()
    };
    commands.spawn((Camera2d, Msaa::Off));
    commands.spawn(sprite);
    for marker in 0..MARKERS {
        commands.spawn((
            Marker(marker),
            Sprite::from_color(Color::srgb(0.95, 0.96, 1.0), Vec2::splat(7.0)),
            Transform::from_xyz(0.0, 0.0, 1.0)
                .with_rotation(Quat::from_rotation_z(std::f32::consts::FRAC_PI_4)),
        ));
    }
    let Arguments { frames, seed, .. } = given.0;
    commands.insert_resource(Scene { canvas, frame: 0, last: frames, seed });
}

/// Moves the markers along the path, until the last frame.
fn advance(
    mut scene: ResMut<Scene>,
    mut times: ResMut<Times>,
    mut markers: Query<(&Marker, &mut Transform)>,
) {
    if scene.last.is_some_and(|last| scene.frame >= last) {
        times.0.pause();
        return;
    }
    scene.frame += 1;
    times.0.frame();
    let blend = path::blend(scene.frame);
    for (marker, mut transform) in &mut markers {
        let share = marker.0 as f32 / MARKERS as f32 + scene.frame as f32 * 0.0015;
        let [x, y] = path::place(share, blend).map(|place| place * CANVAS as f32 / 2.0);
        transform.translation = Vec3::new(x, y, 1.0);
    }
}

/// After the last frame: requests a picture of the window, and ends the app when it is there.
fn end_after_frames(
    mut commands: Commands,
    outcome: Res<Outcome>,
    window: Res<Window>,
    requested: Local<bool>,
    exit: MessageWriter<AppExit>,
) {
    let (mut requested, mut exit) = (requested, exit);
    if outcome.found().is_none() {
        return;
    }
    if !*requested {
        *requested = true;
        commands.spawn(Screenshot::primary_window());
    } else if window.0.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
        exit.write(AppExit::Success);
    }
}

/// What is left of the app.
struct Report {
    frames: u64,
    times: FrameTimes,
    fault: Option<String>,
    found: Option<Found>,
}

/// Prints how it went. After `--frames`, the network must have learned.
fn finish(report: Report, window: Option<Image>, arguments: &Arguments) -> Result<()> {
    if let Some(fault) = report.fault {
        return Err(fault.into());
    }
    say!("frames    {}", report.frames);
    say!("times     {}", report.times);
    let Some(frames) = arguments.frames else { return Ok(()) };
    let Some(found) = report.found else {
        say!("the window was closed before {frames} frames were drawn, so nothing is checked");
        return Ok(());
    };
    let [first, last] = found.losses;
    say!("loss      {first:.5} at the start, {last:.6} at the end");
    let away = 100.0 * away(&found);
    say!("swarm     away from {away:.1} % of the path");
    let window = window.ok_or("Bevy has made no picture of its window")?.try_into_dynamic()?;
    let window = window.to_rgba8();
    let (width, height) = (window.width() as usize, window.height() as usize);
    let window = Picture::from_bytes(width, height, window.as_raw(), false)?;
    if let Some(path) = &arguments.picture {
        window.save(path)?;
        say!("picture   {}", path.display());
    }
    if window.is_blank() {
        return Err("the window's picture is blank".into());
    }
    // NaN fails, too.
    let learned = last < first / 100.0;
    if !learned {
        return Err(format!(
            "the loss was {first:.5} at the start and {last:.6} at the end; it must fall to a hundredth"
        )
        .into());
    }
    if away > 5.0 {
        return Err(
            format!("the swarm is away from {away:.1} % of the path; at most 5 % may be").into()
        );
    }
    Ok(())
}

/// The share of places on the path near which the canvas has no point of the swarm.
fn away(found: &Found) -> f64 {
    let near = |centre: usize| centre.saturating_sub(3)..=centre + 3;
    let mut away = 0;
    for at in 0..500 {
        let [x, y] = path::place(at as f32 / 500.0, found.blend);
        let pixel = |place: f32| ((place + 1.0) / 2.0 * CANVAS as f32) as usize;
        let (column, row) = (pixel(x), pixel(-y));
        let lit = near(row).any(|y| {
            near(column).any(|x| {
                found.canvas.at(x, y).is_some_and(|pixel| pixel.iter().any(|&part| part > 110))
            })
        });
        away += usize::from(!lit);
    }
    away as f64 / 500.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canvas_with_half_of_the_path_is_half_away() {
        let side = CANVAS as usize;
        let mut canvas =
            Picture { width: side, height: side, pixels: vec![[9, 9, 30]; side * side] };
        let blend = path::blend(0);
        let found = |canvas| Found { canvas, losses: [1.0, 0.0], blend };
        assert_eq!(away(&found(canvas.clone())), 1.0);
        // The heart's right half.
        for at in 0..1000 {
            let [x, y] = path::place(at as f32 / 2000.0, blend);
            let pixel = |place: f32| ((place + 1.0) / 2.0 * CANVAS as f32) as usize;
            canvas.pixels[pixel(-y) * side + pixel(x)] = [30, 200, 90];
        }
        let share = away(&found(canvas));
        // Near the cusps, the halves are close to each other.
        assert!((0.40..0.49).contains(&share), "{share}");
    }
}
