"""The explorer's server answers its own page on this machine, and nobody else."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from butfor.errors import InputError
from butfor.pages.assets import page_policy
from butfor.pages.server import LARGEST, Server
from explorers import node_explorer

if TYPE_CHECKING:
    from collections.abc import Iterator


class Client:
    """Sends what a browser sends, or what it would not."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.origin, self.token = server.url.split("/?token=")
        self.host = self.origin.removeprefix("http://")
        self.cookie = ""

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str | None) -> tuple[int, Any, bytes]:
        connection = http.client.HTTPConnection(self.host, timeout=30)
        sent = {"Host": self.host, **({"Cookie": self.cookie} if self.cookie else {})}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {**sent, **({} if body is None else {"Content-Length": str(len(body))})}.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        return reply.status, reply.headers, content

    def enter(self) -> None:
        status, headers, _ = self.ask("GET", f"/?token={self.token}")
        assert (status, headers["Location"]) == (303, "/")
        self.cookie = headers["Set-Cookie"].split(";")[0]

    def post(self, question: Any, **headers: str | None) -> tuple[int, Any]:
        usual = {"Origin": self.origin, "Content_Type": "application/json"}
        body = question if isinstance(question, bytes) else json.dumps(question).encode()
        status, _, content = self.ask("POST", "/api", body, **{**usual, **headers})
        return status, content


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(node_explorer()) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> Client:
    client = Client(server)
    client.enter()
    return client


QUESTION = {"verb": "predict", "target": 0, "edits": []}


def test_the_page_asks_and_is_answered(client: Client) -> None:
    status, headers, content = client.ask("GET", "/")
    assert status == 200
    assert b"butfor explorer" in content
    assert headers["Content-Security-Policy"] == f"{page_policy('explorer')}; frame-ancestors 'none'"
    assert "'unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in headers
    status, content = client.post(QUESTION)
    assert status == 200
    assert json.loads(content)["allowed"]


def test_it_listens_on_the_loopback_interface_only(server: Server) -> None:
    assert server._http.server_address[0] == "127.0.0.1"


def test_the_token_works_once(server: Server, client: Client) -> None:
    stranger = Client(server)
    status, headers, content = stranger.ask("GET", f"/?token={client.token}")
    assert status == 403
    assert "Set-Cookie" not in headers
    assert b"works once" in content
    # Whoever has the cookie may open the printed address again.
    status, headers, _ = client.ask("GET", f"/?token={client.token}")
    assert (status, headers["Location"]) == (303, "/")


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites() -> None:
    with Server(node_explorer()) as server:
        newcomer = Client(server)
        _, headers, _ = newcomer.ask("GET", f"/?token={newcomer.token}")
        attributes = {part.strip() for part in headers["Set-Cookie"].split(";")[1:]}
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= attributes


@pytest.mark.parametrize(
    "cookie", ["", "x", "butfor={secret}", "{name}=", "{name}=wrong", "{name}=ä", '{name}="; a=b', "\x00"]
)
def test_without_the_cookie_there_is_nothing(server: Server, cookie: str) -> None:
    stranger = Client(server)
    stranger.cookie = cookie.format(name=server._http.cookie, secret=server._http.secret)
    try:
        assert stranger.ask("GET", "/")[0] == 403
        assert stranger.post(QUESTION)[0] == 403
    except (UnicodeEncodeError, ValueError):
        assert not stranger.cookie.isascii() or not stranger.cookie.isprintable()


@pytest.mark.parametrize("token", ["", "x", "%00", "é", "a" * 5000])
def test_wrong_tokens_are_refused(token: str) -> None:
    with Server(node_explorer()) as server:
        stranger = Client(server)
        from urllib.parse import quote

        assert stranger.ask("GET", f"/?token={quote(token)}")[0] == 403
        stranger.enter()  # the right one still works


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "localhost:{port}",
        "127.0.0.1:1",
        "[::1]:{port}",
        "127.0.0.1:{port}.evil.example",
    ],
)
def test_foreign_hosts_are_refused(client: Client, host: str | None) -> None:
    named = None if host is None else host.format(port=client.host.split(":")[1])
    assert client.ask("GET", "/", Host=named)[0] in (400, 403)
    assert client.post(QUESTION, Host=named)[0] in (400, 403)


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://evil.example", "http://localhost:{port}", "https://127.0.0.1:{port}", "http://127.0.0.1"],
)
def test_only_the_page_itself_may_ask(client: Client, origin: str | None) -> None:
    named = None if origin is None else origin.format(port=client.host.split(":")[1])
    assert client.post(QUESTION, Origin=named)[0] == 403


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_questions_are_json(client: Client, kind: str | None) -> None:
    assert client.post(QUESTION, Content_Type=kind)[0] == 415


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "//etc/passwd",
        "/../../../../etc/passwd",
        "/static/report.js",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/api",
        "/index.html",
        "/api/../api",
    ],
)
def test_no_file_can_be_reached(client: Client, path: str) -> None:
    status, _, content = client.ask("GET", path)
    assert status == 404
    assert b"root:" not in content
    assert client.ask("POST", f"{path}x", b"{}", Origin=client.origin, Content_Type="application/json")[0] == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "PATCH"])
def test_other_methods_are_unknown(client: Client, method: str) -> None:
    assert client.ask(method, "/")[0] == 501


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (b"", "a question is JSON, and this is none: Expecting value"),
        (b"{", "a question is JSON, and this is none"),
        (b"[]", "a question is an object"),
        (b"3", "a question is an object"),
        (b"\xff\xfe", "a question is JSON, and this is none"),
        (b"[" * 100_000, "a question is JSON, and this is none"),
        ({"verb": "nothing"}, "is no question of this page"),
        ({"verb": "target", "target": "<script>alert(1)</script>"}, "is not in this graph"),
        ({"verb": "target", "target": float("nan")}, "the node is nan"),
        ({"verb": "target", "target": 10**400}, "but must be a whole number from 0 to 11"),
    ],
)
def test_bad_questions_get_a_sentence(client: Client, question: Any, sentence: str) -> None:
    status, content = client.post(question)
    assert status == 400
    assert sentence in json.loads(content)["error"]
    assert client.post(QUESTION)[0] == 200


def test_long_questions_are_not_read(client: Client) -> None:
    for length in (str(LARGEST + 1), "-1", "x", "1e3", "9" * 30, "9" * 6000):
        status, _, _ = client.ask(
            "POST", "/api", None, Origin=client.origin, Content_Type="application/json", Content_Length=length
        )
        assert status == 413
    assert client.post(QUESTION)[0] == 200


def raw(client: Client, sent: bytes) -> bytes:
    """Everything that comes back until the connection is closed."""
    host, port = client.host.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(
    ("first", "headers"),
    [
        ("GET /", ["Host: evil.example", "Host: {host}"]),
        ("GET /", ["Host: {host}", "Host: evil.example"]),
        ("GET /", ["Host: {host}", "Content-Length: 0"]),
        ("GET /", ["Host: {host}", "Transfer-Encoding: chunked"]),
        ("GET http://evil.example/", ["Host: {host}"]),
        ("GET http://[/", ["Host: {host}"]),
        ("GET *", ["Host: {host}"]),
        ("POST /api", ["Host: {host}", "Origin: http://{host}", "Transfer-Encoding: chunked", "Content-Length: 2"]),
        ("POST /api", ["Host: {host}", "Origin: http://{host}", "Content-Length: 2", "Content-Length: 2"]),
    ],
)
def test_requests_that_can_be_read_in_two_ways_are_refused(client: Client, first: str, headers: list[str]) -> None:
    """And what comes after them on the same connection is no request."""
    lines = [f"{first} HTTP/1.1", *headers, f"Cookie: {client.cookie}", "Content-Type: application/json", "", ""]
    request = "\r\n".join(lines).format(host=client.host).encode()
    second = f"GET / HTTP/1.1\r\nHost: {client.host}\r\nCookie: {client.cookie}\r\n\r\n".encode()
    reply = raw(client, request + second)
    assert reply.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403"))
    assert reply.count(b"HTTP/1.1 ") == 1
    assert b"200 OK" in raw(client, second)


@pytest.mark.parametrize(
    "others", ['a={{"b": [1, 2]}}; {mine}', "a b; c=(d); {mine}", '{name}=x; x="; {mine}', "=; {mine};"]
)
def test_cookies_of_other_servers_do_not_get_in_the_way(client: Client, others: str) -> None:
    """Cookies do not tell ports apart: whatever runs on this machine may have set some."""
    name = client.cookie.split("=")[0]
    cookie = others.format(mine=client.cookie, name=name)
    assert client.ask("GET", "/", Cookie=cookie)[0] == 200
    assert client.post(QUESTION, Cookie=cookie)[0] == 200


def test_a_question_that_breaks_off_is_not_answered(client: Client) -> None:
    lines = ["POST /api HTTP/1.1", f"Host: {client.host}", f"Origin: {client.origin}", f"Cookie: {client.cookie}"]
    lines += [
        "Content-Type: application/json",
        "Content-Length: 100",
        "",
        '{"verb": "predict", "target": 0, "edits": []}',
    ]
    assert raw(client, "\r\n".join(lines).encode()) == b""


def test_clients_that_say_nothing_keep_nobody_waiting() -> None:
    with Server(node_explorer()) as server:
        client = Client(server)
        host, port = client.host.split(":")
        idle = [socket.create_connection((host, int(port)), timeout=10) for _ in range(100)]
        try:
            for connection in idle[::2]:
                connection.sendall(b"POST /api HTTP/1.1\r\nHost: ")
            client.enter()
            assert client.post(QUESTION)[0] == 200
            began = time.monotonic()
            server.close()
            assert time.monotonic() - began < 5
        finally:
            for connection in idle:
                connection.close()


def test_numbers_that_are_none_are_told_in_a_sentence() -> None:
    """JSON has no NaN: an answer that cannot be sent is an error that can."""
    explorer = node_explorer()
    with Server(explorer) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(explorer), "answer", lambda *_: {"number": float("nan")})
        client = Client(server)
        client.enter()
        status, content = client.post(QUESTION)
        assert (status, "error" in json.loads(content)) == (500, True)


def test_many_ask_at_once(client: Client) -> None:
    answers: list[tuple[int, Any]] = []

    def ask(edit: list[Any]) -> None:
        answers.append(client.post({"verb": "predict", "target": 0, "edits": [edit]}))

    view = json.loads(client.post({"verb": "target", "target": 0})[1])
    edits = [records[0] for records in view["edits"]][:8]
    threads = [threading.Thread(target=ask, args=(edit,)) for edit in edits for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == len(threads)
    assert {status for status, _ in answers} == {200}
    said = {content for _, content in answers}
    alone = {client.post({"verb": "predict", "target": 0, "edits": [edit]})[1] for edit in edits}
    assert said == alone


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="cannot listen on port"):
            Server(node_explorer(), taken.getsockname()[1])
    with pytest.raises(InputError, match="cannot listen on port 70000"):
        Server(node_explorer(), 70_000)


def test_a_closed_server_is_gone() -> None:
    server = Server(node_explorer(nodes=40))
    client = Client(server)
    client.enter()
    assert client.post({"verb": "search", "target": 0})[0] == 200
    server.close()
    with pytest.raises(ConnectionRefusedError):
        client.ask("GET", "/")
    assert not [thread for thread in threading.enumerate() if thread.name == "butfor-search"]
    with pytest.raises(InputError, match="the explorer has ended"):
        server._http.explorer.answer("search", {"target": 0})
    assert repr(server) == f"<butfor explorer at {server.url}>"
