"""From the words `module:endpoint` to the endpoint: imports what the user named and says what stands in the way.

What the user's module prints while it is imported goes to stderr: stdout belongs to the protocol.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from acprt.cli.exit_codes import ExitCode
from acprt.cli.failures import Failure
from acprt.runtime.endpoint import Endpoint

__all__ = ["load_endpoint"]


def load_endpoint(target: str, folder: Path) -> Endpoint:
    """The endpoint that `target` names: `module:name`, `file.py:name`, or without a name the only one of the module.

    Modules are looked for in `folder` first. The name may be that of a function that makes the endpoint. Raises
    UsageError for what is not there. When the user's own code raises, its traceback goes to stderr; Failure then.
    """
    place, _, name = target.partition(":")
    sys.path.insert(0, str(folder))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            module = _file(folder / place) if place.endswith(".py") else _module(place)
            value = _named(module, name) if name else _only_one(module)
            if not isinstance(value, Endpoint) and callable(value):
                value = value()
    except click.ClickException:
        raise
    except Exception as error:
        click.echo("".join(_traceback_of(error)), err=True, nl=False)
        raise Failure(
            f"{target} cannot be served: {type(error).__name__} while it was loaded", ExitCode.FAILED
        ) from error
    if not isinstance(value, Endpoint):
        raise click.UsageError(f"{target} is {type(value).__name__}, not an endpoint nor a function that makes one")
    return value


def _traceback_of(error: Exception) -> list[str]:
    """From the user's own code on: how it came to be loaded is of no interest."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None and _is_machinery(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return traceback.format_exception(type(error), error, frames)


def _is_machinery(filename: str) -> bool:
    return filename == __file__ or filename.startswith("<frozen ") or filename == importlib.__file__


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise click.UsageError(f"there is no file {path}")
    sys.path.insert(0, str(path.parent))  # its neighbours, as when it is run as a program
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None, "it ends with .py"
    assert spec.loader is not None, "a file has one"
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # annotations are looked up there
    spec.loader.exec_module(module)
    return module


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # one that the user's module imports
        raise click.UsageError(f"there is no module {name!r} here; --app-dir says where else to look") from None


def _named(module: ModuleType, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise click.UsageError(f"module {module.__name__!r} has no {name!r}") from None
    return value


def _only_one(module: ModuleType) -> Endpoint:
    found = {name: value for name, value in vars(module).items() if isinstance(value, Endpoint)}
    if len({id(value) for value in found.values()}) != 1:
        names = ", ".join(found) or "none"
        raise click.UsageError(f"name the endpoint, as in {module.__name__}:agent; the module has: {names}")
    return next(iter(found.values()))
