"""Files that appear whole or not at all, and JSON that is read with one-line errors."""

import contextlib
import gzip
import io
import json
import os
import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from placeto.support.errors import PlacetoError
from placeto.support.units import format_bytes

MOST_UNPACKED = 4 * 2**30  # bytes that a compressed file may unpack to: some hundred million ops


def user_cache() -> Path:
    """The folder for what can be made again: `$PLACETO_CACHE`, or `placeto` in the user's cache."""
    own = os.environ.get("PLACETO_CACHE")
    return Path(own) if own else user_cache_path("placeto")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside `path` and renames it to `path` if the block succeeds.

    Raises:
        PlacetoError: `path` cannot be written (no such folder, no permission).
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        temporary.touch(exist_ok=False)  # with the rights that the process's umask leaves
    except OSError as error:
        raise PlacetoError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise PlacetoError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: str | Path, data: bytes) -> None:
    """Writes `data`, gzip-compressed where the name ends in `.gz`; equal data gives equal bytes."""
    path = Path(path)
    if path.suffix == ".gz":
        data = gzip.compress(data, compresslevel=9, mtime=0)
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def read_bytes(path: str | Path, most: int = MOST_UNPACKED) -> bytes:
    """Reads a file, decompressed, up to `most` bytes, where it starts with gzip's magic number.

    Raises:
        PlacetoError: the file is missing, unreadable, a broken gzip stream, or unpacks to more.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PlacetoError(f"{path}: cannot be read: {error.strerror}") from error
    if not data.startswith(b"\x1f\x8b"):
        if path.suffix == ".gz":
            raise PlacetoError(f"{path}: not a gzip file, though its name ends in .gz")
        return data
    try:
        unpacked = bytearray()
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while len(unpacked) <= most and (part := file.read(2**20)):
                unpacked += part
    except (OSError, EOFError, zlib.error) as error:
        raise PlacetoError(f"{path}: broken gzip file ({error}); was it cut off?") from error
    if len(unpacked) > most:
        most_said = format_bytes(most)
        raise PlacetoError(f"{path}: unpacks to more than {most_said}, the most that is read")
    return bytes(unpacked)


def write_json(path: str | Path, document: Any) -> None:
    """Writes a JSON document with its keys in the given order, compressed for `.gz`.

    Raises:
        PlacetoError: the file cannot be written, or the document holds what JSON cannot (NaN).
    """
    try:
        text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PlacetoError(f"{path}: cannot be written as JSON: {error}") from error
    write_bytes(path, text.encode() + b"\n")


def read_json(path: str | Path) -> dict[str, Any]:
    """Reads a JSON object.

    Raises:
        PlacetoError: the file cannot be read, is not JSON, or is not an object.
    """
    data = read_bytes(path)
    try:
        document = json.loads(data)
    except ValueError as error:  # also not UTF-8, or a number of thousands of digits
        raise PlacetoError(f"{path}: not valid JSON ({error}); was it cut off?") from error
    except RecursionError as error:
        raise PlacetoError(f"{path}: not valid JSON (nested too deeply)") from error
    if not isinstance(document, dict):
        raise PlacetoError(f"{path}: a JSON object was expected, found {type(document).__name__}")
    return document
