"""Slack's rules for what sits inside a block: text objects, options, confirm dialogs, elements."""

from tests.lab.slack.schema import (
    Check,
    anything,
    boolean,
    both,
    by_type,
    choice,
    either,
    items,
    number,
    shape,
    string,
)

IDENTIFIER = string(255)
URL = string(3000, pattern=r"^(https?|mailto|slack):")


def plain(most: int, least: int = 1) -> Check:
    """A plain_text object."""
    fields = {"type": choice("plain_text"), "text": string(most, least), "emoji": boolean}
    return shape(fields, ("type", "text"))


def text(most: int) -> Check:
    """A text object, plain_text or mrkdwn."""
    mrkdwn = {"type": anything, "text": string(most), "verbatim": boolean}
    return by_type({"plain_text": plain(most), "mrkdwn": shape(mrkdwn, ("type", "text"))})


CONFIRM = shape(
    {
        "title": plain(100),
        "text": text(300),
        "confirm": plain(30),
        "deny": plain(30),
        "style": choice("primary", "danger"),
    },
    ("title", "text"),
)


def _option(label: Check) -> Check:
    fields = {"text": label, "value": string(150), "description": text(75), "url": URL}
    return shape(fields, ("text", "value"))


PLAIN_OPTION = _option(plain(75))
RICH_OPTION = _option(text(75))
OPTION_GROUP = shape({"label": plain(75), "options": items(PLAIN_OPTION, 100)}, ("label", "options"))


def _element(fields: dict[str, Check], required: tuple[str, ...] = ()) -> Check:
    every = {"type": anything, "action_id": IDENTIFIER, "focus_on_load": boolean, "confirm": CONFIRM}
    return shape({**every, **fields}, ("type", *required))


def _select(**extra: Check) -> Check:
    return _element({"placeholder": plain(150), **extra})


BUTTON = _element(
    {
        "text": plain(75),
        "value": string(2000, 0),
        "url": URL,
        "style": choice("primary", "danger"),
        "accessibility_label": string(75),
    },
    ("text",),
)
STATIC_SELECT = both(
    _select(
        options=items(PLAIN_OPTION, 100), option_groups=items(OPTION_GROUP, 100), initial_option=PLAIN_OPTION
    ),
    either("options", "option_groups"),
)
MULTI_SELECT = both(
    _select(
        options=items(PLAIN_OPTION, 100),
        option_groups=items(OPTION_GROUP, 100),
        initial_options=items(PLAIN_OPTION, 100),
        max_selected_items=number(1, 100),
    ),
    either("options", "option_groups"),
)
TEXT_INPUT = _element(
    {
        "multiline": boolean,
        "initial_value": string(3000, 0),
        "min_length": number(0, 3000),
        "max_length": number(1, 3000),
        "placeholder": plain(150),
        "dispatch_action_config": anything,
    }
)
IMAGE = shape(
    {"type": anything, "image_url": URL, "alt_text": string(2000), "slack_file": anything},
    ("type", "alt_text"),
)

CHOOSERS = {
    "static_select": STATIC_SELECT,
    "multi_static_select": MULTI_SELECT,
    "users_select": _select(initial_user=string(20)),
    "channels_select": _select(initial_channel=string(20)),
    "conversations_select": _select(initial_conversation=string(20), default_to_current_conversation=boolean),
    "radio_buttons": _element(
        {"options": items(RICH_OPTION, 10), "initial_option": RICH_OPTION}, ("options",)
    ),
    "checkboxes": _element(
        {"options": items(RICH_OPTION, 10), "initial_options": items(RICH_OPTION, 10)}, ("options",)
    ),
    "datepicker": _select(initial_date=string(10, pattern=r"^\d{4}-\d\d-\d\d$")),
    "timepicker": _select(initial_time=string(5, pattern=r"^\d\d:\d\d$"), timezone=string(60)),
    "datetimepicker": _element({"initial_date_time": number(0, 9_999_999_999)}),
}
OVERFLOW = _element({"options": items(PLAIN_OPTION, 5)}, ("options",))

INTERACTIVE = by_type({"button": BUTTON, "overflow": OVERFLOW, **CHOOSERS})
ACCESSORY = by_type({"button": BUTTON, "overflow": OVERFLOW, "image": IMAGE, **CHOOSERS})
INPUT = by_type({"plain_text_input": TEXT_INPUT, **CHOOSERS})
