"""Secrets in the forms in which programs write them, and texts that look a little like them."""

from random import Random
from typing import Final

HIDDEN: Final = "q7Zx81kLmnB2"
_LONG: Final = f"{HIDDEN}abcdefghijklmnopqrstuvwxyz0123456789"
_UPPER: Final = "Q7ZX81KLMNB2ABCD"
_HEX: Final = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"

WRITTEN: Final = (
    f"auth={HIDDEN}", f"auth: {HIDDEN}", f"bearer={HIDDEN}", f"Bearer {HIDDEN}", f"password|{HIDDEN}",
    f"plink -pw {HIDDEN} host", f"db_pw={HIDDEN}", f"redis-cli -a {HIDDEN}", f"redis-cli -h x -a {HIDDEN} ping",
    f"password={HIDDEN}", f"--token {HIDDEN}", f"kennwort={HIDDEN}", f"contraseña: {HIDDEN}",
    f"postgres://bob:{HIDDEN}@host/db", f"postgres://bob:a/{HIDDEN}@host/db", f"redis://:{HIDDEN}@h:6379",
    f"https://hooks.slack.com/services/T00000000/B00000000/{HIDDEN}",
    f"https://discord.com/api/webhooks/1234567890/{HIDDEN}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{HIDDEN}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{HIDDEN}",
    f"secret:\n  user: bob\n  inner: {HIDDEN}\n", f"credentials:\n- bob\n- {HIDDEN}\n",
    f"- credentials:\n    deep:\n      er: {HIDDEN}\n  x: y",
    f"credentials: {{user: bob, other: [1, '{HIDDEN}']}}", f'{{"secret": {{"a": {{"b": "{HIDDEN}"}}}}}}',
    f"{{'credentials': ('bob', {{'x': '}}{HIDDEN}'}})}}",
)  # fmt: skip
"""What is secret has no form of its own: a name or a mark before it says so."""
KEYS: Final = (
    *(f"gh{kind}_{_LONG}" for kind in "oprsu"), f"github_pat_{_LONG}", f"glpat-{_LONG}",
    f"glrt-{_LONG}", f"hvs.{_LONG}", f"hvb.{_LONG}", f"sk_live_{_LONG}", f"rk_test_{_LONG}",
    f"AKIA{_UPPER}", f"ASIA{_UPPER}", f"AIza{_LONG}", f"ya29.{_LONG}", f"pypi-{_LONG}",
    f"xoxb-{_LONG}", f"xoxa-{_LONG}", f"xoxp-{_LONG}", f"xapp-1-{_LONG}", f"npm_{_LONG}",
    f"sk-proj-{_LONG}", f"sk-ant-api03-{_LONG}", f"dckr_pat_{_LONG}", f"dop_v1_{_HEX}{_HEX}",
    f"shpat_{_HEX}", f"dapi{_HEX}", f"SG.{_LONG}.{_LONG}", f"hf_{'abcdEFGHijkl' * 3}",
    f"AGE-SECRET-KEY-1{_UPPER}{_UPPER}", f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{HIDDEN}",
)  # fmt: skip
"""They are known by how they begin, and nothing beside them says what they are."""
PLANTED: Final = (*WRITTEN, *KEYS)
MARKS: Final = (HIDDEN, _UPPER, _HEX, "abcdEFGHijkl")
"""Each of PLANTED has one of these, and none may be seen."""


def shows_one(text: str) -> bool:
    return any(mark in text for mark in MARKS)


def harmless(count: int, seed: int = 1) -> list[str]:
    """Make up texts as a cluster has them: names, ids, digests, amounts, sentences."""
    random = Random(seed)  # noqa: S311 - no secret is made
    hexes = lambda n: "".join(random.choices("0123456789abcdef", k=n))  # noqa: E731
    letters = lambda n: "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=n))  # noqa: E731
    number = lambda: random.randrange(10**6)  # noqa: E731
    makers = (
        lambda: "-".join(hexes(n) for n in (8, 4, 4, 4, 12)),
        lambda: f"registry.local/team/{letters(6)}@sha256:{hexes(64)}",
        lambda: f"sha256:{hexes(64)}",
        lambda: f"web-{letters(9)}-{letters(5)}",
        lambda: f"spark-pi-{hexes(16)}-exec-{number()}",
        lambda: f"ip-10-0-{number() % 256}-{number() % 256}.ec2.internal",
        lambda: f"gke-prod-pool-{hexes(8)}-{letters(4)} in asia-east1-b",
        lambda: f"node-{number():06}: vcore={number()}, memory={number()}Mi",
        lambda: f"queue root.{letters(5)}.{letters(4)} is full: {number()} of {number()}",
        lambda: f"0/{number()} nodes are available: insufficient nvidia.com/gpu",
        lambda: f"http://host-{letters(4)}:{number() % 60000}/ws/v1/partition/default/nodes",
        lambda: f"git commit {hexes(40)} by ann@{letters(6)}.org",
        lambda: f"application-{number()}-{number():04}_attempt_{number() % 9}",
        lambda: f"task group 'workers-{number()}' needs {number() / 1000} vcore",
        lambda: f"max_tokens: {number()}, passes={number() % 9}, authors=ann|bob",
        lambda: f"disk-{letters(4)} at /var/lib/kubelet/pods/{hexes(8)}/volumes",
        lambda: f"topology.kubernetes.io/zone: eu-west-1{random.choice('abc')}",
        lambda: f"limits:\n- limit: of {letters(4)}\n  users: [bob, '*']\n  maxresources: {{vcore: {number()}}}",
        lambda: f"{number()}m / {number()}Gi, {number()}k, 2026-11-{1 + number() % 28:02}T10:00:00Z",
        lambda: f"the predicate raised TimeoutError('no answer from {letters(7)} in 1 s')",
    )  # fmt: skip
    return [makers[place % len(makers)]() for place in range(count)]
