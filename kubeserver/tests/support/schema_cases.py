"""Schemas with values, and definitions, about which our server and a real Kubernetes must agree.

The tables are data: `test_schema_agreement.py` asks both. A value case is a schema of one field of a spec
and values for it, valid or not; nothing here says which, the real server does.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

STRING: Json = {"type": "string"}
INTEGER: Json = {"type": "integer"}
OBJECT: Json = {"type": "object"}


def rule(text: str, **more: Any) -> Json:
    return {"rule": text, **more}


def ruled(schema: Json, *rules: Json | str) -> Json:
    found = [obj if isinstance(obj, dict) else rule(obj) for obj in rules]
    return {**schema, "x-kubernetes-validations": found}


def fields(required: list[str] | None = None, /, **properties: Json) -> Json:
    schema: Json = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def list_of(items: Json, **more: Any) -> Json:
    return {"type": "array", "items": items, **more}


ANY_SCALARS: list[Any] = ["x", "", 1, 1.5, 0, -1, 3.0, True, [], {}, {"a": 1}, ["a"], 1e20, 99999999999]

VALUES: dict[str, tuple[Json, list[Any]]] = {
    "string": (STRING, ANY_SCALARS),
    "integer": (INTEGER, ANY_SCALARS),
    "int32": ({"type": "integer", "format": "int32"}, [*ANY_SCALARS, 2147483648, -2147483649]),
    "number": ({"type": "number"}, ANY_SCALARS),
    "float": ({"type": "number", "format": "float"}, [*ANY_SCALARS, 1e39, "x"]),
    "boolean": ({"type": "boolean"}, ANY_SCALARS),
    "array": (list_of(STRING), [*ANY_SCALARS, [1], ["a", None], [["a"]]]),
    "object": (fields(a=INTEGER), [*ANY_SCALARS, {"a": "x"}, {"b": 1}]),
    "nullable": ({"type": "string", "nullable": True}, [None, "x", 1]),
    "nullable-enum": ({"type": "string", "nullable": True, "enum": ["a"]}, [None, "a", "b"]),
    "map": ({"type": "object", "additionalProperties": INTEGER}, [{"a": 1}, {"a": "x", "b": True}, {"a": None}, 5]),
    "map-of-objects": (
        {"type": "object", "additionalProperties": fields(["n"], n=INTEGER)},
        [{"a": {"n": 1}}, {"a": {}}, {"a": {"n": "x"}}, {"a.b": {"n": 1.5}}],
    ),
    "required": (fields(["a", "b"], a=INTEGER, b=STRING), [{}, {"a": 1}, {"a": 1, "b": "x"}, {"a": None, "b": "x"}]),
    "enum": ({"type": "string", "enum": ["a", "b"]}, ["a", "c", "", 1]),
    "enum-of-numbers": ({"type": "integer", "enum": [1, 2]}, [1, 3, 2.0, "1"]),
    "enum-mixed": ({"x-kubernetes-preserve-unknown-fields": True, "enum": ["a", 1, True]}, ["a", 1, True, 2, {"a": 1}]),
    "pattern": ({"type": "string", "pattern": "^[a-z]+(-[0-9]+)?$"}, ["ab", "ab-1", "AB", "", "ab\n", 5]),
    "pattern-quoted": ({"type": "string", "pattern": '^"\\d+"$'}, ['"1"', "1", 'a"b', "tab\there", "ünïcode<&>"]),
    "lengths": ({"type": "string", "minLength": 2, "maxLength": 4}, ["a", "ab", "abcde", "äöü", "äöüßé", 5]),
    "length-one": ({"type": "string", "maxLength": 1}, ["", "a", "ab"]),
    "length-and-pattern": ({"type": "string", "minLength": 2, "pattern": "^a"}, ["b", "bb", "ab"]),
    "minimum": ({"type": "integer", "minimum": 1, "maximum": 10}, [0, 1, 10, 11, 5.0, 0.5]),
    "minimum-exclusive": (
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 10, "exclusiveMaximum": True},
        [1, 2, 9, 10, 0, 11],
    ),
    "minimum-number": ({"type": "number", "minimum": 0.5, "maximum": 1234567.5}, [0.25, 0.5, 1, 0, 2000000, 1e9]),
    "minimum-fraction-of-integer": ({"type": "integer", "minimum": 1.5, "maximum": 3.5}, [1, 2, 3, 4]),
    "multiple-of": ({"type": "integer", "multipleOf": 5}, [10, 11, 0, -5]),
    "multiple-of-number": ({"type": "number", "multipleOf": 0.5}, [1, 1.5, 1.25, 3]),
    "items": (list_of(INTEGER, minItems=1, maxItems=3), [[], [1], [1, 2, 3, 4], ["x", 1, 2, 3], [1.5]]),
    "items-one": (list_of(STRING, maxItems=1), [["a", "b"]]),
    "properties": (
        {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": STRING},
        [{}, {"a": "x"}, {"a": "x", "b": "y", "c": "z"}, {"a": 1, "b": 2, "c": 3}],
    ),
    "set": (list_of(STRING, **{"x-kubernetes-list-type": "set"}), [["a", "b"], ["a", "a", "a"], ["a", "b", "b", "a"]]),
    "map-list": (
        list_of(
            fields(["k"], k=STRING, v=INTEGER),
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
        ),
        [[{"k": "a"}, {"k": "b"}], [{"k": "a", "v": 1}, {"k": "a", "v": 2}], [{"v": 1}], [{"k": 1}, {"k": 1}]],
    ),
    "map-list-two-keys": (
        list_of(
            fields(["k", "p"], k=STRING, p=INTEGER),
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"]},
        ),
        [[{"k": "a", "p": 1}, {"k": "a", "p": 2}], [{"k": "a", "p": 1}, {"p": 1, "k": "a"}]],
    ),
    "int-or-string": ({"x-kubernetes-int-or-string": True}, [1, "x", 1.5, True, {}, 2.0]),
    "int-or-string-any-of": (
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": "^[0-9]+%$",
        },
        [1, "5%", "x", True, 1.5],
    ),
    "any-of": (
        {**fields(a=INTEGER, b=STRING), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        [{}, {"a": 1}, {"b": "x"}, {"a": "x"}],
    ),
    "one-of": (
        {**fields(a=INTEGER, b=STRING), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        [{}, {"a": 1}, {"a": 1, "b": "x"}],
    ),
    "all-of": (
        {"type": "string", "allOf": [{"minLength": 2}, {"pattern": "^a"}]},
        ["ab", "b", "a", "bb"],
    ),
    "not": ({"type": "string", "not": {"enum": ["bad"]}}, ["bad", "good"]),
    "any-of-deep": (
        {
            **fields(kind={"type": "string", "enum": ["x", "y"]}, size=INTEGER),
            "anyOf": [
                {"properties": {"kind": {"enum": ["x"]}, "size": {"minimum": 5}}},
                {"properties": {"kind": {"enum": ["y"]}}},
            ],
        },
        [{"kind": "x", "size": 1}, {"kind": "x", "size": 9}, {"kind": "y"}, {"kind": "z"}],
    ),
    "preserve": (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": fields(b=INTEGER)}},
        [{"x": 1, "a": {"b": 1, "c": 2}}, {"a": {"b": "x"}}, {"y": {"z": [1]}}],
    ),
    "anything": ({"x-kubernetes-preserve-unknown-fields": True}, ANY_SCALARS),
    "embedded": (
        {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}},
            {"kind": "Pod"},
            {"apiVersion": "a/b/c", "kind": "no kind"},
            {"apiVersion": "", "kind": ""},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x/y", "labels": {"-": "x"}}},
        ],
    ),
    "defaults": (
        fields(a={"type": "integer", "default": 5}, b={**fields(c={"type": "string", "default": "x"}), "default": {}}),
        [{}, {"a": None}, {"b": {}}, {"b": None}, {"a": 1, "b": {"c": "y"}}],
    ),
}

FORMATS: dict[str, list[str]] = {
    "date-time": ["2020-01-02T03:04:05Z", "2020-01-02t03:04:05.123+01:00", "2020-13-02T03:04:05Z", "2020-01-02", "x"],
    "date": ["2020-02-29", "2021-02-29", "20200101", "2020-1-1"],
    "ipv4": ["10.0.0.1", "010.0.0.1", "256.0.0.1", "::1", "::ffff:1.2.3.4", "1.2.3"],
    "ipv6": ["::1", "fe80::1", "10.0.0.1", "fe80::1%eth0", "1::2::3"],
    "cidr": ["10.0.0.0/8", "10.0.0.1/33", "10.0.0.0", "fd00::/8", "010.0.0.0/8"],
    "email": ["a@b.c", "Name <a@b.c>", "a@", "a b@c.d", "@b.c"],
    "uri": ["http://a.b/c?d", "/path", "mailto:x", "a", "http://[::1", "http://a b"],
    "hostname": ["a.example.com", "-a.b", "a..b", "ä.example", "a_b"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000", "x"],
    "uuid4": ["123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"],
    "byte": ["aGVsbG8=", "aGVsbG8", "%%", ""],
    "duration": ["1h30m", "3 weeks", "1d", "x", "-1.5s", "5"],
    "mac": ["01:23:45:67:89:ab", "0123.4567.89ab", "01:23"],
    "isbn": ["0321751043", "978-0321751041", "123"],
    "creditcard": ["4111 1111 1111 1111", "1234"],
    "hexcolor": ["#fff", "#ggg"],
    "rgbcolor": ["rgb(1,2,3)", "rgb(1,2,300)"],
    "ssn": ["111-11-1111", "11-11-11"],
    "bsonobjectid": ["507f1f77bcf86cd799439011", "x"],
    "password": ["x", ""],
    "k8s-short-name": ["a-b", "A", "a.b"],
    "k8s-long-name": ["a-b.c", "A", "-"],
    "unheard-of": ["anything"],
}

_PORTS = list_of(
    fields(["name"], name=STRING, port=INTEGER),
    **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    maxItems=10,
)
_SHORT: Json = {"type": "string", "maxLength": 64}

RULES: dict[str, tuple[Json, list[Any]]] = {
    "compare": (
        ruled(fields(low=INTEGER, high=INTEGER), rule("self.low <= self.high", message="low is over high")),
        [{"low": 1, "high": 2}, {"low": 3, "high": 2}, {"low": 1}, {}],
    ),
    "no-message": (ruled(_SHORT, "self != 'bad'"), ["bad", "good"]),
    "on-integer": (ruled(INTEGER, "self % 2 == 0"), [1, 2, -3]),
    "on-boolean": (ruled({"type": "boolean"}, "self"), [True, False]),
    "on-number": (ruled({"type": "number"}, "self < 1.5"), [1, 1.5, 2, 1.25]),
    "on-list": (ruled(list_of(_SHORT, maxItems=5), "self.all(x, x.startsWith('a'))"), [["a"], ["b"], []]),
    "on-map": (
        ruled({"type": "object", "additionalProperties": INTEGER, "maxProperties": 5}, "self.all(k, self[k] > 0)"),
        [{"a": 1}, {"a": 0}, {}],
    ),
    "below-map": (
        {"type": "object", "additionalProperties": ruled(INTEGER, "self > 0"), "maxProperties": 5},
        [{"a": 1, "b.c": -1}],
    ),
    "below-list": (list_of(ruled(fields(n=INTEGER), "self.n > 0"), maxItems=5), [[{"n": 1}, {"n": 0}, {}]]),
    "message-expression": (
        ruled(INTEGER, rule("self < 5", message="static", messageExpression="self > 5 ? 'way too big' : 'too big'")),
        [5, 4, 6],
    ),
    "message-expression-fails": (
        ruled(INTEGER, rule("self < 5", message="static", messageExpression="1 / (self - self) > 0 ? 'a' : 'b'")),
        [5],
    ),
    "message-expression-empty": (ruled(INTEGER, rule("self < 5", messageExpression="'  '")), [5]),
    "reasons": (
        ruled(
            fields(a=INTEGER),
            rule("self.a != 1", reason="FieldValueForbidden", message="no 1"),
            rule("self.a != 2", reason="FieldValueRequired", message="no 2"),
            rule("self.a != 3", reason="FieldValueDuplicate", message="no 3"),
            rule("self.a != 4", reason="FieldValueInvalid", message="no 4"),
        ),
        [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}],
    ),
    "field-path": (
        ruled(
            fields(a=INTEGER, m={"type": "object", "additionalProperties": INTEGER}),
            rule("self.a < 5", fieldPath=".a", message="too big"),
            rule("!('x' in self.m)", fieldPath=".m['x']", message="no x"),
        ),
        [{"a": 9, "m": {}}, {"a": 1, "m": {"x": 1}}],
    ),
    "has": (ruled(fields(a=INTEGER, b=STRING), "has(self.a) || has(self.b)"), [{}, {"a": 1}, {"b": ""}]),
    "dashes": (
        {
            **fields(**{"a-b": INTEGER, "namespace": _SHORT, "x.y": INTEGER, "u__v": INTEGER}),
            "x-kubernetes-validations": [
                rule("self.a__dash__b > 0 && self.__namespace__ != ''"),
                rule("self.x__dot__y > 0 && self.u__underscores__v > 0"),
            ],
        },
        [{"a-b": 1, "namespace": "n", "x.y": 1, "u__v": 1}, {"a-b": 0, "namespace": "n", "x.y": 1, "u__v": 1}],
    ),
    "division": (ruled(INTEGER, "10 / self > 1"), [0, 5, 10]),
    "modulo": (ruled(INTEGER, "10 % self > 1"), [0, 4, 5, -3]),
    "overflow": (ruled(INTEGER, "self + 9223372036854775807 > 0"), [1, 0]),
    "index": (ruled(list_of(_SHORT, maxItems=5), "self[2] == 'x'"), [["x"], ["a", "b", "x"], ["a", "b", "c"]]),
    "map-index": (
        ruled({"type": "object", "additionalProperties": _SHORT, "maxProperties": 5}, "self['k'] == 'v'"),
        [{"k": "v"}, {"k": "w"}, {}],
    ),
    "int-or-string": (
        ruled({"x-kubernetes-int-or-string": True}, "type(self) == int ? self < 5 : self.endsWith('%')"),
        [1, 9, "5%", "5"],
    ),
    "int-or-string-unguarded": (ruled({"x-kubernetes-int-or-string": True}, "self < 5"), [1, 9, "x"]),
    "times": (
        ruled(
            fields(start={"type": "string", "format": "date-time"}, span={"type": "string", "format": "duration"}),
            "self.start + self.span < timestamp('2030-01-01T00:00:00Z')",
            "self.start.getFullYear() > 2000",
        ),
        [
            {"start": "2020-01-01T00:00:00Z", "span": "1h"},
            {"start": "2029-12-31T23:30:00Z", "span": "1h"},
            {"start": "1999-01-01T00:00:00Z", "span": "1h"},
        ],
    ),
    "bytes": (
        ruled({"type": "string", "format": "byte", "maxLength": 64}, "self == b'hello'"),
        ["aGVsbG8=", "aGVsbA=="],
    ),
    "strings": (
        ruled(
            _SHORT,
            "self.lowerAscii() == 'abc'",
            "self.size() == 3",
            "self.split('').size() == 3",
            "self.replace('b', 'x').contains('x')",
            "self.substring(1, 2) == 'b'",
            "self.indexOf('c') == 2",
            "self.matches('^[a-c]+$')",
            "self.charAt(0) == 'a'",
            "self.trim() == self",
            "self.upperAscii() == 'ABC'",
        ),
        ["abc", "ABC", "ab", " abc", "äöü", ""],
    ),
    "format": (ruled(INTEGER, "'%d-%s'.format([self, 'x']) == '5-x'"), [5, 6]),
    "regex": (
        ruled(_SHORT, "self.find('[0-9]+') == '42'", "self.findAll('[0-9]').size() == 2"),
        ["a42b", "a4b2", "x"],
    ),
    "lists": (
        ruled(
            list_of(INTEGER, maxItems=5),
            "self.sum() < 10",
            "self.min() > 0",
            "self.max() < 5",
            "self.isSorted()",
            "self.indexOf(2) == 1",
        ),
        [[1, 2, 3], [3, 2, 1], [9, 2], []],
    ),
    "macros": (
        ruled(
            list_of(INTEGER, maxItems=5),
            "self.exists(x, x == 1)",
            "self.exists_one(x, x == 1)",
            "self.filter(x, x > 1).size() == 1",
            "self.map(x, x * 2)[0] == 2",
            "self.all(i, x, i < 5 && x < 9)",
        ),
        [[1, 2], [1, 1], [2], []],
    ),
    "sets": (
        ruled(list_of(_SHORT, maxItems=5), "sets.contains(self, ['a'])", "sets.intersects(self, ['b'])"),
        [["a", "b"], ["a"], []],
    ),
    "addresses": (
        ruled(
            _SHORT,
            "isIP(self)",
            "ip(self).family() == 4",
            "cidr('10.0.0.0/8').containsIP(self)",
            "ip.isCanonical(self)",
        ),
        ["10.1.2.3", "11.1.2.3", "fd00::1", "x", "10.1.2.300", "FD00::1"],
    ),
    "networks": (
        ruled(
            _SHORT,
            "isCIDR(self)",
            "cidr(self).prefixLength() == 24",
            "cidr(self).masked() == cidr(self)",
            "cidr('10.0.0.0/8').containsCIDR(self)",
        ),
        ["10.1.2.0/24", "10.1.2.3/24", "11.0.0.0/24", "x", "10.1.2.0/33", "fd00::/8"],
    ),
    "urls": (
        ruled(_SHORT, "isURL(self)", "url(self).getScheme() == 'https'", "url(self).getHostname() == 'a.b'"),
        ["https://a.b/c", "http://a.b", "https://a.b:8080/x?y=z", "x"],
    ),
    "quantities": (
        ruled(
            _SHORT, "isQuantity(self)", "quantity(self).isGreaterThan(quantity('1Gi'))", "quantity(self).isInteger()"
        ),
        ["2Gi", "1Mi", "1500m", "x"],
    ),
    "optional": (ruled(fields(a=INTEGER), "self.?a.orValue(5) < 6"), [{}, {"a": 9}, {"a": 1}]),
    "ternary": (ruled(INTEGER, "self > 3 ? self < 6 : self > 1"), [0, 2, 5, 7]),
    "or-hides-error": (ruled(INTEGER, "10 / self > 1 || true"), [0, 1]),
    "all-hides-error": (ruled(list_of(INTEGER, maxItems=5), "self.exists(x, 10 / x == 5)"), [[0, 2], [0, 1]]),
    "set-order": (
        ruled(
            fields(
                a=list_of(_SHORT, maxItems=5, **{"x-kubernetes-list-type": "set"}),
                b=list_of(_SHORT, maxItems=5, **{"x-kubernetes-list-type": "set"}),
            ),
            "self.a == self.b",
        ),
        [{"a": ["x", "y"], "b": ["y", "x"]}, {"a": ["x"], "b": ["y"]}],
    ),
    "map-list": (
        ruled(_PORTS, "self.exists(p, p.name == 'http')", "self.all(p, p.port > 0)"),
        [[{"name": "http", "port": 80}], [{"name": "x", "port": 0}], [{"name": "http"}]],
    ),
    "invalid-before-rules": (
        ruled(fields(["a"], a=INTEGER), "self.a > 0"),
        [{}, {"a": "x"}, {"a": 0}],
    ),
    "types": (
        ruled(fields(a=INTEGER, b=STRING), "type(self.a) == int && type(self.b) == string"),
        [{"a": 1, "b": "x"}],
    ),
    "semver": (
        ruled(_SHORT, "isSemver(self)", "semver(self).isGreaterThan(semver('1.2.3'))"),
        ["1.10.0", "1.2.3-rc1", "x"],
    ),
    "named-format": (ruled(_SHORT, "!format.dns1123Label().validate(self).hasValue()"), ["abc", "A_B"]),
}

# Rules that a definition is refused for, or not, on a field of type object
BAD_RULES: list[Json] = [
    rule("self.missing == 1"),
    rule("self.a + 'x' == 'y'"),
    rule("self.a"),
    rule("unknown(self.a)"),
    rule("self.a.nope()"),
    rule("nothing == 1"),
    rule("self.list.all(x, x > 1)"),
    rule("self.list.all(1, true)"),
    rule("self.a == 'x'"),
    rule("self.a == 1.0"),
    rule("self.s.matches('[')"),
    rule("duration('x') < duration('1h')"),
    rule("timestamp('x') < timestamp('2020-01-01T00:00:00Z')"),
    rule("[1, 'x'].size() == 2"),
    rule("has(self)"),
    rule("self.s.foo == 1"),
    rule("self.a in 5"),
    rule("namespace == 1"),
    rule("self.a < 1 &&"),
    rule("self.a < 1", message="  "),
    rule("self.a < 1", message="a\nb"),
    rule("self.a <\n1"),
    rule("  "),
    rule("self.a < 1", messageExpression="self.a"),
    rule("self.a < 1", messageExpression="self.missing"),
    rule("self.a < 1", messageExpression=" "),
    rule("self.a < 1", reason="Nonsense"),
    rule("self.a < 1", fieldPath=".missing"),
    rule("self.a < 1", fieldPath="a"),
    rule("self.a < 1", fieldPath=".a"),
    rule("self.a < 1", optionalOldSelf=True),
    rule("oldSelf.a < 1"),
    rule("oldSelf.a < 1", optionalOldSelf=True),
    rule("oldSelf.hasValue()", optionalOldSelf=True),
    rule("self.a ? true : false"),
    rule("!self.a"),
    rule("-self.s == 'x'"),
    rule("self.list[0] == 1"),
    rule("self.list['x'] == 'a'"),
    rule("size(self.a) == 1"),
    rule("self.s.split(1) == []"),
    rule("self.list.filter(x, x).size() == 0"),
    rule("self.list.map(x, x + 1) == []"),
    rule("self.list.exists(x, x)"),
    rule("self.any == 1"),
    rule("self.map.x == 'y' && self.map.all(k, k != self.map[k])"),
    rule("int('1') == 1 && string(1) == '1' && double('1.5') > 1.0"),
    rule("dyn(self.a) == 'x'"),
    rule("self.list.all(i, v, i >= 0 && v != '')"),
    rule("{'a': 1, 'b': 'x'}.size() == 2"),
    rule("self.a == null"),
    rule("self.s == null"),
    rule("cidr(self.s).ip().family() == 4 && ip(self.a).family() == 4"),
    rule("self.s.lowerAscii(1) == 'x'"),
    rule("'unclosed"),
    rule("self.a == 1 self.a == 2"),
    rule("(self.a == 1"),
    rule("self..a == 1"),
    rule("self.metadata.name == 'x'"),
    rule("self.a && true"),
    rule("true || self.s"),
    rule("self.list.all(x, x)"),
    rule("self.list.exists_one(x, x)"),
    rule("self.list.map(x, x, x).size() == 1"),
    rule("self.a == 1)"),
    rule("self.a == 1 # comment"),
    rule("* 5 == 1"),
    rule("self.a == "),
    rule(""),
    rule("self.list.sortBy(x, x)[0] == 'a'"),
    rule("self.list.isSorted() && self.list.min() == 'a' && self.list.distinct().size() == 1"),
    rule("self.list.sum() == 1"),
    rule("optional.of(self.a).value() == 1 && self.?a.hasValue() && self.?b.hasValue()"),
    rule("self.?s.orValue(1) == 'x'"),
    rule("self.list[?0].orValue('') == 'x'"),
    rule("self.list.transformList(i, v, v).size() > 0"),
    rule("self.map[?'k'].optMap(v, v).orValue('') == 'x'"),
    rule("type(self.a) == int"),
    rule("self.s > 5"),
    rule("self.a < 1.5"),
    rule("self.a + 1.5 > 2.0"),
    rule("self == self"),
    rule("self.list == self.map"),
    rule("self.list + ['x'] == ['y']"),
    rule("quantity(self.s).add(5).isLessThan(quantity('1'))"),
    rule("b'abc' == bytes(self.s)"),
    rule("r'\\d' == self.s && 0x10 == self.a && 5u == 5u && 1e3 > 2.5"),
    rule("self.a.b.c == 1"),
    rule("self.map.a.b == 1"),
    rule("int(self.list) == 1"),
    rule("string(self) == 'x'"),
    # The length of these texts is unknown, so the rules may cost too much.
    rule("string(self.a).contains('x')"),
    rule("self.?s.orValue('').matches('^x$')"),
    rule("self.list.map(x, x).join(',') == 'x'"),
    rule("ip(self.s) != ip('10.0.0.1')"),
    rule("self.a < 1", messageExpression="'%d'.format([self.a]) + string(self.a)"),
]
RULED_OBJECT: Json = fields(
    a=INTEGER,
    s=_SHORT,
    list=list_of(_SHORT, maxItems=5),
    map={"type": "object", "additionalProperties": _SHORT, "maxProperties": 5},
)

# Schemas of a spec that a definition is refused for, or not
SPECS: dict[str, Json] = {
    "no type": {"properties": {"a": STRING}},
    "wrong type": {"type": "text"},
    "null type": {"type": "null"},
    "array without items": {"type": "array"},
    "untyped items": {"type": "array", "items": {}},
    "array of items": {"type": "array", "items": [STRING]},
    "bad pattern": {"type": "string", "pattern": "["},
    "lookahead": {"type": "string", "pattern": "(?=a)"},
    "id": {"type": "string", "id": "x"},
    "ref": {"type": "string", "$ref": "#/x"},
    "definitions": {"type": "object", "definitions": {"a": STRING}},
    "pattern properties": {"type": "object", "patternProperties": {"a": STRING}},
    "dependencies": {"type": "object", "dependencies": {"a": ["b"]}},
    "unique items": list_of(STRING, uniqueItems=True),
    "properties and additional": {**fields(a=STRING), "additionalProperties": STRING},
    "properties and additional true": {**fields(a=STRING), "additionalProperties": True},
    "additional false": {**fields(a=STRING), "additionalProperties": False},
    "preserve false": {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
    "map type on string": {"type": "string", "x-kubernetes-map-type": "atomic"},
    "wrong map type": {"type": "object", "x-kubernetes-map-type": "x"},
    "list type on string": {"type": "string", "x-kubernetes-list-type": "set"},
    "wrong list type": list_of(STRING, **{"x-kubernetes-list-type": "x"}),
    "map list without keys": list_of(fields(a=STRING), **{"x-kubernetes-list-type": "map"}),
    "keys without map": list_of(fields(a=STRING), **{"x-kubernetes-list-map-keys": ["a"]}),
    "keys of set": list_of(STRING, **{"x-kubernetes-list-type": "set", "x-kubernetes-list-map-keys": ["a"]}),
    "unknown key": list_of(
        fields(a=STRING), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b", "b"]}
    ),
    "optional key": list_of(fields(a=STRING), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
    "nullable key": list_of(
        fields(["a"], a={"type": "string", "nullable": True}),
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
    ),
    "object key": list_of(
        fields(["a"], a=OBJECT), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}
    ),
    "map list of strings": list_of(STRING, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
    "nullable set items": list_of({"type": "string", "nullable": True}, **{"x-kubernetes-list-type": "set"}),
    "set of objects": list_of(fields(a=STRING), **{"x-kubernetes-list-type": "set"}),
    "set of lists": list_of(list_of(STRING, **{"x-kubernetes-list-type": "set"}), **{"x-kubernetes-list-type": "set"}),
    "int-or-string with type": {"type": "string", "x-kubernetes-int-or-string": True},
    "int-or-string any of": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "int-or-string and preserve": {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True},
    "embedded without preserve": {"type": "object", "x-kubernetes-embedded-resource": True},
    "embedded string": {"type": "string", "x-kubernetes-embedded-resource": True},
    "type in any of": {**fields(a=STRING), "anyOf": [{"properties": {"a": {"type": "string"}}}]},
    "description in all of": {"type": "string", "allOf": [{"description": "x", "nullable": True, "default": "x"}]},
    "unknown in any of": {**fields(a=STRING), "anyOf": [{"properties": {"b": {"minLength": 1}}}]},
    "items in not": {"type": "object", "not": {"items": {"minLength": 1}}},
    "rules in all of": {"type": "string", "allOf": [{"x-kubernetes-validations": [rule("true")]}]},
    "additional in all of": {"type": "object", "allOf": [{"additionalProperties": STRING}]},
    "default of wrong type": {"type": "string", "default": 5},
    "default too short": {"type": "string", "minLength": 2, "default": "x"},
    "default with unknown field": {**fields(a=STRING), "default": {"b": 1}},
    "default below": fields(a={"type": "integer", "default": "x"}),
    "default breaks rule": {**ruled(INTEGER, "self > 5"), "default": 1},
    "default in items": list_of({"type": "integer", "default": "x"}),
    "good default": fields(a={"type": "integer", "default": 3}),
    "null default": {"type": "string", "nullable": True, "default": None},
    "rule on uncorrelated items": list_of(ruled(fields(a=INTEGER), "self.a == oldSelf.a"), maxItems=5),
    "rule on correlated items": list_of(
        ruled(fields(["k"], k=_SHORT, a=INTEGER), "self.a == oldSelf.a"),
        maxItems=5,
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    ),
    "rule on untyped": {"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-validations": [rule("true")]},
    "strange format": {"type": "string", "format": "strange"},
    "nullable": {"type": "object", "nullable": True},
}

# A schema before and after it got stricter, what an object looked like before, and updates to it
RATCHETED: tuple[Json, Json] = (
    fields(
        a=STRING,
        b=STRING,
        deep=fields(n=INTEGER, m=INTEGER),
        ports=_PORTS,
        tags=list_of(STRING, maxItems=9),
        tagged=list_of(STRING, maxItems=9, **{"x-kubernetes-list-type": "set"}),
        map={"type": "object", "additionalProperties": INTEGER},
        checked=INTEGER,
        moved=INTEGER,
    ),
    fields(
        a={"type": "string", "enum": ["good"]},
        b={"type": "string", "maxLength": 2},
        deep=fields(["z"], n={"type": "integer", "minimum": 10}, m={"type": "integer", "minimum": 10}, z=INTEGER),
        ports=list_of(
            fields(["name"], name=STRING, port={"type": "integer", "minimum": 100}),
            maxItems=10,
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
        tags=list_of({"type": "string", "maxLength": 1}, maxItems=9),
        tagged=list_of({"type": "string", "maxLength": 1}, maxItems=9, **{"x-kubernetes-list-type": "set"}),
        map={"type": "object", "additionalProperties": {"type": "integer", "minimum": 5}},
        checked=ruled(INTEGER, rule("self > 5", message="too small")),
        moved=ruled(INTEGER, rule("self == oldSelf", message="immutable")),
    ),
)
RATCHET_START: Json = {
    "a": "bad",
    "b": "too long",
    "deep": {"n": 1, "m": 2},
    "ports": [{"name": "x", "port": 1}, {"name": "y", "port": 2}],
    "tags": ["one", "two"],
    "tagged": ["one", "two"],
    "map": {"k": 1, "l": 2},
    "checked": 1,
    "moved": 1,
}
RATCHET_UPDATES: list[Json] = [
    RATCHET_START,
    {**RATCHET_START, "a": "worse"},
    {**RATCHET_START, "a": "good"},
    {**RATCHET_START, "b": "longer still"},
    {**RATCHET_START, "deep": {"n": 1, "m": 3}},
    {**RATCHET_START, "deep": {"n": 1, "m": 2, "z": 1}},
    {**RATCHET_START, "deep": {"n": 1}},
    {**RATCHET_START, "ports": [{"name": "y", "port": 2}, {"name": "x", "port": 1}]},
    {**RATCHET_START, "ports": [{"name": "x", "port": 3}, {"name": "y", "port": 2}]},
    {**RATCHET_START, "ports": [{"name": "x", "port": 1}, {"name": "z", "port": 2}]},
    {**RATCHET_START, "tags": ["one", "two", "three"]},
    {**RATCHET_START, "tagged": ["two", "one"]},
    {**RATCHET_START, "map": {"k": 1, "l": 3}},
    {**RATCHET_START, "map": {"k": 1, "l": 2, "m": 1}},
    {**RATCHET_START, "checked": 2},
    {**RATCHET_START, "checked": 9},
    {**RATCHET_START, "moved": 2},
    {**RATCHET_START, "checked": 2, "moved": 2},
    {key: value for key, value in RATCHET_START.items() if key != "moved"},
]

_SECOND: Json = {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}
_VERSION = "spec.versions.0"
_SCHEMA = f"{_VERSION}.schema.openAPIV3Schema"

# What is changed in a good definition: dotted path -> value
DEFINITIONS: dict[str, Json] = {
    "good": {},
    "wrong name": {"metadata.name": "wrong.example.org"},
    "no group": {"spec.group": ""},
    "group without dot": {"spec.group": "example", "metadata.name": "bads.example"},
    "bad group": {"spec.group": "Ex_ample.org", "metadata.name": "bads.Ex_ample.org"},
    "protected group": {"spec.group": "x.k8s.io", "metadata.name": "bads.x.k8s.io"},
    "protected group unapproved": {
        "spec.group": "x.k8s.io",
        "metadata": {"name": "bads.x.k8s.io", "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
    },
    "protected group badly approved": {
        "spec.group": "x.k8s.io",
        "metadata": {"name": "bads.x.k8s.io", "annotations": {"api-approved.kubernetes.io": "yes"}},
    },
    "bad scope": {"spec.scope": "World"},
    "no scope": {"spec.scope": ""},
    "no kind": {"spec.names.kind": ""},
    "bad kind": {"spec.names.kind": "not_a_kind"},
    "bad plural": {"spec.names.plural": "Bads", "metadata.name": "Bads.agreement.example.org"},
    "bad singular": {"spec.names.singular": "A b"},
    "same list kind": {"spec.names.listKind": "Bad"},
    "bad short name": {"spec.names.shortNames": ["ok", "Not Ok"]},
    "bad category": {"spec.names.categories": ["-"]},
    "no versions": {"spec.versions": []},
    "bad version name": {f"{_VERSION}.name": "V 1"},
    "no storage version": {f"{_VERSION}.storage": False},
    "two storage versions": {"spec.versions.1": {**_SECOND, "storage": True}},
    "same version twice": {"spec.versions.1": {**_SECOND, "name": "v1"}},
    "two good versions": {"spec.versions.1": _SECOND},
    "no schema": {f"{_VERSION}.schema": {}},
    "one version without schema": {"spec.versions.1": {"name": "v2", "served": True, "storage": False}},
    "bad schema in one of two versions": {
        "spec.versions.1": {**_SECOND, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}}}
    },
    "root is no object": {_SCHEMA: {"type": "string"}},
    "root without type": {_SCHEMA: {"properties": {"a": STRING}}},
    "root nullable": {_SCHEMA: {"type": "object", "nullable": True}},
    "root additional": {_SCHEMA: {"type": "object", "additionalProperties": STRING}},
    "root all of with status": {
        _SCHEMA: {"type": "object", "allOf": [{"required": ["spec"]}]},
        f"{_VERSION}.subresources": {"status": {}},
    },
    "root preserve": {_SCHEMA: {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    "metadata restricted": {
        _SCHEMA: {"type": "object", "properties": {"metadata": fields(name={"type": "string", "maxLength": 5})}}
    },
    "metadata labels": {_SCHEMA: {"type": "object", "properties": {"metadata": fields(labels=OBJECT)}}},
    "metadata string": {_SCHEMA: {"type": "object", "properties": {"metadata": STRING}}},
    "kind integer": {_SCHEMA: {"type": "object", "properties": {"kind": INTEGER}}},
    "default in metadata": {
        _SCHEMA: {"type": "object", "properties": {"metadata": fields(name={"type": "string", "default": "x"})}}
    },
    "rule at root": {_SCHEMA: ruled({"type": "object"}, "self.metadata.name.size() < 5 && self.kind == 'Bad'")},
    "rule at root on labels": {_SCHEMA: ruled({"type": "object"}, "self.metadata.labels.size() < 5")},
    "preserve unknown fields": {"spec.preserveUnknownFields": True},
    "bad columns": {
        f"{_VERSION}.additionalPrinterColumns": [
            {"name": "", "type": "", "jsonPath": ""},
            {"name": "a", "type": "text", "jsonPath": "spec.a", "format": "x"},
            {"name": "b", "type": "string", "jsonPath": ".spec.b", "priority": 1},
        ]
    },
    "bad scale": {f"{_VERSION}.subresources": {"scale": {"specReplicasPath": ".status.a", "statusReplicasPath": "x"}}},
    "empty scale": {f"{_VERSION}.subresources": {"scale": {"specReplicasPath": "", "statusReplicasPath": ""}}},
    "bad selector path": {
        f"{_VERSION}.subresources": {
            "scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a", "labelSelectorPath": ".x"}
        }
    },
    "selectable": {
        f"{_SCHEMA}.properties.spec": fields(a=STRING, n=INTEGER, o=OBJECT),
        f"{_VERSION}.selectableFields": [
            {"jsonPath": ".spec.a"},
            {"jsonPath": ".spec.a"},
            {"jsonPath": ".spec.o"},
            {"jsonPath": ".spec.x"},
            {"jsonPath": ".metadata.name"},
            {"jsonPath": ".spec['a']"},
            {"jsonPath": ""},
            {"jsonPath": "spec.n"},
        ],
    },
    "deprecation warning alone": {f"{_VERSION}.deprecationWarning": "old"},
    "deprecated": {f"{_VERSION}.deprecated": True, f"{_VERSION}.deprecationWarning": "use v2"},
    "empty deprecation warning": {f"{_VERSION}.deprecated": True, f"{_VERSION}.deprecationWarning": ""},
    "bad conversion": {"spec.conversion": {"strategy": "Magic"}},
    "webhook without strategy": {
        "spec.conversion": {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}
    },
    "unknown field": {"spec.foo": 1, f"{_SCHEMA}.properties.spec.bar": 2},
}


def put(obj: Any, path: str, value: Any) -> None:
    """Set what stands at a dotted path; numbers are places in lists."""
    *way, last = path.split(".")
    for name in way:
        obj = obj[int(name)] if isinstance(obj, list) else obj[name]
    if isinstance(obj, list):
        obj[int(last) : int(last) + 1] = [value]
    else:
        obj[last] = value
