"""What every command stands on. Commands import from here what they need, and nothing else of each other.

lazy.py         groups whose commands are imported only when they are called
options.py      the options that several commands share: where, how to show, whether to ask
session.py      one connection to one API server, and its errors as sentences with an exit code
exits.py        the exit codes
output.py       rows as a table, JSON, YAML, CSV, names or a template
template.py     the templates of `-o jsonpath=` and `-o custom-columns=`
following.py    `--watch` and `--wait`
terminal.py     width, colour, questions
names.py        names from the cluster, for shells that complete them
"""
