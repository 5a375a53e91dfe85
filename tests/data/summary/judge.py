"""What TensorBoard's own readers find in the event files of a folder, as JSON; and the web app's answers and screenshots.

judge.py FOLDER [SCREENSHOTS]
"""

import base64
import concurrent.futures
import glob
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import numpy as np
import tensorboard
import tensorflow as tf
from tensorboard import program
from tensorboard.backend.event_processing import event_accumulator, event_file_loader
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util import tensor_util

folder = sys.argv[1]
found = {"tensorboard": tensorboard.__version__, "runs": {}}


def text(value):
    return base64.b64encode(value).decode()


def array(values):
    if values.dtype == object:
        return {"shape": list(values.shape), "strings": [text(x) for x in values.ravel()]}
    numbers = [None if not np.isfinite(x) else float(x) for x in values.astype(np.float64).ravel()]
    return {"shape": list(values.shape), "dtype": str(values.dtype), "values": numbers}


def shown(value):
    """What a plugin would show of a value."""
    plugin = value.metadata.plugin_data.plugin_name
    values = tensor_util.make_ndarray(value.tensor)
    one = {"tag": value.tag, "plugin": plugin, "description": value.metadata.summary_description}
    if plugin == "images":
        one["size"] = [int(x) for x in values[:2]]
        one["pixels"] = [np.asarray(tf.io.decode_png(x)).astype(int).tolist() for x in values[2:]]
    elif plugin == "audio":
        sounds = [tf.audio.decode_wav(x[0]) for x in values]
        one["samples"] = [np.asarray(sound.audio, np.float64).tolist() for sound in sounds]
        one["rates"] = [int(sound.sample_rate) for sound in sounds]
    elif plugin == "hparams":
        data = plugin_data_pb2.HParamsPluginData.FromString(value.metadata.plugin_data.content)
        one["data"] = data.WhichOneof("data")
    else:
        one["array"] = array(values)
    return one


for path in sorted(glob.glob(os.path.join(folder, "**", "*tfevents*"), recursive=True)):
    run = os.path.relpath(os.path.dirname(path), folder)
    events = found["runs"].setdefault(run, [])
    # The raw records, and in the form in which TensorBoard's newest loader passes them to its
    # plugins.
    for event in event_file_loader.LegacyEventFileLoader(path).Load():
        if event.file_version:
            events.append({"version": event.file_version})
        if event.graph_def:
            graph = tf.compat.v1.GraphDef.FromString(event.graph_def)
            nodes = [[node.name, node.op, list(node.input)] for node in graph.node]
            events.append({"step": event.step, "graph": nodes})
        for value in event.summary.value:
            one = shown(value)
            one.update({"step": event.step, "wall_time": event.wall_time})
            events.append(one)

# The same with the reader in TensorBoard's documentation.
kinds = event_accumulator.EventAccumulator(os.path.join(folder, "kinds"), size_guidance={"tensors": 0})
kinds.Reload()
found["accumulator"] = {
    tag: [[e.step, array(tensor_util.make_ndarray(e.tensor_proto))] for e in kinds.Tensors(tag)]
    for tag in kinds.Tags()["tensors"]
    if kinds.SummaryMetadata(tag).plugin_data.plugin_name == "scalars"
}

# The answers of the web app's server to its pages.
app = program.TensorBoard()
app.configure(logdir=folder, port=0, host="127.0.0.1", load_fast="false", reload_interval=1)
url = app.launch()


def get(path, **query):
    request = url + "data/" + path + ("?" + urllib.parse.urlencode(query) if query else "")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def post(path, body):
    request = urllib.request.Request(
        url + "data/" + path, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


deadline = time.time() + 60
while set(json.loads(get("runs"))) != set(found["runs"]):
    assert time.time() < deadline, json.loads(get("runs"))
    time.sleep(0.2)
# The last run of the list may still be loading.
time.sleep(2)
server = found["server"] = {}
# The projector looks for its files at the first request.
while "projector" not in (active := json.loads(get("plugins_listing"))) or not active["projector"]["enabled"]:
    assert time.time() < deadline, active
    time.sleep(0.2)
server["plugins"] = sorted(name for name, plugin in json.loads(get("plugins_listing")).items() if plugin["enabled"])
server["scalars"] = json.loads(get("plugin/scalars/tags"))
server["loss"] = len(json.loads(get("plugin/scalars/scalars", run="kinds", tag="loss")))
server["histograms"] = len(json.loads(get("plugin/histograms/histograms", run="kinds", tag="weights")))
server["distributions"] = len(json.loads(get("plugin/distributions/distributions", run="kinds", tag="weights")))
server["images"] = json.loads(get("plugin/images/tags"))
picture = json.loads(get("plugin/images/images", run="kinds", tag="pixels", sample=0))[0]
server["picture"] = text(get("plugin/images/individualImage?" + picture["query"])[:8])
server["text"] = json.loads(get("plugin/text/text", run="kinds", tag="note"))[0]["text"]
server["audio"] = json.loads(get("plugin/audio/tags"))
server["graphs"] = json.loads(get("plugin/graphs/info"))
server["op_graph"] = get("plugin/graphs/graph", run="train").decode()
server["function_graph"] = get("plugin/graphs/graph", run="kinds").decode()
server["conceptual"] = get("plugin/graphs/graph", run="train", tag="keras", conceptual="true").decode()
server["profile"] = get("plugin/graphs/run_metadata", run="train", tag="batch_3").decode()
server["layout"] = json.loads(get("plugin/custom_scalars/layout"))
server["experiment"] = post("plugin/hparams/experiment", {"experimentName": ""})
server["trials"] = post(
    "plugin/hparams/session_groups",
    {
        "experimentName": "",
        "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"],
        "colParams": [],
        "startIndex": 0,
        "sliceSize": 10,
    },
)
embedding_run = json.loads(get("plugin/projector/runs"))
server["embeddings"] = {run: json.loads(get("plugin/projector/info", run=run)) for run in embedding_run}
for run in embedding_run:
    vectors = get("plugin/projector/tensor", run=run, name="embedding", num_rows=1000)
    server["vectors"] = np.frombuffer(vectors, np.float32).astype(float).tolist()
    server["labels"] = get("plugin/projector/metadata", run=run, name="embedding", num_rows=1000).decode()

# The pages as rendered by a browser.
browser = os.environ.get("WGRAD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
if len(sys.argv) > 2 and browser:
    pages = ["timeseries", "scalars", "images", "histograms", "distributions", "text", "audio", "graphs", "hparams",
             "custom_scalars", "projector"]

    def draw(page):
        path = os.path.join(sys.argv[2], page + ".png")
        subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--hide-scrollbars", "--use-gl=angle", "--use-angle=swiftshader",
             "--enable-unsafe-swiftshader", "--window-size=1400,1000", "--virtual-time-budget=10000",
             "--screenshot=" + path, url + "#" + page],
            check=True, timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        return [page, os.path.getsize(path)]

    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        found["screenshots"] = list(threads.map(draw, pages))

json.dump(found, sys.stdout)
sys.stdout.flush()
# The server's threads would keep the process running.
os._exit(0)
