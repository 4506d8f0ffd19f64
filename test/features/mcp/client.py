"""The official client for Python, unmodified. Arguments: the URL of the server, the redirect URI, the
id of a client that the issuer knows, and the URL of the client's metadata, or nothing.

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

URL, REDIRECT_URI, CLIENT_ID, *DOCUMENT = sys.argv[1:]


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


async def received(response):
    report(
        method=response.request.method,
        url=str(response.request.url),
        type=response.request.headers.get("content-type"),
        body=response.request.content.decode(),
        status=response.status_code,
        challenge=response.headers.get("www-authenticate"),
    )


def provider_of(storage, document=None):
    metadata = OAuthClientMetadata(
        client_name="test", redirect_uris=[REDIRECT_URI], token_endpoint_auth_method="none"
    )
    return OAuthClientProvider(
        URL, metadata, storage, visit, returned, client_metadata_url=document
    )


async def use(auth, calls):
    async with create_mcp_http_client(auth=auth) as http:
        http.event_hooks = {"response": [received]}
        async with Client(streamable_http_client(URL, http_client=http)) as client:
            tools = await client.list_tools()
            report(tools=[tool.name for tool in tools.tools])

            async def call(name, **arguments):
                result = await client.call_tool(name, arguments)
                report(result=result.content[0].text)

            await calls(call)


async def main():
    report(step="discovery and registration lead to the login, and the registered client calls a tool")
    storage = Storage()
    await use(provider_of(storage), lambda call: call("list_shelves"))
    report(client=storage.client.client_id)

    report(
        step="an app that has its metadata at a URL uses this URL as its id"
        if DOCUMENT
        else "an app that the issuer knows needs no registration"
    )
    storage = Storage()
    if not DOCUMENT:
        storage.client = OAuthClientInformationFull(
            client_id=CLIENT_ID, redirect_uris=[REDIRECT_URI], token_endpoint_auth_method="none"
        )
    auth = provider_of(storage, *DOCUMENT)

    async def calls(call):
        await call("list_shelves")
        report(client=storage.client.client_id)
        report(step="a tool that needs more leads to a login with more scopes, and then works")
        await call("remove_book", isbn="1")
        report(step="a token that has expired by the clock of the client is replaced by a refresh")
        before = storage.tokens.access_token
        auth.context.token_expiry_time = 1
        await call("list_shelves")
        report(refreshed=storage.tokens.access_token != before)
        report(step="a revoked token leads to a new login")
        report(revoke=storage.tokens.access_token)
        sys.stdin.readline()
        await call("list_shelves")

    await use(auth, calls)


asyncio.run(main())
