"""The kinds of pools, and what tells them apart.

Everything that knows pools goes over `POOL_KINDS`: which collections are followed, how an object is addressed, what a
pool is called. Nothing above the model names a kind. The core knows none at all: to it a pool is a name and what it
gives, so names must differ over all kinds. One kind's are the objects' own names; the other's begin with what kubectl
calls the kind, and a slash, which no object's name can hold: `kubectl get ccc/pods-v6` finds the pool `ccc/pods-v6`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import fields

from cidrella.model import configs, objects
from cidrella.model.configs import ClusterCIDRConfig, ClusterCIDRConfigSpec
from cidrella.model.objects import ClusterCIDR, ClusterCIDRSpec
from cidrella.model.rules import HOST_BITS_MIN

if TYPE_CHECKING:
    from collections.abc import Mapping

PoolObject: TypeAlias = ClusterCIDR | ClusterCIDRConfig
"""A pool as it is written."""
PoolObjectSpec: TypeAlias = ClusterCIDRSpec | ClusterCIDRConfigSpec


@dataclass(frozen=True, slots=True, eq=False)
class PoolKind:
    """One kind of pools."""

    kind: str
    group: str
    version: str
    plural: str
    short: str
    """What kubectl calls it, too."""
    prefix: str
    """What a pool's name has before the object's name."""
    optional: bool
    """Whether a cluster may well do without it (K6)."""
    struct: type[ClusterCIDR] | type[ClusterCIDRConfig]
    spec: type[ClusterCIDRSpec] | type[ClusterCIDRConfigSpec]
    stand_ins: Mapping[str, object]
    """For each field that a spec must have a value that makes nothing else wrong, to judge the rest of it by."""

    @property
    def api_version(self) -> str:
        """Group and version, as objects say it."""
        return f"{self.group}/{self.version}"

    @property
    def path(self) -> str:
        """The collection in the API."""
        return f"/apis/{self.group}/{self.version}/{self.plural}"

    @property
    def resource(self) -> str:
        """The name of the definition, which permissions and kubectl know it by as well."""
        return f"{self.plural}.{self.group}"

    @property
    def spec_fields(self) -> tuple[str, ...]:
        """The fields of a spec, as they are written."""
        return tuple(each.encode_name for each in fields(self.spec))

    def object_path(self, object_name: str) -> str:
        """One object in the API; its status is at `/status` below."""
        return f"{self.path}/{object_name}"

    def pool_name(self, object_name: str) -> str:
        """What the pool of an object is called."""
        return f"{self.prefix}{object_name}"

    def __str__(self) -> str:
        return self.kind


CLUSTER_CIDR: Final = PoolKind(
    kind=objects.KIND,
    group=objects.GROUP,
    version=objects.VERSION,
    plural=objects.PLURAL,
    short="cc",
    prefix="",
    optional=False,
    struct=ClusterCIDR,
    spec=ClusterCIDRSpec,
    stand_ins={"perNodeHostBits": HOST_BITS_MIN},
)
CLUSTER_CIDR_CONFIG: Final = PoolKind(
    kind=configs.KIND,
    group=objects.GROUP,
    version=configs.VERSION,
    plural=configs.PLURAL,
    short="ccc",
    prefix="ccc/",
    optional=True,
    struct=ClusterCIDRConfig,
    spec=ClusterCIDRConfigSpec,
    stand_ins={"cidr": "::/0", "perNodeMaskSize": 64},
)
POOL_KINDS: Final = (CLUSTER_CIDR, CLUSTER_CIDR_CONFIG)
"""Every kind, in the order in which they are shown."""


def kind_of(obj: PoolObject) -> PoolKind:
    """The kind that an object is of."""
    return next(each for each in POOL_KINDS if isinstance(obj, each.struct))


def pool_name(obj: PoolObject) -> str:
    """What the pool of an object is called."""
    return kind_of(obj).pool_name(obj.metadata.name)


def find_pool(name: str) -> tuple[PoolKind, str]:
    """The kind, and the object's name, of the pool that is called so."""
    kind = next(each for each in reversed(POOL_KINDS) if name.startswith(each.prefix))
    return kind, name.removeprefix(kind.prefix)
