"""The MCP server over HTTP in another process: one client, many clients, attackers."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import stat
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_client import MODES, HttpServer, Mode, call_tool, over_http, roots, status_of, text_of
from terminal import inmind, run_in_process

from inmind import Memory
from inmind.apps.mcp.http import MAX_CONNECTIONS
from inmind.apps.mcp.http_auth import FILE_NAME, AuthMiddleware, ServerAddress, load_token
from inmind.apps.mcp.sessions import folder_project_name
from inmind.errors import InvalidInput, UnsafeStorage

EVERYWHERE = "0.0.0.0"  # noqa: S104 -- the subject of the tests
PUBLIC = "https://memory.example.com"
METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE")
PATHS = ("/mcp", "/health", "/", "/mcp/", "/.well-known/oauth-protected-resource", "/docs", "/%2e%2e/etc/passwd")


@pytest.fixture(scope="module")
def http_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[HttpServer]:
    folder = tmp_path_factory.mktemp("project")
    with over_http(folder / "home", folder, "--public-url", PUBLIC) as server:
        yield server


@pytest.fixture
def default_server(tmp_path: Path) -> Generator[HttpServer]:
    """A server with the default timeouts, which many clients on one slow thread need."""
    with over_http(tmp_path / "home", tmp_path, before="") as server:
        yield server


def a_request(method: str, params: dict[str, Any] | None = None, id: int = 1) -> bytes:
    """A request of the newer protocol, which has no sessions."""
    about = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return json.dumps(
        {"jsonrpc": "2.0", "id": id, "method": method, "params": {**(params or {}), "_meta": about}}
    ).encode()


def headers(server: HttpServer, **others: str) -> dict[str, str]:
    usual = {
        "Host": f"127.0.0.1:{server.port}",
        "Authorization": f"Bearer {server.token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
    }
    return {name: value for name, value in {**usual, **others}.items() if value}


@pytest.mark.spec("I3")
@pytest.mark.parametrize("mode", MODES)
def test_an_agent_works_over_http(http_server: HttpServer, mode: Mode) -> None:
    """A client of the newer protocol sends `seen`; the connection of the older one keeps it."""

    async def work() -> None:
        async with http_server.client(mode=mode, project=f"web {mode}") as client:
            offered = {tool.name: tool.input_schema["properties"] for tool in (await client.list_tools()).tools}
            assert ("seen" in offered["memory_write"]) is (mode == "auto")
            note = await call_tool(client, "working_memory_note", note="Ada prefers tabs")
            assert note.structured_content is not None
            assert note.structured_content["id"].startswith(f"resource/web {mode}#")
            read = await call_tool(client, "memory_read", path="overview.md")
            assert read.structured_content is not None
            seen = read.structured_content["seen"]
            assert ("[seen: " in text_of(read)) is (mode == "auto")
            page = {"path": "overview.md", "text": "- mine\n"}
            if mode == "auto":
                blind = await client.call_tool("memory_write", page)
                assert text_of(blind).startswith("CONFLICT")
                page["seen"] = seen
            await call_tool(client, "memory_write", **page)
            assert "- mine" in text_of(await call_tool(client, "working_memory_show"))
            assert (await client.read_resource("inmind://sessions")).contents
            assert (await client.get_prompt("what_do_you_have_in_mind")).messages

    asyncio.run(work())


@pytest.mark.spec("I3")
@pytest.mark.parametrize("mode", MODES)
def test_the_project_of_a_client_is_that_of_its_url_or_folder(
    http_server: HttpServer, mode: Mode, tmp_path: Path
) -> None:
    async def note_owner(client: Client, note: str) -> str:
        answer = await call_tool(client, "working_memory_note", note=note)
        assert answer.structured_content is not None
        return answer.structured_content["id"].partition("#")[0]

    async def work() -> None:
        folder = roots(tmp_path)
        async with http_server.client(mode=mode, project=f"shop-{mode}") as shop:
            assert await note_owner(shop, "shop canary") == f"resource/shop-{mode}"
        async with http_server.client(mode=mode, project=f"bank-{mode}", list_roots_callback=folder) as bank:
            assert await note_owner(bank, "bank vault") == f"resource/bank-{mode}"
            assert text_of(await call_tool(bank, "memory_search", query="canary")) == "Nothing was found."
        async with http_server.client(mode=mode) as anonymous:
            result = await anonymous.call_tool("working_memory_show", {})
            assert result.is_error
            assert text_of(result).startswith("INVALID_INPUT: project: expected a project: ?project=NAME in the")
            assert (await anonymous.list_resources()).resources == []
            assert (await anonymous.list_tools()).tools
            with pytest.raises(MCPError, match="INVALID_INPUT: project"):
                await anonymous.read_resource("inmind://sessions")
        async with http_server.client(mode=mode, project="default") as wrong:
            assert (await wrong.call_tool("working_memory_show", {})).is_error
        if mode == "legacy":
            async with http_server.client(mode=mode, list_roots_callback=folder) as rooted:
                assert await note_owner(rooted, "by its folder") == f"resource/{folder_project_name(tmp_path)}"

    asyncio.run(work())
    with Memory.open(http_server.home) as memory:
        assert folder_project_name(http_server.home.parent.resolve()) not in memory.resources()


@pytest.mark.spec("I3")
def test_an_invented_session_id_is_unknown(http_server: HttpServer) -> None:
    """The newer protocol has no session ids: two requests with the same id share nothing."""

    def call_raw(tool: str, **arguments: Any) -> str:
        sent = headers(http_server, **{"Mcp-Method": "tools/call", "Mcp-Name": tool, "Mcp-Session-Id": "made-up"})
        body = a_request("tools/call", {"name": tool, "arguments": arguments})
        lines = "".join(f"{name}: {value}\r\n" for name, value in {**sent, "Content-Length": len(body)}.items())
        head = f"POST /mcp?project=made-up HTTP/1.1\r\n{lines}Connection: close\r\n\r\n"
        return http_server.raw(head.encode() + body).decode()

    assert "[seen: " in call_raw("memory_read", path="overview.md")
    assert "CONFLICT" in call_raw("memory_write", path="overview.md", text="# gone")


@pytest.mark.spec("N64", "K14", "J2")
@pytest.mark.parametrize("clients", [10, pytest.param(50, marks=pytest.mark.exhaustive)])
def test_many_clients_with_the_same_request_ids_get_their_own_answers(default_server: HttpServer, clients: int) -> None:
    """All clients use the same request ids, while another thread writes to the same memory."""
    each = 1

    async def one(number: int) -> list[str]:
        session = {"session": f"crowd-{number}"}
        async with default_server.client(mode=MODES[number % 2], project="crowd") as client:
            for turn in range(each):
                canary = f"canary{number}x{turn}"
                await call_tool(client, "working_memory_note", note=canary, **session)
                await call_tool(client, "memory_write", path=f"detail/{turn}.md", text=canary, **session)
                assert text_of(await call_tool(client, "memory_read", path=f"detail/{turn}.md", **session)).startswith(
                    canary
                )
        return [f"canary{number}x{turn}" for turn in range(each)]

    async def run_all() -> list[str]:
        return [canary for many in await asyncio.gather(*map(one, range(clients))) for canary in many]

    def write_directly() -> None:
        with Memory.open(default_server.home) as memory:
            session = memory.session("direct", resource="crowd")
            for number in range(each):
                session.note(f"canarylibx{number}")

    other = threading.Thread(target=write_directly)
    other.start()
    canaries = asyncio.run(run_all())
    other.join()
    by_command = inmind("note", "canaryclix0", "--resource", "crowd", home=default_server.home)
    assert by_command.returncode == 0, by_command.stderr
    with Memory.open(default_server.home) as memory:
        page = memory.resource("crowd").state.documents.text("memory/scratch.md")
        wanted = [*canaries, *(f"canarylibx{number}" for number in range(each)), "canaryclix0"]
        assert [page.count(f" {canary}\n") + page.endswith(f" {canary}") for canary in wanted] == [1] * len(wanted)


@pytest.mark.spec("N56")
def test_a_foreign_host_or_origin_is_rejected_first(http_server: HttpServer) -> None:
    port = http_server.port
    hosts = [
        *("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"[::2]:{port}", "null"),
        *(f"0.0.0.0:{port}", f"127.0.0.1.nip.io:{port}", f"user@127.0.0.1:{port}", f"::1:{port}", " "),
    ]
    origins = [
        *("null", "https://evil.example", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}", "file://"),
        *(f"http://evil.example:{port}", f"http://127.0.0.1:{port}.evil.example", f"http://[::2]:{port}"),
    ]
    for path in PATHS:
        for method in METHODS:
            assert http_server.request_status(method, path, headers(http_server, Host="evil.example")) == 403, (
                method,
                path,
            )
            assert http_server.request_status(method, path, headers(http_server, Origin="https://evil.example")) == 403
    for host in hosts:
        assert (
            http_server.request_status("POST", "/mcp", headers(http_server, Host=host), a_request("tools/list")) == 403
        ), host
        assert http_server.request_status("GET", "/health", headers(http_server, Host=host)) == 403, host
    for origin in origins:
        sent = headers(http_server, Origin=origin)
        assert http_server.request_status("POST", "/mcp", sent, a_request("tools/list")) == 403, origin
        assert http_server.request_status("GET", "/health", sent) == 403, origin
    without_token = headers(http_server, Host="evil.example", Authorization="")
    assert http_server.request_status("POST", "/mcp", without_token) == 403
    twice = [*headers(http_server).items(), ("Origin", f"http://127.0.0.1:{port}"), ("Origin", "https://evil.example")]
    assert http_server.request_status("POST", "/mcp", twice, a_request("tools/list")) == 403
    form = headers(http_server, Origin="https://evil.example", Authorization="", **{"Content-Type": "text/plain"})
    assert http_server.request_status("POST", "/mcp", form, a_request("tools/list")) == 403
    websocket = headers(
        http_server, Origin="https://evil.example", Upgrade="websocket", Connection="Upgrade", Authorization=""
    )
    assert http_server.request_status("GET", "/mcp", websocket) == 403
    assert status_of(http_server.raw(b"GET /mcp HTTP/1.0\r\n\r\n")) == 403
    proxied = headers(http_server, Host="memory.example.com", Origin=PUBLIC)
    assert http_server.request_status("POST", "/mcp", proxied, a_request("tools/list")) == 200
    assert http_server.request_status("POST", "/mcp", {**proxied, "Origin": "http://memory.example.com"}) == 403
    assert http_server.request_status("POST", "/mcp", {**proxied, "Authorization": ""}) == 401
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        sent = headers(http_server, Host=host, Origin=f"http://{host}")
        assert http_server.request_status("POST", "/mcp", sent, a_request("tools/list")) == 200, host


@pytest.mark.spec("N57")
def test_without_the_token_only_the_health_check_answers(http_server: HttpServer) -> None:
    wrong = [
        *("", "Bearer", "Bearer ", f"Basic {http_server.token}", http_server.token, f"Bearer {http_server.token}x"),
        *(f"Bearer {http_server.token[:-1]}", f"Bearer  {http_server.token}", f"Bearer {'x' * 5_000}", "Bearer \xfc"),
    ]
    for value in wrong:
        sent = headers(http_server, Authorization=value)
        assert http_server.request_status("POST", "/mcp", sent, a_request("tools/list")) == 401, value
    for path in PATHS:
        for method in METHODS:
            expected = 401 if path != "/health" else 200 if method in ("GET", "HEAD") else 405
            assert http_server.request_status(method, path, headers(http_server, Authorization="")) == expected, (
                method,
                path,
            )
    twice = [*headers(http_server).items(), ("Authorization", f"Bearer {http_server.token}")]
    assert http_server.request_status("POST", "/mcp", twice, a_request("tools/list")) == 401
    in_url = headers(http_server, Authorization="")
    assert (
        http_server.request_status("POST", f"/mcp?token={http_server.token}&access_token={http_server.token}", in_url)
        == 401
    )
    assert http_server.request_status("POST", "/mcp", headers(http_server), a_request("tools/list")) == 200
    assert http_server.request_status("GET", "/nowhere", headers(http_server)) == 404
    host = f"Host: 127.0.0.1:{http_server.port}\r\n"
    health = http_server.raw(f"GET /health HTTP/1.1\r\n{host}Connection: close\r\n\r\n".encode())
    assert health.split(b"\r\n\r\n")[1] == b"ok\n"
    for method, status in (("GET", 200), ("POST", 405)):  # the server does not wait for a body
        request = f"{method} /health HTTP/1.1\r\n{host}Content-Length: 4000000\r\n\r\n"
        assert status_of(http_server.raw(request.encode() + b"x" * 1_000)) == status
    preflight = f"OPTIONS /mcp HTTP/1.1\r\n{host}Access-Control-Request-Method: POST\r\nConnection: close\r\n\r\n"
    assert b"access-control" not in (health + http_server.raw(preflight.encode())).lower()


@pytest.mark.spec("N63")
def test_hostile_bodies_are_refused_without_harm(http_server: HttpServer) -> None:
    def post(body: bytes, **others: str) -> int:
        return http_server.request_status("POST", "/mcp", headers(http_server, **others), body)

    deep = b"[" * 200_000 + b"]" * 200_000
    nested = a_request("tools/list").replace(b'"params": {', b'"params": {"x": ' + b"[" * 5_000 + b"]" * 5_000 + b", ")
    doubled = a_request("tools/list").replace(b'"id": 1', b'"id": 1, "id": 2, "method": "tools/list"')
    bodies = [
        deep,
        nested,
        doubled,
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"id":' + b"9" * 10_000 + b"}",
        b'"\\ud800"',
    ]
    for body in bodies:
        assert post(body) < 500, body[:50]
        assert post(body, **{"MCP-Protocol-Version": "2025-11-25", "Mcp-Method": ""}) < 500, body[:50]
    assert post(b" " * (4 * 1024 * 1024 + 1)) == 413
    lines = "\r\n".join(f"{name}: {value}" for name, value in headers(http_server).items())
    declared = f"POST /mcp HTTP/1.1\r\n{lines}\r\nContent-Length: {100 * 1024 * 1024}\r\n\r\n"
    assert status_of(http_server.raw(declared.encode())) == 413
    chunked = f"POST /mcp HTTP/1.1\r\n{lines}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    endless = chunked + (b"100000\r\n" + b"x" * 0x100000 + b"\r\n") * 5
    assert status_of(http_server.raw(endless)) == 413
    assert status_of(http_server.raw(b"GET /mcp HTTP/1.1\r\nX: " + b"y" * 200_000 + b"\r\n\r\n")) in (400, 431)
    assert post(a_request("tools/list")) == 200


@pytest.mark.spec("N63")
@pytest.mark.exhaustive  # it waits until a server gives up
def test_a_slow_client_is_dropped_and_blocks_no_other(http_server: HttpServer) -> None:
    """They send nothing, half a head, one request and a half, and an incomplete body."""
    lines = "\r\n".join(f"{name}: {value}" for name, value in headers(http_server).items())
    whole = f"POST /mcp HTTP/1.1\r\n{lines}\r\nContent-Length: {len(a_request('tools/list'))}\r\n\r\n".encode()
    starts = [
        b"",
        b"POST /mcp HTTP/1.1\r\nHost: ",
        whole + a_request("tools/list") + b"POST /mcp HT",
        f"POST /mcp HTTP/1.1\r\n{lines}\r\nContent-Length: 100\r\n\r\n{{".encode(),
    ]
    slow = [socket.create_connection(("127.0.0.1", http_server.port), timeout=15) for _ in starts]
    for connection, first in zip(slow, starts, strict=True):
        connection.sendall(first)
    since = time.monotonic()
    assert http_server.request_status("POST", "/mcp", headers(http_server), a_request("tools/list")) == 200
    ends = list[bytes]()
    for connection in slow:
        received = b""
        while more := connection.recv(65_536):
            received += more
        ends.append(received)
        connection.close()
    assert time.monotonic() - since < 12
    assert ends[:2] == [b"", b""]
    assert ends[2].count(b"HTTP/1.1") == 1
    assert status_of(ends[3]) == 408


@pytest.mark.spec("N63")
def test_idle_connections_do_not_block_others(http_server: HttpServer) -> None:
    silent = [socket.create_connection(("127.0.0.1", http_server.port), timeout=15) for _ in range(MAX_CONNECTIONS + 8)]
    try:
        assert http_server.request_status("POST", "/mcp", headers(http_server), a_request("tools/list")) == 200
        assert silent[0].recv(1) == b""
    finally:
        for connection in silent:
            connection.close()


@pytest.mark.spec("N63", "C08")
def test_an_incomplete_request_is_not_executed(http_server: HttpServer) -> None:
    """In the older protocol, in which a call continues after its client disconnects."""

    def framed(body: bytes, *lines: str, **others: str) -> bytes:
        sent = headers(http_server, **{"MCP-Protocol-Version": "2025-11-25", "Mcp-Method": "", **others})
        head = ["POST /mcp?project=cut-off HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), *lines]
        return "\r\n".join([*head, "", ""]).encode() + body

    def post_whole(body: bytes, **others: str) -> bytes:
        return http_server.raw(framed(body, f"Content-Length: {len(body)}", "Connection: close", **others))

    def message(method: str, params: dict[str, Any]) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()

    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    match = re.search(rb"mcp-session-id: (\S+)", post_whole(message("initialize", about)))
    assert match is not None
    session = {"Mcp-Session-Id": match[1].decode()}
    call = message("tools/call", {"name": "working_memory_note", "arguments": {"note": "half a canary"}})
    chunk = f"{len(call):x}\r\n".encode() + call + b"\r\n"
    for cut_off in (
        framed(call, f"Content-Length: {len(call) + 1}", **session),
        framed(chunk, "Transfer-Encoding: chunked", **session),
    ):
        assert status_of(http_server.raw(cut_off, finish=True)) in (0, 400)
    assert status_of(post_whole(call.replace(b"half a", b"all of a"), **session)) == 200
    with Memory.open(http_server.home) as memory:
        page = memory.resource("cut-off").state.documents.text("memory/scratch.md")
    assert "all of a canary" in page
    assert "half" not in page


@pytest.mark.spec("N63")
def test_the_total_size_of_all_bodies_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished request frees its share."""
    monkeypatch.setattr("inmind.apps.mcp.http_auth.MAX_TOTAL_BODY_BYTES", 100)
    token, statuses = "0123456789abcdef", list[int]()
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/mcp", "headers": [(b"host", b"127.0.0.1:1")]}
    scope["headers"].append((b"authorization", f"Bearer {token}".encode()))

    async def answer(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def run() -> None:
        started, proceed = asyncio.Event(), asyncio.Event()

        async def app(*_: Any) -> None:
            started.set()
            await proceed.wait()

        async def sixty() -> Any:
            return {"type": "http.request", "body": b"x" * 60}

        guard = AuthMiddleware(app, ServerAddress(host="127.0.0.1", port=1), token)
        first = asyncio.create_task(guard(scope, sixty, answer))
        await started.wait()
        await guard(scope, sixty, answer)
        assert statuses == [503]
        proceed.set()
        await first
        await guard(scope, sixty, answer)
        assert statuses == [503]

    asyncio.run(run())


@pytest.mark.spec("N57")
def test_a_token_is_stored_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    token = load_token(tmp_path, {}).value
    assert load_token(tmp_path, {}).value == token
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    with pytest.raises(UnsafeStorage, match=re.escape(str(tmp_path / "gone" / FILE_NAME))):
        load_token(tmp_path / "gone", {})


@pytest.mark.spec("N57")
def test_the_token_is_readable_only_by_its_owner_and_never_printed(http_server: HttpServer, tmp_path: Path) -> None:
    path = http_server.home / FILE_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert str(path) in http_server.startup_output
    assert http_server.token not in http_server.startup_output
    assert not list(http_server.home.glob(f"{FILE_NAME}.*"))
    assert load_token(http_server.home, {}).value == http_server.token
    assert http_server.token not in repr(load_token(http_server.home, {}))
    from_environment = load_token(tmp_path, {"INMIND_MCP_TOKEN": "0123456789abcdef\n"})
    assert (from_environment.value, from_environment.source) == ("0123456789abcdef", "$INMIND_MCP_TOKEN")
    assert not (tmp_path / FILE_NAME).exists()
    for weak in ("", "short", "has space in the middle", "ünïcödé-ünïcödé-ünï", "x\n" * 20):
        with pytest.raises(InvalidInput) as error:
            load_token(tmp_path, {"INMIND_MCP_TOKEN": weak})
        assert not weak.strip() or weak.strip() not in str(error.value)
    load_token(tmp_path, {})
    (tmp_path / FILE_NAME).chmod(0o644)
    with pytest.raises(UnsafeStorage, match="other users can read it"):
        load_token(tmp_path, {})
    (tmp_path / FILE_NAME).rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o600)
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeStorage):
        load_token(tmp_path, {})


@pytest.mark.spec("N57", "J3")
def test_a_server_that_cannot_start_prints_one_line(http_server: HttpServer, tmp_path: Path) -> None:
    all_interfaces = run_in_process("mcp", "--http", "--host", EVERYWHERE, home=tmp_path)
    assert (all_interfaces.exit_code, all_interfaces.stdout) == (2, "")
    assert all_interfaces.stderr.startswith("inmind: INVALID_INPUT: --host: expected a loopback address, or a token in")
    port_in_use = run_in_process("mcp", "--http", "--port", str(http_server.port), home=tmp_path)
    assert port_in_use.exit_code == 2
    assert "a free port" in port_in_use.stderr
    assert [result.stderr.count("\n") for result in (all_interfaces, port_in_use)] == [1, 1]


@pytest.mark.exhaustive
@pytest.mark.spec("N57", "C08")
def test_a_token_of_the_operator_allows_other_hosts_and_is_not_logged(tmp_path: Path) -> None:
    """On all interfaces, with debug logs; SIGINT stops the server while a client is connected."""
    token = "a-token-of-the-operators-own"
    with over_http(
        tmp_path / "home",
        tmp_path,
        "--host",
        EVERYWHERE,
        token=token,
        before="import sys; sys.argv.insert(1, '--debug');",
    ) as server:

        async def work() -> None:
            async with server.client(mode="legacy", project="web") as client:
                await call_tool(client, "working_memory_note", note="kept")
                server.process.send_signal(signal.SIGINT)
                since = time.monotonic()
                output = await asyncio.to_thread(server.process.communicate, timeout=20)
                assert time.monotonic() - since < 5
                assert server.process.returncode == 0
                assert token not in "".join(output)

        asyncio.run(work())
    assert not (tmp_path / "home" / FILE_NAME).exists()
    assert not (tmp_path / "home" / "inmind.db-wal").exists()
