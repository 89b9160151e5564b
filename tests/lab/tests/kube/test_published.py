"""The embedded server's schema is the one that the real server publishes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.lab.kube.published import TARGET, compact

if TYPE_CHECKING:
    from tests.lab.kube.real import RealKube


def test_the_schema_file_is_what_the_real_server_publishes(real_kube: RealKube) -> None:
    code, document = real_kube.request("GET", "/openapi/v2")
    assert code == 200
    assert json.loads(TARGET.read_text()) == compact(document), (
        "write it again: python -m tests.lab.kube.published"
    )
