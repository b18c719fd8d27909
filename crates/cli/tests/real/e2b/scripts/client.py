"""E2B's SDK behind the same calls, blocking or not, so that a topic is written once. The first argument says which."""

import asyncio
import dataclasses
import enum
import inspect
import sys
import threading
import time
from importlib.metadata import version

import leave
import e2b

KIND = sys.argv[1]
VERSION = tuple(int(part) for part in version("e2b").split(".")[:2])
LOOP = asyncio.new_event_loop()
PATIENCE = 60


def wait(awaitable):
    async def awaited():
        return await awaitable

    return asyncio.run_coroutine_threadsafe(awaited(), LOOP).result(PATIENCE)


async def collected(pieces):
    return [piece async for piece in pieces]


class Waited:
    """Something of the SDK's, whose coroutines are waited for."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return waited(getattr(self._inner, name))


def waited(thing):
    if inspect.isawaitable(thing):
        return waited(wait(thing))
    if isinstance(thing, list):
        return [waited(item) for item in thing]
    if hasattr(thing, "__aiter__") and not hasattr(thing, "wait"):
        return wait(collected(thing))
    if isinstance(thing, (BaseException, enum.Enum, str, bytes)) or dataclasses.is_dataclass(thing):
        return thing
    if inspect.isroutine(thing) or inspect.iscoroutinefunction(thing):
        return lambda *words, **named: waited(thing(*words, **named))
    if type(thing).__module__.split(".")[0] in ("e2b", "e2b_code_interpreter"):
        return Waited(thing) if not inspect.isclass(thing) else thing
    return Waited(thing) if callable(thing) else thing


if KIND == "async":
    threading.Thread(target=LOOP.run_forever, daemon=True).start()
    Sandbox = Waited(e2b.AsyncSandbox)
else:
    Sandbox = e2b.Sandbox


def has(name):
    """Has this release of the SDK this?"""
    return hasattr(e2b.Sandbox, name)


def takes(function, name):
    return name in inspect.signature(function).parameters


def refused(kind, call, *words, **named):
    """What a call says that has to be refused in this way."""
    try:
        answer = call(*words, **named)
    except kind as error:
        return str(error)
    raise AssertionError(f"it was not refused: {answer!r}")


def until(what, look, patience=20):
    deadline = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"waited in vain for: {what}"
        time.sleep(0.05)


def pages(paginator):
    """Everything, page by page."""
    found = []
    while paginator.has_next:
        found.append(paginator.next_items())
    return found
