"""Secrets in text: what looks like one is replaced before the text goes anywhere.

Nobody tells the core what is secret, so names and forms decide: what is called like a password or a
token, what follows a flag of such a name, what has the form of a key. It works in one pass over a
text, whatever that holds, because texts come from outside.

What came as text alone (the exception of a callback, the reason of a predicate) is masked where it
comes in, so that machines never see it: no key, no sum and no order depends on it. What machines
decide by (tags, attributes, the configuration) is masked where it goes out.

One regular expression for many words.

`re` tries the words of `a|b|c` one after the other at each place. Here they share what they begin
with, so that a place is given up after its first letter.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from yunikorn_actors.values.nested_secrets import nested


def one_of(words: Iterable[str]) -> str:
    """Write an expression that finds any of the words; of several at one place, any."""
    by_first: dict[str, list[str]] = defaultdict(list)
    for word in words:
        by_first[word[:1]].append(word[1:])
    if "" in by_first:
        return ""
    branches = [re.escape(first) + one_of(rest) for first, rest in sorted(by_first.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


_NAMES: Final = (
    ("pass", r"passwor[dt]|passwd|passphrase|passcode|(?:store|key)pass|(?<![a-z])pass(?![a-z])"),
    ("pass", r"(?-i:[A-Z]PASS|[a-z]Pass)(?![a-z])"),
    ("pw", r"pwd|(?<![a-z])pw(?![a-z])"),
    ("kennwort", "kennwort"),
    ("contrase", "contrase"),
    ("secret", r"(?<!pull)secret(?!ary|[_-]?name)"),
    ("token", r"token(?!iz)"),
    ("cred", r"credential|(?<![a-z])creds(?![a-z])"),
    ("jwt", r"(?<![a-z])jwt(?![a-z])"),
    ("session", "session_?id"),
    ("auth", r"(?<![a-z])auth(?![a-z])|(?-i:[a-z]Auth)(?![a-z])|authorization"),
    ("bearer", r"(?<![a-z])bearer(?![a-z])"),
    ("cookie", "cookie"),
    ("signature", "signature"),
    *(
        (kind, rf"{kind}[._-]?key")
        for kind in ("api", "access", "account", "private", "encryption", "signing")
    ),
)
"""What is called so is secret. Before each the text, in lower case, without which it is nowhere."""
_NAME: Final = re.compile(f"(?i){'|'.join(name for _, name in _NAMES)}")
"""Searched for in the name of a field, an option or a header."""

_BARE: Final = r"(?:[^\s,;&})\]\"':.\\]|[\"':.\\](?=[^\s,;&})\]\"':.\\]))+"
"""What stands without quotes; a mark at its end belongs to the sentence around it."""
_VALUE: Final = re.compile(
    r"[bru]{0,2}(?:'{3}.*?'{3}|\"{3}.*?\"{3})|!!\w+[ \t]+[^\s,;]+"
    r"|\\+\"(?:(?!\\+\").)*\\+\"|[bru]{0,2}(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|[|>][-+0-9]*[ \t]*(?:\n|\\+n)[ \t]*[^\n\\]+"
    rf"|(?i:bearer|basic|token|digest|negotiate)\s+{_BARE}"
    rf"|{_BARE}",
    re.DOTALL,
)
_ASSIGNED: Final = re.compile(
    r"(?<![\w.-])((?:[\w.-]|\\u[0-9a-f]{4})+)\\*[\"']?(?:\s*(?:=>|->|:=|==?|:|%3[AaDd])\s*|\|{1,2}(?=\S))"
)
"""`name=`, `name: `, `"name": `, and the same escaped, as JSON in a text is."""
_BLANK: Final = r"(?:\s|\\+[nrt])"
"""White space, and the same in the representation of a text."""
_OPTION: Final = re.compile(rf"(?<![\w-])(--?[\w.-]+)(?:\\*[\"']\s*,\s*|\\*[\"']?{_BLANK}+)(?!-)")
"""`--name `, and `"--name", `."""
_NAMED_PAIR: Final = re.compile(
    rf"(?i)(?<!\w)name\\*[\"']?\s*[:=]\s*\\*[\"']?([\w.-]+)\\*[\"']?(?:\s*,\s*|{_BLANK}+)\\*[\"']?value\\*[\"']?\s*[:=]\s*"
)
"""`name: X, value: `, as the variables of a container are written."""
_PROPERTY: Final = re.compile(r"(?<![\w.-])(?!root\.)(\w[\w-]*(?:\.[\w-]+){2,})[ \t]+")
"""`a.b.name value`, as files of properties are written; paths of queues look the same."""
_QUOTED_PAIR: Final = re.compile(r"\(\s*b?\\*[\"']([\w.-]+)\\*[\"']\s*,\s*(?=b?\\*[\"'])")
"""`('name', 'value')`, as headers are written."""
_COOKIE: Final = re.compile(r"(?i)(?<![\w-])((?:set-)?cookie)\\*[\"']?\s*:\s*")
_COOKIE_LINE: Final = re.compile(r"[^\n\"'\\]+")
_NAMED_ELEMENT: Final = re.compile(r"<name>\s*([\w.-]+)\s*</name>\s*<value>(?=[^<])")
_ELEMENT: Final = re.compile(r"<([\w.:-]+)[^<>]*>(?=[^<])")
_ELEMENT_TEXT: Final = re.compile(r"[^<]+")
_NAMED: Final = (
    (_COOKIE, _COOKIE_LINE),
    (_NAMED_PAIR, _VALUE),
    (_ASSIGNED, _VALUE),
    (_OPTION, _VALUE),
    (_PROPERTY, _VALUE),
    (_QUOTED_PAIR, _VALUE),
    (_NAMED_ELEMENT, _ELEMENT_TEXT),
    (_ELEMENT, _ELEMENT_TEXT),
)
"""What comes before a value, with its name; and what the value is."""
_SHAPES: Final = (
    ("akia", r"AKIA[0-9A-Z]{16}"),  # access keys of AWS, for long and for a session
    ("asia", r"ASIA[0-9A-Z]{16}"),
    ("aiza", r"AIza[\w-]{30,}"),  # Google: of an application, of OAuth
    ("ya29.", r"ya29\.[\w-]{20,}"),
    *((f"gh{kind}_", rf"gh{kind}_[A-Za-z0-9]{{20,}}") for kind in "oprsu"),  # GitHub
    ("github_pat_", r"github_pat_\w{20,}"),
    *((f"gl{kind}-", rf"gl{kind}-[\w-]{{16,}}") for kind in ("pat", "rt", "dt", "cbt")),  # GitLab
    ("xox", r"xox[abeprs]-[\w-]{10,}"),  # Slack
    ("xapp-", r"xapp-\d-[\w-]{10,}"),
    ("hvs.", r"hvs\.[\w-]{20,}"),  # Vault: of a service, of a batch
    ("hvb.", r"hvb\.[\w-]{20,}"),
    *(
        (f"{kind}k_{of}_", rf"{kind}k_{of}_\w{{16,}}") for kind in "rs" for of in ("live", "test")
    ),  # Stripe
    ("sk-proj-", r"sk-proj-[\w-]{20,}"),
    ("sk-ant-", r"sk-ant-[\w-]{20,}"),
    ("hf_", r"hf_[A-Za-z]{30,}"),
    ("npm_", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi-", r"pypi-(?=[\w-]*[A-Z])[\w-]{20,}"),
    ("dckr_pat_", r"dckr_pat_[\w-]{20,}"),
    ("dop_v1_", r"dop_v1_[a-f0-9]{32,}"),  # DigitalOcean
    ("shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),  # Shopify
    ("sg.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),  # SendGrid
    ("dapi", r"dapi[a-f0-9]{32}"),  # Databricks
    ("age-secret-key-1", r"AGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    ("eyj", r"eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?"),  # a token of JSON, signed
)
"""Keys and tokens that are known by how they begin, and how they go on."""
_FORMS: Final = (
    (
        ("private key",),
        (
            r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)(.+?)"
            r"(-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
        ),
    ),
    (("bearer",), rf"(?i)(\bbearer\s+)(?!of\b)({_BARE})()"),
    (("basic",), r"(?i:(\bbasic\s+))((?=[A-Za-z+/]*[0-9=])[A-Za-z0-9+/=]{12,})()"),
    (("sig=",), r"([?&;]sig=)([^\s&\"']+)()"),
    (("-u ", "-u=", "--user"), r"(?<![\w-])((?:-u|--user)[ =][^\s:]{1,100}:)([^\s\"']+)()"),
    (
        (" -p",),
        r"(\b(?:mysql\w*|mariadb|sshpass|login)\b[^\n|;]{0,200}?\\*[\"']?\s-p(?:\\*[\"'],)?\s*)([^\s\"']+)()",
    ),
    (("redis-cli",), r"(\bredis-cli\b[^\n|;]{0,200}?\s-a\s+)([^\s\"']+)()"),
    (("thin:",), r"(thin:[^\s/:@]{1,100}/)([^\s/@]+)(@)"),
    (
        ("pass", "token", "api key"),
        (
            r"(?i)(\b(?:passw(?:or)?d|passphrase|token|api key(?: provided)?)"
            r"(?: is| was)?:?\s+[\"']?)"
            r"((?=[^\s\"']*[0-9])(?=[^\s\"']*[a-z])[^\s\"'=:,]{8,})()"
        ),
    ),
    (("://",), r"(://[^\s/:@]*:)([^\s/]+|(?!\d{1,5}[/?#])[^\s@]{1,200})(@)"),
    (("://",), r"(://)((?=[^\s/:@]*[0-9])[^\s/:@]{16,})(@)"),
    (("hooks.slack.com",), r"(hooks\.slack\.com/(?:services|workflows)/)([\w/-]+)()"),
    (("/api/webhooks/",), r"(/api/webhooks/\d+/)([\w-]+)()"),
    (
        tuple(start for start, _ in _SHAPES),
        rf"((?<![A-Za-z0-9_])|(?<=\\[nrt]))({'|'.join(shape for _, shape in _SHAPES)})()",
    ),
)
"""A private key; what follows `Bearer` and `Basic`; the signature of an address; what commands take
as a password, `-p` only of those for which it is none of a port; a password in a sentence, if it
has digits and letters; what stands before the host of an address; addresses that are secret
themselves; keys of a known shape. Before each the texts, in lower case, of which it holds one."""
_PATTERNS: Final = tuple((hints, re.compile(form)) for hints, form in _FORMS)

_ALL_HINTS: Final = {hint for hints, _ in _FORMS for hint in hints} | {hint for hint, _ in _NAMES}
HINTS: Final = tuple(
    sorted(hint for hint in _ALL_HINTS if not any(it in hint for it in _ALL_HINTS - {hint}))
)
"""Without one of these, in lower case, there is no secret."""
HINT: Final = one_of(HINTS)
"""Looked for in every record, and that is a part of what a recording costs."""
_HINT: Final = re.compile(HINT)

Cover = Callable[[str], str]
"""What stands in the place of a secret."""
STARS: Final = "***"


def stars(_: str) -> str:
    return STARS


def masked(text: str, cover: Cover = stars) -> str:
    """Replace whatever looks like a secret."""
    lowered = text.lower()
    if not _HINT.search(lowered):
        return text
    for before, value in _NAMED:
        text = _without_values(text, before, value, cover)

    def covered(found: re.Match[str]) -> str:
        before, secret, behind = found.groups()
        return found[0] if _is_covered(secret) else f"{before}{cover(secret)}{behind}"

    for hints, form in _PATTERNS:
        if any(hint in lowered for hint in hints):
            text = form.sub(covered, text)
    return text


def masked_repr(shown: object) -> str:
    """Show it as a text that can be written down.

    An exception of a program may raise where it is to be shown, or be shown as half a character.
    """
    return _masked_by(repr, shown)


def masked_str(error: BaseException) -> str:
    """Say what it says, or show it if it says nothing."""
    return _masked_by(str, error) or masked_repr(error)


def _masked_by(show: Callable[[object], str], shown: object) -> str:
    try:
        text = show(shown)
    except Exception:  # noqa: BLE001 - the edge: whatever it is, the name of its type has to do
        text = type(shown).__name__
    return masked(text.encode(errors="replace").decode())


def names_a_secret(name: str) -> bool:
    return _NAME.search(name) is not None


def _without_values(
    text: str, before: re.Pattern[str], value: re.Pattern[str], cover: Cover
) -> str:
    """Replace each value whose name is that of a secret; a value may hold names and values."""
    out: list[str] = []
    kept = place = 0
    while found := before.search(text, place):
        place = found.end()
        if not names_a_secret(found[1]):
            continue
        leaf = partial(_covered, found[1], cover)
        if found[1].startswith("root.") and text.startswith(("{", "[", "("), place):
            continue  # it is the path of a queue, and what follows is the queue
        inner = nested(text, *found.span(1), place, leaf)
        secret = value.match(text, place)
        if inner is not None:
            end, covered = inner
        elif secret is not None:
            end, covered = secret.end(), leaf(secret[0])
        else:
            continue
        out += (text[kept:place], covered)
        kept = place = end
    return "".join([*out, text[kept:]]) if out else text


def _covered(name: str, cover: Cover, value: str) -> str:
    return value if _is_covered(value) or _is_a_count(name, value) else cover(value)


def _is_covered(value: str) -> bool:
    """Whether it was masked before: equal secrets would not stay equal."""
    return value.startswith((STARS, "masked:"))


def _is_a_count(name: str, value: str) -> bool:
    """Whether it says how many tokens there are, and not which."""
    return value.isdecimal() and len(value) < 8 and name.lower().endswith(("tokens", "bucket"))  # noqa: PLR2004
