"""JSON values inside sentences, as Go's `%v`, `%#v` and `%T` print them.

Some refusals of Kubernetes carry a piece of the request printed by Go's defaults (`map[data:3]`). They are hard to
read, but clients and our own comparison with a real kube-apiserver see them, so they are the same here.
"""

from __future__ import annotations

from kubeserver.wire.goformat import number, quote


def plain(value: object) -> str:
    """A value as `%v` prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{plain(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(plain(item) for item in value) + "]"
    return number(value) if isinstance(value, (int, float)) else str(value)


def syntax(value: object) -> str:
    """A value as `%#v` prints it."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, dict):
        inside = ", ".join(f"{quote(key)}:{syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{inside}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(syntax(item) for item in value)}}}"
    return quote(value) if isinstance(value, str) else plain(value)


def type_name(value: object) -> str:
    """The type of a decoded value as `%T` prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, float):
        return "float64"
    return "int64" if isinstance(value, int) else "string"
