"""Catalogue: every check and every door there is. A new check is one new file and one line here."""

from checks.check import Check, Door
from checks.host import boot, disk_free

CHECKS: tuple[Check, ...] = (boot.CHECK, disk_free.CHECK)
"""In the order in which they look."""

NAMES = frozenset(each.name for each in CHECKS)
"""Their names, as a policy may switch them off."""


def doors() -> tuple[Door, ...]:
    """Return new doors, closed until their first fetch."""
    return ()
