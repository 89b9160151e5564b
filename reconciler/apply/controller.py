"""Makes Kubernetes match what Git and the program itself want: our definitions and the agents' policy.

It runs apart from the repairs: what the API server refuses here stops no repair.
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
    """Applies the definitions at most every `apply_every`, and the configuration whenever it changes."""

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
        self._applied_at: datetime | None = None
        self._rendered: Config | None = None

    def reconcile(self, config: Config | None) -> None:
        """Apply what is due; what failed is tried again in the next pass."""
        now = self._clock()
        if self._applied_at is None or now - self._applied_at > self._apply_every:
            applied = [
                self._try(each["metadata"]["name"], self._writer.apply_crd, each)
                for each in self._definitions
            ]
            self._applied_at, self._rendered = now if all(applied) else None, None
        if config is None or config == self._rendered:
            return
        config_map = node_checks.config_map(config, self._namespace)
        if self._try(config_map["metadata"]["name"], self._writer.apply_config_map, config_map):
            self._rendered = config

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
