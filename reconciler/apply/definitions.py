"""Our custom resource definitions, so that a new cluster needs no set-up before the first start."""

from pathlib import Path
from typing import Any

import yaml

from reconciler.settings import SettingsError

PACKAGED = Path(__file__).resolve().parents[2] / "manifests"
"""Manifests that are installed with the package."""


def definitions(manifests: Path) -> tuple[dict[str, Any], ...]:
    """Return the custom resource definitions under `manifests`; raises SettingsError that names a bad file."""
    files = sorted((manifests / "base" / "crds").glob("*.yaml"))
    found: list[dict[str, Any]] = []
    for file in files:
        try:
            parts = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise SettingsError(f"{file}: cannot be read ({' '.join(str(error).split())})") from error
        found += [
            each
            for each in parts
            if isinstance(each, dict) and each.get("kind") == "CustomResourceDefinition"
        ]
    if not found:
        raise SettingsError(f"reconciler.manifests_dir: {manifests}: no definitions in base/crds")
    return tuple(found)
