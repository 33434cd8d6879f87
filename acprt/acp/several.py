"""What the two ends that speak several versions share: the handshake chooses whose handlers serve the connection.

The frames stay where they are; only the handlers they meet are exchanged, before any of them is dispatched.
"""

from __future__ import annotations

from acprt.acp.dialect import Side
from acprt.acp.roles import Role, RoleDialect
from acprt.limits import Limits
from acprt.runtime.endpoint import Endpoint
from acprt.runtime.handlers import Chains

__all__ = ["SeveralVersions"]


class SeveralVersions(Endpoint):
    """An endpoint whose handlers, close callbacks and spawned work are those of the role of the chosen version.

    Its name is that of the newest role, and so are its `limits` unless they are given. Raises TypeError without a role,
    and for one of another version or side.
    """

    side: Side

    def __init__(self, *, v1: Role | None = None, v2: Role | None = None, limits: Limits | None = None) -> None:
        sides = _sides_of(self.side, v1=v1, v2=v2)
        newest = sides[max(sides)]
        dialect = RoleDialect(self.side, sides, hands_over=True)
        super().__init__(newest.name, limits=limits or newest.limits, dialect=dialect)

    def chains(self) -> Chains:
        """None of its own. Raises TypeError for what was registered here, since nothing would ever reach it."""
        if self._routes or self._close_callbacks or self._spawned:
            raise TypeError(
                f"{type(self).__name__} of {self.name!r}: nothing registered here is ever called: "
                f"register it with the acp.{self.side.title()} of each version"
            )
        return super().chains()


def _sides_of(side: Side, **roles: Role | None) -> dict[int, Role]:
    """The roles by version. Raises TypeError when there is none, or one speaks another version or side."""
    sides = {int(name.removeprefix("v")): role for name, role in roles.items() if role is not None}
    if not sides:
        raise TypeError(f"give at least one {side}: v1=…, v2=…")
    for version, role in sides.items():
        if (role.side, role.protocol) != (side, version):
            theirs = f"acp.{role.side.title()} {role.name!r} of version {role.protocol}"
            raise TypeError(f"v{version}= takes an acp.{side.title()} of version {version}, not {theirs}")
    return sides
