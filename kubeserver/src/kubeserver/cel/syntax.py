"""Reading CEL: text to tree.

A hand-written lexer and a recursive-descent parser over a handful of node types. Macros (`all`, `map`, `has`, ...)
are recognised here and become nodes of their own instead of the general fold that CEL's definition expands them
to: they are quicker to evaluate that way, and errors can speak of what the author wrote.

Every node knows where its operator stands in the text, because that is where messages point.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final


class ParseError(Exception):
    """The text is no expression; `at` is the offset of the offending token."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


class UInt(int):
    """An unsigned integer: a kind of number of its own in CEL."""


@dataclass(slots=True)
class Node:
    at: int
    type: Any = field(default=None, init=False)  # filled in by checking


@dataclass(slots=True)
class Literal(Node):
    value: Any


@dataclass(slots=True)
class Name(Node):
    name: str


@dataclass(slots=True)
class Select(Node):
    operand: Node
    name: str
    optional: bool = False
    test: bool = False  # `has(operand.name)`


@dataclass(slots=True)
class Call(Node):
    name: str
    target: Node | None
    arguments: list[Node]
    # the parameters of the overloads that the call may mean, filled in by checking
    signatures: tuple[tuple[Any, ...], ...] = field(default=(), init=False)


@dataclass(slots=True)
class ListLiteral(Node):
    items: list[Node]
    optional: list[bool]


@dataclass(slots=True)
class MapLiteral(Node):
    entries: list[tuple[Node, Node, bool]]


@dataclass(slots=True)
class Fold(Node):
    """A macro over the items of a list or map: `steps` are the expressions after the variables."""

    macro: str
    target: Node
    variables: list[Name]
    steps: list[Node]


RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"}
    | {"package", "namespace", "return", "var", "void", "while"}
)
_TOKEN: Final = re.compile(
    r"""(?P<space>[\t\n\f\r ]+|//[^\n]*)
    |(?P<string>(?:[rR][bB]?|[bB][rR]?)?(?:'''|\"\"\"|'|\"))
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<int>(?:0x[0-9a-fA-F]+|[0-9]+)[uU]?)
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<op>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}=])""",
    re.VERBOSE,
)
_EXPECTED_PRIMARY: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_RELATIONS: Final = {"<", "<=", ">=", ">", "==", "!=", "in"}
_ONE_VARIABLE: Final = {"all": 1, "exists": 1, "exists_one": 1, "existsOne": 1, "filter": 1, "sortBy": 1}
_TWO_VARIABLES: Final = {
    "all": (1,),
    "exists": (1,),
    "existsOne": (1,),
    "exists_one": (1,),
    "transformList": (1, 2),
    "transformMap": (1, 2),
    "transformMapEntry": (1, 2),
}
_DEEPEST: Final = 200


@dataclass(slots=True, frozen=True)
class Token:
    kind: str
    text: str
    at: int
    value: Any = None


def tokens_of(text: str) -> tuple[list[Token], list[ParseError]]:
    """The tokens of a text, and what in it is none: the parser goes on without those."""
    found: list[Token] = []
    problems: list[ParseError] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            problems.append(ParseError(f"Syntax error: token recognition error at: '{text[at]}'", at))
            at += 1
            continue
        kind = str(match.lastgroup)
        end = match.end()
        value: Any = None
        if kind == "string":
            read = _string(text, at, match.group())
            if read is None:
                end = _end_of_line(text, match.end())
                problems.append(ParseError(f"Syntax error: token recognition error at: '{text[at:end]}'", at))
                at = end
                continue
            value, end = read
        elif kind == "float":
            value = float(match.group())
        elif kind == "int":
            value = _integer(match.group(), at)
        if kind != "space":
            found.append(Token(kind, text[at:end], at, value))
        at = end
    found.append(Token("end", "<EOF>", len(text)))
    return found, problems


def _end_of_line(text: str, at: int) -> int:
    while at < len(text) and text[at] not in "\r\n":
        at += 1
    return at


def _integer(text: str, at: int) -> int:
    digits = text.rstrip("uU")
    value = int(digits, 16) if digits.startswith("0x") else int(digits)
    if digits != text:
        if value >= 1 << 64:
            raise ParseError("invalid uint literal", at)
        return UInt(value)
    return value


def _string(text: str, at: int, opening: str) -> tuple[str | bytes, int] | None:
    """The value of a string literal and where it ends; None if it does not end."""
    quotes = opening.lstrip("rRbB")
    prefix = opening[: len(opening) - len(quotes)].lower()
    start = cursor = at + len(opening)
    raw = "r" in prefix
    while not text.startswith(quotes, cursor):
        if cursor >= len(text) or (len(quotes) == 1 and text[cursor] in "\r\n"):
            return None
        cursor += 2 if text[cursor] == "\\" and not raw else 1
    body = text[start:cursor]
    end = cursor + len(quotes)
    if "b" in prefix:
        return (body.encode() if raw else _unescaped_bytes(body, at)), end
    return (body if raw else _unescaped(body, at)), end


_ESCAPE: Final = re.compile(
    r"\\(?:(?P<one>[abfnrtv\\'\"`?])|x(?P<x>[0-9a-fA-F]{2})|X(?P<X>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})"
    r"|U(?P<U>[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})|(?P<bad>.?))",
    re.DOTALL,
)


def _unescaped(body: str, at: int) -> str:
    def one(match: re.Match[str]) -> str:
        if match["one"]:
            return _ESCAPES[match["one"]]
        digits = match["x"] or match["X"] or match["u"] or match["U"]
        if digits:
            code = int(digits, 16)
        elif match["octal"]:
            code = int(match["octal"], 8)
        else:
            raise ParseError("unable to unescape string", at)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise ParseError("invalid unicode code point", at)
        return chr(code)

    return _ESCAPE.sub(one, body) if "\\" in body else body


def _unescaped_bytes(body: str, at: int) -> bytes:
    parts: list[bytes] = []
    last = 0
    for match in _ESCAPE.finditer(body):
        parts.append(body[last : match.start()].encode())
        digits = match["x"] or match["X"]
        if match["one"]:
            parts.append(_ESCAPES[match["one"]].encode())
        elif digits or match["octal"]:
            parts.append(bytes([int(digits, 16) if digits else int(match["octal"], 8)]))
        else:
            raise ParseError("unable to unescape string", at)
        last = match.end()
    parts.append(body[last:].encode())
    return b"".join(parts)


def parse(text: str) -> Node:
    """The tree of an expression; raises an ExceptionGroup of ParseErrors."""
    tokens, problems = tokens_of(text)
    try:
        tree = _Parser(tokens).whole()
    except ParseError as problem:
        raise ExceptionGroup("no expression", [*problems, problem]) from None
    if problems:
        raise ExceptionGroup("no expression", problems)
    return tree


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    # Tokens

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, *texts: str) -> Token | None:
        token = self._peek()
        if token.text in texts and token.kind in ("op", "name"):
            self._next += 1
            return token
        return None

    def _expect(self, text: str) -> Token:
        found = self._accept(text)
        if found is None:
            token = self._peek()
            raise ParseError(f"Syntax error: missing '{text}' at '{token.text}'", token.at)
        return found

    # Levels of precedence, loosest first

    def whole(self) -> Node:
        node = self._expression()
        token = self._peek()
        if token.kind != "end":
            only = self._tokens[self._next + 1].kind == "end"
            what = "extraneous" if only else "mismatched"
            raise ParseError(f"Syntax error: {what} input '{token.text}' expecting <EOF>", token.at)
        return node

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ParseError("expression recursion limit exceeded: 250", self._peek().at)
        node = self._or()
        if question := self._accept("?"):
            yes = self._or()
            self._expect(":")
            node = Call(question.at, "_?_:_", None, [node, yes, self._expression()])
        self._depth -= 1
        return node

    def _or(self) -> Node:
        node = self._and()
        while operator := self._accept("||"):
            node = Call(operator.at, "_||_", None, [node, self._and()])
        return node

    def _and(self) -> Node:
        node = self._relation()
        while operator := self._accept("&&"):
            node = Call(operator.at, "_&&_", None, [node, self._relation()])
        return node

    def _relation(self) -> Node:
        node = self._sum()
        while operator := self._accept(*_RELATIONS):
            name = "@in" if operator.text == "in" else f"_{operator.text}_"
            node = Call(operator.at, name, None, [node, self._sum()])
        return node

    def _sum(self) -> Node:
        node = self._product()
        while operator := self._accept("+", "-"):
            node = Call(operator.at, f"_{operator.text}_", None, [node, self._product()])
        return node

    def _product(self) -> Node:
        node = self._unary()
        while operator := self._accept("*", "/", "%"):
            node = Call(operator.at, f"_{operator.text}_", None, [node, self._unary()])
        return node

    def _unary(self) -> Node:
        for sign, name in (("!", "!_"), ("-", "-_")):
            if not (first := self._accept(sign)):
                continue
            count = 1
            while self._accept(sign):
                count += 1
            token = self._peek()
            if sign == "-" and token.kind in ("int", "float") and not isinstance(token.value, UInt):
                self._take()
                count -= 1
                literal: Node = Literal(first.at, -_checked(token, negative=True))
                node = self._members(literal)
            else:
                node = self._members(self._primary())
            return Call(first.at, name, None, [node]) if count % 2 else node
        return self._members(self._primary())

    def _members(self, node: Node) -> Node:
        while True:
            if dot := self._accept("."):
                optional = self._accept("?") is not None
                name = self._take()
                if name.kind != "name":
                    raise ParseError(f"Syntax error: no viable alternative at input '.{name.text}'", name.at)
                opening = None if optional else self._accept("(")
                selected = Select(dot.at, node, name.text, optional)
                node = self._member_call(opening, node, name) if opening else selected
            elif bracket := self._accept("["):
                optional = self._accept("?") is not None
                index = self._expression()
                self._expect("]")
                node = Call(bracket.at, "_[?_]" if optional else "_[_]", None, [node, index])
            elif self._peek().text == "{" and isinstance(node, (Name, Select)):
                self._take()
                raise ParseError(f"undeclared reference to '{_dotted(node)}' (in container '')", node.at)
            else:
                return node

    def _arguments(self, closing: str) -> list[Node]:
        found: list[Node] = []
        while not self._accept(closing):
            if found:
                self._expect(",")
                if closing != ")" and self._accept(closing):
                    break
            found.append(self._expression())
        return found

    def _member_call(self, opening: Token, target: Node, name: Token) -> Node:
        arguments = self._arguments(")")
        count = len(arguments)
        macro = name.text
        if macro in ("optMap", "optFlatMap") and count == 2:
            return Fold(opening.at, macro, target, _variables(arguments[:1]), arguments[1:])
        if (macro in _ONE_VARIABLE and count == 2) or (macro == "map" and count in (2, 3)):
            return Fold(opening.at, macro, target, _variables(arguments[:1]), arguments[1:])
        if macro in _TWO_VARIABLES and count - 2 in _TWO_VARIABLES[macro]:
            return Fold(opening.at, macro, target, _variables(arguments[:2]), arguments[2:])
        return Call(opening.at, macro, target, arguments)

    def _primary(self) -> Node:
        token = self._take()
        if token.kind in ("int", "float", "string"):
            return Literal(token.at, _checked(token))
        if token.text == "(" and token.kind == "op":
            node = self._expression()
            self._expect(")")
            return node
        if token.text == "[" and token.kind == "op":
            return self._list(token)
        if token.text == "{" and token.kind == "op":
            return self._map(token)
        if token.text == "." and self._peek().kind == "name":
            token = self._take()
        if token.kind == "name":
            return self._named(token)
        wanted = f"mismatched input '{token.text}' expecting {_EXPECTED_PRIMARY}"
        if token.kind != "end":
            wanted = f"extraneous input '{token.text}' expecting {_EXPECTED_PRIMARY}"
        raise ParseError(f"Syntax error: {wanted}", token.at)

    def _named(self, token: Token) -> Node:
        if token.text in ("true", "false"):
            return Literal(token.at, token.text == "true")
        if token.text == "null":
            return Literal(token.at, None)
        if token.text == "in":
            raise ParseError(f"Syntax error: mismatched input 'in' expecting {_EXPECTED_PRIMARY}", token.at)
        if token.text in RESERVED:
            raise ParseError(f"reserved identifier: {token.text}", token.at)
        opening = self._accept("(")
        if not opening:
            return Name(token.at, token.text)
        arguments = self._arguments(")")
        if token.text == "has" and len(arguments) == 1:
            subject = arguments[0]
            if not isinstance(subject, Select) or subject.test:
                raise ParseError("invalid argument to has() macro", subject.at)
            return Select(opening.at, subject.operand, subject.name, subject.optional, test=True)
        return Call(opening.at, token.text, None, arguments)

    def _list(self, opening: Token) -> Node:
        items: list[Node] = []
        optional: list[bool] = []
        while not self._accept("]"):
            if items:
                self._expect(",")
                if self._accept("]"):
                    break
            optional.append(self._accept("?") is not None)
            items.append(self._expression())
        return ListLiteral(opening.at, items, optional)

    def _map(self, opening: Token) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self._accept("}"):
            if entries:
                self._expect(",")
                if self._accept("}"):
                    break
            optional = self._accept("?") is not None
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression(), optional))
        return MapLiteral(opening.at, entries)


def _checked(token: Token, *, negative: bool = False) -> Any:
    value = token.value
    limit = (1 << 63) if negative else (1 << 63) - 1
    if token.kind == "int" and not isinstance(value, UInt) and value > limit:
        raise ParseError("invalid int literal", token.at)
    return value


def _variables(arguments: list[Node]) -> list[Name]:
    found: list[Name] = []
    for argument in arguments:
        if not isinstance(argument, Name):
            raise ParseError("argument must be a simple name", argument.at)
        found.append(argument)
    return found


def _dotted(node: Node) -> str:
    if isinstance(node, Select):
        return f"{_dotted(node.operand)}.{node.name}"
    return node.name if isinstance(node, Name) else ""


def dotted_name(node: Node) -> str | None:
    """`a.b.c` if the node is nothing but names and dots."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select) and not node.optional and not node.test:
        inner = dotted_name(node.operand)
        return None if inner is None else f"{inner}.{node.name}"
    return None
