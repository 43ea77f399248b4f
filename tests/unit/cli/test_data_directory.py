"""Who serves a data directory, where it cannot be looked into."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from butler.cli.local.data_directory import serving
from butler.cli.toolkit.session import Failure


def test_a_directory_of_another_user_is_forbidden_rather_than_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)  # permissions do not bind the administrator who may run this
    with pytest.raises(Failure, match=r"/theirs cannot be looked into \(Permission denied\)") as found:
        serving(Path("/theirs"))
    assert vars(found.value)["exit_code"] == 4
