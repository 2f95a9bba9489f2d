"""What keeps a text from being a name, a label's key or its value, in the words of Kubernetes.

`cidrella.model.syntax` knows the same rules, and says in our words what people get wrong in files. Here clients are
told what a real API server tells them. Each function returns what is wrong; nothing if nothing is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from cidrella.model.syntax import KEY_MAX, LABEL_MAX, SUBDOMAIN, SUBDOMAIN_MAX

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LETTER_FIRST: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WORD: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_ENDS: Final = "must start and end with an alphanumeric character"
_WORD_LETTERS: Final = "consist of alphanumeric characters, '-', '_' or '.', and"


def _form(text: str, pattern: str, *examples: str) -> str:
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {listed}regex used for validation is '{pattern}')"


_NOT_SUBDOMAIN: Final = _form(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS}",
    SUBDOMAIN,
    "example.com",
)
_NOT_LABEL: Final = _form(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ENDS}",
    _LABEL,
    "my-name",
    "123-abc",
)
_NOT_LETTER_FIRST: Final = _form(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    _LETTER_FIRST,
    "my-name",
    "abc-123",
)
_NOT_WORD: Final = _form(f"must {_WORD_LETTERS} {_ENDS}", _WORD, "MyName", "my.name", "123-abc")
_NOT_KEY: Final = (
    f"a valid label key {_NOT_WORD} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_NOT_VALUE: Final = _form(
    f"a valid label must be an empty string or {_WORD_LETTERS} {_ENDS}", f"({_WORD})?", "MyValue", "my_value", "12345"
)


def subdomain_faults(text: str) -> list[str]:
    """Of the name of an object, where its kind asks for nothing else."""
    return _dns_faults(text, SUBDOMAIN_MAX, SUBDOMAIN, _NOT_SUBDOMAIN)


def label_faults(text: str) -> list[str]:
    """Of a name that has to do as one label of a DNS name: that of a namespace, say."""
    dotted = re.fullmatch(SUBDOMAIN, text) is not None
    return _dns_faults(text, LABEL_MAX, _LABEL, "must not contain dots" if dotted else _NOT_LABEL)


def letter_first_faults(text: str) -> list[str]:
    """Of a label of a DNS name that begins with a letter (RFC 1035)."""
    return _dns_faults(text, LABEL_MAX, _LETTER_FIRST, _NOT_LETTER_FIRST)


def key_faults(text: str) -> tuple[str, ...]:
    """Of a label's key, and of whatever else is qualified: finalizers, annotations."""
    return _remembered_key(text) if len(text) <= KEY_MAX else _key_faults(text)


def value_faults(text: str) -> tuple[str, ...]:
    """Of a label's value."""
    return _remembered_value(text) if len(text) <= LABEL_MAX else _value_faults(text)


def path_faults(text: str) -> list[str]:
    """Of what goes into a path, whatever else its kind asks for."""
    return [f"may not contain '{mark}'" for mark in "/%" if mark in text]


def _key_faults(text: str) -> tuple[str, ...]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return (_NOT_KEY,)
    faults = [f"prefix part {each}" for each in _prefix_faults(prefix)] if slash else []
    if not name:
        faults.append("name part must be non-empty")
    elif _size(name) > LABEL_MAX:
        faults.append(f"name part must be no more than {LABEL_MAX} bytes")
    if not re.fullmatch(_WORD, name):
        faults.append(f"name part {_NOT_WORD}")
    return tuple(faults)


def _value_faults(text: str) -> tuple[str, ...]:
    faults = [f"must be no more than {LABEL_MAX} bytes"] if _size(text) > LABEL_MAX else []
    if not re.fullmatch(f"({_WORD})?", text):
        faults.append(_NOT_VALUE)
    return tuple(faults)


# The same few labels stand on every node, and are looked at in every write.
_remembered_key: Final = lru_cache(maxsize=8192)(_key_faults)
_remembered_value: Final = lru_cache(maxsize=8192)(_value_faults)


def _prefix_faults(prefix: str) -> list[str]:
    if not prefix:
        return ["must be non-empty"]
    faults = [f"must be no more than {SUBDOMAIN_MAX} bytes"] if _size(prefix) > SUBDOMAIN_MAX else []
    return faults if re.fullmatch(SUBDOMAIN, prefix) else [*faults, _NOT_SUBDOMAIN]


def _dns_faults(text: str, limit: int, pattern: str, otherwise: str) -> list[str]:
    faults = [f"must be no more than {limit} characters"] if _size(text) > limit else []
    return faults if re.fullmatch(pattern, text) else [*faults, otherwise]


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))
