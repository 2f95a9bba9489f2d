"""The words of faults."""

from __future__ import annotations

from cidrella.apiserver.words import faults


def test_makers() -> None:
    """Each kind of fault has its reason and its words, with the value in quotes where it is a text, else as JSON."""
    made = [
        faults.invalid("a", "x", "must be y"),
        faults.invalid("a", -4, "must be more"),
        faults.invalid("a", [{"b": True}], "no"),
        faults.required("a", "say it"),
        faults.required("a"),
        faults.forbidden("a", "never"),
        faults.duplicate("a[1]", "x"),
        faults.not_supported("a", "x", ["y", "z"]),
        faults.not_supported("a", "x", []),
        faults.too_long("a", 5),
        faults.too_long("a", 1),
    ]
    assert [(fault.reason, str(fault)) for fault in made] == [
        ("FieldValueInvalid", 'a: Invalid value: "x": must be y'),
        ("FieldValueInvalid", "a: Invalid value: -4: must be more"),
        ("FieldValueInvalid", 'a: Invalid value: [{"b":true}]: no'),
        ("FieldValueRequired", "a: Required value: say it"),
        ("FieldValueRequired", "a: Required value"),
        ("FieldValueForbidden", "a: Forbidden: never"),
        ("FieldValueDuplicate", 'a[1]: Duplicate value: "x"'),
        ("FieldValueNotSupported", 'a: Unsupported value: "x": supported values: "y", "z"'),
        ("FieldValueNotSupported", 'a: Unsupported value: "x"'),
        ("FieldValueTooLong", "a: Too long: may not be more than 5 bytes"),
        ("FieldValueTooLong", "a: Too long: may not be more than 1 byte"),
    ]
