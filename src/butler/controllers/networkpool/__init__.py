"""The NetworkPool controller: the only allocator.

Read `controller` for the protocol, then `plan` for the decision. `holdings` knows who holds what, `claims` and
`claiming` keep pools from overlapping, `conditions` and `outcomes` say it to people, `writes` carries grants out.
"""
