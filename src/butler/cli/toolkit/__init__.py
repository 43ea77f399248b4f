"""What every command stands on: nothing in here knows a command.

lazy_commands.py     groups whose commands are imported only when they are called
options.py           the options that several commands share: where, how to show, whether to ask
session.py           one connection to one API server, and its errors as sentences with an exit code
exit_codes.py        the exit codes
objects.py           objects as the server has them and as Butler understands them
output.py            rows as a table, JSON, YAML, CSV, names or a template
template.py          the templates of `-o jsonpath=` and `-o custom-columns=`
follow.py            `--watch` and `--wait`
screen.py            one thing on one screen: facts, sections, sentences
terminal.py          width, colour, questions
streams.py           standard output and error, whatever the terminal can show
editor.py            the user's own editor
completion_names.py  names from the cluster, for shells that complete them
documents.py         manifests that commands take with `-f`
row_files.py         files of rows that `ipam import` takes
yaml_reader.py       YAML from users, within bounds
yaml_writer.py       YAML for users
kubeconfig_file.py   kubeconfig files, read and edited as `kubectl config` does it
"""
