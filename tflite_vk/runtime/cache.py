"""Cache files: what a driver compiled, and other things that took time, kept between processes.

A file is only ever a help. One that is cut short, damaged, or of another device, driver or
version of this package counts as absent; one that can't be written is left out.

Format: magic, two lengths, a description in JSON, the data. The description names what the data is
for and holds its hash; a file is good where its description is byte for byte the one expected.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tflite_vk.device_info import DeviceInfo
from tflite_vk.shader_library import library_hash
from tflite_vk.version import VERSION

logger = logging.getLogger("tflite_vk")

_MAGIC = b"TFLITEVK"
_LENGTHS = struct.Struct("<QQ")
_FORMAT = 2
_ALIGNMENT = 64

# VkPipelineCacheHeaderVersionOne: its own size, version, vendor, device, cache UUID.
_DRIVER_HEADER = struct.Struct("<IIII16s")

_warned: set[str] = set()

_ahead: dict[Path, _Content] = {}
"""What `read_ahead` has read; the file named last, until anything of its kind is read."""


@dataclass(frozen=True)
class CacheKey:
    """Everything that makes a driver's data useless when it changes.

    Attributes:
        device: name of the device.
        uuid: pipeline cache UUID, hexadecimal.
        vendor_id, device_id: PCI ids.
        driver_version: vendor's own encoding.
        package: version of this package.
        shaders: hash of the compiled shaders.
    """

    device: str
    uuid: str
    vendor_id: int
    device_id: int
    driver_version: int
    package: str
    shaders: str

    @classmethod
    def of(cls, info: DeviceInfo) -> CacheKey:
        """The key of a device, as this package now is."""
        return cls(
            device=info.name,
            uuid=info.uuid,
            vendor_id=info.vendor_id,
            device_id=info.device_id,
            driver_version=info.driver_version,
            package=VERSION,
            shaders=library_hash(),
        )

    @property
    def device_hash(self) -> str:
        """For file names: devices lie side by side in one folder."""
        device = f"{self.device}\0{self.vendor_id}\0{self.device_id}"
        return hashlib.sha256(device.encode()).hexdigest()[:12]

    def fits(self, data: bytes | memoryview) -> bool:
        """True where the driver's own header in the data names this device."""
        if len(data) < _DRIVER_HEADER.size:
            return False
        size, version, vendor, device, uuid = _DRIVER_HEADER.unpack_from(data)
        return (
            _DRIVER_HEADER.size <= size <= len(data)
            and version == 1
            and (vendor, device, uuid.hex()) == (self.vendor_id, self.device_id, self.uuid)
        )


@dataclass(frozen=True)
class _Content:
    """A file as it was read.

    Attributes:
        content: all of it.
        sha256: of the data in it; None where it is too short to hold any.
        changed_ns: when it was last written.
    """

    content: bytes
    sha256: str | None
    changed_ns: int

    @classmethod
    def of(cls, path: Path) -> _Content:
        """Read a file.

        Raises:
            OSError: it can't be read.
        """
        changed_ns = path.stat().st_mtime_ns
        content = path.read_bytes()
        start = _data_start(content)
        digest = None if start is None else hashlib.sha256(memoryview(content)[start:]).hexdigest()
        return cls(content, digest, changed_ns)


def _data_start(content: bytes) -> int | None:
    """Where a file's data begins; None where it is cut, or no cache file at all."""
    start = len(_MAGIC) + _LENGTHS.size
    if len(content) < start or not content.startswith(_MAGIC):
        return None
    described, size = _LENGTHS.unpack_from(content, len(_MAGIC))
    whole = len(content) == start + described + size
    return start + described if whole else None


def read_ahead(path: Path) -> None:
    """Read and hash a file now, where there is time, for an `EntryFile` that soon will be.

    Args:
        path: of a file that need not exist, nor be a good one.
    """
    with contextlib.suppress(OSError):
        content = _Content.of(path)
        _ahead.clear()
        _ahead[path] = content


class EntryFile:
    """One cached thing.

    Attributes:
        path: where it is, whether or not it exists.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        """Name a file; nothing is read or made yet.

        Args:
            path: where it lies; its folder is made when something is written.
            identity: everything that makes the data useless when it changes, as JSON has it.
        """
        self.path = path
        self._identity = dict(identity)

    def read(self) -> memoryview | None:
        """The data; None where there is none that is good. Never raises for a bad file."""
        try:
            found = self._content()
        except OSError:
            return None
        start = _data_start(found.content)
        if start is not None and found.sha256 is not None:
            expected = self._description(found.sha256)
            if found.content[len(_MAGIC) + _LENGTHS.size : start] == expected:
                return memoryview(found.content)[start:]
        logger.info("cache file %s is damaged or for something else: ignored", self.path)
        return None

    def _content(self) -> _Content:
        ahead = _ahead.pop(self.path, None)
        if any(path.suffix == self.path.suffix for path in _ahead):
            _ahead.clear()  # it was another's
        if ahead is not None and ahead.changed_ns == self.path.stat().st_mtime_ns:
            return ahead
        return _Content.of(self.path)

    def _description(self, sha256: str) -> bytes:
        """Padded so that the data behind it is aligned for any type."""
        fields = {"format": _FORMAT, "sha256": sha256, **self._identity}
        text = json.dumps(fields, sort_keys=True).encode()
        start = len(_MAGIC) + _LENGTHS.size
        return text + b" " * (-(start + len(text)) % _ALIGNMENT)

    def write(self, *parts: bytes | memoryview) -> bool:
        """Replace the file in one step, so that no reader sees half of it.

        Returns:
            False where it can't be written; says so once for each folder.
        """
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        description = self._description(digest.hexdigest())
        size = sum(memoryview(part).nbytes for part in parts)
        temporary: str | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A name of its own for every writer: two processes may be here at once.
            file, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".vkcache-")
            with os.fdopen(file, "wb") as stream:
                stream.write(_MAGIC + _LENGTHS.pack(len(description), size) + description)
                stream.writelines(parts)
            os.replace(temporary, self.path)  # noqa: PTH105
        except OSError as error:
            if temporary is not None:
                Path(temporary).unlink(missing_ok=True)
            _warn_once(self.path.parent, error)
            return False
        return True


def _warn_once(folder: Path, error: OSError) -> None:
    if str(folder) in _warned:
        return
    _warned.add(str(folder))
    logger.warning(
        "the cache can't be written to %s (%s): models are compiled again in the next process; "
        "choose another cache_dir",
        folder,
        error,
    )


def file_stem(token: str | None, default: str) -> str:
    """The caller's name for a model, as a file name may have it."""
    return re.sub(r"[^\w.-]", "_", token or default)


class CacheFile(EntryFile):
    """One file of driver data: a VkPipelineCache.

    Attributes:
        key: what it is for.
    """

    def __init__(self, folder: str | os.PathLike[str], key: CacheKey, token: str | None) -> None:
        """Name a file; nothing is read or made yet.

        Args:
            folder: where the file lies; made when something is written.
            key: what the file must be for.
            token: the caller's name for a model; None is one file for all of a device's models.
        """
        self.key = key
        path = Path(folder) / f"{file_stem(token, 'pipelines')}-{key.device_hash}.vkcache"
        super().__init__(path, vars(key))

    def load(self) -> bytes | None:
        """The driver's data; None where there is none that is good. Never raises for a bad file."""
        data = self.read()
        return bytes(data) if data is not None and self.key.fits(data) else None

    def save(self, data: bytes) -> bool:
        """Replace the file; see `write`."""
        return self.write(data)
