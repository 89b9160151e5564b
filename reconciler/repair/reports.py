"""Reads the newest report of a node from the bot, to check the findings again.

No report (None) and no usable response (ReportsUnavailableError) differ: the first is a fact about the node, the
second is "unknown", on which nothing acts.
"""

import ssl
from pathlib import Path

import httpx
import msgspec

from checks.report import HeldReport, node_report_path
from reconciler.repair.step import ReportsUnavailableError


class NodeReports:
    """Reads reports from the bot at `bot_url`. The token file is read again for each request. Safe for many threads."""

    def __init__(self, bot_url: str, token_file: Path, ca_file: Path | None, timeout_seconds: float) -> None:
        verify = ssl.create_default_context(cafile=ca_file) if bot_url.startswith("https:") else False
        self._token_file = token_file
        self._client = httpx.Client(base_url=bot_url, timeout=timeout_seconds, verify=verify, trust_env=False)

    def newest(self, node: str) -> HeldReport | None:
        """Return the newest report of `node` with its age in seconds, None if the bot holds none."""
        try:
            token = self._token_file.read_text(encoding="ascii").strip()
            headers = {"Authorization": f"Bearer {token}"}
            answer = self._client.get(node_report_path(node), headers=headers)
            if answer.status_code == 404:
                return None
            if answer.status_code != 200:
                raise ReportsUnavailableError(f"the bot answered {answer.status_code}")
            held = msgspec.json.decode(answer.content, type=HeldReport)
        except (httpx.HTTPError, OSError, UnicodeDecodeError) as error:
            raise ReportsUnavailableError(f"the bot does not answer ({_cause(error)})") from error
        except msgspec.DecodeError as error:
            raise ReportsUnavailableError(f"the bot's report cannot be read ({error})") from error
        if held.report.node != node:
            raise ReportsUnavailableError(f"the bot answered for {held.report.node}")
        return held

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _cause(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
