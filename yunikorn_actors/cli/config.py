"""Check a configuration file, show the configuration of a service, or load another one there.

`check` needs no service: it shows what the core would make of a file. Faults and warnings go to
standard error, one on a line, in the form that editors know from compilers; the tree of queues goes
to standard output. With `--json` there is one document on standard output instead. The tree shows
what counts, not what was written: with defaults, with access lists in words, and with those
properties, own or inherited, that change something.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from yunikorn_actors.cli import FAILED, NO, config_diff
from yunikorn_actors.cli.config_text import Unreadable, line_of, name_of, read_text
from yunikorn_actors.cli.policies import add_policies
from yunikorn_actors.cli.service_options import add_server
from yunikorn_actors.cli.terminal import complain
from yunikorn_actors.config import (
    ConfigError,
    PartitionConfig,
    QueueConfig,
    QueueProperties,
    SchedulerConfig,
    TemplateConfig,
    effective_properties,
    name_warnings,
    parse_config,
    warnings_in,
)
from yunikorn_actors.config.diff import access, allowance, people, rule_in_words
from yunikorn_actors.config.fault import Fault
from yunikorn_actors.config.policy_names import PolicyNames
from yunikorn_actors.config.properties import READERS
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.values.quantity import amounts

_CHECK: Final = "print the faults of a configuration, or the queues that it describes"
_DIFF: Final = "print what one configuration changes against another"
_SHOW: Final = "print the configuration that is in force in a service"
_LOAD: Final = "bring a configuration into force in a service"
_INDENT: Final = "  "


class Checked(Struct, frozen=True, kw_only=True):
    file: str
    faults: tuple[Fault, ...] = ()
    """With what can hardly be meant among them in strict mode."""
    doubts: tuple[Fault, ...] = ()
    """What can hardly be meant, where that is allowed."""
    warnings: tuple[str, ...] = ()
    """Legal but confusing names; only strict mode looks for them, and there they are faults."""
    config: SchedulerConfig | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="part", required=True, metavar="COMMAND")
    check = commands.add_parser("check", help=_CHECK, description=_CHECK)
    check.add_argument("file", metavar="FILE", help="a configuration; - reads standard input")
    check.add_argument(
        "--strict", action="store_true", help="refuse also what is legal but confusing"
    )
    check.add_argument("--json", action="store_true", help="print the result as JSON")
    add_policies(check)
    check.set_defaults(part=_check)
    diff = commands.add_parser("diff", help=_DIFF, description=_DIFF)
    config_diff.add_arguments(diff)
    diff.set_defaults(part=config_diff.run)
    show = commands.add_parser("show", help=_SHOW, description=_SHOW)
    add_server(show)
    show.set_defaults(part=_show)
    load = commands.add_parser("load", help=_LOAD, description=_LOAD)
    load.add_argument("file", metavar="FILE", help="a configuration; - reads standard input")
    add_server(load)
    load.set_defaults(part=_load)


def run(options: argparse.Namespace) -> int:
    status: int = options.part(options)
    return status


def _check(options: argparse.Namespace) -> int:
    name = name_of(options.file)
    try:
        text = read_text(options.file)
    except Unreadable as error:
        print(f"{name}: {error}", file=sys.stderr)
        return FAILED
    names = options.policies.names_for(text)
    checked = _judge(name, text, names, strict=options.strict)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(checked), indent=2).decode())
    else:
        _print(checked, names)
    return NO if checked.faults or checked.warnings else 0


# --- a service ------------------------------------------------------------------------------------


def _show(options: argparse.Namespace) -> int:
    from yunikorn_actors.cli import service_configuration  # noqa: PLC0415 - `check` needs none of it

    return service_configuration.show(options)


def _load(options: argparse.Namespace) -> int:
    from yunikorn_actors.cli import service_configuration  # noqa: PLC0415 - `check` needs none of it

    return service_configuration.load(options)


# --- a verdict ------------------------------------------------------------------------------------


def _judge(name: str, text: str, names: PolicyNames, *, strict: bool) -> Checked:
    try:
        config = parse_config(text, names)
    except ConfigError as error:
        return Checked(file=name, faults=error.faults)
    doubts = warnings_in(text, names)
    if not strict:
        return Checked(file=name, doubts=doubts, config=config)
    return Checked(file=name, faults=doubts, warnings=name_warnings(config), config=config)


def _print(checked: Checked, names: PolicyNames) -> None:
    for fault in checked.faults:
        complain(line_of(checked.file, fault))
    for doubt in checked.doubts:
        complain(line_of(checked.file, doubt, "warning: "))
    for warning in checked.warnings:
        print(printable(f"{checked.file}: {warning} (rename all but one)"), file=sys.stderr)
    if checked.config is not None:
        for line in tree(checked.config, names):
            print(printable(line))


# --- the tree -------------------------------------------------------------------------------------


def tree(config: SchedulerConfig, names: PolicyNames) -> Iterator[str]:
    """Yield what the configuration means, line by line."""
    yield f"checksum {config.checksum}"
    for partition in config.partitions:
        yield ""
        yield f"partition {partition.name}"
        yield from _indented(_partition_lines(partition, names))


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (_INDENT + line for line in lines)


def _partition_lines(partition: PartitionConfig, names: PolicyNames) -> Iterator[str]:
    order = partition.node_sort
    weights = ", ".join(f"{kind} {weight:g}" for kind, weight in sorted(order.weights.items()))
    yield f"node order: {order.policy}, weights {weights}"
    quota = "on" if partition.quota_preemption_enabled else "off"
    yield f"preemption: {'on' if partition.preemption_enabled else 'off'}, by quota {quota}"
    if partition.user_group_resolver:
        yield f"groups of users: {partition.user_group_resolver}"
    for number, rule in enumerate(partition.placement_rules, start=1):
        yield f"placement rule {number}: {rule_in_words(rule)}"
    yield from _queue_lines(partition.root, partition.root.name, {}, names)


def _queue_lines(
    queue: QueueConfig, path: str, inherited: Mapping[str, str], names: PolicyNames
) -> Iterator[str]:
    properties = effective_properties(inherited, queue.properties)
    yield f"{path} (leaf)" if queue.is_leaf else path
    yield from _indented(_own_lines(queue, properties, names))
    for child in queue.children:
        yield from _indented(_queue_lines(child, f"{path}.{child.name}", properties, names))


def _own_lines(
    queue: QueueConfig, properties: Mapping[str, str], names: PolicyNames
) -> Iterator[str]:
    yield from _amount_lines(queue)
    yield from _labelled({"submit": access(queue.submit_acl), "admin": access(queue.admin_acl)})
    yield from _labelled(_telling(properties, names))
    for limit in queue.limits:
        yield f"limit for {people(limit)}: {allowance(limit)}"
    if queue.template is not None:
        yield "queues created below:"
        yield from _indented(_amount_lines(queue.template))
        yield from _indented(_labelled(_telling(queue.template.properties, names)))


def _labelled(texts: Mapping[str, str]) -> Iterator[str]:
    return (f"{label}: {text}" for label, text in texts.items() if text)


def _amount_lines(queue: QueueConfig | TemplateConfig) -> Iterator[str]:
    most = queue.max_applications
    return _labelled(
        {
            "guaranteed": amounts(queue.guaranteed),
            "max": amounts(queue.max),
            "applications": f"at most {most} at a time" if most else "",
        }
    )


def _telling(properties: Mapping[str, str], names: PolicyNames) -> dict[str, str]:
    """Leave out properties that equal the default or that cannot be read."""
    default = QueueProperties()
    return {
        f"property {key}": value
        for key, value in sorted(properties.items())
        if QueueProperties.of({key: value}) != default
        and (READERS[key].parse(value) is not None or value in names.of_property(key))
    }
