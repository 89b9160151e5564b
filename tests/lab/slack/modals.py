"""The views that are open: one stack of modals a user (at most three high), and one App Home a user."""

from copy import deepcopy
from typing import Any

from tests.lab.slack.message import with_identifiers
from tests.lab.slack.viewcheck import refuse_bad_view
from tests.lab.slack.wire import Json, SlackError
from tests.lab.slack.workspace import Workspace

STACK_HEIGHT = 3


class Views:
    """Modals and homes of one app."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._count = 0
        self.stacks: dict[str, list[Json]] = {}
        self.homes: dict[str, Json] = {}
        self.home_enabled = True

    def open(self, user: str, view: Any) -> Json:
        """Show a modal; what was open for the user goes."""
        made = self._made(refuse_bad_view(view, "modal"), None, None)
        self._refuse_taken_name(made)
        self.stacks[user] = [made]
        self._workspace.touch()
        return made

    def push(self, user: str, view: Any) -> Json:
        """Put a modal on top of the user's stack."""
        checked = refuse_bad_view(view, "modal")
        stack = self.stacks.get(user) or []
        if not stack:
            raise SlackError("not_found")
        if len(stack) >= STACK_HEIGHT:
            raise SlackError("push_limit_reached")
        made = self._made(checked, stack[0]["id"], stack[-1]["id"])
        self._refuse_taken_name(made)
        stack.append(made)
        self._workspace.touch()
        return made

    def update(self, view: Any, view_id: object, external_id: object, view_hash: object) -> Json:
        """Replace an open modal in place."""
        user, old = self._find(view_id, external_id)
        checked = refuse_bad_view(view, str(old["type"]))
        if view_hash and view_hash != old["hash"]:
            raise SlackError("hash_conflict")
        made = self._made(checked, old["root_view_id"], old["previous_view_id"])
        made["id"] = old["id"]
        if old["root_view_id"] == old["id"]:
            made["root_view_id"] = old["id"]
        stack = self.stacks[user]
        stack[stack.index(old)] = made
        self._workspace.touch()
        return made

    def publish(self, user: object, view: Any, view_hash: object) -> Json:
        """Show an App Home."""
        if not isinstance(user, str) or user not in self._workspace.users:
            raise SlackError("user_not_found")
        if not self.home_enabled:
            raise SlackError("not_enabled")
        checked = refuse_bad_view(view, "home")
        old = self.homes.get(user)
        if view_hash and old and view_hash != old["hash"]:
            raise SlackError("hash_conflict")
        made = self._made(checked, None, None)
        made["id"] = made["root_view_id"] = old["id"] if old else made["id"]
        self.homes[user] = made
        self._workspace.touch()
        return made

    def top(self, user: str, view_id: str | None = None) -> Json | None:
        """The modal that the user sees, or the one of an id when it is open."""
        stack = self.stacks.get(user) or []
        if view_id is None:
            return stack[-1] if stack else None
        return next((view for view in stack if view["id"] == view_id), None)

    def close(self, user: str, view_id: str | None = None) -> Json | None:
        """Take away the top modal (or the one of an id); the closed one, if any."""
        view = self.top(user, view_id)
        if view is not None:
            self.stacks[user].remove(view)
            self._workspace.touch()
        return view

    def clear(self, user: str) -> None:
        """Close all modals of a user."""
        self.stacks.pop(user, None)
        self._workspace.touch()

    def _find(self, view_id: object, external_id: object) -> tuple[str, Json]:
        for user, stack in self.stacks.items():
            for view in stack:
                if view["id"] == view_id or (external_id and view["external_id"] == external_id):
                    return user, view
        raise SlackError("not_found")

    def _refuse_taken_name(self, made: Json) -> None:
        name = made["external_id"]
        open_views = [view for stack in self.stacks.values() for view in stack]
        if name and any(view["external_id"] == name for view in open_views):
            raise SlackError("duplicate_external_id")

    def _made(self, view: Json, root: str | None, previous: str | None) -> Json:
        self._count += 1
        app = self._workspace.app
        name = f"V{self._count:010d}"
        made = deepcopy(view)
        return {
            "callback_id": "",
            "private_metadata": "",
            "external_id": "",
            "title": None,
            "submit": None,
            "close": None,
            "clear_on_close": False,
            "notify_on_close": False,
            **made,
            "blocks": with_identifiers(made["blocks"], self._workspace.random),
            "id": name,
            "team_id": app.team_id,
            "app_id": app.app_id,
            "app_installed_team_id": app.team_id,
            "bot_id": app.bot_id,
            "hash": f"{int(self._workspace.clock())}.{self._count:08x}",
            "state": {"values": {}},
            "root_view_id": root or name,
            "previous_view_id": previous,
        }
