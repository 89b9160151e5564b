"""A plain HTTP client for the emulator, without any Slack library in between."""

import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.lab.slack.emulator import Slack

Json = dict[str, Any]


def send(url: str, body: bytes, kind: str, token: str = "") -> tuple[int, str, dict[str, str]]:
    headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = Request(url, data=body, headers=headers, method="POST")
    try:
        with urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except HTTPError as error:
        with error:
            return error.code, error.read().decode(), dict(error.headers)


def post_json(url: str, body: object, token: str = "") -> tuple[int, Json]:
    status, text, _ = send(url, json.dumps(body).encode(), "application/json; charset=utf-8", token)
    return status, json.loads(text)


def call(slack: Slack, method: str, token: str | None = None, **args: Any) -> Json:
    """A method with a JSON body and the bot's token in the header."""
    used = slack.bot_token if token is None else token
    return post_json(slack.base_url + method, args, used)[1]


def call_form(slack: Slack, method: str, **args: Any) -> Json:
    """A method with a form body and whatever token is among the arguments."""
    body = urlencode(args).encode()
    answer: Json = json.loads(send(slack.base_url + method, body, "application/x-www-form-urlencoded")[1])
    return answer
