//! Files of tensors: `np.save` and `np.load` for values on a device.

use crate::error::{Result, message};
use crate::host_array::HostArray;
use crate::tensor::Tensor;

/// Reads the `.npy` file at `path` as a tensor: [`HostArray::to_tensor`] defines its dtype.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data::npy;
/// let path = std::env::temp_dir().join(format!("wgrad-tensor-{}.npy", std::process::id()));
/// npy::save_tensor(&path, &wgrad::constant([[1.0, 2.0]])?)?;
/// assert_eq!(npy::load_tensor(&path)?.shape(), [1, 2]);
/// # std::fs::remove_file(&path).expect("it was written");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`load`](super::load) and [`HostArray::to_tensor`].
pub fn load_tensor(path: impl AsRef<std::path::Path>) -> Result<Tensor> {
    let path = path.as_ref();
    let tensor = super::load(path)?.to_tensor();
    tensor.map_err(|error| error.reworded(|text| message!("{}: {text}", path.display())))
}

/// Writes the tensor's values as the `.npy` file at `path`. Blocks.
///
/// # Errors
/// As [`save`](super::save); [`Error::Device`](crate::Error::Device) if the device is lost.
pub fn save_tensor(path: impl AsRef<std::path::Path>, tensor: &Tensor) -> Result<()> {
    super::save(path, HostArray::from_tensor(tensor)?)
}
