"""What keeps a text from being a name, a label's key or its value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.apiserver.words import naming
from cidrella.model import syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
LETTER_FIRST = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
WORD = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
KEY = f"a valid label key {WORD} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"


@pytest.mark.parametrize(
    ("rule", "text", "told"),
    [
        (naming.subdomain_faults, "a.b-c.1", []),
        (naming.subdomain_faults, "A_b", [SUBDOMAIN]),
        (naming.subdomain_faults, "a..b", [SUBDOMAIN]),
        (naming.subdomain_faults, "a" * 253, []),
        (naming.subdomain_faults, "a" * 254, ["must be no more than 253 characters"]),
        (naming.subdomain_faults, "_" * 254, ["must be no more than 253 characters", SUBDOMAIN]),
        (naming.label_faults, "a-1", []),
        (naming.label_faults, "a.b", ["must not contain dots"]),
        (naming.label_faults, "A", [LABEL]),
        (naming.label_faults, "a" * 64, ["must be no more than 63 characters"]),
        (naming.letter_first_faults, "a1", []),
        (naming.letter_first_faults, "1a", [LETTER_FIRST]),
        (naming.key_faults, "foo.com/Bar_1.x", []),
        (naming.key_faults, "", ["name part must be non-empty", f"name part {WORD}"]),
        (naming.key_faults, "a/", ["name part must be non-empty", f"name part {WORD}"]),
        (naming.key_faults, "/a", ["prefix part must be non-empty"]),
        (naming.key_faults, "A.b/c", [f"prefix part {SUBDOMAIN}"]),
        (naming.key_faults, "a/b/c", [KEY]),
        (naming.key_faults, "a" * 64, ["name part must be no more than 63 bytes"]),
        (naming.key_faults, "a" * 254 + "/b", ["prefix part must be no more than 253 bytes"]),
        (naming.value_faults, "", []),
        (naming.value_faults, "A_b.c-1", []),
        (naming.value_faults, "-a", [VALUE]),
        (naming.value_faults, "a" * 64, ["must be no more than 63 bytes"]),
        (naming.value_faults, "é" * 32, ["must be no more than 63 bytes", VALUE]),
        (naming.path_faults, "a/%", ["may not contain '/'", "may not contain '%'"]),
        (naming.path_faults, "a_b", []),
    ],
)
def test_words(rule: Callable[[str], Sequence[str]], text: str, told: list[str]) -> None:
    """What is wrong is told as the real server tells it."""
    assert list(rule(text)) == told


@given(st.text("aA0-_./ é", max_size=12))
def test_agrees_with_the_model(text: str) -> None:
    """Two sets of words, one rule: what files may hold and what the API takes is the same."""
    assert bool(naming.subdomain_faults(text)) == bool(syntax.name_fault(text))
    assert bool(naming.key_faults(text)) == bool(syntax.label_key_fault(text))
    assert bool(naming.value_faults(text)) == bool(syntax.label_value_fault(text))
