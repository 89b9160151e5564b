"""The plan of a repair: people see it before they approve, and the reconciler runs it."""

from checks.finding import Action
from reconciler.incidents.digests import digest
from reconciler.incidents.value import RecordValue


class PlannedPod(RecordValue):
    """A pod that the repair evicts, and the risks of that (`bare`, `emptyDir`, `pdb:NAME`).

    `uid` identifies the pod: a later pod of the same name is another pod.
    """

    namespace: str
    name: str
    uid: str = ""
    controller: str | None = None
    gpus: int = 0
    risks: tuple[str, ...] = ()


class Plan(RecordValue):
    """The steps of a repair, in order, and the pods that it evicts.

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
        """Changes with anything that the approver saw.

        `version` and `uid` came after the first published form. They count only once they are set, so that a plan
        that was approved before keeps its digest. Treat a field that is added later alike.
        """
        plain = self.model_dump(mode="json", by_alias=True)
        if self.version == 1:
            del plain["version"]
        for pod in plain["disturbs"]:
            if not pod["uid"]:
                del pod["uid"]
        return digest(plain)
