"""A server for one page on this machine, and for nobody else.

It listens on the loopback interface only, on a port that the system chooses. Whoever opens the page needs the token of
the address that was printed; it works once and is exchanged for a cookie that scripts cannot read, and that other
sites can send with nothing but a link to the page. A request that names another host is refused (a foreign name may
point to this machine), and so is a question that does not come from the page itself. There are two paths, ``/`` and
``/api``; no file can be reached, whatever is asked.

A browser that is opened from here gets the address on its command line, where other users of the machine could read the
token before it is used. On a machine that others use too, copy the printed address instead.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlsplit

from butfor.errors import ButforError, InputError, one_line
from butfor.pages.assets import page, page_policy

if TYPE_CHECKING:
    from butfor.pages.explorer import Explorer

__all__ = ["Server"]

HOST = "127.0.0.1"
# A question of the page is much smaller than this.
LARGEST = 4_000_000
# Seconds that a connection may do nothing.
IDLE = 60


class Server:
    """Serves the explorer until it is closed.

    Attributes:
        url: the address to open, with the token that works once.
    """

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        try:
            self._http = _Http((HOST, port), _Handler)
        except (OSError, OverflowError) as problem:
            raise InputError(f"cannot listen on port {port} of {HOST}: {problem}") from problem
        self._http.explorer = explorer
        self._http.page = page("explorer", explorer.title, explorer.opened())
        self.url = f"{self._http.origin}/?token={self._http.token}"
        self._thread = threading.Thread(target=self._http.serve_forever, name="butfor-server", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Serve until Ctrl-C."""
        try:
            while self._thread.is_alive():
                self._thread.join(0.5)
        finally:
            self.close()

    def close(self) -> None:
        """Stop serving, and end what is being searched."""
        self._http.shutdown()
        self._http.server_close()
        self._http.explorer.searches.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<butfor explorer at {self.url}>"


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    # Connections that wait to be accepted; with the usual 5, a few idle clients would keep others waiting for seconds.
    request_queue_size = 128
    explorer: Explorer
    page: str

    def __init__(self, *arguments: Any) -> None:
        self.token: str | None = secrets.token_urlsafe(32)
        self.secret = secrets.token_urlsafe(32)
        self.lock = threading.Lock()
        self.connections: set[socket.socket] = set()
        super().__init__(*arguments)  # which closes the server at once where the port is taken

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection."""
        connection, address = super().get_request()
        with self.lock:
            self.connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        with self.lock:
            self.connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """End all connections: a browser keeps them, and would be answered on them."""
        super().server_close()
        with self.lock:
            for connection in self.connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    @property
    def origin(self) -> str:
        return f"http://{HOST}:{self.server_port}"

    @property
    def cookie(self) -> str:
        # Cookies do not tell ports apart.
        return f"butfor-{self.server_port}"

    def exchange(self, token: str) -> bool:
        """Whether this is the token; from then on it is not any more."""
        with self.lock:
            if self.token is None or not hmac.compare_digest(token.encode(), self.token.encode()):
                return False
            self.token = None
            return True

    def handle_error(self, *_: object) -> None:
        """A browser that hangs up is no event."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "butfor", ""
    timeout = IDLE

    @property
    def _http(self) -> _Http:
        return cast("_Http", self.server)

    def do_GET(self) -> None:
        if not self._is_for_us():
            return
        if "Content-Length" in self.headers:
            # What is not read would be taken for the next request.
            self._refuse(HTTPStatus.BAD_REQUEST, "Only questions have a body.")
            return
        address = urlsplit(self.path)
        if address.path != "/":
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")
            return
        token = parse_qs(address.query).get("token", [""])[0]
        if token and self._http.exchange(token):
            # A strict cookie would not come along to the page where the address was a link, as in a notebook's output.
            cookie = f"{self._http.cookie}={self._http.secret}; Path=/; HttpOnly; SameSite=Lax"
            self._send(HTTPStatus.SEE_OTHER, b"", "text/plain", {"Location": "/", "Set-Cookie": cookie})
        elif not self._is_known():
            sentence = "The address that butfor printed works once; start the explorer again for another."
            self._refuse(HTTPStatus.FORBIDDEN, sentence)
        elif token:
            self._send(HTTPStatus.SEE_OTHER, b"", "text/plain", {"Location": "/"})
        else:
            policy = {"Content-Security-Policy": f"{page_policy('explorer')}; frame-ancestors 'none'"}
            self._send(HTTPStatus.OK, self._http.page.encode(), "text/html; charset=utf-8", policy)

    def do_POST(self) -> None:
        # What is not read would be taken for the next request.
        self.close_connection = True
        if not self._is_for_us():
            return
        if self.headers.get("Origin") != self._http.origin or not self._is_known():
            self._refuse(HTTPStatus.FORBIDDEN, "Only the explorer's own page may ask.")
        elif self.path != "/api":
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")
        elif self.headers.get("Content-Type", "").split(";")[0].strip() != "application/json":
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Questions are JSON.")
        else:
            length = self.headers.get("Content-Length", "")
            # More digits than a length has, Python might be unwilling to read.
            if not length.isdecimal() or len(length) > len(str(LARGEST)) or int(length) > LARGEST:
                self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The question is too long.")
                return
            question = self.rfile.read(int(length))
            if len(question) == int(length):
                self.close_connection = False
                self._answer(question)

    def _answer(self, question: bytes) -> None:
        try:
            body = _read(question)
            status, answer = HTTPStatus.OK, self._http.explorer.answer(body.get("verb"), body)
            content = json.dumps(answer, allow_nan=False)
        except ButforError as problem:
            status, content = HTTPStatus.BAD_REQUEST, json.dumps({"error": str(problem)})
        except Exception as problem:  # whatever the user's model raised: the page says so and goes on
            status, content = HTTPStatus.INTERNAL_SERVER_ERROR, json.dumps({"error": one_line(problem)})
        self._send(status, content.encode(), "application/json")

    def _is_for_us(self) -> bool:
        """Whether the request names this server as its host, as one does that comes through no foreign name.

        It does so once and nowhere else, and has at most one length: a request that can be read in two ways is none.
        """
        named = self.headers.get_all("Host") == [f"{HOST}:{self._http.server_port}"]
        lengths = self.headers.get_all("Content-Length", [])
        plain = self.path.startswith("/") and len(lengths) <= 1 and "Transfer-Encoding" not in self.headers
        if named and plain:
            return True
        self._refuse(HTTPStatus.FORBIDDEN, f"This server is {self._http.origin} and nothing else.")
        return False

    def _is_known(self) -> bool:
        """Whether the request has the cookie, beside whatever cookies other servers of this machine have set."""
        cookies = (one.strip() for one in self.headers.get("Cookie", "").split(";"))
        mine = f"{self._http.cookie}={self._http.secret}".encode()
        return any(hmac.compare_digest(one.encode(), mine) for one in cookies)

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self.close_connection = True
        self._send(status, sentence.encode(), "text/plain; charset=utf-8")

    def _send(self, status: HTTPStatus, content: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        always = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": "default-src 'none'",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in (always | (more or {})).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing is written to the terminal for each request."""


def _read(question: bytes) -> dict[str, Any]:
    """A question as it was sent.

    Raises:
        InputError: it is none.
    """
    try:
        body = json.loads(question)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"a question is JSON, and this is none: {problem}") from problem
    if not isinstance(body, dict):
        raise InputError("a question is an object")
    return body
