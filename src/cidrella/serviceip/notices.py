"""What the repairer has to say, as events where people look: on Services (B8), and on RangeAllocations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cidrella.core.repair import Finding, Wrong
from cidrella.kube.events import Reference
from cidrella.model.serviceip import RANGE_ALLOCATION_API_VERSION, RANGE_ALLOCATION_KIND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.kube.events import Recorder
    from cidrella.model.serviceip import SeenService

CORRUPT: Final = "RangeAllocationCorrupt"
REBUILT: Final = "RangeAllocationRebuilt"
_ACTION: Final = "Repair"


class Notices:
    """Tells. `services` are those known by the watch, as "namespace/name"."""

    def __init__(self, recorder: Recorder, services: Mapping[str, SeenService]) -> None:
        self._recorder = recorder
        self._services = services

    def found(self, finding: Finding) -> None:
        """Something is wrong with the address of a Service. One that is gone meanwhile is not spoken of."""
        service = self._services.get(finding.service)
        if service is None:
            return
        namespace, _, name = service.name.rpartition("/")
        about = Reference("v1", "Service", name, service.uid, namespace)
        self._recorder.record(about, finding.wrong.value, _words(finding), action=_ACTION)

    def corrupt(self, name: str, uid: str, problem: str) -> None:
        """The object of a range makes no sense."""
        note = f"{problem}. Until it is rebuilt from the Services, no address of the range is given"
        self._recorder.record(_allocation(name, uid), CORRUPT, note, action=_ACTION)

    def rebuilt(self, name: str, uid: str, addresses: int) -> None:
        """The object of a range was made, or made anew."""
        note = f"made from the Services, which have {addresses} addresses of the range"
        self._recorder.record(_allocation(name, uid), REBUILT, note, type="Normal", action=_ACTION)


def _allocation(name: str, uid: str) -> Reference:
    return Reference(RANGE_ALLOCATION_API_VERSION, RANGE_ALLOCATION_KIND, name, uid)


def _words(finding: Finding) -> str:
    match finding.wrong:
        case Wrong.NOT_ALLOCATED:
            return f"{finding.address} was not accounted for as given; it is now"
        case Wrong.ALREADY_ALLOCATED:
            return f"the Service {finding.other} has {finding.address} as well; one of the two has to be created anew"
        case Wrong.OUT_OF_RANGE:
            return f"{finding.address} is in no range of Services; create the Service anew to have another address"
        case Wrong.NOT_VALID:
            return f"{finding.address!r} is no address; the Service has to be created anew"
