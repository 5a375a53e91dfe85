"""Draws small images with Pillow, lets TensorFlow decode them, and writes both: `python make.py`, beside this file.

With a folder of photographs as its argument it writes only `cats_vs_dogs.json`, checksums of what TensorFlow makes of them.
"""
import glob
import io
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))


def checksum(pixels):
    """Sum of (i + 1) * (value + 1), modulo 2^64."""
    values = pixels.reshape(-1).astype(np.uint64) + np.uint64(1)
    return int((values * np.arange(1, values.size + 1, dtype=np.uint64)).sum(dtype=np.uint64))


def accurate(data, channels):
    return tf.io.decode_jpeg(data, channels=channels, dct_method="INTEGER_ACCURATE")


def photographs(folder):
    lines = {}
    for path in sorted(glob.glob(folder + "/*/*/*.jpg")):
        name = os.path.relpath(path, folder)
        pixels = accurate(tf.io.read_file(path), 3).numpy()
        lines[name] = [*pixels.shape[:2], str(checksum(pixels))]
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(line)}" for name, line in lines.items())
    with open(HERE + "/cats_vs_dogs.json", "w") as out:
        out.write("{\n" + rows + "\n}\n")


def drawn():
    from PIL import Image

    rng = np.random.default_rng(7)
    y, x = np.mgrid[0:13, 0:19]
    smooth = np.stack([10 * x + 3 * y, 200 - 9 * x, 15 * y], 2) + rng.integers(0, 25, (13, 19, 3))
    rgb = smooth.clip(0, 255).astype(np.uint8)
    alpha = (20 * y + x).clip(0, 255).astype(np.uint8)
    rgba = np.concatenate([rgb, alpha[:, :, None]], 2)
    color, grey, clear = Image.fromarray(rgb), Image.fromarray(rgb[:, :, 0]), Image.fromarray(rgba)
    files = {}

    def add(name, image, **options):
        out = io.BytesIO()
        kind = {"jpg": "JPEG"}.get(name.split(".")[1], name.split(".")[1].upper())
        image.save(out, kind, **options)
        files[name] = out.getvalue()

    add("420.jpg", color, quality=85, subsampling=2)
    add("422.jpg", color, quality=85, subsampling=1)
    add("444.jpg", color, quality=95, subsampling=0)
    add("grey.jpg", grey)
    add("cmyk.jpg", color.convert("CMYK"))
    add("progressive.jpg", color, progressive=True, quality=80)
    add("restarts.jpg", color, restart_marker_blocks=1)
    add("turned.jpg", color, exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0")
    add("rgb.jpg", color, keep_rgb=True)
    add("pixel.jpg", color.crop((0, 0, 1, 1)))
    add("rgb.png", color)
    add("rgba.png", clear)
    add("grey.png", grey)
    add("grey_alpha.png", Image.fromarray(rgba[:, :, [0, 3]], "LA"))
    add("palette.png", color.quantize(200))
    add("palette_clear.png", color.quantize(200), transparency=3)
    add("bits.png", grey.convert("1"))
    add("deep.png", Image.fromarray(rgb[:, :, 0].astype(np.uint16) * 257 + 99))
    add("key.png", color, transparency=tuple(int(v) for v in rgb[2, 3]))
    add("rgb.bmp", color)
    add("rgba.bmp", clear)
    add("grey.bmp", grey)
    bottom_up = bytearray(files["rgb.bmp"])
    stride = (19 * 3 + 3) // 4 * 4
    rows = [bottom_up[54 + i * stride:54 + (i + 1) * stride] for i in range(13)]
    bottom_up[22:26] = (-13 & 0xFFFFFFFF).to_bytes(4, "little")
    files["top_down.bmp"] = bytes(bottom_up[:54] + b"".join(reversed(rows)))
    add("still.gif", color.quantize(64))
    # The second frame differs in a corner only, so that Pillow stores only that, and the third has transparent pixels.
    second, third = rgb.copy(), rgb.copy()
    second[2:6, 3:9] = [250, 20, 30]
    third[8:11, 1:5] = [10, 240, 30]
    frames = [Image.fromarray(frame).quantize(64) for frame in (rgb, second, third)]
    add("moving.gif", frames[0], save_all=True, append_images=frames[1:])
    add("interlaced.gif", color.quantize(64), interlace=1)
    add("lossless.webp", color, lossless=True)
    add("lossless_alpha.webp", clear, lossless=True, exact=True)
    add("lossy.webp", color, quality=90)
    add("moving.webp", color, save_all=True, lossless=True, append_images=[Image.fromarray(second)])

    table = {}
    blob = bytearray()
    for name, data in files.items():
        with open(f"{HERE}/{name}", "wb") as out:
            out.write(data)
        table[name] = {}
        for channels in (0, 1, 3, 4):
            try:
                decode = accurate if name.endswith(".jpg") else tf.io.decode_image
                pixels = decode(data, channels=channels).numpy()
            except tf.errors.InvalidArgumentError:
                try:
                    pixels = tf.io.decode_bmp(data, channels=channels).numpy()
                except tf.errors.InvalidArgumentError:
                    table[name][channels] = None
                    continue
            table[name][channels] = {"shape": list(pixels.shape), "at": len(blob)}
            blob += pixels.tobytes()
        if name.endswith(".jpg"):
            # TensorFlow's default.
            pixels = tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_FAST").numpy()
            table[name]["fast"] = {"shape": list(pixels.shape), "at": len(blob)}
            blob += pixels.tobytes()
            for ratio in (2, 4, 8):
                pixels = tf.io.decode_jpeg(data, channels=3, ratio=ratio, dct_method="INTEGER_ACCURATE").numpy()
                table[name][f"ratio {ratio}"] = {"shape": list(pixels.shape), "at": len(blob)}
                blob += pixels.tobytes()
            image = accurate(data, 0)
        else:
            image = tf.io.decode_image(data, expand_animations=False)
        small = tf.image.resize(image, [5, 7]).numpy()
        table[name]["resized"] = [round(float(v), 4) for v in small.reshape(-1)]
    with open(HERE + "/pixels.bin", "wb") as out:
        out.write(blob)
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(line)}" for name, line in table.items())
    with open(HERE + "/pixels.json", "w") as out:
        out.write("{\n" + rows + "\n}\n")
    encoded = {"encoded.jpg": tf.io.encode_jpeg(rgb), "encoded_444.jpg": tf.io.encode_jpeg(rgb, quality=70, chroma_downsampling=False),
               "encoded_progressive.jpg": tf.io.encode_jpeg(rgb, progressive=True), "encoded_small.jpg": tf.io.encode_jpeg(rgb, optimize_size=True),
               "encoded_grey.jpg": tf.io.encode_jpeg(rgb[:, :, :1])}
    for name, data in encoded.items():
        with open(f"{HERE}/{name}", "wb") as out:
            out.write(data.numpy())


if len(sys.argv) > 1:
    photographs(sys.argv[1])
else:
    drawn()
