"""The well-known strings of the scheduler interface.

They are keys and values in maps that may hold anything, so both sides must spell them alike. A tag
key consists of domain, group and key.
"""

from typing import Final

# Node attributes.
ARCH: Final = "si/arch"
"""Node: the architecture of its cpus."""
HOST_NAME: Final = "si/hostname"
"""Node: its host name."""
RACK_NAME: Final = "si/rackname"
"""Node: the rack it stands in."""
OS: Final = "si/os"
"""Node: its operating system."""
INSTANCE_TYPE: Final = "si/instance-type"
"""Node: its type; what applications have used is added up for each type."""
FAILURE_DOMAIN_ZONE: Final = "si/zone"
"""Node: its zone."""
FAILURE_DOMAIN_REGION: Final = "si/region"
"""Node: its region."""
LOCAL_IMAGES: Final = "si/local-images"
"""Node: the container images that it has."""
NODE_PARTITION: Final = "si/node-partition"
"""Node: the partition it belongs to; without it the node is in `default`."""
GPU_DEVICES: Final = "yunikorn-actors/gpu-devices"
"""Of this core alone. Node: how many devices its `gpu` are, each of a thousand. Allocation: the
numbers of those that it has, such as `0,3`."""
GPU_MODEL: Final = "yunikorn-actors/gpu-model"
"""Of this core alone. Node: the model of its devices. Ask: the models that will do, such as
`V100|A100`."""
NODE_READY_ATTRIBUTE: Final = "ready"
"""Node: `false` keeps new work away from it until `true` comes with an update."""

# Allocation attributes.
APPLICATION_ID: Final = "si/application-id"
"""Allocation: the application it belongs to."""
CONTAINER_IMAGE: Final = "si/container-image"
"""Allocation: the image it runs."""
CONTAINER_PORTS: Final = "si/container-ports"
"""Allocation: the ports it uses."""

# Parts of a tag key.
DOMAIN_K8S: Final = "kubernetes.io/"
"""Tags that come from Kubernetes begin with it."""
DOMAIN_YUNIKORN: Final = "yunikorn.apache.org/"
"""Tags of YuniKorn begin with it."""
DOMAIN_YUNIKORN_INTERNAL: Final = "internal.yunikorn.apache.org/"
"""Tags that are no user's business begin with it."""
GROUP_META: Final = "meta/"
"""After the domain: data about the pod."""
GROUP_LABEL: Final = "label/"
"""After the domain: a label of the pod."""
GROUP_ANNOTATION: Final = "annotation/"
"""After the domain: an annotation of the pod."""
KEY_POD_NAME: Final = "podName"
"""Key of a tag: the name of the pod."""
KEY_NAMESPACE: Final = "namespace"
"""Key of a tag: the namespace. The built-in configuration has a queue for each."""
KEY_REQUIRED_NODE: Final = "requiredNode"
"""Key of `TAG_REQUIRED_NODE`."""
KEY_ALLOW_PREEMPTION: Final = "allowPreemption"
"""Key of `TAG_ALLOW_PREEMPTION`."""
CREATION_TIME: Final = "creationTime"
"""Key of the two tags with a creation time."""

# Tags of asks and allocations.
TAG_REQUIRED_NODE: Final = DOMAIN_YUNIKORN + KEY_REQUIRED_NODE
"""Ask: the only node it may run on, drained or not."""
TAG_ALLOW_PREEMPTION: Final = DOMAIN_YUNIKORN + KEY_ALLOW_PREEMPTION
"""Ask: `false` protects it from preemption as far as possible. A policy goes before the tag."""
TAG_CREATION_TIME: Final = CREATION_TIME
"""Ask, allocation: when it was made, in seconds since 1970."""
TAG_PREDICATES: Final = "predicates"
"""Of this core alone, ask: `false` if its resource manager has no predicates for it, so that it is
placed without a question about the node."""
TAG_RUNTIME: Final = "yunikorn-actors/runtime"
"""Of this core alone, ask or application: how many seconds it will run, as far as is known.
Policies see it; nothing ends by it."""
TAG_FOREIGN: Final = "foreign"
"""Allocation: it belongs to no application of this core; its room on the node is not free."""
FOREIGN_STATIC: Final = "static"
"""Value of `TAG_FOREIGN`: it cannot be moved. The core treats all values alike."""
FOREIGN_DEFAULT: Final = "default"
"""Value of `TAG_FOREIGN`: work like any other. The core treats all values alike."""

# Tags of applications.
APP_TAG_CREATION_TIME: Final = DOMAIN_YUNIKORN + CREATION_TIME
"""Application: when it was made, in seconds since 1970; after a recovery its gang waits from then
on."""
APP_TAG_CREATE_FORCE: Final = "application.create.force"
"""Application: `true` if its work runs already. It is taken, in the recovery queue if no other will
do."""
APP_TAG_STATE_AWARE_DISABLE: Final = "application.stateaware.disable"
"""Application: any text, and it is never Starting."""
APP_TAG_NAMESPACE_RESOURCE_QUOTA: Final = "namespace.resourcequota"
"""Application: the maximum of the queue that placement creates for it, as JSON."""
APP_TAG_NAMESPACE_RESOURCE_GUARANTEED: Final = "namespace.resourceguaranteed"
"""Application: the guarantee of the queue that placement creates for it, as JSON."""
APP_TAG_NAMESPACE_RESOURCE_MAX_APPS: Final = "namespace.resourcemaxapps"
"""Application: how many may run in the queue that placement creates for it."""
APP_TAG_COMPLETING_DISABLE: Final = "application.completing.disable"
"""Of this core alone: `true` keeps an application that has no work from completing."""
APP_TAG_QUEUE_FALLBACK: Final = "application.queue.fallback"
"""Of this core alone: `false` rejects an application that no placement rule places. Without it
`root.default` takes that, where it exists."""
APP_TAG_NODE_SORT_POLICY: Final = "node.sort.policy"
"""Of this core alone: the order of nodes of one application."""

# Resource types.
MEMORY: Final = "memory"
"""Resource type: memory, in bytes."""
CPU: Final = "vcore"
"""Resource type: cpus, in thousandths."""
GPU: Final = "gpu"
"""Resource type: devices, in thousandths, on nodes that say how many they have."""
