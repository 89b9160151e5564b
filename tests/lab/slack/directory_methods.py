"""auth.*, apps.*, users.*, usergroups.* and views.*: who is who, and what they see besides messages."""

from tests.lab.slack.methods import Method, Site, needed, structure
from tests.lab.slack.viewcheck import refuse_bad_view
from tests.lab.slack.wire import Json, SlackError, missing
from tests.lab.slack.workspace import User


def auth_test(site: Site, args: Json) -> Json:
    """auth.test."""
    app = site.workspace.app
    return {
        "url": f"{site.root_url()}/",
        "team": app.team_name,
        "team_id": app.team_id,
        "user": app.name.lower(),
        "user_id": app.user_id,
        "bot_id": app.bot_id,
        "is_enterprise_install": False,
    }


def connections_open(site: Site, args: Json) -> Json:
    """apps.connections.open: an address with a ticket that works once."""
    address = site.root_url().replace("http", "ws", 1)
    return {"url": f"{address}/link/?ticket={site.new_ticket()}&app_id={site.workspace.app.app_id}"}


def user_info(site: Site, args: Json) -> Json:
    """users.info."""
    user = site.workspace.users.get(str(needed(args, "user")))
    if user is None:
        raise SlackError("user_not_found")
    return {"user": person(site, user)}


def user_by_email(site: Site, args: Json) -> Json:
    """users.lookupByEmail."""
    email = str(needed(args, "email")).lower()
    for user in site.workspace.users.values():
        if user.email and user.email.lower() == email and not user.deleted:
            return {"user": person(site, user)}
    raise SlackError("users_not_found")


def users(site: Site, args: Json) -> Json:
    """users.list, in one page."""
    return {
        "members": [person(site, user) for user in site.workspace.users.values()],
        "response_metadata": {"next_cursor": ""},
    }


def group_users(site: Site, args: Json) -> Json:
    """usergroups.users.list."""
    members = site.workspace.groups.get(str(needed(args, "usergroup")))
    if members is None:
        raise SlackError("no_such_subteam")
    return {"users": list(members)}


def groups(site: Site, args: Json) -> Json:
    """usergroups.list."""
    return {
        "usergroups": [
            {"id": name, "handle": name, "user_count": len(members)}
            for name, members in site.workspace.groups.items()
        ]
    }


def open_view(site: Site, args: Json) -> Json:
    """views.open."""
    view = refuse_bad_view(_view(args), "modal")
    user = site.grants.use_trigger(needed(args, "trigger_id"))
    return {"view": site.views.open(user, view)}


def push_view(site: Site, args: Json) -> Json:
    """views.push."""
    view = refuse_bad_view(_view(args), "modal")
    user = site.grants.use_trigger(needed(args, "trigger_id"))
    return {"view": site.views.push(user, view)}


def update_view(site: Site, args: Json) -> Json:
    """views.update."""
    if not args.get("view_id") and not args.get("external_id"):
        raise missing("view_id")
    return {
        "view": site.views.update(_view(args), args.get("view_id"), args.get("external_id"), args.get("hash"))
    }


def publish_view(site: Site, args: Json) -> Json:
    """views.publish."""
    return {"view": site.views.publish(needed(args, "user_id"), _view(args), args.get("hash"))}


def person(site: Site, user: User) -> Json:
    """A user on the wire."""
    return {
        "id": user.id,
        "team_id": site.workspace.app.team_id,
        "name": user.name.lower().replace(" ", "."),
        "real_name": user.name,
        "deleted": user.deleted,
        "is_bot": user.is_bot,
        "is_restricted": user.is_restricted,
        "is_ultra_restricted": False,
        "is_app_user": False,
        "tz": user.tz,
        "profile": {
            "real_name": user.name,
            "display_name": user.name,
            **({"email": user.email} if user.email else {}),
        },
    }


def _view(args: Json) -> object:
    view = structure(args, "view", "invalid_arguments")
    if view is None:
        raise missing("view")
    return view


METHODS = {
    "auth.test": Method(auth_test),
    "api.test": Method(lambda site, args: {"args": args}, token="none"),
    "apps.connections.open": Method(connections_open, token="app"),
    "users.info": Method(user_info, form_only=True),
    "users.lookupByEmail": Method(user_by_email, form_only=True),
    "users.list": Method(users, form_only=True),
    "usergroups.users.list": Method(group_users, form_only=True),
    "usergroups.list": Method(groups, form_only=True),
    "views.open": Method(open_view),
    "views.push": Method(push_view),
    "views.update": Method(update_view),
    "views.publish": Method(publish_view),
}
