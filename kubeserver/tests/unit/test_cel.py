"""CEL: what expressions give, what they are refused for, and that no expression can hang or break the server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeserver.cel.evaluation import compile_closure
from kubeserver.cel.rules import check_rules
from kubeserver.cel.type_check import CompileError, compile_tree
from kubeserver.cel.types import escaped, of_schema
from kubeserver.cel.values import CelError
from kubeserver.schemas.schema import parse
from kubeserver.wire.status import OMITTED

Json = dict[str, Any]

SCHEMA = parse(
    {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "f": {"type": "number"},
            "s": {"type": "string"},
            "b": {"type": "boolean"},
            "when": {"type": "string", "format": "date-time"},
            "span": {"type": "string", "format": "duration"},
            "raw": {"type": "string", "format": "byte"},
            "list": {"type": "array", "items": {"type": "string"}},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "either": {"x-kubernetes-int-or-string": True},
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        },
    }
)
SELF: Json = {
    "n": 5,
    "f": 2,
    "s": "héllo",
    "b": True,
    "when": "2024-02-29T12:30:45.5Z",
    "span": "90m",
    "raw": "aGk=",
    "list": ["a", "b", "c"],
    "numbers": [3, 1, 2],
    "map": {"x": 1, "y": 2},
    "either": "50%",
    "set": ["p", "q"],
}


def evaluated(text: str) -> Any:
    kind = of_schema(SCHEMA)
    assert kind is not None
    tree, _ = compile_tree(text, {"self": kind, "oldSelf": kind})
    return compile_closure(tree, ["self", "oldSelf"])([0, SELF, SELF])


@pytest.mark.parametrize(
    "text",
    [
        "1 + 2 * 3 == 7",
        "-7 / 2 == -3 && -7 % 2 == -1",
        "self.f / 4.0 == 0.5",
        "self.n > 4.5 && 4u < self.n",
        "dyn(1) == 1.0 && dyn(1) != true",
        "'a' + 'b' == 'ab' && b'a' + b'b' == b'ab'",
        "size(self.s) == 5 && self.s.size() == 5",
        "self.s.startsWith('h') && self.s.endsWith('o') && self.s.contains('é')",
        "self.s.charAt(1) == 'é' && self.s.substring(1, 3) == 'él' && self.s.indexOf('l') == 2",
        "self.s.lastIndexOf('l') == 3 && self.s.replace('l', 'L', 1) == 'héLlo'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "['a', 'b'].join('-') == 'a-b' && '  x '.trim() == 'x'",
        "'AbC'.lowerAscii() == 'abc' && 'AbC'.upperAscii() == 'ABC'",
        "'%s is %d, %.2f, %x, %s'.format(['a', 5, 1.5, 255, [1, 2]]) == 'a is 5, 1.50, ff, [1, 2]'",
        r"'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1'.find('\\d') == '1' && 'abc'.matches('^a.c$')",
        "self.list.all(x, x < 'd') && self.list.exists(x, x == 'b') && self.list.exists_one(x, x == 'b')",
        "self.list.map(x, x + x) == ['aa', 'bb', 'cc'] && self.list.filter(x, x > 'a').size() == 2",
        "self.numbers.map(x, x > 1, x * 10) == [30, 20]",
        "self.numbers.sum() == 6 && self.numbers.min() == 1 && self.numbers.max() == 3",
        "!self.numbers.isSorted() && self.numbers.sort() == [1, 2, 3] && self.numbers.indexOf(2) == 2",
        "self.numbers.sortBy(x, -x) == [3, 2, 1] && [1, 1, 2].distinct() == [1, 2]",
        "self.numbers.slice(1, 3) == [1, 2] && self.numbers.reverse() == [2, 1, 3] && lists.range(3) == [0, 1, 2]",
        "self.numbers.first().value() == 3 && [[1], [2]].flatten() == [1, 2]",
        "self.list.all(i, v, self.list[i] == v) && self.map.exists(k, v, k == 'y' && v == 2)",
        "self.list.transformList(i, v, string(i) + v) == ['0a', '1b', '2c']",
        "self.map.transformMap(k, v, v * 2) == {'x': 2, 'y': 4}",
        "self.list.transformMapEntry(i, v, {v: i}) == {'a': 0, 'b': 1, 'c': 2}",
        "'x' in self.map && !('z' in self.map) && 'b' in self.list && self.map.x == 1 && self.map['y'] == 2",
        "sets.contains([1, 2], [1]) && sets.equivalent([1, 2], [2, 1, 1]) && !sets.intersects([1], [2])",
        "has(self.s) && self.?s.hasValue() && self.?s.orValue('') == 'héllo'",
        "self.map[?'z'].orValue(9) == 9 && self.list[?1].value() == 'b'",
        "optional.none().or(optional.of(1)).value() == 1",
        "self.?s.optMap(v, size(v)).orValue(0) == 5 && !optional.ofNonZeroValue('').hasValue()",
        "[?self.?s, ?optional.none()] == [self.s] && {?'k': self.?s} == {'k': self.s}",
        "self.when < timestamp('2024-03-01T00:00:00Z') && self.when + self.span > self.when",
        "self.when.getFullYear() == 2024 && self.when.getMonth() == 1 && self.when.getDayOfMonth() == 28",
        "self.when.getDayOfWeek() == 4 && self.when.getHours('+02:00') == 14 && self.when.getMilliseconds() == 500",
        "self.span == duration('1h30m') && self.span.getMinutes() == 90 && string(self.span) == '5400s'",
        "string(self.when) == '2024-02-29T12:30:45.5Z' && self.when - self.when == duration('0s')",
        "self.raw == b'hi' && string(self.raw) == 'hi'",
        "type(self.either) == string && type(self.n) == int && type(self.f) == double && type(1u) == uint",
        "int('7') == 7 && double('1.5') == 1.5 && string(1.5) == '1.5' && bool('true') && int(2.9) == 2",
        "ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && !isIP('10.0.0.256') && ip.isCanonical('::1')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.1.2.3/24').masked() == cidr('10.1.2.0/24')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('fd00::/8').prefixLength() == 8 && !isCIDR('x')",
        "url('https://u@a.b:8080/p?q=1').getHost() == 'a.b:8080' && url('https://a.b:80').getPort() == '80'",
        "url('http://a/p?q=1&q=2').getQuery() == {'q': ['1', '2']} && !isURL('nope')",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1500m').add(quantity('500m')).asInteger() == 2",
        "quantity('2').compareTo(quantity('2000m')) == 0 && sign(quantity('-1')) == -1",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('v1.2', true) && !isSemver('v1.2')",
        "format.dns1123Label().validate('A').hasValue() && !format.uuid().validate('x').orValue([]).all(e, e == '')",
        "true || 1 / 0 == 1",
        "1 / 0 == 1 || true",
        "!(false && 1 / 0 == 1)",
        "[0, 1].exists(x, 1 / x == 1)",
        "self.set == ['q', 'p'] && (self.set + ['q', 'r']).size() == 3",
        "r'\\d' == '\\\\d' && '''multi'''.size() == 5 && '\\u00e9' == 'é' && 0x1f == 31",
        "{'a': 1}.a == 1 && {1: 'x'}[1] == 'x' && null == null",
        "self.b ? self.n == 5 : false // a comment",
    ],
)
def test_expressions_that_hold(text: str) -> None:
    assert evaluated(text) is True


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 / (self.n - 5) == 0", "division by zero"),
        ("1 % (self.n - 5) == 0", "modulus by zero"),
        ("self.n + 9223372036854775807 > 0", "integer overflow"),
        ("self.list[9] == 'x'", "index out of bounds: 9"),
        ("self.map.z == 1", "no such key: z"),
        ("self.either > 5", "no such overload"),
        ("int(self.s) == 1", "type conversion error from 'string' to 'int'"),
        ("self.?map.z.value() == 1", "optional.none() dereference"),
        ("self.s.substring(9) == ''", "index out of range: 9"),
        ("[].max() == 1", "max called on empty list"),
        ("self.numbers.all(x, self.map[string(x)] > 0)", "no such key: 2"),
    ],
)
def test_errors_have_the_words_of_cel_go(text: str, problem: str) -> None:
    with pytest.raises(CelError) as error:
        evaluated(text)
    assert str(error.value) == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("self.nope == 1", "1:5: undefined field 'nope'"),
        ("self.n + 'a' == 1", "1:8: found no matching overload for '_+_' applied to '(int, string)'"),
        ("nope(1)", "1:5: undeclared reference to 'nope' (in container '')"),
        ("nope == 1", "1:1: undeclared reference to 'nope' (in container '')"),
        ("self.s.nope() == 1", "1:12: undeclared reference to 'nope' (in container '')"),
        ("self.s.startsWith(1)", "1:18: found no matching overload for 'startsWith' applied to 'string.(int)'"),
        ("self.n.x == 1", "1:7: type 'int' does not support field selection"),
        ("[1, 'a'] == []", "1:5: expected type 'int' but found 'string'"),
        ("self.n && true", "1:5: expected type 'bool' but found 'int'"),
        (
            "self.n.all(x, true)",
            "1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("has(self)", "1:5: invalid argument to has() macro"),
        ("self.list.all(1, true)", "1:15: argument must be a simple name"),
        ("namespace == 1", "1:1: reserved identifier: namespace"),
        ("duration('x') == self.span", "1:10: invalid duration argument"),
        ("'a'.matches('[')", "1:13: invalid matches argument"),
    ],
)
def test_mistakes_are_found_before_any_object_comes(text: str, problem: str) -> None:
    with pytest.raises(CompileError) as refusal:
        evaluated(text)
    assert str(refusal.value).split("\n")[0] == f"ERROR: <input>:{problem}"


def test_a_refusal_points_at_the_place() -> None:
    with pytest.raises(CompileError) as refusal:
        evaluated("true &&\n  self.nope == 1")
    assert str(refusal.value) == "ERROR: <input>:2:7: undefined field 'nope'\n |   self.nope == 1\n | ......^"


@pytest.mark.parametrize(
    ("name", "known_as"),
    [
        ("plain", "plain"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("namespace", "__namespace__"),
        ("true", "__true__"),
        ("9a", None),
        ("a b", None),
    ],
)
def test_field_names_are_escaped_as_kubernetes_does(name: str, known_as: str | None) -> None:
    assert escaped(name) == known_as


def ruled(*rules: Json, **more: Any) -> Any:
    spec = {"type": "object", "properties": {"n": {"type": "integer"}}, "x-kubernetes-validations": list(rules)}
    return parse({"type": "object", "properties": {"spec": {**spec, **more}}})


def test_transition_rules_run_on_updates_only() -> None:
    schema = ruled({"rule": "self.n == oldSelf.n", "message": "n is immutable"})
    assert check_rules(schema, {"spec": {"n": 1}}) == []
    assert check_rules(schema, {"spec": {"n": 1}}, {"spec": {"n": 1}}) == []
    (error,) = check_rules(schema, {"spec": {"n": 1}}, {"spec": {"n": 2}})
    assert error.text() == "spec: Invalid value: n is immutable"
    assert error.value is OMITTED


def test_an_optional_old_value_lets_transition_rules_run_on_creation() -> None:
    schema = ruled({"rule": "oldSelf.hasValue() || self.n == 0", "optionalOldSelf": True})
    assert len(check_rules(schema, {"spec": {"n": 1}})) == 1
    assert check_rules(schema, {"spec": {"n": 1}}, {"spec": {"n": 1}}) == []


def test_a_rule_broken_before_the_update_only_warns() -> None:
    schema = ruled({"rule": "self.n > 5", "message": "too small"})
    warnings: list[str] = []
    assert check_rules(schema, {"spec": {"n": 1}}, {"spec": {"n": 1}}, warnings) == []
    assert warnings == ["spec: Invalid value: too small"]
    assert len(check_rules(schema, {"spec": {"n": 2}}, {"spec": {"n": 1}})) == 1


def test_a_message_expression_words_the_failure_and_falls_back() -> None:
    schema = ruled(
        {"rule": "self.n > 5", "messageExpression": "'n is ' + string(self.n)"},
        {"rule": "self.n > 6", "message": "plain", "messageExpression": "string(1 / (self.n - 1))"},
    )
    texts = [error.body() for error in check_rules(schema, {"spec": {"n": 1}})]
    assert texts == ["Invalid value: n is 1", "Invalid value: plain"]


def test_metadata_at_the_root_is_its_name_only() -> None:
    schema = parse({"type": "object", "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('a')"}]})
    (error,) = check_rules(schema, {"metadata": {"name": "b"}, "kind": "K", "apiVersion": "v1"})
    assert error.text() == "<nil>: Invalid value: failed rule: self.metadata.name.startsWith('a')"


def test_an_expression_that_would_run_for_minutes_is_stopped() -> None:
    schema = parse(
        {
            "type": "object",
            "properties": {
                "many": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"}],
                }
            },
        }
    )
    (error,) = check_rules(schema, {"many": list(range(500))})
    assert error.body() == (
        "Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation rules will "
        "be run due to call cost exceeds limit for rule: self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"
    )


PARTS = st.sampled_from(
    [
        "self",
        ".n",
        ".s",
        ".list",
        ".map",
        "[0]",
        "(",
        ")",
        "+",
        "==",
        "&&",
        "'a'",
        "1",
        "x",
        ".all(x, ",
        ".size()",
        "!",
        "?",
        ":",
        "has(",
        "[",
        "]",
        "{",
        "}",
        ",",
        ".?",
        "in",
        "null",
        "true",
        "1.5",
        "\n",
        "\\",
        "é",
        "//",
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(PARTS, max_size=12))
def test_any_text_is_evaluated_or_refused(parts: list[str]) -> None:
    try:
        evaluated("".join(parts))
    except (CompileError, CelError):
        return


def test_deep_nesting_is_refused_and_does_not_crash() -> None:
    with pytest.raises(CompileError):
        evaluated("(" * 5000 + "1" + ")" * 5000)
