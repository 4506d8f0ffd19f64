"""Calls tools that are refused. Prints what the official client shows of each refusal."""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main():
    shown = {}
    async with Client(streamable_http_client(sys.argv[1])) as client:
        for name in ["forbidden", "strict", "limited", "limited"]:
            try:
                await client.call_tool(name, {"count": "two"} if name == "strict" else {})
            except Exception as error:
                shown[name] = str(error)
    print(json.dumps(shown))


asyncio.run(main())
