"""What a Node looks like."""

from __future__ import annotations

from typing import Final

from cidrella.apiserver.kinds import shapes

_CONFIG_MAP: Final = shapes.optional(
    "ConfigMapNodeConfigSource",
    "No longer in use.",
    {
        name: shapes.text("No longer in use.", "UID" if name == "uid" else "", **({"default": ""} if always else {}))
        for name, always in (
            ("namespace", True),
            ("name", True),
            ("uid", False),
            ("resourceVersion", False),
            ("kubeletConfigKey", True),
        )
    },
)
_CONFIG_SOURCE: Final = shapes.optional("NodeConfigSource", "No longer in use.", {"configMap": _CONFIG_MAP})

_TAINT: Final = shapes.item(
    "Taint",
    {
        "key": shapes.text("What the taint is called.", default=""),
        "value": shapes.text("What goes with the key."),
        "effect": shapes.text(
            "What it does to Pods that do not tolerate it: NoSchedule, PreferNoSchedule or NoExecute.",
            "TaintEffect",
            default="",
        ),
        "timeAdded": shapes.time("Since when it is there."),
    },
)
_SPEC: Final = shapes.record(
    "NodeSpec",
    "What is wanted of the node.",
    {
        "podCIDR": shapes.text("The first of podCIDRs."),
        "podCIDRs": shapes.texts(
            "The ranges that the Pods of this node have their addresses from: one, or one of each family. Once set, "
            "they stay.",
            **shapes.merged(),
        ),
        "providerID": shapes.text("What the cloud calls the machine. Once set, it stays."),
        "unschedulable": shapes.flag("Whether new Pods are kept away."),
        "taints": shapes.listing("What keeps Pods away that do not tolerate it.", _TAINT),
        "configSource": _CONFIG_SOURCE,
        "externalID": shapes.text("No longer in use."),
    },
)
_CONDITION: Final = shapes.item(
    "NodeCondition",
    {
        "type": shapes.text("What it is about, such as Ready.", "NodeConditionType", default=""),
        "status": shapes.text("True, False or Unknown.", "ConditionStatus", default=""),
        "lastHeartbeatTime": shapes.time("When the node last told of it.", default=None),
        "lastTransitionTime": shapes.time("When the status last changed.", default=None),
        "reason": shapes.text("Why, in one word."),
        "message": shapes.text("Why, in words for people."),
    },
)
_NODE_INFO: Final = shapes.record(
    "NodeSystemInfo",
    "What the node says of itself.",
    {
        "machineID": shapes.text("The machine's id.", default=""),
        "systemUUID": shapes.text("The id that the hardware has.", default=""),
        "bootID": shapes.text("The id of this run of the machine.", default=""),
        "kernelVersion": shapes.text("The version of the kernel.", default=""),
        "osImage": shapes.text("The operating system, in words.", default=""),
        "containerRuntimeVersion": shapes.text("What runs containers, and its version.", default=""),
        "kubeletVersion": shapes.text("The version of the kubelet.", default=""),
        "kubeProxyVersion": shapes.text("No longer in use.", default=""),
        "operatingSystem": shapes.text("The operating system, such as linux.", default=""),
        "architecture": shapes.text("The architecture, such as amd64.", default=""),
        "swap": shapes.optional(
            "NodeSwapStatus", "Its swap space.", {"capacity": shapes.number("In bytes.", 64, nullable=True)}
        ),
    },
)
_ENDPOINT: Final = shapes.record(
    "DaemonEndpoint", "Where the kubelet listens.", {"Port": shapes.number("The port.", default=0)}
)
_STATUS: Final = shapes.record(
    "NodeStatus",
    "What the node was last seen to be.",
    {
        "capacity": shapes.quantities("What there is of each resource."),
        "allocatable": shapes.quantities("What Pods may use of it."),
        "phase": shapes.text("No longer in use.", "NodePhase"),
        "conditions": shapes.listing("What was last observed, by type.", _CONDITION, **shapes.merged("type")),
        "addresses": shapes.listing(
            "Where the node is reached.",
            shapes.item(
                "NodeAddress",
                {
                    "type": shapes.text(
                        "InternalIP, ExternalIP, Hostname, InternalDNS or ExternalDNS.", "NodeAddressType", default=""
                    ),
                    "address": shapes.text("The address or name.", default=""),
                },
            ),
            **shapes.merged("type"),
        ),
        "daemonEndpoints": shapes.record(
            "NodeDaemonEndpoints", "Where what runs on the node listens.", {"kubeletEndpoint": _ENDPOINT}
        ),
        "nodeInfo": _NODE_INFO,
        "images": shapes.listing(
            "The container images that are there.",
            shapes.item(
                "ContainerImage",
                {
                    "names": shapes.texts("What it is called."),
                    "sizeBytes": shapes.number("Its size.", 64),
                },
            ),
        ),
        "volumesInUse": shapes.texts("Volumes that Pods use.", "UniqueVolumeName"),
        "volumesAttached": shapes.listing(
            "Volumes that are attached.",
            shapes.item(
                "AttachedVolume",
                {
                    "name": shapes.text("Which.", "UniqueVolumeName", default=""),
                    "devicePath": shapes.text("Where.", default=""),
                },
            ),
        ),
        "config": shapes.optional(
            "NodeConfigStatus",
            "No longer in use.",
            {
                "assigned": _CONFIG_SOURCE,
                "active": _CONFIG_SOURCE,
                "lastKnownGood": _CONFIG_SOURCE,
                "error": shapes.text("No longer in use."),
            },
        ),
        "runtimeHandlers": shapes.listing(
            "How containers can be run.",
            shapes.item(
                "NodeRuntimeHandler",
                {
                    "name": shapes.text("The name of the handler.", default=""),
                    "features": shapes.optional(
                        "NodeRuntimeHandlerFeatures",
                        "What it can do.",
                        {
                            "recursiveReadOnlyMounts": shapes.flag(
                                "Mounts that are read-only all through.", nullable=True
                            ),
                            "userNamespaces": shapes.flag("User namespaces.", nullable=True),
                        },
                    ),
                },
            ),
        ),
        "features": shapes.optional(
            "NodeFeatures",
            "What all handlers can do.",
            {"supplementalGroupsPolicy": shapes.flag("Policies for supplemental groups.", nullable=True)},
        ),
        "declaredFeatures": shapes.texts("What else the node can do, by name."),
    },
)
DEFINITION: Final = shapes.whole("Node", "A machine that runs Pods.", {"spec": _SPEC, "status": _STATUS})
