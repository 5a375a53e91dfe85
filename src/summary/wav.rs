//! Sounds as WAV files: 16-bit samples, as TensorFlow's `encode_wav` writes them.

/// A file of `frames`, each with `channels` samples from -1 to 1; values outside are clipped.
///
/// The caller has checked that the sizes fit into 32 bits.
pub(super) fn wav(samples: &[f32], channels: u16, sample_rate: u32) -> Vec<u8> {
    let bytes = 2 * samples.len() as u32;
    let frame = 2 * u32::from(channels);
    let mut file = Vec::with_capacity(44 + bytes as usize);
    file.extend(b"RIFF");
    file.extend((36 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16u32.to_le_bytes());
    // PCM.
    file.extend(1u16.to_le_bytes());
    file.extend(channels.to_le_bytes());
    file.extend(sample_rate.to_le_bytes());
    file.extend(sample_rate.wrapping_mul(frame).to_le_bytes());
    file.extend((2 * channels).to_le_bytes());
    file.extend(16u16.to_le_bytes());
    file.extend(b"data");
    file.extend(bytes.to_le_bytes());
    for sample in samples {
        let scaled = (sample * 32768.0).round().clamp(-32768.0, 32767.0);
        file.extend((scaled as i16).to_le_bytes());
    }
    file
}
