"""Bounds-checked reading of flatbuffer tables through the accessors that package `tflite` generates.

The generated accessors trust the file: a wrong offset reads garbage, raises struct.error or
IndexError, or makes a loop of four billion steps. Here the same accessors run on a table whose
every read is checked, and each failure is a ModelError that names the field.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import tflite
from flatbuffers.table import Table

from tflite_vk.errors import ModelError

T = TypeVar("T")

MAX_TABLES = 1_000_000
"""The limit of the flatbuffers verifier that TFLite runs over a file."""

MAX_REREADS = 4
"""How many times over the bytes of a file may be visited before its tables count as overlapping.

A file written by any converter is visited once. Without a limit a vector whose entries all point
at one big table makes reading quadratic in the size of the file.
"""

_TABLE_BYTES = 8  # the least one takes: its own offset to a vtable and the one that leads to it
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")


class _BadOffsetError(Exception):
    """A read outside the file; View turns it into a ModelError with the field's path."""


class CheckedFile:
    """The bytes of a model and how much of them has been visited."""

    __slots__ = ("_budget", "_tables_left", "data", "size", "source")

    def __init__(self, data: memoryview, source: str) -> None:
        self.data = data
        self.size = len(data)
        self.source = source
        self._budget = MAX_REREADS * self.size + 1024
        self._tables_left = MAX_TABLES

    def charge(self, count_bytes: int) -> None:
        """Count a visit; fail where the tables of the file overlap without end."""
        self._budget -= count_bytes
        if self._budget < 0:
            raise _BadOffsetError(
                f"tables overlap: the file's {self.size} bytes are visited more than {MAX_REREADS} times"
            )

    def charge_table(self) -> None:
        """Count a visit to a table."""
        self.charge(_TABLE_BYTES)
        self._tables_left -= 1
        if self._tables_left < 0:
            raise _BadOffsetError(f"more than {MAX_TABLES} tables")

    def check(self, offset: int, count_bytes: int) -> None:
        """Fail where the range is not inside the file."""
        if offset < 0 or offset + count_bytes > self.size:
            raise _BadOffsetError(
                f"bytes {offset} to {offset + count_bytes} lie outside the file of {self.size} bytes:"
                " cut short or corrupt"
            )

    def u32(self, offset: int) -> int:
        """The unsigned 32-bit number at an offset."""
        self.check(offset, 4)
        value: int = _U32.unpack_from(self.data, offset)[0]
        return value


class CheckedTable(Table):  # type: ignore[misc]
    """A flatbuffers Table that reads nothing outside the file; method names are flatbuffers'."""

    __slots__ = ("_file", "_inline_bytes", "_vtable", "_vtable_bytes")

    def __init__(self, file: CheckedFile, position: int) -> None:
        file.check(position, 4)
        super().__init__(file.data, position)
        self._file = file
        self._vtable = position - _I32.unpack_from(file.data, position)[0]
        file.check(self._vtable, 4)
        self._vtable_bytes = _U16.unpack_from(file.data, self._vtable)[0]
        self._inline_bytes = _U16.unpack_from(file.data, self._vtable + 2)[0]
        if self._vtable_bytes < 4:
            raise _BadOffsetError(f"vtable of {self._vtable_bytes} bytes (at least 4)")
        file.check(self._vtable, self._vtable_bytes)
        file.check(position, self._inline_bytes)
        file.charge_table()

    def Offset(self, vtableOffset: int) -> int:  # noqa: N802, N803
        """Place of a field in the table, 0 where the field is absent."""
        if vtableOffset + 2 > self._vtable_bytes:
            return 0
        offset: int = _U16.unpack_from(self.Bytes, self._vtable + vtableOffset)[0]
        if offset >= self._inline_bytes and offset:
            raise _BadOffsetError(f"lies {offset} bytes into a table of {self._inline_bytes}")
        return offset

    def Indirect(self, off: int) -> int:  # noqa: N802
        """Where the offset stored at `off` points."""
        return off + self._file.u32(off)

    def String(self, off: int) -> bytes:  # noqa: N802
        """The string whose offset is stored at `off`."""
        start = off + self._file.u32(off)
        length = self._file.u32(start)
        self._file.check(start + 4, length)
        self._file.charge(length)
        return bytes(self._file.data[start + 4 : start + 4 + length])

    def VectorLen(self, off: int) -> int:  # noqa: N802
        """Number of elements of the vector at a field, which fit the file at a byte each."""
        start = self.Vector(off) - 4
        length = self._file.u32(start)
        self._file.check(start + 4, length)
        return length

    def Vector(self, off: int) -> int:  # noqa: N802
        """Where the elements of the vector at a field start."""
        off += self.Pos
        return off + self._file.u32(off) + 4

    def Union(self, t2: Table, off: int) -> None:  # noqa: N802
        """Point t2 at the table of a union field."""
        t2.Pos = self.Indirect(off + self.Pos)
        t2.Bytes = self.Bytes

    def Get(self, flags: Any, off: int) -> Any:  # noqa: N802
        """The number stored at `off`."""
        self._file.check(off, flags.bytewidth)
        return flags.py_type(flags.packer_type.unpack_from(self.Bytes, off)[0])

    def GetVectorAsNumpy(self, flags: Any, off: int) -> npt.NDArray[Any]:  # noqa: N802
        """A view of the numbers of the vector at a field."""
        start = self.Vector(off)
        length = self._file.u32(start - 4)
        self._file.check(start, length * flags.bytewidth)
        dtype = np.dtype(flags.name).newbyteorder("<")
        return np.frombuffer(self.Bytes, dtype=dtype, count=length, offset=start)


def snake_case(name: str) -> str:
    """The schema's field name of a generated accessor: StrideW becomes stride_w."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class View:
    """One table of a model, read field by field; a field goes by its accessor's name.

    Attributes:
        path: where the table stands in the file, such as subgraphs[0].operators[3].
    """

    __slots__ = ("_file", "_object", "path")

    def __init__(self, file: CheckedFile, generated: Any, position: int, path: str) -> None:
        """Read the table at `position` through an instance of its generated class."""
        self.path = path
        self._file = file
        self._object = generated
        self._object._tab = self._guard("", lambda: CheckedTable(file, position))

    def _guard(self, field: str, read: Callable[[], T]) -> T:
        try:
            return read()
        except _BadOffsetError as error:
            raise self.error(field, str(error)) from None
        except (struct.error, ArithmeticError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, ModelError):
                raise
            raise self.error(field, f"cannot be read: {error}") from None

    def error(self, field: str, fact: str) -> ModelError:
        """A ModelError that names the file, this table and the field."""
        where = ".".join(part for part in (self.path, snake_case(field)) if part)
        return ModelError(f"{self._file.source}: {where or 'root table'}: {fact}")

    def has(self, field: str) -> bool:
        """True where the schema version at hand knows the field."""
        return hasattr(self._object, field)

    def charge(self, field: str, count_bytes: int) -> None:
        """Count bytes that the caller copies out of the file."""
        self._guard(field, lambda: self._file.charge(count_bytes))

    def number(self, field: str) -> Any:
        """A scalar: int, float or bool as the schema says."""
        return self._guard(field, getattr(self._object, field))

    def text(self, field: str) -> str | None:
        """A string; bytes that are no UTF-8 are replaced."""
        raw = self._guard(field, getattr(self._object, field))
        return None if raw is None else raw.decode("utf-8", "replace")

    def array(self, field: str) -> npt.NDArray[Any] | None:
        """A view of a vector of numbers, None where the field is absent."""
        found = self._guard(field, getattr(self._object, field + "AsNumpy"))
        return found if isinstance(found, np.ndarray) else None

    def numbers(self, field: str) -> tuple[Any, ...] | None:
        """A vector of numbers as a tuple, None where the field is absent."""
        array = self.array(field)
        if array is None:
            return None
        self.charge(field, array.nbytes)
        return tuple(array.tolist())

    def raw(self, field: str) -> bytes | None:
        """A vector of bytes, None where the field is absent."""
        array = self.array(field)
        if array is None:
            return None
        self.charge(field, array.nbytes)
        return array.tobytes()

    def table(self, field: str) -> View | None:
        """A table, None where the field is absent."""
        child = self._guard(field, getattr(self._object, field))
        if child is None:
            return None
        return View(
            self._file, child, child._tab.Pos, f"{self.path}.{snake_case(field)}".lstrip(".")
        )

    def tables(self, field: str) -> Iterator[View]:
        """The tables of a vector, none where the field is absent."""
        length = self.length(field)
        prefix = f"{self.path}.{snake_case(field)}".lstrip(".")
        get = getattr(self._object, field)
        for i in range(length):
            child = self._guard(field, lambda i=i: get(i))  # type: ignore[misc]
            yield View(self._file, child, child._tab.Pos, f"{prefix}[{i}]")

    def length(self, field: str) -> int:
        """Number of tables of a vector; 0 where the field is absent."""
        length: int = self._guard(field, getattr(self._object, field + "Length"))
        if length * 4 > self._file.size:
            raise self.error(
                field, f"{length} entries do not fit the file of {self._file.size} bytes"
            )
        return length

    def union(self, field: str, kind: str) -> View | None:
        """The table of a union field whose tag class is named like the field, else None."""
        tag = getattr(getattr(tflite, field), kind, None)
        return self.table_of(field, kind) if self.number(field + "Type") == tag else None

    def table_of(self, field: str, kind: str) -> View | None:
        """The table of a union field, read as the kind named; None where the field is absent."""
        found = self._guard(field, getattr(self._object, field))
        if found is None:
            return None
        path = f"{self.path}.{snake_case(field)}"
        return View(self._file, getattr(tflite, kind)(), found.Pos, path)

    def has_slot(self, slot: int) -> bool:
        """True where a field is present that the generated classes may not know yet."""
        table: CheckedTable = self._object._tab
        return self._guard("", lambda: table.Offset(4 + 2 * slot)) != 0
