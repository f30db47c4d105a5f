"""Small changes of a module, one at a time; a test should notice each."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_NAMED = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Calls that sort, and their replacements, which leave the values in their order.
_UNSORTED = {"sorted": "list({})", "argsort": "np.arange(len({}))"}
# Texts and types: no test should notice a change in them.
_LEFT_ALONE = {"annotation", "returns", "decorator_list", "type_params"}
# The range of a Definition, which only tests read, and zip's guard against our own mistakes.
_GUARDS = {"least", "most", "strict"}


@dataclass(frozen=True)
class Mutant:
    """One change of a module.

    Attributes:
        path: the module's file.
        index: its number among the module's mutants.
        line: the changed line's number.
        change: the change in words.
        source: the original line.
    """

    path: Path
    index: int
    line: int
    change: str
    source: str


class _Changer(ast.NodeTransformer):
    """Lists all changes in order, and makes one of them.

    Args:
        chosen: the number of the change to make; none by default.
    """

    def __init__(self, chosen: int = -1) -> None:
        self.chosen = chosen
        self.found: list[tuple[int, str]] = []

    def _is_chosen(self, node: ast.AST, change: str) -> bool:
        self.found.append((getattr(node, "lineno", 0), change))
        return len(self.found) - 1 == self.chosen

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit each node whose change a test should notice."""
        for name, old in ast.iter_fields(node):
            if name in _LEFT_ALONE:
                continue
            if isinstance(old, list):
                old[:] = [self.visit(each) if isinstance(each, ast.AST) else each for each in old]
            elif isinstance(old, ast.AST):
                setattr(node, name, self.visit(old))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Leave sorted values unsorted."""
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        kept = _UNSORTED.get(name)
        if kept and self._is_chosen(node, f"{name} left out"):
            unsorted = ast.parse(kept.format(ast.unparse(node.args[0])), mode="eval").body
            return ast.copy_location(unsorted, node)
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        """Leave a guard unchanged."""
        return node if node.arg in _GUARDS else self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Change `<` to `<=`, `==` to `!=`, and so on."""
        for place, operator in enumerate(node.ops):
            other = _COMPARED[type(operator)]
            if self._is_chosen(node, f"{type(operator).__name__} -> {other.__name__}"):
                node.ops[place] = other()
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp | ast.AugAssign) -> ast.AST:
        """Change `+` to `-`, `+=` to `-=`, and so on."""
        other = _COMPUTED.get(type(node.op))
        sign = "=" * isinstance(node, ast.AugAssign)
        said = f"{type(node.op).__name__}{sign} -> {other.__name__}{sign}" if other else ""
        if other and self._is_chosen(node, said):
            node.op = other()
        return self.generic_visit(node)

    visit_AugAssign = visit_BinOp  # noqa: N815 - by ast

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Change `and` to `or`, and back."""
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        if self._is_chosen(node, f"{type(node.op).__name__} -> {other.__name__}"):
            node.op = other()
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Change `not x`, `-x` and `~x` to `x`."""
        chosen = self._is_chosen(node, f"{type(node.op).__name__} left out")
        found = self.generic_visit(node)
        return node.operand if chosen else found

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Change a number to the next one; true to false."""
        if isinstance(node.value, bool):
            if self._is_chosen(node, f"{node.value} -> {not node.value}"):
                return ast.copy_location(ast.Constant(not node.value), node)
        elif isinstance(node.value, (int, float)) and self._is_chosen(
            node, f"{node.value} -> {node.value + 1}"
        ):
            return ast.copy_location(ast.Constant(node.value + 1), node)
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """Change a returned value to None."""
        if node.value is not None and not (
            isinstance(node.value, ast.Constant) and node.value.value is None
        ):
            chosen = self._is_chosen(node, "returns None")
            if chosen:
                return ast.copy_location(ast.Return(ast.Constant(None)), node)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If | ast.IfExp) -> ast.AST:
        """Negate a condition that is no comparison."""
        test = node.test
        is_simple = isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr)
        if is_simple and self._is_chosen(test, "condition negated"):
            node.test = ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
        return self.generic_visit(node)

    visit_IfExp = visit_If  # noqa: N815 - by ast

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Change `min` to `max`, `any` to `all`, and back."""
        other = _NAMED.get(node.id)
        if other and self._is_chosen(node, f"{node.id} -> {other}"):
            return ast.copy_location(ast.Name(other, node.ctx), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Change numpy's `min` to `max`, `any` to `all`, and back."""
        other = _NAMED.get(node.attr)
        if other and self._is_chosen(node, f".{node.attr} -> .{other}"):
            node.attr = other
        return self.generic_visit(node)


def mutants(path: Path) -> Iterator[Mutant]:
    """List all mutants of a module."""
    text = path.read_text(encoding="utf-8")
    changer = _Changer()
    changer.visit(ast.parse(text))
    lines = text.splitlines()
    for index, (line, change) in enumerate(changer.found):
        yield Mutant(path, index, line, change, lines[line - 1].strip())


def mutated(source: str, index: int) -> ast.Module:
    """Make one mutant of a module's source."""
    tree = ast.parse(source)
    _Changer(index).visit(tree)
    return ast.fix_missing_locations(tree)
