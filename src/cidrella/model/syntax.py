"""How Kubernetes spells names and labels.

The patterns are written so that Python's `re` and Go's RE2 read them alike, without anchors: the validator uses
`fullmatch`, the CRD puts them between `^` and `$`.
"""

from __future__ import annotations

import re
from typing import Final

SUBDOMAIN_MAX: Final = 253
"""The longest object name, and the longest prefix of a label key."""
LABEL_MAX: Final = 63
"""The longest label value, and the longest label key not counting its prefix."""
KEY_MAX: Final = SUBDOMAIN_MAX + 1 + LABEL_MAX

SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WORD: Final = r"[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?"
LABEL_VALUE: Final = rf"({_WORD})?"
# The prefix's own length is beyond a regular expression without look-ahead, which RE2 has not: KEY_PREFIX holds that.
LABEL_KEY: Final = rf"({SUBDOMAIN}/)?[A-Za-z0-9]([-_.A-Za-z0-9]{{0,{LABEL_MAX - 2}}}[A-Za-z0-9])?"
KEY_PREFIX: Final = rf"[^/]{{1,{SUBDOMAIN_MAX}}}(/.*)?"

_SUBDOMAIN: Final = re.compile(SUBDOMAIN)
_LABEL_VALUE: Final = re.compile(LABEL_VALUE)
_LABEL_KEY: Final = re.compile(LABEL_KEY)
_KEY_PREFIX: Final = re.compile(KEY_PREFIX)

SUBDOMAIN_FORM: Final = (
    f"lower-case letters, digits, '-' and '.', begins and ends with a letter or digit, also around each '.', "
    f"and has at most {SUBDOMAIN_MAX} characters"
)
LABEL_FORM: Final = (
    f"letters, digits, '-', '_' and '.', begins and ends with a letter or digit, and has at most {LABEL_MAX} characters"
)

LABEL_KEY_FORM: Final = f"one is made of {LABEL_FORM}, with a DNS name and '/' before it if need be"


def name_fault(text: str) -> str:
    """What keeps a text from being the name of an object; empty if nothing does."""
    if len(text) <= SUBDOMAIN_MAX and _SUBDOMAIN.fullmatch(text):
        return ""
    return f"is no valid name; a name is made of {SUBDOMAIN_FORM}"


def label_key_fault(text: str) -> str:
    """What keeps a text from being a label's key; empty if nothing does."""
    if _LABEL_KEY.fullmatch(text) and _KEY_PREFIX.fullmatch(text):
        return ""
    return f"is no label key; {LABEL_KEY_FORM}"


def label_value_fault(text: str) -> str:
    """What keeps a text from being a label's value; empty if nothing does."""
    if len(text) <= LABEL_MAX and _LABEL_VALUE.fullmatch(text):
        return ""
    return f"is no label value; one is empty or made of {LABEL_FORM}"
