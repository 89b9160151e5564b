"""The base models of the files of an incident and of a Repair's status."""

from typing import Final

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

API_VERSION: Final = "clusterwright.dev/v1alpha1"
"""API group and version of every file and custom resource of ours."""


class RecordValue(BaseModel):
    """A frozen value that refuses unknown fields and is serialised in camelCase."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class StatusValue(RecordValue):
    """A value in the status of a Repair: it ignores fields that a newer version wrote before a rollback."""

    model_config = ConfigDict(extra="ignore")
