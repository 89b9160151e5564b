"""RepairAction: everything that is specific to one action, as a value. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from checks.finding import Action
from reconciler.repair.providers.provider import Capability
from reconciler.repair.step import Step, StepWords


@dataclass(frozen=True, slots=True)
class ActionWords:
    """The words for an action: a noun that takes "a" or "the", and an imperative with `{node}` in it."""

    noun: str
    order: str


@dataclass(frozen=True, slots=True)
class RepairAction:
    """One action that this version can carry out.

    `plans` are the published step lists by version, oldest first. A record keeps the list that was approved, so
    a list never changes; a change is a new version. `capability` is what the provider must be able to do.
    `keeps_local_data` says whether the data on the node's disks survives.
    """

    action: Action
    words: ActionWords
    plans: Mapping[int, tuple[Step, ...]]
    capability: Capability
    keeps_local_data: bool

    @property
    def version(self) -> int:
        """Version of new plans."""
        return max(self.plans)

    def step(self, name: str) -> Step | None:
        """Return the step of that name from the newest plan that has it."""
        for version in sorted(self.plans, reverse=True):
            for each in self.plans[version]:
                if each.name == name:
                    return each
        return None

    def step_words(self, name: str) -> StepWords:
        """Return the words for a step; for a step of a newer version that is its name."""
        known = self.step(name)
        return known.words if known else StepWords(doing=name, done=name)
