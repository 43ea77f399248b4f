"""Parameters that many routes take, each with its limits and what it means."""

from __future__ import annotations

from typing import Annotated

from litestar.params import PathParameter, QueryParameter

from butler.server.list_page import MOST

Namespace = Annotated[str, PathParameter(description="Namespace of the object.", max_length=63)]
Name = Annotated[str, PathParameter(description="Name of the object.", max_length=253)]
Limit = Annotated[int, QueryParameter(ge=1, le=MOST, description="Items on a page.")]
Cursor = Annotated[str | None, QueryParameter(description="`next` of the page before.", max_length=2000)]
Text = Annotated[str, QueryParameter(description="Show only what has this text in it.", max_length=200)]
Sort = Annotated[str, QueryParameter(description="A field, or `-` and a field for the other way.", max_length=40)]
