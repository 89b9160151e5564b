"""HTTP mode: signed requests to the app's request URL, and the forgeries an app has to refuse."""

import asyncio
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode

import aiohttp

from tests.lab.slack.delivery import ACK_SECONDS, Delivery
from tests.lab.slack.wire import Json
from tests.lab.slack.workspace import Workspace

Tamper = Literal["wrong_secret", "old_timestamp", "reencoded_body", "unsigned"]
# Slack's own advice to apps: refuse what is older than five minutes.
OLD_SECONDS = 600


@dataclass(frozen=True)
class Reply:
    """What the app answered; status 0 when there was no answer, and `text` then says why."""

    status: int
    text: str
    headers: dict[str, str]


class SignedHttp:
    """Requests to the app in HTTP mode; active while `request_url` is set. `tamper` spoils every request."""

    def __init__(self, workspace: Workspace, signing_secret: str) -> None:
        self._workspace = workspace
        self._secret = signing_secret
        self.request_url: str | None = None
        self.tamper: Tamper | None = None

    async def send(self, delivery: Delivery, retry_attempt: int, retry_reason: str) -> bool:
        """Send once; True: an event may be tried again."""
        body, kind = _body(delivery)
        headers = {}
        if retry_attempt:
            headers = {"X-Slack-Retry-Num": str(retry_attempt), "X-Slack-Retry-Reason": retry_reason}
        started = asyncio.get_running_loop().time()
        reply = await self.post(body, kind, headers)
        delivery.status = reply.status
        seconds = asyncio.get_running_loop().time() - started
        if reply.status == 200:
            with self._workspace.changed:
                delivery.accept(_response(reply), seconds)
        else:
            delivery.why = f"HTTP {reply.status}: {reply.text[:200]}"
        return reply.headers.get("x-slack-no-retry") != "1"

    async def url_verification(self) -> Reply:
        """The challenge Slack sends when the request URL is set; the app must answer with it."""
        body = json.dumps({"type": "url_verification", "token": "lab", "challenge": "challenge-of-the-lab"})
        return await self.post(body.encode(), "application/json", {})

    async def ssl_check(self, smuggled: Json | None = None) -> Reply:
        """The certificate check that Slack sends as a form; an attacker may put an interaction beside it."""
        fields = {"ssl_check": "1", "token": "lab"}
        if smuggled is not None:
            fields["payload"] = json.dumps(smuggled)
        return await self.post(urlencode(fields).encode(), "application/x-www-form-urlencoded", {})

    async def post(self, body: bytes, kind: str, extra: dict[str, str]) -> Reply:
        """One request to the app, signed or spoiled as `tamper` says."""
        if self.request_url is None:
            return Reply(0, "no request_url is set", {})
        headers, sent = self._signed(body, kind)
        limit = aiohttp.ClientTimeout(total=ACK_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=limit) as session,
                session.post(self.request_url, data=sent, headers=headers | extra) as answer,
            ):
                names = {name.lower(): value for name, value in answer.headers.items()}
                return Reply(answer.status, await answer.text(), names)
        except TimeoutError:
            return Reply(0, f"no answer within {ACK_SECONDS:g} s", {})
        except aiohttp.ClientError as error:
            return Reply(0, f"{type(error).__name__}: {error}", {})

    def _signed(self, body: bytes, kind: str) -> tuple[dict[str, str], bytes]:
        stamp = int(self._workspace.clock()) - (OLD_SECONDS if self.tamper == "old_timestamp" else 0)
        secret = "not-" + self._secret if self.tamper == "wrong_secret" else self._secret
        digest = hmac.new(secret.encode(), b"v0:%d:" % stamp + body, hashlib.sha256).hexdigest()
        headers = {"Content-Type": kind, "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)"}
        if self.tamper != "unsigned":
            headers |= {"X-Slack-Request-Timestamp": str(stamp), "X-Slack-Signature": f"v0={digest}"}
        return headers, _reencoded(body, kind) if self.tamper == "reencoded_body" else body


def _body(delivery: Delivery) -> tuple[bytes, str]:
    if delivery.kind == "events_api":
        return json.dumps(delivery.payload).encode(), "application/json"
    fields = delivery.payload
    if delivery.kind == "interactive":
        fields = {"payload": json.dumps(delivery.payload)}
    return urlencode(fields).encode(), "application/x-www-form-urlencoded"


def _reencoded(body: bytes, kind: str) -> bytes:
    """The same content in other bytes, as a careless proxy would send it on."""
    if kind == "application/json":
        return json.dumps(json.loads(body), indent=1).encode()
    return body.replace(b"+", b"%20") + b"&"


def _response(reply: Reply) -> Json:
    if not reply.text:
        return {}
    if reply.headers.get("content-type", "").startswith("application/json"):
        try:
            value = json.loads(reply.text)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}
    return {"text": reply.text}
