"""Small changes of a module, each of which a test should notice.

A mutation replaces one piece of source text. Its name holds the file, the function, the operator, both texts
and a number that tells equal ones apart. It holds no line, so that it stays the same when other code moves.
"""

import ast
import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.packages import ROOT

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
LONGEST_SHOWN = 90


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change: ``text[start:end]`` of the file becomes ``new``."""

    name: str
    path: str
    line: int
    start: int
    end: int
    new: str

    def apply(self, text: str) -> str:
        """The mutated file."""
        return text[: self.start] + self.new + text[self.end :]

    def rank(self) -> str:
        """A number that sorts mutations at random, and the same way in every run."""
        return hashlib.sha256(self.name.encode()).hexdigest()


def mutations_of(path: str) -> list[Mutation]:
    """All mutations of a file of the checkout."""
    return mutations_in(path, (ROOT / path).read_text(encoding="utf-8"))


def mutations_in(path: str, text: str) -> list[Mutation]:
    """All mutations of a module's text."""
    seen: Counter[str] = Counter()
    found = []
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    for operator, function, node_start, node_end, new in sorted(finder.found, key=lambda each: each[2:]):
        old = text[node_start:node_end]
        name = f"{Path(path).as_posix()}::{function}::{operator}: {_shown(old)} → {_shown(new)}"
        seen[name] += 1
        if seen[name] > 1:
            name += f" #{seen[name]}"
        found.append(Mutation(name, path, text.count("\n", 0, node_start) + 1, node_start, node_end, new))
    return found


def sample_of(paths: list[str], size: int) -> list[Mutation]:
    """A fixed random sample of the mutations of some files: an edit changes only what it touches."""
    every = [each for path in paths for each in mutations_of(path)]
    return sorted(every, key=Mutation.rank)[:size]


def _shown(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST_SHOWN else flat[: LONGEST_SHOWN - 1] + "…"


class _Finder(ast.NodeVisitor):
    """Walks a module and notes (operator, function, start, end, new text)."""

    def __init__(self, text: str) -> None:
        self.found: list[tuple[str, str, int, int, str]] = []
        self._text = text
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._raw = [line.encode() for line in text.splitlines(keepends=True)]
        self._names: list[str] = []
        self._in_function = 0

    def _at(self, line: int, byte: int) -> int:
        return self._lines[line - 1] + len(self._raw[line - 1][:byte].decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _source(self, node: ast.expr | ast.stmt) -> str:
        start, end = self._span(node)
        return self._text[start:end]

    def _note(self, operator: str, node: ast.expr | ast.stmt, new: str) -> None:
        start, end = self._span(node)
        self._note_at(operator, start, end, new)

    def _note_at(self, operator: str, start: int, end: int, new: str) -> None:
        self.found.append((operator, ".".join(self._names) or "module", start, end, new))

    def _between(self, operator: str, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Replace the operator's text between two operands."""
        low, high = self._span(left)[1], self._span(right)[0]
        at = self._text.find(old, low, high)
        if at >= 0:
            self._note_at(operator, at, at + len(old), new)

    # -- where not to look ----------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Look into defaults and body, not into annotations and decorators."""
        self._names.append(node.name)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        self._in_function += 1
        for statement in node.body:
            self.visit(statement)
        self._in_function -= 1
        self._names.pop()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """As for other functions."""
        self.visit_FunctionDef(node)  # type: ignore[arg-type]

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look into the body, not into bases and decorators."""
        self._names.append(node.name)
        within, self._in_function = self._in_function, 0
        for statement in node.body:
            self.visit(statement)
        self._in_function = within
        self._names.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Look at the value, not at the annotation."""
        self._removed(node)
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave assertions: they say what the types do not."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave formatted text: tests do not check the words of messages."""

    # -- operators ------------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> None:
        """A comparison becomes its neighbour or its opposite."""
        left = node.left
        for comparison, right in zip(node.ops, node.comparators, strict=True):
            old, new = COMPARISONS[type(comparison)]
            self._between("comparison", left, right, old, new)
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """An arithmetic operator becomes its opposite; text is left alone."""
        words = any(isinstance(each, ast.JoinedStr) or _is_text(each) for each in (node.left, node.right))
        if type(node.op) in ARITHMETIC and not words:
            old, new = ARITHMETIC[type(node.op)]
            self._between("arithmetic", node.left, node.right, old, new)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """``and`` becomes ``or`` and the other way round, everywhere in one chain."""
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        start, end = self._span(node)
        text = f" {new} ".join(f"({self._source(each)})" for each in node.values)
        if old in self._text[start:end]:
            self._note_at("and/or", start, end, f"({text})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """``not`` goes."""
        if isinstance(node.op, ast.Not):
            self._note("not", node, f"({self._source(node.operand)})")
        self.generic_visit(node)

    def _condition(self, test: ast.expr) -> None:
        simple = isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr)
        if simple and "TYPE_CHECKING" not in self._source(test):
            self._note("negated condition", test, f"(not ({self._source(test)}))")

    def visit_If(self, node: ast.If) -> None:
        """A condition without comparison is negated."""
        if "TYPE_CHECKING" in self._source(node.test):
            return
        self._condition(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """As for ``if``."""
        self._condition(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """As for ``if``."""
        self._condition(node.test)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """A number becomes one more, or one less; a truth value the other one."""
        if isinstance(node.value, bool):
            self._note("truth value", node, repr(not node.value))
        elif isinstance(node.value, int | float):
            self._note("constant", node, f"({node.value + 1!r})")
            self._note("constant", node, f"({node.value - 1!r})")

    def visit_Return(self, node: ast.Return) -> None:
        """A result becomes None."""
        value = node.value
        if value is not None and not isinstance(value, ast.Constant):
            self._note("return value", value, "None")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        """``break`` becomes ``continue``."""
        self._note("break/continue", node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        """``continue`` becomes ``break``."""
        self._note("break/continue", node, "break")

    def _removed(self, node: ast.stmt) -> None:
        if self._in_function:
            self._note("removed statement", node, "pass")

    def visit_Expr(self, node: ast.Expr) -> None:
        """A call for its effect goes; documentation and the log are left alone."""
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Call) and self._source(node.value.func).split(".")[0] in ("log", "LOG"):
            return
        if not isinstance(node.value, ast.Yield | ast.YieldFrom):
            self._removed(node)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """An assignment goes."""
        self._removed(node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """As an assignment."""
        self._removed(node)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        """As an assignment."""
        self._removed(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """An error is not raised. The error's own words and numbers are left alone."""
        self._removed(node)

    def visit_Call(self, node: ast.Call) -> None:
        """The first two arguments change places."""
        plain = len(node.args) > 1 and not any(isinstance(each, ast.Starred) for each in node.args[:2])
        if plain:
            first, second = node.args[:2]
            one, other = self._source(first), self._source(second)
            if one != other:
                start, end = self._span(first)[0], self._span(second)[1]
                middle = self._text[self._span(first)[1] : self._span(second)[0]]
                self._note_at("swapped arguments", start, end, other + middle + one)
        self.generic_visit(node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
