"""Tensors of numpy and torch as memory: an address, a shape, and a type by its name in the safetensors format.

torch is never imported here: who has a tensor has imported it. Types that numpy lacks (bfloat16) go through as bytes.
"""
from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, Callable

import numpy

from . import _arguments, _baton

# By their names in numpy and torch, which agree.
_WORDS = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "int32": "I32", "uint32": "U32",
    "int64": "I64", "uint64": "U64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}
_NAMES = {word: name for name, word in _WORDS.items()}


class Shard:
    """A part of a larger tensor: `array` lies at `offsets` of one whose shape is `global_shape`.

    In a state that is saved, the parts of all ranks make up the whole. In a state that is loaded into, it is the part
    that this rank wants, whoever wrote it.
    """

    def __init__(self, array: Any, global_shape: tuple[int, ...], offsets: tuple[int, ...]) -> None:
        if not is_tensor(array):
            raise TypeError(f"a Shard is part of a tensor or numpy array, not of a {type(array).__name__}")
        self.array = array
        self.global_shape = _arguments.place("global_shape", global_shape)
        self.offsets = _arguments.place("offsets", offsets)

    def __repr__(self) -> str:
        return f"Shard({tuple(self.array.shape)} at {self.offsets} of {self.global_shape})"


def _torch() -> Any:
    return sys.modules.get("torch")


def _is_torch(value: Any) -> bool:
    torch = _torch()
    return torch is not None and isinstance(value, torch.Tensor)


def is_tensor(value: Any) -> bool:
    return type(value) in (numpy.ndarray, numpy.memmap, Shard) or isinstance(value, numpy.generic) or _is_torch(value)


def kind_of(value: Any) -> str:
    """What it has to be again when it is loaded."""
    if isinstance(value, Shard):
        return kind_of(value.array)
    if isinstance(value, numpy.generic):
        return "scalar"
    return "torch" if _is_torch(value) else "numpy"


def _is_nowhere(tensor: Any) -> bool:
    """Whether a tensor of torch has elements and no memory for them, as one whose parts lie elsewhere, or a freed one."""
    try:
        return tensor.numel() > 0 and tensor.data_ptr() == tensor.storage_offset() * tensor.element_size()
    except RuntimeError:  # some do not even tell
        return True


def _word(value: Any, name: str) -> str:
    dtype = str(value.dtype).removeprefix("torch.") if _is_torch(value) else value.dtype.name
    if dtype not in _WORDS:
        raise TypeError(f'"{name}" has elements of {dtype}, which the safetensors format does not know')
    return _WORDS[dtype]


def _check(value: Any, name: str) -> None:
    """Refuses what no file can hold, before anything is copied."""
    _word(value, name)
    if not _is_torch(value) or value.layout != _torch().strided or value.device.type not in ("cpu", "cuda"):
        return
    if _is_nowhere(value):
        advice = ("save its local part as `Shard(x.to_local(), x.shape, offsets)`" if hasattr(value, "to_local")
                  else "make it a plain tensor that has its elements")
        raise TypeError(f'"{name}" is a {type(value).__name__} without memory of its own; {advice}')


@dataclass
class Memory:
    """A tensor's elements in a row."""

    owner: Any
    address: int
    shape: tuple[int, ...]


def _seen(value: Any) -> Memory | None:
    """Where it lies, if its elements are in a row and in this machine's order."""
    if _is_torch(value):
        torch = _torch()
        if value.device.type != "cpu" or value.layout != torch.strided or not value.is_contiguous() or value.is_neg():
            return None
        return Memory(value, value.data_ptr(), tuple(value.shape))
    if not value.flags.c_contiguous or not value.dtype.isnative:
        return None
    return Memory(value, value.ctypes.data, value.shape)


def _copy(value: Any, name: str) -> Any:
    if not _is_torch(value):
        return value.astype(value.dtype.newbyteorder("="), order="C")
    if value.layout != _torch().strided or value.device.type == "meta":
        raise TypeError(f'"{name}" is a tensor without elements in a row ({value.layout}, {value.device}); make it dense')
    copy = value.detach().cpu().resolve_neg().contiguous()
    _check(copy, name)
    return copy


def _slice(value: Any, name: str, memory: Memory) -> _baton.Slice:
    inner, whole, offsets = value, memory.shape, (0,) * len(memory.shape)
    if isinstance(value, Shard):
        inner, whole, offsets = value.array, value.global_shape, value.offsets
    return _baton.Slice(name, _word(inner, name), whole, offsets, memory.shape, memory.address, memory.owner)


def source(value: Any, name: str) -> _baton.Slice:
    """To be read from: where it is if it can be, or a copy in a row."""
    inner = value.array if isinstance(value, Shard) else value
    if isinstance(inner, numpy.generic):
        inner = value = numpy.asarray(inner)
    _check(inner, name)
    memory = _seen(inner) or _seen(_copy(inner, name))
    assert memory is not None
    return _slice(value, name, memory)


def target(value: Any, name: str) -> tuple[_baton.Slice, Callable[[], None]]:
    """To be written to, and what is to be done when it is there."""
    inner = value.array if isinstance(value, Shard) else value
    if not _is_torch(inner) and not inner.flags.writeable:
        raise TypeError(f'"{name}" is a numpy array that is read-only')
    _check(inner, name)
    if memory := _seen(inner):
        return _slice(value, name, memory), lambda: None
    copy = _copy(inner, name)
    memory = _seen(copy)
    assert memory is not None

    def put_back() -> None:
        if _is_torch(inner):
            inner.detach().copy_(copy)
        else:
            inner[...] = copy

    return _slice(value, name, memory), put_back


def same_memory(value: Any) -> tuple[Any, ...] | None:
    """Equal for two tensors that are one, as tied weights are."""
    if isinstance(value, (Shard, numpy.generic)) or math.prod(value.shape) == 0:
        return None
    if _is_torch(value):
        if value.layout != _torch().strided or _is_nowhere(value):
            return None
        place = str(value.device), value.data_ptr()
        return *place, tuple(value.shape), value.stride(), str(value.dtype), value.is_neg()
    return value.ctypes.data, value.shape, value.strides, value.dtype.str


def empty(kind: str, word: str, shape: tuple[int, ...], name: str) -> Any:
    """A new tensor, for what is loaded into nothing. One of a kind that nobody knows any more is as close as can be."""
    dtype = _NAMES[word]
    if kind != "torch":
        try:
            return numpy.empty(shape, numpy.dtype(dtype))
        except TypeError:
            pass  # numpy has no such type; torch may
    try:
        import torch
    except ImportError:
        raise TypeError(f'"{name}" is {word} of {kind}, and torch is not installed; load it into a numpy array') from None
    if not hasattr(torch, dtype):
        raise TypeError(f'"{name}" is {word}, which this torch ({torch.__version__}) does not know')
    return torch.empty(shape, dtype=getattr(torch, dtype))
