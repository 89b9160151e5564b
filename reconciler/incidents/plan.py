"""The plan of a repair, as people see it before they approve it and as the reconciler runs it."""

from checks.finding import Action
from reconciler.incidents.digests import digest
from reconciler.incidents.value import RecordValue


class PlannedPod(RecordValue):
    """A pod that the repair evicts, and what makes that risky (`bare`, `emptyDir`, `pdb:NAME`).

    `uid` identifies the pod: a pod of the same name that was created later is another pod.
    """

    namespace: str
    name: str
    uid: str = ""
    controller: str | None = None
    gpus: int = 0
    risks: tuple[str, ...] = ()


class Plan(RecordValue):
    """What a repair does, in order, and which pods it disturbs.

    `version` numbers the published step lists of the action. The plan in the record is what runs, whatever
    the version of the program (safety rule 17).
    """

    action: Action
    version: int = 1
    provider: str
    steps: tuple[str, ...]
    disturbs: tuple[PlannedPod, ...] = ()
    keeps_local_data: bool

    @property
    def digest(self) -> str:
        """Changes with anything that an approver was shown."""
        return digest(self.model_dump(mode="json", by_alias=True))
