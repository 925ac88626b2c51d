"""A copy of a frozen dataclass with other values. Pure.

``dataclasses.replace`` reads the class's fields at each call and passes all values through
``__init__``. The decision about one statement makes about forty such copies, which was a quarter
of its time. Here the copying is written once for each class: for nine fields 0.6 µs instead of 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

__all__ = ["replace", "slot_setters"]

if TYPE_CHECKING:
    # So mypy's plugin checks the names and types of the values.
    from dataclasses import replace
else:

    def replace(value: Any, /, **changes: Any) -> Any:
        """``dataclasses.replace`` for a class with slots and without ``__post_init__``.

        Raises:
            TypeError: The class has ``__post_init__``, or fields without slots, or lacks a field.
        """
        return _copying(value.__class__)(value, changes)


@cache
def _copying(kind: type) -> Callable[[Any, Mapping[str, Any]], Any]:
    """The function that copies a value of this class and sets the changed fields."""
    setters = slot_setters(kind)
    if setters is None:
        raise TypeError(f"{kind.__qualname__} has __post_init__, or fields that are no slots")
    scope: dict[str, Any] = {"new": object.__new__, "kind": kind, "setters": setters}
    scope |= {f"set_{name}": setter for name, setter in setters.items()}
    lines = [
        "def copy(value, changes):",
        "    copied = new(kind)",
        *(f"    set_{name}(copied, value.{name})" for name in setters),
        "    for name, changed in changes.items():",
        "        if name not in setters:",
        "            raise TypeError(f'{kind.__qualname__} has no field {name}')",
        "        setters[name](copied, changed)",
        "    return copied",
    ]
    exec("\n".join(lines), scope)  # noqa: S102 -- of field names alone
    copying: Callable[[Any, Mapping[str, Any]], Any] = scope["copy"]
    return copying


def slot_setters(kind: type) -> dict[str, Callable[[Any, Any], None]] | None:
    """The setters of a dataclass's fields; None for ``__post_init__``, or fields without slots."""
    slots: dict[str, Any] = {f.name: getattr(kind, f.name, None) for f in fields(kind)}
    setters = {name: slot.__set__ for name, slot in slots.items() if hasattr(slot, "__set__")}
    return None if hasattr(kind, "__post_init__") or len(setters) < len(slots) else setters
