"""Compiled functions: each is compiled once, and kept on disk no longer than it is right.

Files with compiled functions take `njit` from here, so that none is loaded before those that are
out of date are gone.
"""

import contextlib
import gc
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils, event
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array
from numpy.typing import NDArray

PACKAGE = Path(__file__).parents[1]
# Of the code that kernels are made of.
TELLING = ("support.jit", "support.heaps", "njit", "NamedTuple")


def njit(**options: Any) -> Callable[[Any], Any]:
    """Numba's `njit`; whatever whole numbers compiled code passes on, it is compiled for one kind.

    By itself numba compiles a function anew for a literal, for 32 bits, and for an unsigned number.
    """
    options["no_cfunc_wrapper"] = True  # nothing is called back from C

    def compiled(function: Any) -> Any:
        dispatcher = numba.njit(**options)(function)
        template = dispatcher.get_call_template

        def widened(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
            return template(tuple(map(_wide, args)), {key: _wide(kws[key]) for key in kws})

        dispatcher.get_call_template = widened
        return dispatcher

    return compiled


def inner(**options: Any) -> Callable[[Any], Any]:
    """`njit` for what compiled code calls, and Python does not.

    What Python would call it by, which takes tuples of many arrays apart, is a quarter of the time
    that compiling takes.
    """

    def unseen(function: Any) -> Any:
        def refuse(*_: Any, **__: Any) -> Any:
            raise TypeError(f"{function.__qualname__} is called by compiled code alone")

        dispatcher = njit(no_cpython_wrapper=True, **options)(function)
        # numba would jump to a wrapper that is not there.
        dispatcher._insert = lambda *_, **__: None
        dispatcher._compile_for_args = refuse
        return dispatcher

    return unseen


def address_of(function: Any, *kinds: Any) -> int:
    """Where a function's code for arguments of these types is, in this process; see `call_at`."""
    function.compile(kinds)
    compiled = function.overloads[kinds]
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


@intrinsic  # type: ignore[untyped-decorator]
def call_at(typing: Any, address: Any, arguments: Any) -> Any:
    """Calls, in compiled code, the function at an address, which returns nothing.

    numba puts what a function calls into its own code, and optimizes it again there. What is large
    and called from many is compiled once if they call it so. The types of the arguments, a tuple,
    must be those that `address_of` was given.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention, kinds = context.call_conv, list(signature.args[1])
        kind = convention.get_function_type(types.none, kinds)
        function = builder.inttoptr(values[0], kind.as_pointer())
        unpacked = cgutils.unpack_tuple(builder, values[1], len(kinds))
        status, _ = convention.call_function(builder, function, types.none, kinds, unpacked)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.none(address, arguments), generate


ALIGNED = 64  # bytes, a cache line


class Layout:
    """How the arrays of a named tuple lie in a buffer of bytes, one behind the other.

    Attributes:
        kind: numba's type of the tuple.
        carve: for compiled code, the tuple that is in a buffer, of a tuple of the arrays' lengths.
            numba's slices ask for a step and for ends outside of the array, which is a hundred
            times the code.
    """

    def __init__(self, arrays: type, elements: Sequence[np.dtype[Any]]) -> None:
        self._arrays, self._elements = arrays, elements
        parts = [numba.from_dtype(element)[::1] for element in elements]
        self.kind = types.NamedTuple(parts, arrays)
        self.carve = intrinsic(lambda typing, buffer, lengths: self._carved(buffer, lengths))

    def ends(self, lengths: Sequence[int]) -> list[int]:
        """Up to which byte arrays of these lengths go, each to a multiple of `ALIGNED`."""
        sizes = zip(lengths, self._elements, strict=True)
        taken = (-(-length * element.itemsize // ALIGNED) for length, element in sizes)
        return [ALIGNED * lines for lines in accumulate(taken)]

    def split(self, buffer: NDArray[np.uint8], lengths: Sequence[int]) -> Any:
        """The tuple that is in a buffer, of the arrays' lengths."""
        starts = [0, *self.ends(lengths)]
        parts = zip(starts, lengths, self._elements, strict=False)
        return self._arrays(
            *(
                buffer[start : start + length * element.itemsize].view(element)
                for start, length, element in parts
            )
        )

    def _carved(self, buffer: Any, lengths: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            whole = make_array(buffer)(context, builder, values[0])
            data, parts, intp = whole.data, [], whole.itemsize.type
            counts = cgutils.unpack_tuple(builder, values[1], len(lengths))
            for length, element, kind in zip(counts, self._elements, self.kind, strict=True):
                part, itemsize = make_array(kind)(context, builder), intp(element.itemsize)
                populate_array(
                    part,
                    data=builder.bitcast(data, context.get_data_type(kind.dtype).as_pointer()),
                    shape=cgutils.pack_array(builder, [length]),
                    strides=cgutils.pack_array(builder, [itemsize]),
                    itemsize=itemsize,
                    meminfo=whole.meminfo,
                    parent=whole.parent,
                )
                parts.append(part._getvalue())
                taken = builder.add(builder.mul(length, itemsize), intp(ALIGNED - 1))
                data = builder.gep(data, [builder.and_(taken, intp(-ALIGNED))])
            found = context.make_tuple(builder, self.kind, parts)
            return impl_ret_borrowed(context, builder, self.kind, found)

        return self.kind(buffer, lengths), generate


def _wide(kind: Any) -> Any:
    """The type that a compiled function takes for an argument of this one."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) else kind


def drop_stale_kernels(package: Path = PACKAGE) -> None:
    """Removes what numba compiled if any file that it was compiled from is another now.

    numba notices when the file of a function changes, not when that of a function it calls does, or
    of a tuple that it reads: after an update, old and new code would work on the same arrays.
    """
    stamp = "\n".join(
        f"{file} {(s := file.stat()).st_mtime_ns} {s.st_size}"
        for file in sorted(package.rglob("*.py"))
        if any(word in file.read_text() for word in TELLING)
    )
    mark = package / "__pycache__" / "kernels.stamp"
    # Where nothing can be written, numba keeps nothing either, but elsewhere and by version.
    with contextlib.suppress(OSError):
        if mark.exists() and mark.read_text() == stamp:
            return
        mark.parent.mkdir(exist_ok=True)
        for compiled in package.rglob("__pycache__/*.nb[ci]"):
            compiled.unlink(missing_ok=True)
        mark.write_text(stamp)


class _PausedCollection(event.Listener):  # type: ignore[misc]
    """Keeps Python from looking for garbage while numba compiles, which makes next to none."""

    def __init__(self) -> None:
        self._depth = 0

    def on_start(self, event: event.Event) -> None:
        """Of a compilation, perhaps within another."""
        if self._depth == 0:
            self._was = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        """However it ended."""
        self._depth -= 1
        if self._depth == 0 and self._was:
            gc.enable()


drop_stale_kernels()
event.register("numba:compile", _PausedCollection())
