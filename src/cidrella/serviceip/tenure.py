"""The terms of this process as repairer: who may free what nobody has.

Rules:

- A term begins when this process leads, and ends when it does not. No two are alike, of this process or of any.
- The term is written into the object of each range before anything is freed there, and everything that is freed is
  freed by a write that finds it there (`State.free`). So what a repairer that was paused wanted to free is not freed
  once another has begun: its write is for a version that is gone, and the object now names another term.
- Nothing is freed, and no term written, by one whose lease has run out by the clock.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from cidrella.kube.duty import Duty
from cidrella.serviceip.errors import DeposedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cidrella.serviceip.ledger import Ledger
    from cidrella.serviceip.state import State


class Tenure(Duty):
    """One term after another. `on` says whether there is one and the work of a repairer may be done."""

    def __init__(self, leads: Callable[[], bool], identity: str) -> None:
        super().__init__(leads)
        self._identity = identity
        self.term = ""
        """The current one, "" for none."""

    def begin(self) -> None:
        """A new term, to be written into the objects; then duty is taken up."""
        self.term = f"{self._identity}/{secrets.token_hex(8)}"

    def lay_down(self) -> None:
        """The term ends."""
        super().lay_down()
        self.term = ""

    def require(self, term: str) -> None:
        """Go on only if this is the term still. Raises DeposedError. To be asked in every edit."""
        if not term or term != self.term or not self.leads:
            raise DeposedError(term, self.term)

    async def appoint(self, ledger: Ledger) -> None:
        """Write the current term into the object of a range. Raises KubeError, UnusableError, DeposedError."""
        term = self.term

        def edit(state: State) -> None:
            self.require(term)
            state.appoint(term)

        await ledger.change(edit)
