//! A Bevy plugin that shares Bevy's device with wgrad.
//!
//! ```no_run
//! use bevy::prelude::*;
//! use bevy_wgrad::{WgradDevice, WgradPlugin};
//!
//! App::new()
//!     .add_plugins((DefaultPlugins, WgradPlugin))
//!     .add_systems(Startup, |device: Res<WgradDevice>| info!("networks run on {}", device.adapter()))
//!     .run();
//! ```
//!
//! [`WgradDevice`] is a resource of the main world and of the render world. A network whose output is drawn belongs to the render
//! world: a system in [`RenderSystems::Prepare`] submits its passes ahead of Bevy's of the same frame. A network in the main world
//! works, too; what it submits comes before or after the frame that is being rendered at that time.
//!
//! Bevy and wgrad both want the device's handlers for errors, of which there is one set: wgrad's replace Bevy's. So Bevy's
//! `RenderErrorHandler` is not called any more. The plugin does what that does by default: it asks wgrad in each frame for errors
//! that the device has reported, whoever caused them, and ends the app with one. A lost device also ends it; Bevy's recovery
//! with a new device is not supported.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use bevy::app::AppExit;
use bevy::prelude::*;
use bevy::render::renderer::{RenderAdapter, RenderDevice, RenderQueue};
use bevy::render::{Render, RenderApp, RenderSystems};
use wgrad::interop::DeviceExt;

/// Shares Bevy's device with wgrad, and makes it wgrad's default device. Add it after `DefaultPlugins`.
#[derive(Clone, Copy, Debug, Default)]
pub struct WgradPlugin;

/// The first error of the plugin or of a system that uses it.
#[derive(Resource, Clone, Debug, Default)]
pub struct WgradFault(Arc<Mutex<Option<String>>>);

/// Bevy's device, for wgrad.
#[derive(Resource, Clone, Debug)]
pub struct WgradDevice {
    device: wgrad::Device,
    fault: WgradFault,
}

impl Deref for WgradDevice {
    type Target = wgrad::Device;

    fn deref(&self) -> &wgrad::Device {
        &self.device
    }
}

impl WgradDevice {
    /// Returns the value. After an error, it returns `None`, and the app ends with the first one.
    pub fn keep<T, E: ToString>(&self, result: std::result::Result<T, E>) -> Option<T> {
        result.map_err(|error| self.fault.report(error)).ok()
    }
}

impl WgradFault {
    /// The error's text, if there was one.
    pub fn text(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the app with this error, unless there was one before.
    pub fn report(&self, error: impl ToString) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            let text = error.to_string();
            bevy::log::error!("{text}");
            *first = Some(text);
        }
    }
}

impl Plugin for WgradPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<WgradFault>().add_systems(Last, end_after_fault);
    }

    /// By now the `RenderPlugin` has opened the device.
    fn finish(&self, app: &mut App) {
        let fault = app.world().resource::<WgradFault>().clone();
        let world = app.world();
        let (Some(adapter), Some(raw), Some(queue)) = (
            world.get_resource::<RenderAdapter>(),
            world.get_resource::<RenderDevice>(),
            world.get_resource::<RenderQueue>(),
        ) else {
            fault.report("WgradPlugin: Bevy has no device. Add the plugin after DefaultPlugins, with a renderer.");
            return;
        };
        let device =
            wgrad::Device::from_wgpu(adapter, raw.wgpu_device().clone(), (**queue).clone());
        let device = match device {
            Ok(device) => WgradDevice { device, fault },
            Err(error) => return fault.report(error),
        };
        wgrad::Device::set_default(&device);
        app.insert_resource(device.clone());
        if let Some(render) = app.get_sub_app_mut(RenderApp) {
            render.insert_resource(device);
            render.add_systems(Render, look.in_set(RenderSystems::Cleanup));
        }
    }
}

/// Sends what still waits to the GPU, and takes the errors that the device has reported since the last frame.
fn look(device: Res<WgradDevice>) {
    device.keep(device.flush());
}

fn end_after_fault(fault: Res<WgradFault>, mut exit: MessageWriter<AppExit>) {
    if fault.text().is_some() {
        exit.write(AppExit::error());
    }
}
