"""What the API sends and takes: a module for each subject, plain typed structs; the OpenAPI document is made of them.

Names are spelled in camelCase on the wire. Addresses are text, ranges have both ends included, times are RFC 3339.
"""
