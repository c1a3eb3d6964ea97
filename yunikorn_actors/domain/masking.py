"""Secrets in text: what looks like one is replaced before the text goes anywhere.

Nobody tells the core what is secret, so names and forms decide: what is called like a password or a
token, what follows a flag of such a name, what has the form of a key. It works in one pass over a
text, whatever that holds, because texts come from outside.

What came as text alone (the exception of a callback, the reason of a predicate) is masked where it
comes in, so that machines never see it: no key, no sum and no order depends on it. What machines
decide by (tags, attributes, the configuration) is masked where it goes out.
"""

import re
from collections.abc import Callable
from typing import Final

_KEYS: Final = "api|access|account|private|encryption|signing"
_NAME: Final = re.compile(
    r"(?i)passwor[dt]|passwd|passphrase|passcode|(?:store|key)pass|pwd|kennwort|contrase|(?<![a-z])pass(?![a-z])|(?-i:[A-Z]PASS|[a-z]Pass)(?![a-z])"
    r"|(?<!pull)secret(?!ary|[_-]?name)|token(?!iz)|credential|(?<![a-z])(?:creds|jwt)(?![a-z])"
    r"|session_?id|[_-]auth(?![a-z])"
    rf"|(?:{_KEYS})[._-]?key|authorization|cookie|signature"
)
NAME_OF_A_SECRET: Final = _NAME
"""Searched for in the name of a field, an option or a header."""

HINTS: Final = (
    "pass", "pwd", "secret", "token", "cred", "api", "access", "account", "private", "encryption",
    "signing", "signature", "auth", "cookie", "bearer", "basic ", "session", "jwt", "://", "sig=",
    " -p", " -u ", "thin:", "akia", "ghp_", "ghs_", "github_pat", "glpat", "xox", "eyj", "aiza",
    "npm_",
)  # fmt: skip
"""Without one of these, in lower case, there is no secret. Each is looked for in every record, and
that is a part of what a recording costs."""

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
_ASSIGNED: Final = re.compile(r"(?<![\w.-])([\w.-]+)\\*[\"']?\s*(?:=>|->|:=|==?|:|%3[AaDd])\s*")
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
_FORMS: Final = (
    re.compile(
        r"(-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)(.+?)"
        r"(-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        re.DOTALL,
    ),
    re.compile(rf"(?i)(\bbearer\s+)(?!of\b)({_BARE})()"),
    re.compile(r"(?i:(\bbasic\s+))((?=[A-Za-z+/]*[0-9=])[A-Za-z0-9+/=]{12,})()"),
    re.compile(r"([?&;]sig=)([^\s&\"']+)()"),
    re.compile(r"(?<![\w-])((?:-u|--user)[ =][^\s:]{1,100}:)([^\s\"']+)()"),
    re.compile(
        r"(\b(?:mysql\w*|mariadb|sshpass|login)\b[^\n|;]{0,200}?\\*[\"']?\s-p(?:\\*[\"'],)?\s*)([^\s\"']+)()"
    ),
    re.compile(r"(\bredis-cli\b[^\n|;]{0,200}?\s-a\s+)([^\s\"']+)()"),
    re.compile(r"(thin:[^\s/:@]{1,100}/)([^\s/@]+)(@)"),
    re.compile(
        r"(?i)(\b(?:passw(?:or)?d|passphrase|token|api key(?: provided)?)(?: is| was)?:?\s+[\"']?)"
        r"((?=[^\s\"']*[0-9])(?=[^\s\"']*[a-z])[^\s\"'=:,]{8,})()"
    ),
    re.compile(r"(://[^\s/:@]*:)([^\s/]+)(@)"),
    re.compile(r"(://)((?=[^\s/:@]*[0-9])[^\s/:@]{16,})(@)"),
    re.compile(
        r"((?<![A-Za-z0-9_]))((?:AKIA|ASIA)[0-9A-Z]{16}|gh[oprsu]_[A-Za-z0-9]{20,}|AIza[\w-]{30,}"
        r"|hvs\.[\w-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{20,}|sk_live_\w{16,}|sk-proj-[\w-]{20,}|dckr_pat_[\w-]{20,}"
        r"|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}"
        r"|eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?)()"
    ),
)
"""A private key; what follows `Bearer` and `Basic`; the signature of an address; what commands take
as a password, `-p` only of those for which it is none of a port; a password in a sentence, if it
has digits and letters; what stands before the host of an address; keys and tokens that are known by
how they begin."""

Cover = Callable[[str], str]
"""What stands in the place of a secret."""
STARS: Final = "***"


def stars(_: str) -> str:
    return STARS


def masked(text: str, cover: Cover = stars) -> str:
    """Replace whatever looks like a secret."""
    if not _may_hold_secrets(text):
        return text
    for before, value in _NAMED:
        text = _without_values(text, before, value, cover)

    def covered(found: re.Match[str]) -> str:
        before, secret, behind = found.groups()
        return found[0] if _is_covered(secret) else f"{before}{cover(secret)}{behind}"

    for form in _FORMS:
        text = form.sub(covered, text)
    return text


def names_a_secret(name: str) -> bool:
    return _NAME.search(name) is not None


def _may_hold_secrets(text: str) -> bool:
    lowered = text.lower()
    return any(hint in lowered for hint in HINTS)


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
        secret = value.match(text, place)
        if secret is None or _is_covered(secret[0]) or _is_a_count(found[1], secret[0]):
            continue
        out += (text[kept:place], cover(secret[0]))
        kept = place = secret.end()
    return "".join([*out, text[kept:]]) if out else text


def _is_covered(value: str) -> bool:
    """Whether it was masked before: equal secrets would not stay equal."""
    return value.startswith((STARS, "masked:"))


def _is_a_count(name: str, value: str) -> bool:
    """Whether it says how many tokens there are, and not which."""
    return value.isdecimal() and len(value) < 8 and name.lower().endswith(("tokens", "bucket"))  # noqa: PLR2004
