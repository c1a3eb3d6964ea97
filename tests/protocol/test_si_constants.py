"""The strings of the interface, as clients spell them."""

import pytest

from yunikorn_actors import si

STRINGS = {
    "ARCH": "si/arch",
    "HOST_NAME": "si/hostname",
    "RACK_NAME": "si/rackname",
    "OS": "si/os",
    "INSTANCE_TYPE": "si/instance-type",
    "FAILURE_DOMAIN_ZONE": "si/zone",
    "FAILURE_DOMAIN_REGION": "si/region",
    "LOCAL_IMAGES": "si/local-images",
    "NODE_PARTITION": "si/node-partition",
    "NODE_READY_ATTRIBUTE": "ready",
    "APPLICATION_ID": "si/application-id",
    "CONTAINER_IMAGE": "si/container-image",
    "CONTAINER_PORTS": "si/container-ports",
    "DOMAIN_K8S": "kubernetes.io/",
    "DOMAIN_YUNIKORN": "yunikorn.apache.org/",
    "DOMAIN_YUNIKORN_INTERNAL": "internal.yunikorn.apache.org/",
    "GROUP_META": "meta/",
    "GROUP_LABEL": "label/",
    "GROUP_ANNOTATION": "annotation/",
    "KEY_POD_NAME": "podName",
    "KEY_NAMESPACE": "namespace",
    "KEY_REQUIRED_NODE": "requiredNode",
    "KEY_ALLOW_PREEMPTION": "allowPreemption",
    "CREATION_TIME": "creationTime",
    "TAG_REQUIRED_NODE": "yunikorn.apache.org/requiredNode",
    "TAG_ALLOW_PREEMPTION": "yunikorn.apache.org/allowPreemption",
    "TAG_CREATION_TIME": "creationTime",
    "TAG_FOREIGN": "foreign",
    "FOREIGN_STATIC": "static",
    "FOREIGN_DEFAULT": "default",
    "APP_TAG_CREATION_TIME": "yunikorn.apache.org/creationTime",
    "APP_TAG_CREATE_FORCE": "application.create.force",
    "TAG_PREDICATES": "predicates",
    "TAG_RUNTIME": "yunikorn-actors/runtime",
    "APP_TAG_QUEUE_FALLBACK": "application.queue.fallback",
    "APP_TAG_STATE_AWARE_DISABLE": "application.stateaware.disable",
    "APP_TAG_NAMESPACE_RESOURCE_QUOTA": "namespace.resourcequota",
    "APP_TAG_NAMESPACE_RESOURCE_GUARANTEED": "namespace.resourceguaranteed",
    "APP_TAG_NAMESPACE_RESOURCE_MAX_APPS": "namespace.resourcemaxapps",
    "APP_TAG_COMPLETING_DISABLE": "application.completing.disable",
    "APP_TAG_NODE_SORT_POLICY": "node.sort.policy",
    "MEMORY": "memory",
    "CPU": "vcore",
    "GPU": "gpu",
    "GPU_DEVICES": "yunikorn-actors/gpu-devices",
    "GPU_MODEL": "yunikorn-actors/gpu-model",
}


@pytest.mark.parametrize(("name", "text"), STRINGS.items())
def test_string(name: str, text: str) -> None:
    assert text == getattr(si.constants, name)


def test_no_string_is_left_out() -> None:
    assert sorted(STRINGS) == sorted(name for name in vars(si.constants) if name.isupper())


def test_public_names_are_sorted_and_there() -> None:
    assert sorted(set(si.__all__)) == si.__all__
    assert all(hasattr(si, name) for name in si.__all__)
