"""The event log as an endless iterator. After a break it resumes where it stopped, and it yields no event twice."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import Callable, Generator, Iterable, Iterator, Optional

from ..error import MillraceError
from ..stop import Stop
from ..wire.codec import WireError, from_wire
from ..wire.transport import Call, Transport
from .status import Event

_PAUSE_S = 0.2


def read_events(
    transport: Transport, after: int, stop: Optional[Stop], on_resume: Callable[[], None], skip_gone: bool = False
) -> Iterator[Event]:
    """`on_resume` is called when the stream has been reopened after a break. If events that were not read are no longer kept, this
    raises `gone`; with `skip_gone` it goes on with the oldest event and calls `on_resume`."""
    down_since: Optional[float] = None
    pauses = Stop() if stop is None else stop
    while True:
        try:
            with closing(_open(transport, after, stop)) as lines:
                for frame in read_frames(lines):
                    if down_since is not None:
                        down_since = None
                        on_resume()
                    event = _parse(frame)
                    if event is not None and event.id > after:
                        after = event.id
                        yield event
        except MillraceError as error:
            if skip_gone and error.code == "gone":
                after = int(error.details["oldest"]) - 1
            elif not transport.may_recover(error):
                raise
            if down_since is not None and time.monotonic() - down_since > transport.timeout_s:
                raise
        if down_since is None:
            down_since = time.monotonic()
        pauses.wait(_PAUSE_S)


def _open(transport: Transport, after: int, stop: Optional[Stop]) -> Generator[bytes, None, None]:
    headers = {"accept": "text/event-stream", "last-event-id": str(after)}
    return transport.stream(Call("GET", "/v1/events", {"after": after}, headers=headers, stop=stop))


def _parse(data: Optional[str]) -> Optional[Event]:
    """None for an event of a newer service that this client cannot read."""
    if data is None:
        return None
    try:
        return from_wire(Event, json.loads(data))
    except (WireError, ValueError):
        return None


def read_frames(lines: Iterable[bytes]) -> Iterator[Optional[str]]:
    """Yields the data of each frame, and None for a frame without data, such as a keep-alive comment. A frame is complete at its
    closing blank line; a stream that breaks inside a frame yields nothing of it."""
    data: list[str] = []
    begun = False
    for line in lines:
        if not line.endswith(b"\n"):
            return
        text = line.decode().rstrip("\r\n")
        if text.startswith("data:"):
            data.append(text[5:][1:] if text[5:6] == " " else text[5:])
        if text != "":
            begun = True
        elif begun:
            yield "\n".join(data) if data else None
            data, begun = [], False
