"""On the node: what is wrong here, and how do we know.

Everything in this package runs on every GPU node, so it imports the standard library and msgspec and
nothing heavier. It looks and reports; it never repairs. A finding says what is wrong; what to do about it
is decided by the bot and by people.
"""
