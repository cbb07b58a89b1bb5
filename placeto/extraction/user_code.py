"""Functions of the user's own code that make a model or a training step."""

import contextlib
import importlib.util
import inspect
import re
import sys
import sysconfig
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from placeto.extraction.source import Source, take_options, unknown
from placeto.support.errors import PlacetoError

_IMPORT = r"^\s*(?:from\s+|import\s+(?:[\w.][\w. ]*,\s*)*)"
_PYTORCH = re.compile(_IMPORT + r"(?:torch|transformers\b|timm\b|lightning\b)", re.M)
_TENSORFLOW = re.compile(_IMPORT + r"(?:tensorflow|keras)\b", re.M)
_PLACETO = Path(__file__).parents[1]
_PYTHON = Path(sysconfig.get_path("stdlib"))
_LONGEST_MESSAGE = 400


def is_function(source: Source) -> bool:
    """Whether a source is of the form `package.module:function` or `folder/file.py:function`."""
    named = bool(source.scheme) and all(part.isidentifier() for part in source.scheme.split("."))
    return named or _is_file(source)


def is_pytorch(source: Source) -> bool:
    """Whether a function is in a module that imports PyTorch, and neither TensorFlow nor Keras.

    The module is read, not run: TensorFlow has to be imported before it, and PyTorch's users may
    not have TensorFlow.

    Raises:
        PlacetoError: there is no such module.
    """
    with running(source):
        spec = _spec(source)
    text = f"import {source.scheme}\n"
    if spec.origin is not None and spec.origin.endswith(".py"):
        text += Path(spec.origin).read_text(encoding="utf-8", errors="replace")
    return bool(_PYTORCH.search(text)) and not _TENSORFLOW.search(text)


def user_function(
    source: Source, step_options: Mapping[str, Any]
) -> tuple[Callable[[], Any], dict[str, Any], dict[str, Any]]:
    """The function that a source names, with its options filled in.

    Beside the function's own options, those of a step can be given. What the function takes under
    the same name is its own.

    Returns:
        The function without parameters, the step's options, and the values of its own.

    Raises:
        PlacetoError: there is no such module, it cannot be imported, or has no such function; an
            unknown option, or a parameter without a value.
    """
    with running(source):
        if not _is_file(source):
            module = importlib.import_module(source.scheme)
        else:
            spec = _spec(source)
            module = importlib.util.module_from_spec(spec)
            assert spec.loader is not None
            sys.modules[spec.name] = module  # dataclasses and pickles look their module up there
            spec.loader.exec_module(module)
        make = getattr(module, source.target, None)
    if not callable(make):
        functions = [name for name, value in vars(module).items() if inspect.isfunction(value)]
        said = f"module {source.scheme!r} has no function {source.target!r}"
        raise unknown(source.text, said, "functions", functions)
    with running(source):
        parameters = inspect.signature(make).parameters.values()
    own = {}
    for each in parameters:
        if each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL):
            continue
        if each.default is each.empty and each.name not in source.options:
            raise PlacetoError(f"{source.text}: {source.target} needs {each.name}=…")
        own[each.name] = None if each.default is each.empty else each.default
    taken = take_options(source, {**step_options, **own}, own)
    given = {key: taken[key] for key in own if key in source.options}
    step = {key: default if key in own else taken[key] for key, default in step_options.items()}
    return partial(make, **given), step, {key: taken[key] for key in own}


@contextlib.contextmanager
def running(source: Source, failing: str = "") -> Iterator[None]:
    """A context in which code of the user's runs, or what becomes of it is worked on.

    It imports from beside its file or, of a module, from where the user stands. What it raises
    becomes one line that says where; the error itself, with its traceback, is the `__cause__`.

    Args:
        source: whose code it is.
        failing: what it means that something is raised, such as "it has no gradient"; then the line
            of this package that raised it is said where none of the user's did.

    Raises:
        PlacetoError: whatever the code raises.
    """
    folder = str(Path(source.scheme).parent.resolve() if _is_file(source) else Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    except PlacetoError:
        raise
    except (Exception, SystemExit) as error:  # a user's code may raise anything
        text = textwrap.shorten(str(error), _LONGEST_MESSAGE, placeholder=" …")
        said = f"{type(error).__name__}: {text}"
        if isinstance(error, ModuleNotFoundError) and error.name:
            said = f"no module {error.name!r}; run where it can be imported"
        place = raised_at(error)
        if failing:
            said, place = f"{failing}: {said}", place or _raised_here(error)
        raise PlacetoError(f"{source.text}: {said}{place}") from error
    finally:
        with contextlib.suppress(ValueError):  # the user's code may have changed it
            sys.path.remove(folder)


def raised_at(error: BaseException) -> str:
    """The innermost line of the user's own code that raised an error, or nothing."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if not (
            path.is_relative_to(_PLACETO)
            or path.is_relative_to(_PYTHON)
            or {"site-packages", "dist-packages"}.intersection(path.parts)
            or path.name.startswith(("<", "__autograph_generated"))
        ):
            return f" ({frame.filename}, line {frame.lineno})"
    return ""


def raised_in_library(error: BaseException, but: str) -> str:
    """The innermost line of an installed package, but for one, that raised an error, or nothing."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        _, _, inside = frame.filename.rpartition("site-packages/")
        if inside != frame.filename and not inside.startswith((f"{but}/", "placeto/")):
            return f" ({inside}, line {frame.lineno})"
    return ""


def _raised_here(error: BaseException) -> str:
    """The innermost line of this package that raised an error, or nothing."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(_PLACETO) and path != Path(__file__):
            return f" ({path.relative_to(_PLACETO.parent)}, line {frame.lineno})"
    return ""


def _is_file(source: Source) -> bool:
    return source.scheme.endswith(".py")


def _spec(source: Source) -> ModuleSpec:
    if _is_file(source):
        path = Path(source.scheme)
        if not path.is_file():
            raise PlacetoError(f"{source.text}: there is no file {source.scheme}")
        spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    else:
        spec = importlib.util.find_spec(source.scheme)
    if spec is None:
        raise ModuleNotFoundError(name=source.scheme)
    return spec
