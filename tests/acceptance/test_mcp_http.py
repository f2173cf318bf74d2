"""The MCP server over HTTP, in a process of its own: asked by the official client, by many, and by who means ill."""

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
from mcp_client import MODES, Listening, Mode, called, over_http, roots, status_of, text_of
from terminal import at_once, inmind

from inmind import Memory
from inmind.apps.mcp.http import MAX_CONNECTIONS
from inmind.apps.mcp.http_auth import AuthMiddleware, ServerAddress
from inmind.apps.mcp.project import folder_project_name
from inmind.apps.mcp.token import FILE_NAME, load_token
from inmind.errors import InvalidInput, UnsafeStorage

EVERYWHERE = "0.0.0.0"  # noqa: S104 -- what it is about
PUBLIC = "https://memory.example.com"
METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE")
PATHS = ("/mcp", "/health", "/", "/mcp/", "/.well-known/oauth-protected-resource", "/docs", "/%2e%2e/etc/passwd")


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Generator[Listening]:
    folder = tmp_path_factory.mktemp("project")
    with over_http(folder / "home", folder, "--public-url", PUBLIC) as server:
        yield server


@pytest.fixture
def unhurried(tmp_path: Path) -> Generator[Listening]:
    """A crowd that shares one slow thread needs the time that everybody has."""
    with over_http(tmp_path / "home", tmp_path, before="") as server:
        yield server


def a_request(method: str, params: dict[str, Any] | None = None, id: int = 1) -> bytes:
    """Of the newer protocol, in which each request stands for itself."""
    about = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return json.dumps(
        {"jsonrpc": "2.0", "id": id, "method": method, "params": {**(params or {}), "_meta": about}}
    ).encode()


def headers(server: Listening, **others: str) -> dict[str, str]:
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
def test_an_agent_works_over_http(listening: Listening, mode: Mode) -> None:
    """Of the newer protocol it brings along what it has seen; of the older one the connection knows."""

    async def work() -> None:
        async with listening.client(mode=mode, project=f"web {mode}") as client:
            offered = {tool.name: tool.input_schema["properties"] for tool in (await client.list_tools()).tools}
            assert ("seen" in offered["memory_write"]) is (mode == "auto")
            note = await called(client, "working_memory_note", note="Ada prefers tabs")
            assert note.structured_content is not None
            assert note.structured_content["id"].startswith(f"resource/web {mode}#")
            read = await called(client, "memory_read", path="overview.md")
            assert read.structured_content is not None
            seen = read.structured_content["seen"]
            assert ("[seen: " in text_of(read)) is (mode == "auto")
            page = {"path": "overview.md", "text": "# Mine\n"}
            if mode == "auto":
                blind = await client.call_tool("memory_write", page)
                assert text_of(blind).startswith("CONFLICT")
                page["seen"] = seen
            await called(client, "memory_write", **page)
            assert "# Mine" in text_of(await called(client, "working_memory_show"))
            assert (await client.read_resource("inmind://sessions")).contents
            assert (await client.get_prompt("what_do_you_have_in_mind")).messages

    asyncio.run(work())


@pytest.mark.spec("I3")
@pytest.mark.parametrize("mode", MODES)
def test_each_client_has_the_project_of_its_own_url_or_folder_and_none_has_ours(
    listening: Listening, mode: Mode, tmp_path: Path
) -> None:
    async def noted(client: Client, note: str) -> str:
        answer = await called(client, "working_memory_note", note=note)
        assert answer.structured_content is not None
        return answer.structured_content["id"].partition("#")[0]

    async def work() -> None:
        folder = roots(tmp_path)
        async with listening.client(mode=mode, project=f"shop-{mode}") as shop:
            assert await noted(shop, "shop canary") == f"resource/shop-{mode}"
        async with listening.client(mode=mode, project=f"bank-{mode}", list_roots_callback=folder) as bank:
            assert await noted(bank, "bank vault") == f"resource/bank-{mode}"
            assert text_of(await called(bank, "memory_search", query="canary")) == "Nothing was found."
        async with listening.client(mode=mode) as nobody:
            refused = await nobody.call_tool("working_memory_show", {})
            assert refused.is_error
            assert text_of(refused).startswith("INVALID_INPUT: project: expected a project: ?project=NAME in the")
            assert (await nobody.list_resources()).resources == []
            assert (await nobody.list_tools()).tools
            with pytest.raises(MCPError, match="INVALID_INPUT: project"):
                await nobody.read_resource("inmind://sessions")
        async with listening.client(mode=mode, project="default") as wrong:
            assert (await wrong.call_tool("working_memory_show", {})).is_error
        if mode == "legacy":
            async with listening.client(mode=mode, list_roots_callback=folder) as rooted:
                assert await noted(rooted, "by its folder") == f"resource/{folder_project_name(tmp_path)}"

    asyncio.run(work())
    with Memory.open(listening.home) as memory:
        assert folder_project_name(listening.home.parent.resolve()) not in memory.resources()


@pytest.mark.spec("I3")
def test_an_invented_session_id_is_unknown(listening: Listening) -> None:
    """The newer protocol has no such ids: what one request has seen another with the same id has not."""

    def asked(tool: str, **arguments: Any) -> str:
        sent = headers(listening, **{"Mcp-Method": "tools/call", "Mcp-Name": tool, "Mcp-Session-Id": "made-up"})
        body = a_request("tools/call", {"name": tool, "arguments": arguments})
        lines = "".join(f"{name}: {value}\r\n" for name, value in {**sent, "Content-Length": len(body)}.items())
        head = f"POST /mcp?project=made-up HTTP/1.1\r\n{lines}Connection: close\r\n\r\n"
        return listening.raw(head.encode() + body).decode()

    assert "[seen: " in asked("memory_read", path="overview.md")
    assert "CONFLICT" in asked("memory_write", path="overview.md", text="# gone")


@pytest.mark.spec("N64", "K14", "J2")
@pytest.mark.parametrize("crowd", [10, pytest.param(50, marks=pytest.mark.exhaustive)])
def test_many_clients_with_the_same_ids_hear_their_own_answers_and_lose_nothing(
    unhurried: Listening, crowd: int
) -> None:
    """Every client counts its requests from the same number; another process writes to the same memory meanwhile."""
    each = 1

    async def one(number: int) -> list[str]:
        session = {"session": f"crowd-{number}"}
        async with unhurried.client(mode=MODES[number % 2], project="crowd") as client:
            for turn in range(each):
                canary = f"canary{number}x{turn}"
                await called(client, "working_memory_note", note=canary, **session)
                await called(client, "memory_write", path=f"detail/{turn}.md", text=canary, **session)
                assert text_of(await called(client, "memory_read", path=f"detail/{turn}.md", **session)).startswith(
                    canary
                )
        return [f"canary{number}x{turn}" for turn in range(each)]

    async def all_of_them() -> list[str]:
        return [canary for many in await asyncio.gather(*map(one, range(crowd))) for canary in many]

    def beside() -> None:
        with Memory.open(unhurried.home) as memory:
            session = memory.session("beside", resource="crowd")
            for number in range(each):
                session.note(f"canarylibx{number}")

    other = threading.Thread(target=beside)
    other.start()
    noted = asyncio.run(all_of_them())
    other.join()
    by_command = inmind("note", "canaryclix0", "--resource", "crowd", home=unhurried.home)
    assert by_command.returncode == 0, by_command.stderr
    with Memory.open(unhurried.home) as memory:
        page = memory.resource("crowd").state.documents.text("memory/scratch.md")
        wanted = [*noted, *(f"canarylibx{number}" for number in range(each)), "canaryclix0"]
        assert [page.count(f" {canary}\n") + page.endswith(f" {canary}") for canary in wanted] == [1] * len(wanted)


@pytest.mark.spec("N56")
def test_who_does_not_mean_this_server_is_turned_away_before_anything_else(listening: Listening) -> None:
    port = listening.port
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
            assert listening.asked(method, path, headers(listening, Host="evil.example")) == 403, (method, path)
            assert listening.asked(method, path, headers(listening, Origin="https://evil.example")) == 403
    for host in hosts:
        assert listening.asked("POST", "/mcp", headers(listening, Host=host), a_request("tools/list")) == 403, host
        assert listening.asked("GET", "/health", headers(listening, Host=host)) == 403, host
    for origin in origins:
        sent = headers(listening, Origin=origin)
        assert listening.asked("POST", "/mcp", sent, a_request("tools/list")) == 403, origin
        assert listening.asked("GET", "/health", sent) == 403, origin
    nobody = headers(listening, Host="evil.example", Authorization="")
    assert listening.asked("POST", "/mcp", nobody) == 403
    twice = [*headers(listening).items(), ("Origin", f"http://127.0.0.1:{port}"), ("Origin", "https://evil.example")]
    assert listening.asked("POST", "/mcp", twice, a_request("tools/list")) == 403
    form = headers(listening, Origin="https://evil.example", Authorization="", **{"Content-Type": "text/plain"})
    assert listening.asked("POST", "/mcp", form, a_request("tools/list")) == 403
    socket_of_a_page = headers(
        listening, Origin="https://evil.example", Upgrade="websocket", Connection="Upgrade", Authorization=""
    )
    assert listening.asked("GET", "/mcp", socket_of_a_page) == 403
    assert status_of(listening.raw(b"GET /mcp HTTP/1.0\r\n\r\n")) == 403
    proxied = headers(listening, Host="memory.example.com", Origin=PUBLIC)
    assert listening.asked("POST", "/mcp", proxied, a_request("tools/list")) == 200
    assert listening.asked("POST", "/mcp", {**proxied, "Origin": "http://memory.example.com"}) == 403
    assert listening.asked("POST", "/mcp", {**proxied, "Authorization": ""}) == 401
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        sent = headers(listening, Host=host, Origin=f"http://{host}")
        assert listening.asked("POST", "/mcp", sent, a_request("tools/list")) == 200, host


@pytest.mark.spec("N57")
def test_without_the_token_only_the_health_check_answers(listening: Listening) -> None:
    wrong = [
        *("", "Bearer", "Bearer ", f"Basic {listening.token}", listening.token, f"Bearer {listening.token}x"),
        *(f"Bearer {listening.token[:-1]}", f"Bearer  {listening.token}", f"Bearer {'x' * 5_000}", "Bearer \xfc"),
    ]
    for given in wrong:
        sent = headers(listening, Authorization=given)
        assert listening.asked("POST", "/mcp", sent, a_request("tools/list")) == 401, given
    for path in PATHS:
        for method in METHODS:
            expected = 401 if path != "/health" else 200 if method in ("GET", "HEAD") else 405
            assert listening.asked(method, path, headers(listening, Authorization="")) == expected, (method, path)
    twice = [*headers(listening).items(), ("Authorization", f"Bearer {listening.token}")]
    assert listening.asked("POST", "/mcp", twice, a_request("tools/list")) == 401
    in_url = headers(listening, Authorization="")
    assert listening.asked("POST", f"/mcp?token={listening.token}&access_token={listening.token}", in_url) == 401
    assert listening.asked("POST", "/mcp", headers(listening), a_request("tools/list")) == 200
    assert listening.asked("GET", "/nowhere", headers(listening)) == 404
    host = f"Host: 127.0.0.1:{listening.port}\r\n"
    health = listening.raw(f"GET /health HTTP/1.1\r\n{host}Connection: close\r\n\r\n".encode())
    assert health.split(b"\r\n\r\n")[1] == b"ok\n"
    for method, status in (("GET", 200), ("POST", 405)):  # whoever brings a body to it is not waited for
        begun = f"{method} /health HTTP/1.1\r\n{host}Content-Length: 4000000\r\n\r\n"
        assert status_of(listening.raw(begun.encode() + b"x" * 1_000)) == status
    preflight = f"OPTIONS /mcp HTTP/1.1\r\n{host}Access-Control-Request-Method: POST\r\nConnection: close\r\n\r\n"
    assert b"access-control" not in (health + listening.raw(preflight.encode())).lower()


@pytest.mark.spec("N63")
def test_hostile_bodies_are_refused_without_harm(listening: Listening) -> None:
    def posted(body: bytes, **others: str) -> int:
        return listening.asked("POST", "/mcp", headers(listening, **others), body)

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
        assert posted(body) < 500, body[:50]
        assert posted(body, **{"MCP-Protocol-Version": "2025-11-25", "Mcp-Method": ""}) < 500, body[:50]
    assert posted(b" " * (4 * 1024 * 1024 + 1)) == 413
    lines = "\r\n".join(f"{name}: {value}" for name, value in headers(listening).items())
    declared = f"POST /mcp HTTP/1.1\r\n{lines}\r\nContent-Length: {100 * 1024 * 1024}\r\n\r\n"
    assert status_of(listening.raw(declared.encode())) == 413
    chunked = f"POST /mcp HTTP/1.1\r\n{lines}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    endless = chunked + (b"100000\r\n" + b"x" * 0x100000 + b"\r\n") * 5
    assert status_of(listening.raw(endless)) == 413
    assert status_of(listening.raw(b"GET /mcp HTTP/1.1\r\nX: " + b"y" * 200_000 + b"\r\n\r\n")) in (400, 431)
    assert posted(a_request("tools/list")) == 200


@pytest.mark.spec("N63")
@pytest.mark.exhaustive  # it waits until a server gives up
def test_a_slow_client_is_dropped_and_blocks_no_one(listening: Listening) -> None:
    """One says nothing, one sends half a head, one begins another after a whole request, one never ends its body."""
    lines = "\r\n".join(f"{name}: {value}" for name, value in headers(listening).items())
    whole = f"POST /mcp HTTP/1.1\r\n{lines}\r\nContent-Length: {len(a_request('tools/list'))}\r\n\r\n".encode()
    begun = [
        b"",
        b"POST /mcp HTTP/1.1\r\nHost: ",
        whole + a_request("tools/list") + b"POST /mcp HT",
        f"POST /mcp HTTP/1.1\r\n{lines}\r\nContent-Length: 100\r\n\r\n{{".encode(),
    ]
    slow = [socket.create_connection(("127.0.0.1", listening.port), timeout=15) for _ in begun]
    for connection, first in zip(slow, begun, strict=True):
        connection.sendall(first)
    since = time.monotonic()
    assert listening.asked("POST", "/mcp", headers(listening), a_request("tools/list")) == 200
    ends = list[bytes]()
    for connection in slow:
        came = b""
        while more := connection.recv(65_536):
            came += more
        ends.append(came)
        connection.close()
    assert time.monotonic() - since < 12
    assert ends[:2] == [b"", b""]
    assert ends[2].count(b"HTTP/1.1") == 1
    assert status_of(ends[3]) == 408


@pytest.mark.spec("N63")
def test_silent_connections_lock_no_one_out(listening: Listening) -> None:
    silent = [socket.create_connection(("127.0.0.1", listening.port), timeout=15) for _ in range(MAX_CONNECTIONS + 8)]
    try:
        assert listening.asked("POST", "/mcp", headers(listening), a_request("tools/list")) == 200
        assert silent[0].recv(1) == b""
    finally:
        for connection in silent:
            connection.close()


@pytest.mark.spec("N63", "C08")
def test_a_request_whose_end_never_came_is_not_carried_out(listening: Listening) -> None:
    """Of the older protocol, in which a call goes on when whoever made it has hung up."""

    def framed(body: bytes, *lines: str, **others: str) -> bytes:
        sent = headers(listening, **{"MCP-Protocol-Version": "2025-11-25", "Mcp-Method": "", **others})
        head = ["POST /mcp?project=cut-off HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), *lines]
        return "\r\n".join([*head, "", ""]).encode() + body

    def whole(body: bytes, **others: str) -> bytes:
        return listening.raw(framed(body, f"Content-Length: {len(body)}", "Connection: close", **others))

    def message(method: str, params: dict[str, Any]) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()

    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    found = re.search(rb"mcp-session-id: (\S+)", whole(message("initialize", about)))
    assert found is not None
    session = {"Mcp-Session-Id": found[1].decode()}
    call = message("tools/call", {"name": "working_memory_note", "arguments": {"note": "half a canary"}})
    chunk = f"{len(call):x}\r\n".encode() + call + b"\r\n"
    for cut_off in (
        framed(call, f"Content-Length: {len(call) + 1}", **session),
        framed(chunk, "Transfer-Encoding: chunked", **session),
    ):
        assert status_of(listening.raw(cut_off, finish=True)) in (0, 400)
    assert status_of(whole(call.replace(b"half a", b"all of a"), **session)) == 200
    with Memory.open(listening.home) as memory:
        page = memory.resource("cut-off").state.documents.text("memory/scratch.md")
    assert "all of a canary" in page
    assert "half" not in page


@pytest.mark.spec("N63")
def test_all_bodies_together_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """And whoever is done makes room for the next."""
    monkeypatch.setattr("inmind.apps.mcp.http_auth.MAX_TOTAL_BODY_BYTES", 100)
    token, statuses = "0123456789abcdef", list[int]()
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/mcp", "headers": [(b"host", b"127.0.0.1:1")]}
    scope["headers"].append((b"authorization", f"Bearer {token}".encode()))

    async def answer(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def run() -> None:
        asked, done = asyncio.Event(), asyncio.Event()

        async def app(*_: Any) -> None:
            asked.set()
            await done.wait()

        async def sixty() -> Any:
            return {"type": "http.request", "body": b"x" * 60}

        guard = AuthMiddleware(app, ServerAddress(host="127.0.0.1", port=1), token)
        first = asyncio.create_task(guard(scope, sixty, answer))
        await asked.wait()
        await guard(scope, sixty, answer)
        assert statuses == [503]
        done.set()
        await first
        await guard(scope, sixty, answer)
        assert statuses == [503]

    asyncio.run(run())


@pytest.mark.spec("N57")
def test_where_there_are_no_hard_links_a_token_is_kept_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    made = load_token(tmp_path, {}).value
    assert load_token(tmp_path, {}).value == made
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    with pytest.raises(UnsafeStorage, match=re.escape(str(tmp_path / "gone" / FILE_NAME))):
        load_token(tmp_path / "gone", {})


@pytest.mark.spec("N57")
def test_the_token_is_kept_where_only_its_owner_reads_it_and_told_nowhere(listening: Listening, tmp_path: Path) -> None:
    kept = listening.home / FILE_NAME
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert str(kept) in listening.told
    assert listening.token not in listening.told
    assert not list(listening.home.glob(f"{FILE_NAME}.*"))
    assert load_token(listening.home, {}).value == listening.token
    assert listening.token not in repr(load_token(listening.home, {}))
    given = load_token(tmp_path, {"INMIND_MCP_TOKEN": "0123456789abcdef\n"})
    assert (given.value, given.source) == ("0123456789abcdef", "$INMIND_MCP_TOKEN")
    assert not (tmp_path / FILE_NAME).exists()
    for poor in ("", "short", "has space in the middle", "ünïcödé-ünïcödé-ünï", "x\n" * 20):
        with pytest.raises(InvalidInput) as refused:
            load_token(tmp_path, {"INMIND_MCP_TOKEN": poor})
        assert not poor.strip() or poor.strip() not in str(refused.value)
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
def test_what_cannot_be_served_is_said_in_one_line(listening: Listening, tmp_path: Path) -> None:
    abroad = at_once("mcp", "--http", "--host", EVERYWHERE, home=tmp_path)
    assert (abroad.exit_code, abroad.stdout) == (2, "")
    assert abroad.stderr.startswith("inmind: INVALID_INPUT: --host: expected a loopback address, or a token in")
    taken = at_once("mcp", "--http", "--port", str(listening.port), home=tmp_path)
    assert taken.exit_code == 2
    assert "a free port" in taken.stderr
    assert [said.stderr.count("\n") for said in (abroad, taken)] == [1, 1]


@pytest.mark.exhaustive
@pytest.mark.spec("N57", "C08")
def test_a_token_of_the_operators_own_opens_it_to_others_and_stands_in_no_log(tmp_path: Path) -> None:
    """On all interfaces, with all that there is to log; and gone soon after it was told to, while clients listen on."""
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
                await called(client, "working_memory_note", note="kept")
                server.process.send_signal(signal.SIGINT)
                since = time.monotonic()
                said = await asyncio.to_thread(server.process.communicate, timeout=20)
                assert time.monotonic() - since < 5
                assert server.process.returncode == 0
                assert token not in "".join(said)

        asyncio.run(work())
    assert not (tmp_path / "home" / FILE_NAME).exists()
    assert not (tmp_path / "home" / "inmind.db-wal").exists()
