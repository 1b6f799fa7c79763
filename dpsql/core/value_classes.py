"""Values: immutable objects of which a plan makes hundreds, while it is planned.

*Claim.* No line of dpsql sets a field of a value once it is made. *Why.* To mypy `value` is `dataclass`, and each use
says `frozen=True`: `make check` refuses the line. *When it would be false.* A field that is set past mypy (`setattr`,
`Any`, a notebook): at run time nothing guards a value. The guard of a frozen dataclass is one call for each field of
each object that is made, and took a tenth of planning. Equality, text and slots are those of the frozen one, and the
hash, but of what is `Placed`.
*Tested by* tests/core/test_values.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING


class Placed:
    """A node of a plan, as another one that is equal may be: each is a key of its own, for its hash is the object's.

    kinds: of the node and of all below it, once somebody asked (`ir/walk.py`).
    """

    __slots__ = ("kinds",)
    kinds: frozenset[type]


if TYPE_CHECKING:
    from dataclasses import dataclass as value
    from dataclasses import replace
else:
    import dataclasses
    from dataclasses import dataclass, fields

    def value(*, frozen, slots, eq=True, order=False):
        """`dataclass(frozen=True, slots=True)`, quick to make."""
        assert frozen and slots
        make = dataclass(slots=True, eq=eq, order=order, unsafe_hash=eq)

        def made(written):
            found = make(written)
            if issubclass(found, Placed):
                found.__hash__ = object.__hash__
            return found

        return made

    def replace(changed, /, **fields_of_it):
        """`dataclasses.replace`, which looks at each field anew each time: this one takes a third of its time."""
        kind = changed.__class__
        make = _MAKERS.get(kind)
        if make is None:
            make = _MAKERS[kind] = _maker(kind)
        return make(changed, fields_of_it)

    _MAKERS = {}

    def _maker(kind):
        """A function of an object and of new values of its fields, which makes another one, field by field."""
        if kind.__dataclass_params__.frozen or hasattr(kind, "__post_init__"):
            return lambda old, new: dataclasses.replace(old, **new)
        held = [f.name for f in fields(kind) if f.init]
        fresh = {f.name: f for f in fields(kind) if not f.init}
        names = {"kind_": kind, "held_": frozenset(held)}
        lines = ["def make_(old_, new_):", " made_ = object.__new__(kind_)", *(f" made_.{n} = old_.{n}" for n in held)]
        for name, f in fresh.items():
            called = f.default is dataclasses.MISSING
            names[f"fresh_{name}"] = f.default_factory if called else f.default
            lines.append(f" made_.{name} = fresh_{name}{'()' if called else ''}")
        exec("\n".join(lines) + _CHANGE, names)
        return names["make_"]

    _CHANGE = """
 for name_ in new_:
  if name_ not in held_:
   raise TypeError(f"{kind_.__name__} is not made of {name_}")
  setattr(made_, name_, new_[name_])
 return made_
"""


__all__ = ["Placed", "replace", "value"]
