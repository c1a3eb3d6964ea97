"""The well-known strings of the scheduler interface.

They are keys and values in maps that may hold anything, so both sides must spell them alike. A tag
key consists of domain, group and key.
"""

from typing import Final

# Node attributes.
ARCH: Final = "si/arch"
HOST_NAME: Final = "si/hostname"
RACK_NAME: Final = "si/rackname"
OS: Final = "si/os"
INSTANCE_TYPE: Final = "si/instance-type"
FAILURE_DOMAIN_ZONE: Final = "si/zone"
FAILURE_DOMAIN_REGION: Final = "si/region"
LOCAL_IMAGES: Final = "si/local-images"
NODE_PARTITION: Final = "si/node-partition"
NODE_READY_ATTRIBUTE: Final = "ready"

# Allocation attributes.
APPLICATION_ID: Final = "si/application-id"
CONTAINER_IMAGE: Final = "si/container-image"
CONTAINER_PORTS: Final = "si/container-ports"

# Parts of a tag key.
DOMAIN_K8S: Final = "kubernetes.io/"
DOMAIN_YUNIKORN: Final = "yunikorn.apache.org/"
DOMAIN_YUNIKORN_INTERNAL: Final = "internal.yunikorn.apache.org/"
GROUP_META: Final = "meta/"
GROUP_LABEL: Final = "label/"
GROUP_ANNOTATION: Final = "annotation/"
KEY_POD_NAME: Final = "podName"
KEY_NAMESPACE: Final = "namespace"
KEY_REQUIRED_NODE: Final = "requiredNode"
KEY_ALLOW_PREEMPTION: Final = "allowPreemption"
CREATION_TIME: Final = "creationTime"

# Tags of asks and allocations.
TAG_REQUIRED_NODE: Final = DOMAIN_YUNIKORN + KEY_REQUIRED_NODE
TAG_ALLOW_PREEMPTION: Final = DOMAIN_YUNIKORN + KEY_ALLOW_PREEMPTION
TAG_CREATION_TIME: Final = CREATION_TIME
TAG_FOREIGN: Final = "foreign"
FOREIGN_STATIC: Final = "static"
FOREIGN_DEFAULT: Final = "default"

# Tags of applications.
APP_TAG_CREATION_TIME: Final = DOMAIN_YUNIKORN + CREATION_TIME
APP_TAG_CREATE_FORCE: Final = "application.create.force"
APP_TAG_STATE_AWARE_DISABLE: Final = "application.stateaware.disable"
APP_TAG_NAMESPACE_RESOURCE_QUOTA: Final = "namespace.resourcequota"
APP_TAG_NAMESPACE_RESOURCE_GUARANTEED: Final = "namespace.resourceguaranteed"
APP_TAG_NAMESPACE_RESOURCE_MAX_APPS: Final = "namespace.resourcemaxapps"
APP_TAG_COMPLETING_DISABLE: Final = "application.completing.disable"
"""Of this core alone: `true` keeps an application that has no work from completing."""
APP_TAG_NODE_SORT_POLICY: Final = "node.sort.policy"
"""Of this core alone: the order of nodes of one application."""

# Resource types.
MEMORY: Final = "memory"
CPU: Final = "vcore"
