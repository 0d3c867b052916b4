"""What pages and programs send to a table: acts, as checked values."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from sabot_web.requests import Part, Short, ShownCredential

ActId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{8,64}$")]


class ActRequest(Part):
    """An act as a face gives it; see `TableSession.act`."""

    act_id: ActId
    need: Short | None = None
    seen: Annotated[int, Field(ge=0, lt=2**53)]
    act: Short
    data: Mapping[str, Any] = {}
    credential: ShownCredential | None = None
