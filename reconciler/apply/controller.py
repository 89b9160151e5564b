"""Applies our custom resource definitions, and the configuration in Git as objects.

It runs apart from the repairs: an object that the API server refuses here stops no repair.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import structlog

from reconciler.config.schema import Config
from reconciler.kube.results import UnavailableError
from reconciler.kube.write import KubernetesWriter
from reconciler.log import LogOnce
from reconciler.render import node_checks

log = structlog.get_logger()


class ConfigController:
    """Applies each object when it changes, and again after `apply_every` in case somebody else changed it."""

    def __init__(
        self,
        writer: KubernetesWriter,
        namespace: str,
        definitions: Iterable[dict[str, Any]],
        apply_every: timedelta,
        clock: Callable[[], datetime],
    ) -> None:
        self._writer = writer
        self._namespace = namespace
        self._definitions = tuple(definitions)
        self._apply_every = apply_every
        self._clock = clock
        self._log_once = LogOnce()
        self._applied: dict[str, tuple[dict[str, Any], datetime]] = {}

    def reconcile(self, config: Config | None) -> None:
        """Apply what is due; an object that was refused is tried again in the next pass."""
        for each in self._definitions:
            self._apply(self._writer.apply_crd, each)
        if config is not None:
            self._apply(self._writer.apply_config_map, node_checks.config_map(config, self._namespace))

    def _apply(self, apply: Callable[[dict[str, Any]], None], desired: dict[str, Any]) -> None:
        name, now = desired["metadata"]["name"], self._clock()
        applied, at = self._applied.get(name, (None, now))
        if applied == desired and now - at < self._apply_every:
            return
        if self._try(name, apply, desired):
            self._applied[name] = desired, now

    def _try(self, name: str, apply: Callable[[dict[str, Any]], None], desired: dict[str, Any]) -> bool:
        trouble = ""
        try:
            apply(desired)
        except UnavailableError as error:
            trouble = str(error)
        if self._log_once.is_new(name, trouble):
            if trouble:
                log.warning("object not applied", object=name, reason=trouble)
            else:
                log.info("object applied again", object=name)
        return not trouble
