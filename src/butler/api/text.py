"""Addresses and quantities as text: the patterns, and the CEL expressions that judge them.

Below this layer an address is an integer with a family; here it is what a person typed. The patterns are the
published contract and accept `999.1.1.1`, so a rule that parses stands beside each. CEL has address types that can
say whether a network contains an address, but none that can say which of two addresses comes first; `numbers` does
that for IPv4. Every expression holds (stays silent) on text that is no address: that complaint is made elsewhere.
"""

from butler.api.schema import Rule

IPV4 = r"^(\d{1,3}\.){3}\d{1,3}$"
IPV4_CIDR = r"^(\d{1,3}\.){3}\d{1,3}/\d{1,2}$"
IPV4_LENGTH = 15
IPV4_CIDR_LENGTH = 18

TIME = r"^[12]\d{3}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$"
"""Times that can be read everywhere. The format date-time of an API server is wider: it takes an offset of 24 hours,
and one such time makes a whole object unreadable to programs that keep to RFC 3339."""

QUANTITY = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"

LARGEST_RANGE = 65536
"""The most addresses one allocation may hold: its status lists them all, and an object has to fit into etcd."""


def is_ipv4(value: str) -> str:
    """CEL: whether the text is an IPv4 address."""
    return f"(isIP({value}) && ip({value}).family() == 4)"


def numbers(addresses: str) -> str:
    """CEL: a list of IPv4 texts as a list of integers, so that they can be compared."""
    octets = f"{addresses}.map(address, address.split('.').map(octet, int(octet)))"
    return f"{octets}.map(o, o[0] * 16777216 + o[1] * 65536 + o[2] * 256 + o[3])"


def in_order(first: str, last: str) -> str:
    """CEL: whether the first address is not after the last."""
    both = numbers(f"[{first}, {last}]")
    return f"!{is_ipv4(first)} || !{is_ipv4(last)} || {both}.isSorted()"


AN_IPV4_ADDRESS = Rule(
    expression="isIP(self) && ip(self).family() == 4",
    message="must be an IPv4 address, such as 10.40.1.0",
)

AN_ADDRESS = Rule(expression="isIP(self)", message="must be an IP address, such as 10.40.0.1")

A_NETWORK = Rule(expression="isCIDR(self)", message="must be a network in CIDR notation, such as 10.40.0.0/21")

NO_HOST_BITS = Rule(
    expression="!isCIDR(self) || cidr(self) == cidr(self).masked()",
    message="must be the network's first address, with no bits set after the prefix",
    message_expression="self + ' has bits set after its prefix: give the first address of the network'",
)


def an_ordered_range(first: str, last: str) -> Rule:
    """The rule that a part's first address is not after its last; both are names of its fields."""
    return Rule(
        expression=in_order(f"self.{first}", f"self.{last}"),
        message=f"{last} must not come before {first}",
        message_expression=f"'{last} ' + self.{last} + ' comes before {first} ' + self.{first}",
        field_path=f".{last}",
    )
