"""Parsing untrusted YAML within bounds, and quoting from it safely."""

import re
from typing import Any

import yaml
from capture_analysis.printable import printable
from yaml.constructor import ConstructorError

from twoway.messages import cut_line

# The most values in a file; an alias counts as the values that it repeats.
_MOST_VALUES = 20_000
# The deepest nesting of lists and mappings.
_DEEPEST = 100
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class _Loader(yaml.CSafeLoader):
    """A YAML loader with strict scalars.

    Numbers are decimal, only true and false are truth values, and a time is a string: otherwise
    1:30 would be 90 and 010 would be 8. Duplicate keys are errors; YAML would silently keep the
    last.
    """

    yaml_implicit_resolvers: dict[str, list[tuple[str, Any]]] = {}
    yaml_constructors = {
        tag: constructor
        for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
        if str(tag).rpartition(":")[2] not in {"binary", "omap", "pairs", "set", "timestamp"}
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key, _ in node.value:
            if keys.count(key.value) > 1:
                raise ConstructorError(None, None, f'"{key.value}" is given twice', key.start_mark)
        return super().construct_mapping(node, deep)


for _tag, _pattern, _first in (
    ("bool", r"true|false|True|False|TRUE|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", "-+0123456789."),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", "<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first)
    )


def parse(text: str) -> Any:
    """Parse YAML.

    Raises: yaml.YAMLError if the text is not YAML, is nested too deep, or has too many values.
    """
    _refuse_deep(text)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_large(node, {})
        return loader.construct_document(node)
    except RecursionError as error:
        raise yaml.YAMLError("nested too deep") from error
    except ValueError as error:  # a number with thousands of digits
        raise yaml.YAMLError(str(error).partition(";")[0]) from error
    finally:
        loader.dispose()


def _refuse_deep(text: str) -> None:
    """Raise yaml.YAMLError for nesting that would overflow the stack of libyaml's loader."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise yaml.YAMLError("nested too deep")


def _refuse_large(node: yaml.Node, known: dict[yaml.Node, int]) -> int:
    """Count the values of a node, with those that aliases repeat.

    Args:
        node: a node; several aliases may lead to it.
        known: the counts of other nodes; 0 for the nodes that contain this one.

    Raises: ConstructorError for too many, for a node that is part of itself, and for control
        characters, which would reach a terminal.
    """
    if node in known:
        if not known[node]:
            raise ConstructorError(
                None, None, "an alias of a node that contains it", node.start_mark
            )
        return known[node]
    known[node] = 0
    count = 1
    if isinstance(node, yaml.ScalarNode):
        if _CONTROL.search(node.value):
            raise ConstructorError(None, None, "a control character", node.start_mark)
    else:
        parts = node.value
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        count += sum(_refuse_large(part, known) for part in parts)
    if count > _MOST_VALUES:
        raise ConstructorError(
            None, None, f"stands for more than {_MOST_VALUES} values", node.start_mark
        )
    known[node] = count
    return count


def show_text(text: str, most: int = 80) -> str:
    """Cut a text from a file for a message, and make it printable."""
    return printable(cut_line(text, most))
