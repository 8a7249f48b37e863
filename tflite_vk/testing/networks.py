"""Well-known networks with random weights, as .tflite bytes: for benchmarks and tests of whole models.

Layer shapes are those of the published networks; weights are He-initialized so that activations
keep their scale through depth, and outputs can be compared.

Sources: Howard et al. 2017 (MobileNet v1), Sandler et al. 2018 (MobileNet v2), He et al. 2015
(ResNet-50, stride in the 3x3 convolution as common implementations have it), Liu et al. 2015 (SSD).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tflite_vk.ir.attributes import (
    Activation,
    BinaryAttributes,
    ConcatenationAttributes,
    Conv2DAttributes,
    DepthwiseConv2DAttributes,
    FullyConnectedAttributes,
    Padding,
    Pool2DAttributes,
    ReducerAttributes,
    ReshapeAttributes,
    SoftmaxAttributes,
)
from tflite_vk.testing.model_writer import ModelWriter


class NetworkWriter(ModelWriter):
    """A ModelWriter that knows layers and keeps the shape of every value it made."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._rng = np.random.default_rng(seed)
        self.shapes: dict[int, tuple[int, ...]] = {}

    def image(self, size: int, batch: int = 1) -> int:
        """The input, [batch, size, size, 3]."""
        shape = (batch, size, size, 3)
        return self._keep(self.input(shape, name="input"), shape)

    def _keep(self, tensor: int, shape: tuple[int, ...]) -> int:
        self.shapes[tensor] = shape
        return tensor

    def _weights(self, shape: tuple[int, ...], fan_in: int) -> int:
        scale = math.sqrt(2.0 / fan_in)
        return self.const((self._rng.standard_normal(shape) * scale).astype(np.float32))

    def _bias(self, size: int) -> int:
        return self.const((self._rng.standard_normal(size) * 0.1).astype(np.float32))

    def conv(
        self, x: int, channels: int, kernel: int = 1, stride: int = 1, act: Activation = "RELU6"
    ) -> int:
        """CONV_2D, SAME."""
        n, h, w, c = self.shapes[x]
        shape = (n, -(-h // stride), -(-w // stride), channels)
        inputs = [
            x,
            self._weights((channels, kernel, kernel, c), kernel * kernel * c),
            self._bias(channels),
        ]
        attributes = Conv2DAttributes(
            fused_activation_function=act, stride_h=stride, stride_w=stride
        )
        return self._keep(self.op("CONV_2D", inputs, [shape], attributes), shape)

    def depthwise(self, x: int, stride: int = 1, kernel: int = 3, act: Activation = "RELU6") -> int:
        """DEPTHWISE_CONV_2D, SAME, multiplier 1."""
        n, h, w, c = self.shapes[x]
        shape = (n, -(-h // stride), -(-w // stride), c)
        inputs = [x, self._weights((1, kernel, kernel, c), kernel * kernel), self._bias(c)]
        attributes = DepthwiseConv2DAttributes(
            fused_activation_function=act, stride_h=stride, stride_w=stride, depth_multiplier=1
        )
        return self._keep(self.op("DEPTHWISE_CONV_2D", inputs, [shape], attributes), shape)

    def add(self, a: int, b: int, act: Activation = "NONE") -> int:
        """ADD of equal shapes."""
        shape = self.shapes[a]
        attributes = BinaryAttributes(fused_activation_function=act)
        return self._keep(self.op("ADD", [a, b], [shape], attributes), shape)

    def max_pool(self, x: int, size: int, stride: int, padding: Padding = "SAME") -> int:
        """MAX_POOL_2D."""
        n, h, w, c = self.shapes[x]
        shape = (n, -(-h // stride), -(-w // stride), c)
        attributes = Pool2DAttributes(
            padding=padding,
            stride_h=stride,
            stride_w=stride,
            filter_height=size,
            filter_width=size,
        )
        return self._keep(self.op("MAX_POOL_2D", [x], [shape], attributes), shape)

    def classifier(self, x: int, classes: int) -> None:
        """Global mean, FULLY_CONNECTED, SOFTMAX; the model's output."""
        n, _, _, c = self.shapes[x]
        axes = self.const(np.array([1, 2], np.int32))
        mean = self.op("MEAN", [x, axes], [(n, c)], ReducerAttributes())
        inputs = [mean, self._weights((classes, c), c), self._bias(classes)]
        logits = self.op("FULLY_CONNECTED", inputs, [(n, classes)], FullyConnectedAttributes())
        self.output(self.op("SOFTMAX", [logits], [(n, classes)], SoftmaxAttributes(beta=1.0)))

    def head(self, x: int, per_cell: int, width: int) -> int:
        """A 1x1 prediction layer reshaped to [batch, boxes, width]."""
        n, h, w, _ = self.shapes[x]
        predicted = self.conv(x, per_cell * width, act="NONE")
        shape = (n, h * w * per_cell, width)
        attributes = ReshapeAttributes(new_shape=shape)
        inputs = [predicted, self.const(np.array(shape, np.int32))]
        return self._keep(self.op("RESHAPE", inputs, [shape], attributes), shape)

    def concatenate(self, parts: list[int]) -> int:
        """CONCATENATION along the boxes."""
        n, _, width = self.shapes[parts[0]]
        shape = (n, sum(self.shapes[p][1] for p in parts), width)
        joined = self.op("CONCATENATION", parts, [shape], ConcatenationAttributes(axis=1))
        return self._keep(joined, shape)


_V1 = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *[(512, 1)] * 5,
    (1024, 2),
    (1024, 1),
)
"""MobileNet v1: channels and stride of each depthwise separable block."""

_V2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""MobileNet v2: expansion, channels, repeats, stride of the first."""

_RESNET_50 = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""ResNet-50: inner channels, blocks, stride of the first."""


def _separable(w: NetworkWriter, x: int, channels: int, stride: int) -> int:
    return w.conv(w.depthwise(x, stride), channels)


def mobilenet_v1(size: int = 224, batch: int = 1) -> bytes:
    """MobileNet v1 1.0: 1.14 GFLOP at 224."""
    w = NetworkWriter()
    x = w.conv(w.image(size, batch), 32, 3, 2)
    for channels, stride in _V1:
        x = _separable(w, x, channels, stride)
    w.classifier(x, 1001)
    return w.build()


def mobilenet_v2(size: int = 224, batch: int = 1) -> bytes:
    """MobileNet v2 1.0: 0.6 GFLOP at 224."""
    w = NetworkWriter()
    x = w.conv(w.image(size, batch), 32, 3, 2)
    for expansion, channels, repeats, first_stride in _V2:
        for i in range(repeats):
            before = x
            stride = first_stride if i == 0 else 1
            if expansion != 1:
                x = w.conv(x, w.shapes[x][3] * expansion)
            x = w.conv(w.depthwise(x, stride), channels, act="NONE")
            if w.shapes[x] == w.shapes[before]:
                x = w.add(before, x)
    w.classifier(w.conv(x, 1280), 1001)
    return w.build()


def resnet_50(size: int = 224, batch: int = 1) -> bytes:
    """ResNet-50: 8.2 GFLOP at 224."""
    w = NetworkWriter()
    x = w.max_pool(w.conv(w.image(size, batch), 64, 7, 2, act="RELU"), 3, 2)
    for channels, blocks, first_stride in _RESNET_50:
        for i in range(blocks):
            stride = first_stride if i == 0 else 1
            shortcut = w.conv(x, 4 * channels, 1, stride, "NONE") if i == 0 else x
            y = w.conv(x, channels, act="RELU")
            y = w.conv(y, channels, 3, stride, "RELU")
            x = w.add(shortcut, w.conv(y, 4 * channels, act="NONE"), "RELU")
    w.classifier(x, 1000)
    return w.build()


def mobilenet_ssd(size: int = 300, batch: int = 1) -> bytes:
    """SSD with MobileNet v1, raw boxes and scores (no postprocessing), 1x1 heads: 2.5 GFLOP at 300."""
    w = NetworkWriter()
    x = w.conv(w.image(size, batch), 32, 3, 2)
    features = []
    for i, (channels, stride) in enumerate(_V1):
        x = _separable(w, x, channels, stride)
        if i in (10, 12):
            features.append(x)
    for squeeze, channels in ((256, 512), (128, 256), (128, 256), (64, 128)):
        x = w.conv(w.conv(x, squeeze), channels, 3, 2)
        features.append(x)
    per_cell = [3, 6, 6, 6, 6, 6]
    w.output(w.concatenate([w.head(f, k, 4) for f, k in zip(features, per_cell, strict=True)]))
    w.output(w.concatenate([w.head(f, k, 91) for f, k in zip(features, per_cell, strict=True)]))
    return w.build()


NETWORKS: dict[str, Callable[[], bytes]] = {
    "mobilenet_v1": mobilenet_v1,
    "mobilenet_v2": mobilenet_v2,
    "resnet_50": resnet_50,
    "mobilenet_ssd": mobilenet_ssd,
}
"""Builders by name, at their usual size."""
