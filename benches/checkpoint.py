"""What `checkpoint.rs` measures, with TensorFlow's Checkpoint on the processor: `python benches/checkpoint.py [FOLDER]`."""

import os
import shutil
import statistics
import sys
import tempfile
import time

import numpy as np
import tensorflow as tf

BYTES, ROUNDS = 500_000_000, 7


def weights():
    left, made = BYTES // 4, []
    while left:
        for size in (4_000_000, 10_000, 250_000, 12_000_000):
            size = min(size, left)
            left -= size
            if size:
                made.append(tf.Variable(np.arange(size, dtype=np.float32)))
    return made


def sync(path):
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def timed(times, call):
    began = time.perf_counter()
    call()
    times.append(time.perf_counter() - began)


folder = tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None)
try:
    saved, restored = tf.train.Checkpoint(v=weights()), tf.train.Checkpoint(v=weights())
    source, prefix = os.path.join(folder, "source"), os.path.join(folder, "ckpt")
    files = [prefix + ".data-00000-of-00001", prefix + ".index"]
    saved.write(prefix)
    shutil.copyfile(files[0], source)

    def copy():
        to = os.path.join(folder, "copy")
        shutil.copyfile(source, to)
        sync(to)
        with open(to + ".small", "wb") as small:
            small.write(b"1" * 1000)
        sync(to + ".small")
        sync(folder)
        sync(folder)

    def save():
        saved.write(prefix)

    # TensorFlow does not sync; the second form syncs like wgrad.
    def save_synced():
        saved.write(prefix)
        for path in (*files, folder, folder):
            sync(path)

    times = {"copy": [], "save": [], "save, synced": [], "restore": []}
    for _ in range(ROUNDS):
        timed(times["copy"], copy)
        timed(times["save"], save)
        os.sync()
        timed(times["save, synced"], save_synced)
        timed(times["restore"], lambda: restored.read(prefix).assert_consumed())
    copied = statistics.median(times["copy"])
    for name, each in times.items():
        one = statistics.median(each)
        print(f"{name}: {one:.3f} s, {BYTES / 1e6 / one:.0f} MB/s, {100 * copied / one:.0f} % of the copy's speed")
finally:
    shutil.rmtree(folder)
