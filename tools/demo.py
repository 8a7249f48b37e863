#!/usr/bin/env python3
"""Find the face in a photograph: BlazeFace on the Vulkan delegate, and on the CPU beside it.

    tools/demo                                       (sets everything up, then runs this)
    .venv/bin/python tools/demo.py --image me.jpg    (any photograph that shows a face up close)

Prints the device, what it took of the model, how long a frame takes and how far the two results are
apart, and writes demo.png with the face marked. TFLITE_VK_DEVICE chooses another device.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter
from PIL import Image, ImageDraw, ImageFont

import fetch_models
import tflite_vk

Floats = npt.NDArray[np.float32]

MODEL = "face_detection_short_range.tflite"
PHOTOGRAPH = "astronaut.png"

# The model's constants, from MediaPipe's face_detection_short_range graph.
INPUT_SIZE = 128
ANCHOR_LAYERS = ((8, 2), (16, 6))  # stride, anchors in each cell; three layers share stride 16
SCORE_LIMIT = 100.0
MIN_SCORE = 0.5
MAX_OVERLAP = 0.3
KEYPOINTS = ("right eye", "left eye", "nose", "mouth", "right ear", "left ear")


@dataclass(frozen=True)
class Face:
    """One face, in pixels of the photograph.

    Attributes:
        score: 0 to 1.
        box: left, top, right, bottom.
        keypoints: x and y of each of `KEYPOINTS`.
    """

    score: float
    box: Floats
    keypoints: Floats


@dataclass(frozen=True)
class Frame:
    """The photograph as the model takes it, and the way back to its pixels.

    Attributes:
        tensor: [1, 128, 128, 3], -1 to 1.
        scale: pixels of the photograph for one of the square it is set into.
        offset: x and y of that square's corner in the photograph.
    """

    tensor: Floats
    scale: float
    offset: Floats


def letterbox(image: Image.Image) -> Frame:
    """Set an image into the middle of a square, and scale the square to the model's input."""
    side = max(image.size)
    corner = ((side - image.width) // 2, (side - image.height) // 2)
    square = Image.new("RGB", (side, side))
    square.paste(image, corner)
    small = square.resize((INPUT_SIZE, INPUT_SIZE), Image.Resampling.BILINEAR)
    tensor = np.asarray(small, np.float32)[np.newaxis] / 127.5 - 1.0
    return Frame(tensor, side / INPUT_SIZE, -np.array(corner, np.float32))


def anchors() -> Floats:
    """Return the centre of each anchor, [896, 2], in pixels of the model's input."""
    layers = []
    for stride, count in ANCHOR_LAYERS:
        cells = (np.arange(INPUT_SIZE // stride, dtype=np.float32) + 0.5) * stride
        y, x = np.meshgrid(cells, cells, indexing="ij")
        layers.append(np.repeat(np.stack([x, y], axis=-1).reshape(-1, 2), count, axis=0))
    return np.concatenate(layers)


def decode(regressors: Floats, logits: Floats, frame: Frame) -> list[Face]:
    """Return the faces in the model's outputs, best first.

    Args:
        regressors: [1, 896, 16]: centre, size and six keypoints, relative to the anchor, in pixels.
        logits: [1, 896, 1].
        frame: what the model was given.
    """
    clipped = np.clip(logits[0, :, 0].astype(np.float64), -SCORE_LIMIT, SCORE_LIMIT)
    scores = 1.0 / (1.0 + np.exp(-clipped))
    likely = scores >= MIN_SCORE
    scores, raw, centres = scores[likely], regressors[0, likely], anchors()[likely]
    middle, half = raw[:, :2] + centres, raw[:, 2:4] / 2.0
    points = raw[:, 4:].reshape(-1, len(KEYPOINTS), 2) + centres[:, np.newaxis]
    corners = np.stack([middle - half, middle + half], axis=1)
    # [n, 8, 2]: two corners and six keypoints, which are averaged and scaled alike
    shapes = np.concatenate([corners, points], axis=1)

    faces = []
    order = np.argsort(-scores)
    while order.size:
        together = overlap(shapes[order[0], :2], shapes[order, :2]) > MAX_OVERLAP
        together[0] = True  # even a face with no area
        group = order[together]
        # Weighted, as MediaPipe does: all anchors that see one face have a say in where it is.
        shape = np.average(shapes[group], axis=0, weights=scores[group])
        pixels = (shape * frame.scale + frame.offset).astype(np.float32)
        faces.append(Face(float(scores[order[0]]), pixels[:2].reshape(4), pixels[2:]))
        order = order[~together]
    return faces


def overlap(box: Floats, boxes: Floats) -> Floats:
    """Return intersection over union of a box [2, 2] with each of [n, 2, 2]."""
    sides = np.minimum(box[1], boxes[:, 1]) - np.maximum(box[0], boxes[:, 0])
    shared = np.prod(np.maximum(sides, 0.0), axis=1)
    areas = np.prod(np.maximum(boxes[:, 1] - boxes[:, 0], 0.0), axis=1)
    area = np.prod(np.maximum(box[1] - box[0], 0.0))
    return np.asarray(shared / np.maximum(area + areas - shared, 1e-9), np.float32)


def draw(image: Image.Image, faces: list[Face]) -> Image.Image:
    """Return a copy of an image with the faces marked."""
    marked = image.copy()
    pen = ImageDraw.Draw(marked)
    unit = max(2, round(max(image.size) / 256))
    font = ImageFont.load_default(size=8 * unit)
    for face in faces:
        left, top, right, bottom = (float(value) for value in face.box)
        pen.rectangle((left, top, right, bottom), outline="lime", width=unit)
        for x, y in face.keypoints.tolist():
            pen.circle((x, y), 1.5 * unit, fill="red", outline="white")
        label = f"face {face.score:.2f}"
        area = pen.textbbox((left, top), label, font=font, anchor="lb")
        pen.rectangle(area, fill="lime")
        pen.text((left, top), label, fill="black", font=font, anchor="lb")
    return marked


def run(interpreter: Any, tensor: Floats, runs: int) -> tuple[list[Floats], float]:
    """Return the outputs and the median milliseconds from setting the input to having them."""
    details = interpreter.get_output_details()
    times = []
    for _ in range(runs + 1):  # the first run is a warm-up
        start = time.perf_counter()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], tensor)
        interpreter.invoke()
        outputs = [interpreter.get_tensor(detail["index"]) for detail in details]
        times.append((time.perf_counter() - start) * 1e3)
    # By shape, as their order is not part of the model's contract: regressors, then scores.
    return sorted(outputs, key=lambda output: -output.shape[-1]), statistics.median(times[1:])


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--image", type=Path, help=f"a photograph (default: {PHOTOGRAPH})")
    parser.add_argument("--output", type=Path, default=Path("demo.png"))
    parser.add_argument("--device", help="index, or part of the device's name")
    parser.add_argument("--runs", type=int, default=50, help="timed runs of each (default: 50)")
    options = parser.parse_args()

    model, picture = fetch_models.find(MODEL), options.image or fetch_models.find(PHOTOGRAPH)
    if model is None or picture is None:
        parser.error("the model or the photograph is not here yet; run tools/setup")
    devices = tflite_vk.devices()
    if not devices:
        parser.error("no Vulkan device or driver; on Debian: apt-get install mesa-vulkan-drivers")
    image = Image.open(picture).convert("RGB")
    frame = letterbox(image)

    start = time.perf_counter()
    delegate = tflite_vk.VulkanDelegate(device=options.device)
    gpu = Interpreter(model_path=str(model), experimental_delegates=[delegate])
    gpu.allocate_tensors()
    prepared = time.perf_counter() - start
    cpu = Interpreter(model_path=str(model))
    cpu.allocate_tensors()

    on_gpu, gpu_ms = run(gpu, frame.tensor, options.runs)
    on_cpu, cpu_ms = run(cpu, frame.tensor, options.runs)
    faces = decode(on_gpu[0], on_gpu[1], frame)
    expected = decode(on_cpu[0], on_cpu[1], frame)
    draw(image, faces).save(options.output)

    print(f"model       {model.name}, {picture.name} {image.width} x {image.height}")
    used = next(device for device in devices if device.name == delegate.report.device)
    kind = "a software driver, which computes on the CPU" if used.is_software else used.type
    print(f"device      {used.name} ({kind}), Vulkan {used.api_version}")
    print(delegate.report)
    print(f"prepared    in {prepared:.2f} s")
    print(
        f"latency     Vulkan {gpu_ms:.2f} ms, LiteRT CPU {cpu_ms:.2f} ms (medians of {options.runs})"
    )
    for name, ours, theirs in zip(("boxes", "scores"), on_gpu, on_cpu, strict=True):
        worst = float(np.abs(ours - theirs).max())
        print(
            f"difference  {name}: at most {worst:.2e}, where values reach {np.abs(theirs).max():.3g}"
        )
    for face in faces:
        left, top, right, bottom = (round(float(value)) for value in face.box)
        print(f"face        {face.score:.3f} at x {left} to {right}, y {top} to {bottom}")
    print(f"wrote       {options.output}")
    if len(faces) != len(expected):
        print(f"the CPU finds {len(expected)} faces, the device {len(faces)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
