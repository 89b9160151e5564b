"""On the node: what is wrong here, and how do we know.

Everything in this package runs on every GPU node, so it imports only the standard library and msgspec. It
observes and reports; it never repairs. A finding says what is wrong. The bot and people decide what to do.
"""
