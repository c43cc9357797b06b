"""Make the classes of values: `NamedTuple` as in `typing`, in a tenth of the time.

Half of what a short command takes is the making of classes. A class here has the same members as one of `typing`; only
its constructor is compiled when it is first called.
"""

import sys

TYPE_CHECKING = False

__all__ = ["NamedTuple"]

# From Python 3.14 on the annotations of a class are a function, which `typing` knows how to call.
if TYPE_CHECKING or sys.version_info >= (3, 14):
    from typing import NamedTuple
else:
    from _collections import _tuplegetter

    _tuple_new = tuple.__new__

    def _constructor(owner):
        """Compile the constructor of a class, which takes its fields in order or by name."""
        names = "".join(f"{field}, " for field in owner._fields)
        source = f"lambda _cls, {names}: _tuple_new(_cls, ({names}))".replace(", :", ":")
        made = eval(source, {"_tuple_new": _tuple_new})
        made.__defaults__ = tuple(owner._field_defaults.values()) or None
        made.__name__ = "__new__"
        owner.__new__ = made
        return made

    def _new(cls, /, *args, **kwargs):
        """Make the first record of a class."""
        owner = next(base for base in cls.__mro__ if "_fields" in base.__dict__)
        return _constructor(owner)(cls, *args, **kwargs)

    class _SignatureOfFields:
        """The signature that `help` and editors show, also before the constructor is compiled."""

        def __get__(self, instance, owner):
            from inspect import Parameter, Signature

            kind, defaults = Parameter.POSITIONAL_OR_KEYWORD, owner._field_defaults
            hints = owner.__annotations__
            return Signature(
                [
                    Parameter(field, kind, default=defaults.get(field, Parameter.empty), annotation=hints[field])
                    for field in owner._fields
                ]
            )

    def _make(cls, iterable):
        """Return a record of the values of an iterable."""
        record = _tuple_new(cls, iterable)
        if len(record) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(record)}")
        return record

    def _replace(self, /, **changes):
        """Return a record with some members changed."""
        record = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"Got unexpected field names: {list(changes)!r}")
        return record

    def _asdict(self):
        """Return the members as a dictionary."""
        return dict(zip(self._fields, self, strict=True))

    def _repr(self):
        members = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({members})"

    def _getnewargs(self):
        return tuple(self)

    _MEMBERS = {
        "__slots__": (),
        "_make": classmethod(_make),
        "_replace": _replace,
        "_asdict": _asdict,
        "__repr__": _repr,
        "__getnewargs__": _getnewargs,
        "__signature__": _SignatureOfFields(),
    }
    _getter_of = {}

    class _Maker(type):
        """Turns the body of a class into a subclass of `tuple`."""

        def __new__(cls, name, bases, namespace):
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace[field] for field in fields if field in namespace}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"a field of {name} without a default follows one with a default")
            for position, field in enumerate(fields):
                getter = _getter_of.get(position)
                if getter is None:
                    getter = _getter_of[position] = _tuplegetter(position, "")
                namespace[field] = getter
            for member, value in _MEMBERS.items():
                namespace.setdefault(member, value)
            namespace["__new__"] = _new
            namespace["_fields"] = namespace["__match_args__"] = fields
            namespace["_field_defaults"] = defaults
            return type(name, (tuple,), namespace)

    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
