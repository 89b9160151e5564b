"""The git program, run by argv in one mirror: hardened, limited in time, killed as a group.

The git configuration of the machine and the user does not apply, hooks never run, links and submodules stay
data, and only the transport of the configured URL is allowed. The token is in the environment of the one process
that needs it, never in argv, a URL, a file or a log.
"""

import base64
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

HARDENED: Final = tuple(
    part
    for setting in (
        "core.hooksPath=/dev/null",
        "core.symlinks=false",
        "core.fsmonitor=false",
        "core.quotePath=false",
        "fetch.fsckObjects=true",
        "submodule.recurse=false",
        "http.followRedirects=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "commit.gpgSign=false",
        "credential.helper=",
    )
    for part in ("-c", setting)
)
"""Settings for every command; they override the repository's own configuration."""

INHERITED: Final = (
    "PATH", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
"""Environment variables that git may see: only those that it needs to reach the host."""


class RepositoryUnavailableError(Exception):
    """Git cannot be read or reached now. Earlier results stay valid; try again later."""


@dataclass(frozen=True, slots=True)
class GitResult:
    """The result of a command. `reason` is the line of its stderr that says why it failed, without secrets."""

    status: int
    output: bytes
    reason: str


class Git:
    """Runs git in the bare repository `directory` for the remote `url`.

    `token_file` is read again for each command that contacts the remote. `limit` is how long one command may
    take. Raises ValueError for a URL that carries credentials or could be taken for an option.
    """

    def __init__(self, url: str, directory: Path, token_file: Path | None, limit: timedelta) -> None:
        self.url = url
        self.directory = directory
        self._token_file = token_file
        self._limit = limit
        self._protocols = _allowed_protocols(url)

    def run(
        self,
        *argv: str,
        stdin: bytes = b"",
        remote: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> GitResult:
        """Run `git ARGV` and return its result; with `remote`, git gets the token.

        Raises RepositoryUnavailableError if git cannot be run or exceeds the time limit.
        """
        token = self._token() if remote else ""
        command = ("git", *HARDENED, f"--git-dir={self.directory}", *argv)
        full = self._environment(token) | dict(environment or {})
        try:
            process = subprocess.Popen(
                command,
                env=full,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise RepositoryUnavailableError(f"git cannot be run: {error.strerror}; install git") from error
        output, errors = self._finish(process, stdin, argv[0])
        return GitResult(process.returncode, output, self._reason(errors, token))

    def ask(self, *argv: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None) -> bytes:
        """Return the output of a local command; raises RepositoryUnavailableError if it fails."""
        answer = self.run(*argv, stdin=stdin, environment=environment)
        if answer.status != 0:
            raise RepositoryUnavailableError(f"git {argv[0]} failed in {self.directory}: {answer.reason}")
        return answer.output

    def _finish(self, process: subprocess.Popen[bytes], stdin: bytes, verb: str) -> tuple[bytes, bytes]:
        seconds = self._limit.total_seconds()
        finished = False
        with process:
            try:
                output = process.communicate(stdin, timeout=seconds)
                finished = True
            except subprocess.TimeoutExpired as error:
                raise RepositoryUnavailableError(
                    f"git {verb} of {self.url} took over {seconds:g} s and was stopped"
                ) from error
            finally:
                # Also on an interrupt: git's helpers (git-remote-https, ssh) must not outlive this call.
                if not finished:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
        return output

    def _reason(self, errors: bytes, token: str) -> str:
        line = mask(_telling_line(errors), token)
        # Without a terminal git cannot ask for a user name, and reports only that.
        if "could not read Username" not in line and "Authentication failed" not in line:
            return line
        if self._token_file is None:
            return "the host asks for a token (401); set token_file"
        return f"the host refused the token (401); renew it in {self._token_file}"

    def _token(self) -> str:
        if self._token_file is None:
            return ""
        try:
            return self._token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise RepositoryUnavailableError(
                f"the Git token cannot be read from {self._token_file}: {type(error).__name__}"
            ) from error

    def _environment(self, token: str) -> dict[str, str]:
        variables = {name: os.environ[name] for name in INHERITED if name in os.environ}
        variables |= {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": self._protocols,
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=10",
            "HOME": "/nonexistent",
            "LC_ALL": "C",
        }
        parts = urlsplit(self.url)
        if token and parts.scheme in ("http", "https"):
            variables |= {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": f"http.{parts.scheme}://{parts.netloc}/.extraHeader",
                "GIT_CONFIG_VALUE_0": f"Authorization: Basic {_basic(token)}",
            }
        return variables


def mask(text: str, token: str) -> str:
    """Return `text` without the token, plain or as in a header, and without credentials in URLs."""
    for secret in (token, _basic(token)) if token else ():
        text = text.replace(secret, "***")
    return re.sub(r"(://)[^/@\s]+@", r"\1***@", text)


def _basic(token: str) -> str:
    return base64.b64encode(f"x-access-token:{token}".encode()).decode()


def _allowed_protocols(url: str) -> str:
    """Return the protocols that git may use; raises ValueError for a URL that must not be used."""
    if not url or url.startswith("-"):
        raise ValueError(f"git url {url!r} is not a URL or a path")
    parts = urlsplit(url)
    if parts.scheme in ("http", "https"):
        if "@" in parts.netloc:
            raise ValueError("git url must not carry a user or password; put the token in token_file")
        return "https:http" if parts.scheme == "http" else "https"
    if parts.scheme == "file" or url.startswith(("/", ".")):
        return "file"
    return "ssh"


def _telling_line(errors: bytes) -> str:
    """Return the line of git's stderr that says why it failed, without the advice that follows."""
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "remote: error:"))]
    return (telling or lines or ["no reason given"])[-1]
