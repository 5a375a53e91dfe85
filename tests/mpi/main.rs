//! `MultiWorkerMirroredStrategy`: tests start `mpirun` with this program, whose ignored tests in `ranks` are what each process of the
//! job runs.
#![allow(clippy::unwrap_used)]

mod failures;
#[path = "../support/folder.rs"]
mod folder;
mod job;
mod models;
mod ranks;
mod training;
