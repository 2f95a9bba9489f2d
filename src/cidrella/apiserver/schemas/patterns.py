"""Patterns in schemas: Go's regular expressions, as far as Python's mean the same."""

from __future__ import annotations

import re
from typing import Final

_ATOMS: Final = re.compile(r"\\[^1-9]|\[\^?\]?(?:\\.|[^]\\])*\]")
"""What stands for one letter, whatever it looks like."""
_OF_ONE_KIND: Final = re.compile(r"\(\?(?:[=!>(#]|<[=!]|P=|\w*m)|\\[1-9]|[*+?}]\+|\{,")
"""What only Python knows (looking around and back, taking for good), or what means something else to Go."""
_END: Final = re.compile(rf"{_ATOMS.pattern}|\$")


def compile_pattern(pattern: str) -> re.Pattern[str]:
    r"""The pattern for Python. Raises `ValueError`, also for what only one of the two understands.

    To Go, $ is the end of the text; to Python also the newline before it.

    >>> compile_pattern(r"^a[$]$").pattern
    '^a[$]\\Z'
    """
    if strange := re.search(r"\[\[:", pattern) or _OF_ONE_KIND.search(_ATOMS.sub("x", pattern)):
        raise ValueError(f"invalid or unsupported Perl syntax: `{strange[0]}`")
    try:
        return re.compile(_END.sub(lambda each: r"\Z" if each[0] == "$" else each[0], pattern), re.ASCII)
    except re.error as error:
        raise ValueError(str(error)) from error
