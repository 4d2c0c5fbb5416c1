"""A tool with the imports of many: an event loop, a web client, data classes, a log."""

import asyncio
import dataclasses
import json
import logging
import urllib.request

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What such a tool has at its top."""

    service: urllib.request.Request
    timeout_error: type = asyncio.TimeoutError


settings = Settings(urllib.request.Request("http://localhost/"))


def nothing() -> dict:
    return json.loads("{}")
