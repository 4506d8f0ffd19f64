"""The official client for Python, unmodified. Argument: the URL of the server.

Prints a line of JSON for each event, and reads a line for each answer: the URL to which the login
returned, or that the token is revoked.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata

URL, CLIENT_ID, REDIRECT_URI = sys.argv[1:4]


def report(**event):
    print(json.dumps(event), flush=True)


class Storage:
    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def visit(url):
    report(visit=url)


async def returned():
    query = parse_qs(urlsplit(sys.stdin.readline().strip()).query)
    first = {name: values[0] for name, values in query.items()}
    return AuthorizationCodeResult(
        code=first["code"], state=first.get("state"), iss=first.get("iss")
    )


async def main():
    storage = Storage()
    metadata = OAuthClientMetadata(
        client_name="test", redirect_uris=[REDIRECT_URI], token_endpoint_auth_method="none"
    )
    storage.client = OAuthClientInformationFull(
        client_id=CLIENT_ID, redirect_uris=[REDIRECT_URI], token_endpoint_auth_method="none"
    )
    auth = OAuthClientProvider(URL, metadata, storage, visit, returned)
    async with create_mcp_http_client(auth=auth) as http:
        async with Client(streamable_http_client(URL, http_client=http)) as client:
            tools = await client.list_tools()
            report(tools=[tool.name for tool in tools.tools])
            for name, arguments in [("list_shelves", {}), ("remove_book", {"isbn": "1"})]:
                result = await client.call_tool(name, arguments)
                report(result=result.content[0].text)
            before = storage.tokens.access_token
            # The client refreshes a token that has expired by its own clock.
            auth.context.token_expiry_time = 1
            result = await client.call_tool("list_shelves", {})
            report(result=result.content[0].text, refreshed=storage.tokens.access_token != before)
            report(revoke=storage.tokens.access_token)
            sys.stdin.readline()
            result = await client.call_tool("list_shelves", {})
            report(result=result.content[0].text)


asyncio.run(main())
