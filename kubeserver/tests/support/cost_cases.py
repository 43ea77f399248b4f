"""Rules whose estimated cost a real kube-apiserver and ours must agree on.

The tables are data: `test_schema_agreement.py` asks both. An `EXACT` case is a schema and rules for it; each
is put below a list of just so many items that it is over the limit, where the answer tells its cost to the unit. A
`SPECS` case is the schema of a spec as it is, and `LIMITS` are rules and values on both sides of where they run out of
budget.
"""

from __future__ import annotations

from typing import Any

from schema_cases import INTEGER, STRING, fields, list_of, rule, ruled

Json = dict[str, Any]


def text(longest: int) -> Json:
    return {"type": "string", "maxLength": longest}


def map_of(values: Json, **more: Any) -> Json:
    return {"type": "object", "additionalProperties": values, **more}


def form(name: str, **more: Any) -> Json:
    return {"type": "string", "format": name, **more}


BOOLEAN: Json = {"type": "boolean"}
EITHER: Json = {"x-kubernetes-int-or-string": True}
_PEOPLE = list_of(
    fields(["name"], name=text(20), age=INTEGER, tags=list_of(text(10), maxItems=7), notes=map_of(text(12))),
    maxItems=11,
)
_EMBEDDED: Json = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {"spec": fields(a=text(9))},
}

EXACT: dict[str, tuple[Json, list[str]]] = {
    "integers": (
        INTEGER,
        [
            "self == 1",
            "self > 1",
            "self + 1 > self * 2 - 3 / 4 % 5",
            "-self < 0",
            "self in [1, 2, 3]",
            "type(self) == int",
            "string(self) == 'x'",
            "string(self).size() > 1",
            "double(self) > 1.5",
            "dyn(self) == 1",
            "self > 1 ? self < 5 : self == -1",
            "!(self == 1) && self != 2 || self > 3",
            "lists.range(5).exists(x, x == self)",
            "timestamp(self) < timestamp('2020-01-01T00:00:00Z')",
        ],
    ),
    "texts": (
        text(30),
        [
            "self == 'abcdefghijklmnop'",
            "self != oldSelf",
            "self < 'b'",
            "self.size() < 5",
            "size(self) < 5",
            "self.contains('abcdefghijklmnopqrstuvwxyz')",
            "self.startsWith('abcdefghijklmnopqrstuvwxyz')",
            "self.endsWith(self)",
            "self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "matches(self, 'abc')",
            "self.find('[0-9]+') == '42'",
            "self.findAll('[0-9]+').size() == 2",
            "self.findAll('[0-9]+', 3).all(x, x == 'a')",
            "self.lowerAscii() == self",
            "self.upperAscii().trim().substring(1, 3) == 'ab'",
            "self.charAt(2) == 'a'",
            "self.indexOf('a') > 1 && self.lastIndexOf('b', 3) < 5",
            "self.replace('a', 'bb') == 'x'",
            "self.replace('aaa', 'b') == self",
            "self.replace('', self) == self",
            "self.replace(self, 'xyz') == self",
            "self.replace('a', 'bb', 3).contains(self)",
            "self.split(',').size() > 1",
            "self.split(',').all(x, x == 'a')",
            "self.split(',', 4).all(x, x.size() > 1)",
            "self.split(',').join(';') == self",
            "self + self == 'abcdefghijklmnopqrstuvwxyz0123456789'",
            "'%s-%s'.format([self, self]) == 'x'",
            "bytes(self).size() == 1",
            "string(bytes(self)) == self",
            "strings.quote(self) == 'x'",
            "self in ['a', 'b', 'c']",
            "[self, 'b'].exists(x, x == self)",
            "{'a': self, 'b': 'c'}.all(k, k == self)",
            "{'a': self}['a'] == self",
            "[self][0] == self",
            "('a' == self ? self : 'bcdef') == self",
            "duration(self) > duration('1h')",
            "int(self) > 5",
            "isURL(self) && url(self).getHost() == 'a'",
            "url(self) == url('https://example.org/a/long/path')",
            "isIP(self) && ip(self).family() == 4 && ip(self) == ip('10.0.0.1')",
            "ip.isCanonical(self) && string(ip(self)).size() > 0",
            "isCIDR(self) && cidr(self).containsIP(self) && cidr(self).containsIP(ip(self))",
            "cidr(self).containsCIDR(self) && cidr(self).containsCIDR(cidr('10.0.0.0/8'))",
            "cidr(self).masked() == cidr(self) && cidr(self).ip().isLoopback() && cidr(self).prefixLength() > 5",
            "isQuantity(self) && quantity(self).add(quantity('1')).isGreaterThan(quantity('1Gi'))",
            "quantity(self) == quantity('1')",
            "isSemver(self) && semver(self).major() > 1 && semver(self) == semver('1.2.3')",
            "!format.dns1123Label().validate(self).hasValue()",
            "format.named('dns1123Label').hasValue()",
            "format.dns1123Label() == format.uri()",
        ],
    ),
    "enumerations": (
        {"type": "string", "enum": ["a", "bcd", "äöü"]},
        ["self == 'abcdefghijklmn'", "self + self != ''"],
    ),
    "times": (
        fields(at=form("date-time"), on=form("date"), span=form("duration"), raw=form("byte", maxLength=50)),
        [
            "self.at > timestamp('2020-01-01T00:00:00Z')",
            "self.at == self.on",
            "self.at + self.span < self.on",
            "self.at.getFullYear() > 2000 && self.span.getHours() > 1",
            "self.raw == b'hello, you there'",
            "string(self.raw).contains('abcdefghijklmn')",
            "self.raw.size() > 1",
        ],
    ),
    "either": (
        {**EITHER, "maxLength": 40},
        [
            "self == 5",
            "type(self) == int ? self < 5 : self.endsWith('%')",
            "self < 5",
            "type(self) == string && self.matches('^[0-9]+%$')",
        ],
    ),
    "objects": (
        fields(["n"], a=text(15), b=INTEGER, c=BOOLEAN, n=fields(["d"], d=text(5)), m=map_of(text(6), maxProperties=8)),
        [
            "has(self.a) || has(self.n.d)",
            "self.n.d == self.a",
            "self == oldSelf",
            "self.n == oldSelf.n",
            "self.?a.orValue('abc') == 'b'",
            "self.?b.orValue(5) == 5",
            "self.?n.?d.hasValue()",
            "self.?n.d.optMap(d, d.size()).orValue(3) > 2",
            "self.?n.optFlatMap(n, n.?d).hasValue()",
            "self.?b.optMap(b, b + 1) == optional.of(5)",
            "optional.of(self.a).value() == 'a' && optional.none().or(optional.of(1)).hasValue()",
            "optional.ofNonZeroValue(self.b).hasValue()",
            "self.c && self.b == 5",
            "'x' in self.m && self.m['x'] == self.a",
            "self.m.x == 'abcdefghijklm'",
            "self.m[?'x'].orValue('') == 'x'",
            "self.m.all(k, k == 'abcd')",
            "self.m.all(k, self.m[k] == 'abcd')",
            "self.m.exists(k, v, k == v)",
            "self.m.transformMap(k, v, v + 'x').all(k, k == 'a')",
            "self.m.transformMap(k, v, v == 'a', v).size() == 1",
            "self.m.transformMapEntry(k, v, {v: k}).size() == 1",
            "self.m.transformList(k, v, v).exists(x, x == 'abc')",
            "self.m.map(k, k).size() == 3",
            "self.m == oldSelf.m",
            "size(self.m) < 5",
        ],
    ),
    "lists": (
        list_of(text(12), maxItems=13),
        [
            "self.all(x, x == 'abcdefgh')",
            "self.exists(x, x.startsWith('a'))",
            "self.exists_one(x, x == 'a')",
            "self.existsOne(i, x, i > 1 && x == 'a')",
            "self.filter(x, x != 'a').size() > 1",
            "self.filter(x, x != 'a').all(y, y == 'bcdefghijklmnop')",
            "self.map(x, x + 'a').all(y, y == 'bcdefghijklmnop')",
            "self.map(x, x == 'a', x.size()).sum() > 5",
            "self.map(x, [x]).all(y, y.all(z, z == 'a'))",
            "self.all(x, self.all(y, x == y))",
            "self.all(x, self.exists_one(y, x == y) || self.filter(z, z == x).size() > 1)",
            "self.all(i, x, i >= 0 && x != '')",
            "self.transformList(i, x, x + 'b').size() > 3",
            "self.transformList(i, x, i > 2, x).join(',') == 'a'",
            "self == oldSelf",
            "self[0] == 'abcdefghij'",
            "self[?0].orValue('') == 'a'",
            "'abc' in self",
            "self + self == ['a']",
            "(self + ['abc']).all(x, x == 'abcdefg')",
            "self.isSorted() && self.min() == 'a' && self.max() == 'b'",
            "self.indexOf('a') == 1 && self.lastIndexOf('b') == 2",
            "self.join() == 'a' && self.join(', ') == 'abcdefghijklmnopqrstuvwxyz'",
            "self.sort() == self",
            "self.sortBy(x, x.size())[0] == 'a'",
            "self.sortBy(x, x).size() == 2",
            "self.distinct().size() == self.size()",
            "self.reverse() == self",
            "self.slice(1, 3) == ['a', 'b']",
            "self.slice(2, self.size()).size() == 3",
            "self.first().hasValue() && self.last().value() == 'a'",
            "[self].flatten().size() > 2",
            "sets.contains(self, ['a', 'b']) && sets.intersects(self, self)",
            "sets.equivalent(self, ['a', 'b'])",
            "['a', 'b'].map(x, self.filter(y, y == x)).all(z, z.size() == 1)",
            "self.map(x, {'a': x}).all(m, m.a == 'abcdef')",
            "[1, 2, 3].all(x, x > 0) && [].all(x, true)",
        ],
    ),
    "numbers": (
        list_of({"type": "number"}, maxItems=9),
        [
            "self.sum() > 1.5",
            "self.min() < self.max()",
            "self.all(x, x > 1.0)",
            "self.isSorted()",
            "self.sort()[0] > 1.0",
        ],
    ),
    "people": (
        _PEOPLE,
        [
            "self.all(p, p.name == 'abcdefghijklmn' && p.age > 5)",
            "self.all(p, p.tags.all(t, t == 'abcdefgh'))",
            "self.all(p, p.tags.exists(t, p.name.startsWith(t)))",
            "self.map(p, p.name).all(n, n.size() > 2)",
            "self.map(p, p.name).join(',') != ''",
            "self.filter(p, p.age > 3).all(p, p.name != 'a')",
            "self[0].tags[1].contains('abcdefghijk')",
            "self.sortBy(p, p.name)[0].age > 3",
            "self.all(p, self.exists(q, q.name == p.name && q.age > p.age))",
            "self == oldSelf",
        ],
    ),
    "embedded": (
        _EMBEDDED,
        ["self.metadata.name == self.spec.a", "self.kind == 'Pod' && self.metadata.name.size() < 5"],
    ),
    "sets": (list_of(INTEGER, maxItems=17, **{"x-kubernetes-list-type": "set"}), ["self == oldSelf", "5 in self"]),
}

_TALL = list_of(list_of(ruled(text(50), "self.contains('a')"), maxItems=100), maxItems=1000)

SPECS: dict[str, Json] = {
    "unbounded list of unbounded texts": list_of(ruled(STRING, "self.contains('x')")),
    "text with itself": ruled(STRING, "self.contains(self)"),
    "text with a literal": ruled(STRING, "self.contains('abc')"),
    "text with a pattern": ruled(STRING, "self.matches('^[a-z]+$')"),
    "text with a long pattern": ruled(STRING, f"self.matches('{'[a-z]' * 60}')"),
    "bounded text with itself": ruled(text(1000), "self.contains(self)"),
    "loop over unbounded list": ruled(list_of(INTEGER), "self.all(x, x > 0)"),
    "two rules over unbounded list": ruled(list_of(INTEGER), "self.all(x, x > 0)", "self.exists(x, x > 1)"),
    "loop in loop over unbounded list": ruled(list_of(INTEGER), "self.all(x, self.all(y, x == y))"),
    "loop in loop over bounded list": ruled(list_of(INTEGER, maxItems=1000), "self.all(x, self.all(y, x == y))"),
    "loop in loop over a longer list": ruled(list_of(INTEGER, maxItems=1500), "self.all(x, self.all(y, x == y))"),
    "loop in loop in loop": ruled(
        list_of(INTEGER, maxItems=100), "self.all(x, self.all(y, self.all(z, x == y || y == z)))"
    ),
    "unbounded list of integers": list_of(ruled(INTEGER, "self > 0")),
    "unbounded list of booleans": list_of(ruled(BOOLEAN, "self || !self")),
    "unbounded list of times": list_of(ruled(form("date-time"), "self.getFullYear() > 2000")),
    "unbounded list of spans": list_of(ruled(form("duration"), "self > duration('1h') && self < duration('5h')")),
    "unbounded list of either": list_of(ruled(EITHER, "self == 5")),
    "unbounded map": map_of(ruled(text(10), "self == 'a'")),
    "unbounded map of maps": map_of(map_of(ruled(INTEGER, "self + self + self + self > 5"))),
    "bounded map in unbounded list": list_of(map_of(ruled(INTEGER, "self > 5 && self < 9"), maxProperties=10)),
    "list of objects with required fields": list_of(
        ruled(fields(["name", "kind"], name=STRING, kind=STRING), "self.name == self.kind")
    ),
    "list of objects with defaults": list_of(
        ruled(
            fields(["name", "kind"], name={**STRING, "default": "a"}, kind={**text(5), "default": "b"}),
            "self.name == self.kind && self.kind != 'abcdefghijklmn'",
        )
    ),
    "list of objects with rules on fields": list_of(fields(a=ruled(text(30), "self == 'abcdefghijk' || self == ''"))),
    "bounded lists": _TALL,
    "bounded lists over the limit": list_of({**_TALL}, maxItems=60),
    "no items at all": list_of(ruled(STRING, "self.contains(self)"), maxItems=0),
    "negative limit": list_of(ruled(STRING, "self.contains(self)"), maxItems=-1),
    "several over the limit": fields(
        a=ruled(STRING, "self.contains(self)"),
        b=ruled(list_of(STRING), "self.all(x, x.contains('a'))"),
        c=list_of(ruled(INTEGER, "self > 1")),
    ),
    "together over the limit": fields(
        **{
            name: ruled(list_of(INTEGER, maxItems=1000 + place), "self.all(x, self.all(y, x == y))")
            for place, name in enumerate("abcdefghijklmnopqrst")
        }
    ),
    "together just below the limit": fields(
        **{name: ruled(list_of(INTEGER, maxItems=1000), "self.all(x, self.all(y, x == y))") for name in "abcdefghij"}
    ),
    # of rules that cost the same, Kubernetes names any four
    "many cheap rules over the limit": fields(
        **{
            name: list_of(ruled(INTEGER, "self > 1 && self < 99"), maxItems=1_200_000 + place * 1000)
            for place, name in enumerate("abcdefghijklmnopqrstuvwxyz")
        }
    ),
    "dear message": ruled(STRING, rule("self == 'a'", messageExpression="self + self + self + self + self")),
    "dear message of a list": ruled(
        list_of(STRING), rule("self.size() > 1", messageExpression="self.join(', ') + self.join(';')")
    ),
    "message with format": ruled(STRING, rule("self == 'a'", messageExpression="'%s is bad'.format([self])")),
    "message below an unbounded list": list_of(
        ruled(text(50), rule("self.size() > 5", messageExpression="'too short: ' + self"))
    ),
    "dear rule and dear message": ruled(
        list_of(STRING), rule("self.all(x, x.contains(x))", messageExpression="self.map(x, x.replace('a', 'b')).join()")
    ),
    "dear rule with a mistake": ruled(list_of(STRING), "self.all(x, x.contains(x))", "self.nope == 1"),
    "dear message with a mistake": ruled(STRING, rule("self.contains(self)", messageExpression="self.nope")),
    "dear rule on old values": ruled(list_of(STRING), "self.all(x, oldSelf.exists(y, x == y))"),
    "unknown size": ruled(INTEGER, "string(self).matches('^[a-z]+$')"),
    "optional text": ruled(fields(a=text(5)), "self.?a.orValue('').matches('^[a-z]+$')"),
    "addresses unlike": ruled(text(40), "ip(self) != ip('10.0.0.1')"),
    "quantities unlike": ruled(text(40), "quantity(self) != quantity('1')"),
    "quoted unknown": ruled(INTEGER, "strings.quote(string(self)).contains('a')"),
    "range of a field": ruled(INTEGER, "lists.range(self).size() > 1"),
    "distinct of unbounded": ruled(list_of(INTEGER), "self.distinct().size() == self.size()"),
    "sets of unbounded": ruled(fields(a=list_of(INTEGER), b=list_of(INTEGER)), "sets.contains(self.a, self.b)"),
    "sorted unbounded": ruled(list_of(STRING), "self.isSorted()"),
    "joined unbounded": ruled(list_of(STRING), "self.join(',') != ''"),
    "optional in lists": list_of(ruled(fields(a=STRING), "self.?a.optMap(a, a.size()).orValue(3) > 2")),
    "self below self": ruled(
        fields(a=ruled(fields(b=ruled(STRING, "self.contains(self)")), "self.b.contains(self.b)")),
        "self.a.b.contains(self.a.b)",
    ),
}

_NUMBERS = list_of(INTEGER, maxItems=600)
_EACH_WITH_EACH = "self.all(x, self.all(y, x == y))"
_LONGEST = 407  # for each with each

LIMITS: dict[str, tuple[Json, list[Any]]] = {
    "nested": (ruled(_NUMBERS, _EACH_WITH_EACH), [[0] * _LONGEST, [0] * (_LONGEST + 1)]),
    "nested-ends-early": (ruled(_NUMBERS, "self.all(x, self.exists(y, x == y))"), [[0] * 600]),
    "nested-exists": (ruled(_NUMBERS, "self.all(x, !self.exists(y, y > 1))"), [[0] * 407, [0] * 408]),
    "looked-up": (ruled(list_of(INTEGER, maxItems=1100), "self.all(x, x in self)"), [[0] * 997, [0] * 998]),
    "rules-after": (
        fields(a=ruled(_NUMBERS, _EACH_WITH_EACH, "self.size() == 0")),
        [{"a": [0] * (_LONGEST + 1)}, {"a": [0] * _LONGEST}],
    ),
    "all-together": (
        list_of(ruled(_NUMBERS, _EACH_WITH_EACH), maxItems=3),
        [[[0] * _LONGEST] * 3, [[0] * _LONGEST, [0] * 500, [0]]],
    ),
    "all-rules-together": (ruled(_NUMBERS, *[f"{_EACH_WITH_EACH} && {n} > 0" for n in range(1, 12)]), [[0] * _LONGEST]),
    "dear-message": (
        ruled(_NUMBERS, rule("self.size() == 0", messageExpression=f"{_EACH_WITH_EACH} ? 'alike' : 'unlike'")),
        [[0] * (_LONGEST - 1), [0] * (_LONGEST + 1)],
    ),
    "errors-cost-too": (
        ruled(_NUMBERS, *[f"{_EACH_WITH_EACH} && {n} / (self.size() - 407) > 0" for n in range(1, 12)]),
        [[0] * _LONGEST],
    ),
}
